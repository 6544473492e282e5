"""The context that a leg gives to agents and tools: ports, media models, and search in earlier conversations."""

from __future__ import annotations

from dataclasses import dataclass

from moot.plugins import Registry
from moot.runtime.auxiliary import record_media_call
from moot.runtime.runtime import Runtime
from moot.types.context import Choice
from moot.types.media import ImageRequest, Media, MediaCall, MediaResult
from moot.types.search import Search, SearchPage
from moot.types.store import Blobs


@dataclass(frozen=True, slots=True)
class OwnSearch:
    """`Past` for the owner of a conversation."""

    index: Search
    """The search index of the owner's conversations."""
    conversation: str
    """The conversation of the current run."""

    async def search(self, query: str, *, limit: int, best: bool, here: bool) -> SearchPage:
        return await self.index.search(query, limit=limit, best=best, exclude=None if here else self.conversation)


class LegPorts:
    """The `Ports` of a leg. Blobs are limited to those that the conversation's owner may read."""

    def __init__(self, runtime: Runtime, blobs: Blobs) -> None:
        self.blobs = blobs
        self.now, self.jitter, self.sleep, self.slot = runtime.now, runtime.jitter, runtime.sleep, runtime.slot


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
