"""What `moot import` says of all that programs keep besides their conversations."""

from __future__ import annotations

from pathlib import Path

from moot.cli.output import Output
from moot.guard.terminal import clean
from moot.runtime.importing.configuring import counted
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

__all__ = ["besides_json", "print_besides"]

_NOTES = 20


def besides_json(found: ForeignConfiguration) -> JsonObject:
    return {"pieces": found.pieces, "unsupported": found.unsupported, "notes": list[Json](found.notes)}


def print_besides(found: ForeignConfiguration, file: Path | None, output: Output) -> None:
    """Counts, notes, and where it stands or could be written."""
    counts = ", ".join(f"{count:,} {name}" for name, count in counted(found).items())
    if not counts and not found.unsupported:
        return
    where = (
        f"written to {str(file)!r}, which nothing reads: copy from it what you want"
        if file is not None
        else "--configuration FILE writes it"
    )
    output.say(f"moot: besides conversations: {counts or 'nothing that there is a place for'}; {where}")
    for note in found.notes[:_NOTES]:
        output.say(f"  {clean(note)}", "dim")
    if len(found.notes) > _NOTES:
        output.say(
            f"  and {len(found.notes) - _NOTES:,} more, in the file" if file is not None else f"  and {len(found.notes) - _NOTES:,} more"
        )
