"""Declarations of command-line arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

Kind: TypeAlias = Literal["", "agent", "conversation", "file", "format", "model", "provider", "tool"]

LATEST = "@latest"
"""Value of `-c` without an id: the newest conversation of the working directory."""

PREVIOUS = "@previous"
"""Value of `--reply`: the conversation used last, in any directory."""

ALL_TOOLS = "@all"
"""Value of `--tools` without names."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Metadata of one command argument, used in `Annotated`.

    An argument whose type is a dataclass needs none: each field of the dataclass is an option.
    """

    name: str | tuple[str, ...] = ()
    """Option names, long ones first. Empty means `--` and the argument's own name."""
    help: str = ""
    metavar: str = ""
    """Name of the value in help pages. Empty means that it is derived from the kind, the type or the argument's name."""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    """Exclusive minimum."""
    kind: Kind = ""
    """Kind of values that shell completion offers, in addition to the choices of a Literal."""
    implied: str = ""
    """Value of the option if it is given without one. Empty means that a value is required."""
    accepts: Callable[[str], bool] | None = None
    """With `implied`: returns whether the next word is the option's value. A value after `=` is always accepted."""
    parse: bool = True
    """False for an argument that `main` passes in."""


Plain = Parameter(parse=False)
"""Marker of the `Lines` that a command without an event loop writes to."""

Limit = Annotated[int, Parameter(metavar="N", minimum=1, maximum=200, help="Maximum number of results, from 1 to 200.")]
Cursor = Annotated[str | None, Parameter(metavar="CURSOR", help="Start of the page: the previous page's next_cursor.")]
AsJson = Annotated[bool, Parameter(name="--json", help="Print one JSON document to stdout.")]
