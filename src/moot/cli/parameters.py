"""What a command says of one of its arguments: its flags, its words in the help, its limits, what completes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

Kind: TypeAlias = Literal["", "agent", "conversation", "file", "format", "model", "provider", "tool"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """Stands in the `Annotated` of a command's argument. A keyword whose type is a dataclass needs none: its fields are flags."""

    name: str | tuple[str, ...] = ()
    """The flags as typed, long ones first; empty = `--` and the argument's own name."""
    help: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    """Like `least`, but itself not allowed."""
    kind: Kind = ""
    """What the shell offers for it; empty = nothing but its choices."""
    parse: bool = True
    """False = handed in by `main`, not typed by anybody."""


Plain = Parameter(parse=False)
"""Of the `Lines` that a bare command writes to."""

Limit = Annotated[int, Parameter(least=1, most=200, help="At most that many, 1 to 200.")]
Cursor = Annotated[str | None, Parameter(help="Where the last page ended: its next_cursor.")]
AsJson = Annotated[bool, Parameter(name="--json", help="One JSON document on stdout.")]
