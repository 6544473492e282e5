"""Services that a leg gives to agents and tools: ports, media models, and search in earlier conversations and documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from moot.plugins import Registry
from moot.runtime.auxiliary import media_call, record_media_call
from moot.runtime.runtime import Runtime
from moot.types.blob import Blobs
from moot.types.canonical import Json
from moot.types.context import Choice, ToolHooks
from moot.types.knowledge import Documents, KnowledgeHit, KnowledgeScope
from moot.types.media import ImageRequest, Media, MediaCall, MediaResult, Transcripts
from moot.types.message import Message
from moot.types.search import Search, SearchPage
from moot.types.tool import Tool
from moot.types.tree import Tree


@dataclass(frozen=True, slots=True)
class OwnSearch:
    """`HistorySearch` for the owner of a conversation."""

    index: Search
    """The search index of the owner's conversations."""
    tree: Tree
    conversation: str
    """Id of the current run's conversation."""

    async def search(self, query: str, *, limit: int, best: bool, here: bool) -> SearchPage:
        page = await self.index.search(query, limit=limit, best=best, exclude=None if here else self.conversation)
        held: set[str] = set()  # prompts that must not be sent to a model
        for conversation in {hit.conversation for hit in page.hits}:
            held |= await self.tree.withheld(conversation, [hit.message for hit in page.hits if hit.conversation == conversation])
        return replace(page, hits=tuple(hit for hit in page.hits if hit.message not in held)) if held else page


@dataclass(frozen=True, slots=True)
class OwnKnowledge:
    """`KnowledgeSearch` for a conversation."""

    runtime: Runtime
    owner: str
    scope: KnowledgeScope

    async def search(self, query: str, *, limit: int) -> Sequence[KnowledgeHit]:
        return await self.runtime.library(self.owner).search(query, self.scope, limit=limit)


class LegPorts:
    """The `Ports` of a leg. Blobs are limited to those that the conversation's owner may read."""

    def __init__(
        self,
        runtime: Runtime,
        blobs: Blobs,
        tool_hooks: Callable[[], ToolHooks | None],
        recorded: Callable[[Tool, Json], AbstractAsyncContextManager[object]],
        transcripts: Transcripts,
    ) -> None:
        self.blobs = blobs
        self.transcripts = transcripts
        self._recorded = recorded
        self._runtime = runtime
        self._tool_hooks = tool_hooks
        self.now, self.jitter, self.sleep, self.slot = runtime.now, runtime.jitter, runtime.sleep, runtime.slot

    def recorded(self, tool: Tool, input: Json) -> AbstractAsyncContextManager[object]:
        return self._recorded(tool, input)

    @property
    def documents(self) -> Documents:
        return self._runtime.documents

    @property
    def hooks(self) -> ToolHooks | None:
        return self._tool_hooks() if self._runtime.settings.hooks else None


_CALLS = Registry("moot.media", {"draw": "moot.providers.media:draw", "transcribe": "moot.providers.media:transcribe"})
"""Imported lazily by name, because most runs don't need them."""


@dataclass(frozen=True, slots=True)
class ConfiguredMedia:
    """`MediaModels` with the models in the current configuration."""

    runtime: Runtime
    conversation: str = ""
    """Id of the conversation in which the calls are recorded; empty = they are not recorded."""

    async def draw(self, order: ImageRequest) -> MediaResult:
        choice = await self.runtime.providers.choice(role="image")
        return await self._made(choice, await _CALLS.load("draw")(choice, order))

    async def transcribe(self, sound: Media, language: str = "") -> MediaResult:
        choice = await self.runtime.providers.choice(role="transcription")
        return await self._made(choice, await _CALLS.load("transcribe")(choice, sound, language))

    async def _made(self, choice: Choice, call: MediaCall) -> MediaResult:
        if not self.conversation:
            return await call.made(await media_call(self.runtime, choice, call))
        return await call.made(await record_media_call(self.runtime, self.conversation, choice, call))


@dataclass(frozen=True, slots=True)
class OwnTranscripts:
    """`Transcripts` for a run, made with the model in the current configuration."""

    runtime: Runtime
    conversation: str
    prompt: str | None
    """Id of the message that the run answers."""
    answer: str
    """Id of the run's own message."""

    @property
    def is_configured(self) -> bool:
        return self.runtime.settings.models.transcription != ""

    async def make(self, sound: Media) -> MediaResult:
        return await ConfiguredMedia(self.runtime, self.conversation).transcribe(sound)

    async def other_answers(self) -> Sequence[Message]:
        store = self.runtime.store
        nodes = [node for node in await store.tree.nodes(self.conversation) if node.parent == self.prompt and node.id != self.answer]
        return [await store.conversations.message(node.id) for node in nodes if node.role == "assistant"]
