"""The configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from moot.server.wire.base import In, Out


class FaultOut(Out):
    """Why the file as it stands is not in force."""

    file: str
    line: int
    column: int
    message: str


class ConfigOut(Out):
    """What is in force, secrets masked, and which layer decided each value."""

    generation: int
    """Counts successful loads."""
    error: FaultOut | None
    """null = the file as it stands is in force."""
    home: str
    config: dict[str, JsonValue]
    origin: dict[str, str]
    """Dotted key → layer and place."""
    notes: list[str]


class ConfigIn(In):
    """Values to write into the configuration file, all or none."""

    values: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_@:/-]+(\.[A-Za-z0-9_@:/-]+)*$", max_length=300)], JsonValue],
        Field(min_length=1, max_length=100),
    ]
    """Dotted key → value, as in `{"models.main": "…"}`."""
