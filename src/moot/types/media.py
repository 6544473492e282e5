"""Pictures and sound: what tools ask of the models of the types image and transcription."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ending, Purpose
from moot.types.provider import Translator
from moot.types.usage import Usage

SOUND_BYTES = 25_000_000
"""Of a recording; vendors take no more."""

SOURCE_BYTES = 20_000_000
"""Of a picture that another is made from."""


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes with their kind."""

    data: bytes
    media_type: str
    name: str = ""
    """A file name, as far as there is one."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a picture shall show."""

    prompt: str
    size: str = ""
    """`WIDTHxHEIGHT` in pixels; empty = as the model likes. Not every wire can say it."""
    sources: tuple[Media, ...] = ()
    """Pictures to go from."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a model made of what it was given."""

    model: str
    """`model@provider`"""
    pictures: tuple[Media, ...] = ()
    text: str = ""
    """What was said in a recording, or beside a picture."""
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Nano-dollars; None = unknown."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came back of a call, whole."""

    raw: bytes
    chunks: tuple[Chunk, ...]
    ending: Ending
    cost: int | None


@dataclass(frozen=True, slots=True)
class MediaCall:
    """A call that is ready to be made, and recorded as an exchange."""

    purpose: Purpose
    dialect: str
    request: bytes
    """What goes out, to the byte."""
    translator: Translator[Any]
    reads: Callable[[], AsyncGenerator[tuple[Raw, ...], None]]
    """Makes it. Raises ProviderError, at the first read too."""
    made: Callable[[Heard], Awaitable[Made]]
    """Raises ProviderError when there is nothing of use in what came back."""


class MediaModels(Protocol):
    """The models of the types image and transcription, as the configuration names them. Each call raises UsageError, ProviderError."""

    async def draw(self, order: Order) -> Made:
        """At least one picture."""
        ...

    async def transcribe(self, sound: Media, language: str = "") -> Made:
        """What is said in a recording; `language` is a hint, as `de`."""
        ...
