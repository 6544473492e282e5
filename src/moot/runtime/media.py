"""The configured image and transcription models, for tools. Each call is recorded as an exchange in the conversation's log."""

from __future__ import annotations

from dataclasses import dataclass

from moot.plugins import Registry
from moot.runtime.aside import recorded
from moot.runtime.runtime import Runtime
from moot.types.context import Choice
from moot.types.media import Made, Media, MediaCall, Order

__all__ = ["ConfiguredMedia"]

_CALLS = Registry("moot.media", {"draw": "moot.providers.media:draw", "transcribe": "moot.providers.media:transcribe"})
"""Loaded by name, because most runs don't need them."""


@dataclass(frozen=True, slots=True)
class ConfiguredMedia:
    """`MediaModels` with the models in the current configuration."""

    runtime: Runtime
    conversation: str

    async def draw(self, order: Order) -> Made:
        choice = await self.runtime.providers.choice(role="image")
        return await self._made(choice, await _CALLS.load("draw")(choice, order))

    async def transcribe(self, sound: Media, language: str = "") -> Made:
        choice = await self.runtime.providers.choice(role="transcription")
        return await self._made(choice, await _CALLS.load("transcribe")(choice, sound, language))

    async def _made(self, choice: Choice, call: MediaCall) -> Made:
        return await call.made(await recorded(self.runtime, self.conversation, choice, call))
