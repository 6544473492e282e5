"""Report of `moot import` about other programs' configuration."""

from __future__ import annotations

from pathlib import Path

from moot.cli.output import Output
from moot.guard.terminal import clean
from moot.runtime.importing.configuring import counted
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

__all__ = ["configuration_json", "print_configuration"]

_NOTES = 20


def configuration_json(found: ForeignConfiguration) -> JsonObject:
    return {"pieces": found.pieces, "unsupported": found.unsupported, "notes": list[Json](found.notes)}


def print_configuration(found: ForeignConfiguration, file: Path | None, output: Output) -> None:
    """Print counts and notes, and where the configuration was or can be written."""
    counts = ", ".join(f"{count:,} {name}" for name, count in counted(found).items())
    if not counts and not found.unsupported:
        return
    where = (
        f"written to {str(file)!r} for reference; moot does not read this file"
        if file is not None
        else "write it to a file with --configuration FILE"
    )
    output.say(f"moot: configuration found: {counts or 'nothing that moot supports'}; {where}")
    for note in found.notes[:_NOTES]:
        output.say(f"  {clean(note)}", "dim")
    if len(found.notes) > _NOTES:
        output.say(
            f"  and {len(found.notes) - _NOTES:,} more, in the file" if file is not None else f"  and {len(found.notes) - _NOTES:,} more"
        )
