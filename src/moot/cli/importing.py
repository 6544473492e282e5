"""`moot import`: conversations out of a file, of whatever format."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

from moot.cli.configured import here
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.parameters import Parameter
from moot.convert.given import conversation_json
from moot.errors import UsageError
from moot.runtime.importing import Imported, format_of, imported
from moot.types.canonical import Json, JsonObject

_NOTES = 20
"""Lines that are told of; the number of the others is."""


async def import_(
    file: Annotated[Path, Parameter(kind="file", help="The file, or the folder, that another program wrote.")],
    /,
    *,
    format: Annotated[str, Parameter(name=("--format", "-f"), help="What it is; without it that is found out.")] = "",
    agent_type: Annotated[
        str,
        Parameter(name="--agent-type", help="Whose stream a capture is: the agent_type; else it is found out."),
    ] = "",
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Say what would come in, and store nothing.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Brings conversations in; what is here already is not brought in again."""
    if not file.exists():
        raise UsageError(f"there is no {str(file)!r}", fix="moot import FILE")
    found: list[Imported] = []
    async with opened(output) as engine:
        reader = format_of(file, format)
        each = imported(engine.store, reader, file.absolute(), agent_type=agent_type, directory=str(here()), dry_run=dry_run)
        async with aclosing(each) as conversations:
            async for one in conversations:
                found.append(one)
                if not json:
                    _say(one, output)
        if any(one.outcome == "added" for one in found):
            await engine.store.search.index(seconds=30)
    if json:
        output.json({"format": reader.name, "data": [_one_json(one) for one in found]})
    elif not found:
        output.say(f"moot: {str(file)!r} holds no conversation", "yellow")
    return 0 if not any(one.recording.fidelity.lost for one in found) else 1


def _say(one: Imported, output: Output) -> None:
    name = one.conversation.title or one.conversation.id
    match one.outcome:
        case "known":
            more = f"; the file has {one.grown:,} events more, which were not added" if one.grown else "; nothing was added"
            output.say(f"moot: {name} is here already, as {one.conversation.id[:13]}{more}")
            return
        case "added":
            output.line(one.conversation.id)
            output.say(f"moot: added {name}; moot chat show {one.conversation.id[:13]}")
        case _:
            output.say(f"moot: would add {name}")
    fidelity = one.recording.fidelity
    for word, counts in (("kept", fidelity.kept), ("approximated", fidelity.approximated), ("lost", fidelity.lost)):
        if counts:
            output.say(
                f"  {word}: {', '.join(f'{count:,} {thing}' for thing, count in counts.items())}", "yellow" if word == "lost" else "dim"
            )
    for note in one.recording.notes[:_NOTES]:
        output.say(f"  {note}", "yellow")
    if len(one.recording.notes) > _NOTES:
        output.say(f"  and {len(one.recording.notes) - _NOTES:,} more", "yellow")


def _one_json(one: Imported) -> JsonObject:
    fidelity, recording = one.recording.fidelity, one.recording
    return {
        "outcome": one.outcome.replace(" ", "-"),
        "conversation": conversation_json(one.conversation, {}),
        "source_id": recording.source_id,
        "agent_type": recording.conversation.agent_type,
        "grown": one.grown,
        "fidelity": {"kept": _counts(fidelity.kept), "approximated": _counts(fidelity.approximated), "lost": _counts(fidelity.lost)},
        "notes": list[Json](recording.notes),
    }


def _counts(counts: Mapping[str, int]) -> JsonObject:
    return dict(counts)
