"""What a terminal can show."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """Of a terminal."""

    width: int
    colour: bool
    unicode: bool = True
    motion: bool = True
