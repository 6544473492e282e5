"""Images and audio: the models of types image and transcription, and their calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ending, Purpose
from moot.types.message import Message
from moot.types.provider import Translator
from moot.types.usage import Usage


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes with their media type."""

    data: bytes
    media_type: str
    name: str = ""
    """File name, if known."""


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """A request for an image."""

    prompt: str
    size: str = ""
    """`WIDTHxHEIGHT` in pixels; empty = the model's default. Not every API has such a parameter."""
    sources: tuple[Media, ...] = ()
    """Images to start from."""


@dataclass(frozen=True, slots=True)
class MediaResult:
    """The result of a media model."""

    model: str
    """The model, as `model@provider`."""
    pictures: tuple[Media, ...] = ()
    text: str = ""
    """The transcript of a recording, or text that came with an image."""
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Cost in nano-dollars; None = unknown."""


@dataclass(frozen=True, slots=True)
class MediaResponse:
    """The complete response to a call."""

    raw: bytes
    chunks: tuple[Chunk, ...]
    ending: Ending
    cost: int | None


@dataclass(frozen=True, slots=True)
class MediaCall:
    """A call that is ready to be made and recorded as an exchange."""

    purpose: Purpose
    dialect: str
    request: bytes
    """The exact bytes to send."""
    translator: Translator[Any]
    reads: Callable[[], AsyncGenerator[tuple[Raw, ...], None]]
    """Function that starts the call. The call may raise ProviderError, and so may the first read."""
    made: Callable[[MediaResponse], Awaitable[MediaResult]]
    """Function that interprets the response. It raises ProviderError if there is no result."""


@runtime_checkable
class TakesSound(Protocol):
    """Optional capability of a dialect: requests can contain sound."""

    sounds: frozenset[str]
    """Media types of the recordings that requests can contain."""


class Transcripts(Protocol):
    """Transcripts of recordings in a conversation."""

    @property
    def is_configured(self) -> bool:
        """True if there is a model that transcribes."""
        ...

    async def make(self, sound: Media) -> MediaResult:
        """Return a recording's transcript. Raise UsageError or ProviderError if the model can't make one."""
        ...

    async def other_answers(self) -> Sequence[Message]:
        """Return the other answers to the run's prompt, which may contain transcripts."""
        ...


class MediaModels(Protocol):
    """The configured image and transcription models. Each call may raise UsageError or ProviderError."""

    async def draw(self, order: ImageRequest) -> MediaResult:
        """Return at least one image."""
        ...

    async def transcribe(self, sound: Media, language: str = "") -> MediaResult:
        """Return a recording's transcript; `language` is a hint such as `de`."""
        ...
