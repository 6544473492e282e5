"""`moot completion words`: what the shells' scripts ask."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.parameters import Parameter, Plain
from moot.cli.completing.lines import split
from moot.cli.completing.offering import offer
from moot.cli.completing.scripts import Shell
from moot.cli.lines import Lines
from moot.guard.terminal import clean

_BREAKS = frozenset("=:@")
"""Where bash takes a word apart."""


def words(
    shell: Annotated[Shell, Parameter(help="Who asks.")],
    line: Annotated[str, Parameter(help="The command line up to the cursor.")],
    last: Annotated[str, Parameter(help="What the shell takes for the last word, which it wants replaced.")] = "",
    /,
    *,
    output: Annotated[Lines, Plain],
) -> None:
    """What fits at the end of a command line, one to a line with a word about it; nothing when anything goes wrong."""
    try:
        half = split(line)
        found = offer(half) if half else None
    except Exception:  # noqa: BLE001  somebody is typing: an error has no place in their line, and the next Enter says it
        return
    if half is None or found is None:
        return
    cut = _cut(half.part, last) if shell == "bash" and not half.quoted else 0
    for value, about in found.values:
        text = value[cut:]
        if shell == "bash" and not half.quoted:
            text = text.replace(" ", "\\ ")
        output.data(f"{text}\t{' '.join(clean(about).split())}\n")
    if found.files:
        output.data(":files\n")


def _cut(part: str, last: str) -> int:
    """How much of the word bash keeps: what stands before that which it takes for the last word."""
    kept = len(part) if not last or last in _BREAKS else len(part) - len(last) if part.endswith(last) else 0
    return kept - (part[kept - 1 : kept] == "@")  # which marks host names for bash: it is replaced along with what follows
