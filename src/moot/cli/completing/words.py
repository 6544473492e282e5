"""The command `moot completion words`, which the completion scripts call."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.parameters import Parameter, Plain
from moot.cli.completing.lines import split
from moot.cli.completing.offering import candidates
from moot.cli.completing.scripts import Shell
from moot.cli.lines import Lines
from moot.guard.terminal import clean

_BREAKS = frozenset("=:@")
"""Characters at which bash splits words."""


def words(
    shell: Annotated[Shell, Parameter(help="Shell that asks.")],
    line: Annotated[str, Parameter(help="Command line up to the cursor.")],
    last: Annotated[str, Parameter(help="Last word according to the shell, which replaces it.")] = "",
    /,
    *,
    output: Annotated[Lines, Plain],
) -> None:
    """Print the candidates for a command line, one per line with a description. Print nothing if an error occurs."""
    try:
        half = split(line)
        found = candidates(half) if half else None
    except Exception:  # noqa: BLE001  an error must not appear while the user is typing
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
    """Return how many characters of the word bash keeps in front of its last word."""
    kept = len(part) if not last or last in _BREAKS else len(part) - len(last) if part.endswith(last) else 0
    return kept - (part[kept - 1 : kept] == "@")  # @ marks host names in bash and is replaced with the word
