"""The context that a leg gives to agents and tools: ports, media models, search in earlier conversations, and the ToolContext."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from moot.plugins import Registry
from moot.runtime.auxiliary import record_media_call
from moot.runtime.runtime import Runtime
from moot.types.canonical import Json, JsonObject
from moot.types.context import Choice
from moot.types.media import ImageRequest, Media, MediaCall, MediaModels, MediaResult
from moot.types.search import HistorySearch, Search, SearchPage
from moot.types.store import Blobs
from moot.types.tool import Question

__all__ = ["ConfiguredMedia"]


@dataclass(frozen=True, slots=True)
class OwnSearch:
    """`Past` for the owner of a conversation."""

    index: Search
    """The search index of the owner's conversations."""
    conversation: str
    """The conversation of the current run."""

    async def search(self, query: str, *, limit: int, best: bool, here: bool) -> SearchPage:
        return await self.index.search(query, limit=limit, best=best, exclude=None if here else self.conversation)


@dataclass(frozen=True, slots=True)
class LegPorts:
    """The `Ports` of a leg. Blobs are limited to those that the conversation's owner may read."""

    runtime: Runtime
    blobs: Blobs

    def now(self) -> int:
        """Return the wall time in µs."""
        return self.runtime.now()

    def jitter(self) -> float:
        """Return a random number from 0 to 1."""
        return self.runtime.jitter()

    async def sleep(self, seconds: float) -> None:
        """Sleep; cancellable."""
        await self.runtime.sleep(seconds)

    def slot(self, provider: str) -> AbstractAsyncContextManager[object]:
        """Implement `Ports.slot`."""
        return self.runtime.slot(provider)


_CALLS = Registry("moot.media", {"draw": "moot.providers.media:draw", "transcribe": "moot.providers.media:transcribe"})
"""Imported lazily by name, because most runs don't need them."""


@dataclass(frozen=True, slots=True)
class ConfiguredMedia:
    """`MediaModels` with the models in the current configuration."""

    runtime: Runtime
    conversation: str

    async def draw(self, order: ImageRequest) -> MediaResult:
        choice = await self.runtime.providers.choice(role="image")
        return await self._made(choice, await _CALLS.load("draw")(choice, order))

    async def transcribe(self, sound: Media, language: str = "") -> MediaResult:
        choice = await self.runtime.providers.choice(role="transcription")
        return await self._made(choice, await _CALLS.load("transcribe")(choice, sound, language))

    async def _made(self, choice: Choice, call: MediaCall) -> MediaResult:
        return await call.made(await record_media_call(self.runtime, self.conversation, choice, call))


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tooling:
    """The `ToolContext` of a call. Its callables access only the parts of the leg that they need."""

    directory: Path
    roots: tuple[Path, ...]
    settings: JsonObject
    key: str
    blobs: Blobs
    media: MediaModels
    past: HistorySearch
    drawer: Callable[[str, Callable[[], object]], object]
    questions: Callable[[tuple[Question, ...]], Awaitable[tuple[tuple[str, ...], ...]]]
    client: Callable[[JsonObject], Awaitable[JsonObject]]
    preliminary: Callable[[Json], Awaitable[None]]
    fact: Callable[[JsonObject], Awaitable[None]]

    def kept(self, name: str, make: Callable[[], T]) -> T:
        return self.drawer(name, make)  # pyright: ignore[reportReturnType]  one name, one maker, one type

    async def ask(self, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
        return await self.questions(questions)

    async def client_output(self, arguments: JsonObject) -> JsonObject:
        return await self.client(arguments)

    async def report(self, value: Json) -> None:
        await self.preliminary(value)

    async def note(self, body: JsonObject) -> None:
        await self.fact(body)
