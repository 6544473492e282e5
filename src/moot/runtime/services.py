"""Services that a leg gives to agents and tools: ports, media models, search, skills, tasks, and moot's configuration within its rights."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import anyio.to_thread

from moot.agents.known import agent_named, known_agents
from moot.config.loader import FILE, load
from moot.config.secrets import mask_secrets
from moot.config.settings import NANO, Settings
from moot.errors import NotFound, Refused, UsageError
from moot.guard.roots import allowed_folders, is_below
from moot.guard.sandbox.scratch import Scratch
from moot.plugins import Registry
from moot.plugins.registry import attribute, hint
from moot.runtime.auxiliary import media_call, record_media_call
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent, has_folder, skills_for
from moot.tools.catalogue import tools_for
from moot.types import chunk
from moot.types.agent import Agent
from moot.types.blob import Blobs
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.context import Choice, ToolHooks
from moot.types.conversation import Conversation, Project
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.knowledge import Documents, KnowledgeHit, KnowledgeScope
from moot.types.media import ImageRequest, Media, MediaCall, MediaResult, Transcripts
from moot.types.message import Message
from moot.types.run import RunRequest
from moot.types.search import Search, SearchPage
from moot.types.task import DEPTH, WATCHER, Author, Task, TaskComment, TaskFilter
from moot.types.token import LOCAL_USER
from moot.types.tool import Tool
from moot.types.tree import Tree

if TYPE_CHECKING:
    from moot.types.skill import ScriptRun, Skill, SkillSelection


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


class Append(Protocol):
    """`RunContext.append`."""

    async def __call__(self, *events: Event) -> object: ...


class Citations:
    """The sources of a run's answer: web pages, numbered from 1 in the order in which the answer contains them."""

    def __init__(self, message: Callable[[], Message], append: Append) -> None:
        """`message` returns the run's own message as it is now."""
        self._message = message
        self._append = append
        self._lock = asyncio.Lock()
        """Held while sources are numbered and appended, so that concurrent calls get different numbers."""

    async def cite(self, pages: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        """Implement `ToolContext.cite`."""
        async with self._lock:
            numbers: dict[str, int] = {}
            for part in self._message().parts:
                if part.get("type") == "source-url":
                    numbers.setdefault(str(part.get("url")), len(numbers) + 1)
            new: list[Chunk] = []
            for url, title in pages:
                if url not in numbers:
                    numbers[url] = len(numbers) + 1
                    new.append(chunk.source(url, title))
            if new:
                await self._append(Event("chunks", tuple(new)))
        return tuple(numbers[url] for url, _ in pages)


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


CHANGEABLE = (
    *("models.main", "models.small", "models.compaction", "models.image", "models.transcription"),
    *("ui.theme", "ui.animations", "ui.progress", "ui.title"),
)
"""The keys that may be set to any valid value. None of them starts a program, sends data to a new place, or changes permissions."""

LIMITS = ("cost", "tokens", "seconds", "steps", "repeats", "depth", "runs_per_user", "subagents_per_user", "subagents_per_run")
"""The keys of `limits` that may be lowered."""

_WRITTEN = "moot.config.changes:set_value"
"""Loaded by path, because YAML is only needed to write."""


class Caller(Protocol):
    """The part of a leg that services need."""

    runtime: Runtime
    request: RunRequest
    project: Project


class RunSkills:
    """`SkillAccess` of a run."""

    def __init__(self, leg: Caller) -> None:
        self._leg = leg

    async def activate(self, name: str) -> Skill:
        skill = await self._found(name)
        home, now = self._leg.runtime.settings.home, self._leg.runtime.now() // 1000
        key = attribute("moot.skills.decisions:key_of")(home, skill.folder)
        await anyio.to_thread.run_sync(attribute("moot.skills.decisions:mark_used"), home, key, now)
        return skill

    async def read(self, name: str, file: str) -> bytes:
        skill = await self._found(name)
        return await anyio.to_thread.run_sync(attribute("moot.skills.content:read_file"), skill.folder, file)

    async def prepare(self, name: str, revision: str, command: str) -> ScriptRun:
        skill = await self._found(name)
        scratch = self._leg.runtime.drawers.kept(self._leg.request.conversation.id, "sandbox", Scratch).folder  # deleted after a crash too
        return await anyio.to_thread.run_sync(attribute("moot.skills.selection:prepare"), skill, revision, command, scratch)

    async def _found(self, name: str) -> Skill:
        return attribute("moot.skills.selection:named")(await selection_of(self._leg), name)


async def selection_of(leg: Caller) -> SkillSelection | None:
    """Return the skills that a run may use, with their digests, or None if there are none."""
    request, settings = leg.request, leg.runtime.settings
    conversation = request.conversation
    agent = find_agent(settings, request.run.agent, request.settings, conversation.directory)
    return await skills_for(settings, agent, conversation, leg.project, hashed=True)


class RunTasks:
    """`ProjectTasks` of a run. Changes are marked with the run and with the watcher that started it."""

    def __init__(self, leg: Caller) -> None:
        conversation = leg.request.conversation
        self._leg = leg
        self._tasks = leg.runtime.store.of(conversation.owner).tasks
        self._project = conversation.project

    async def list(self, conditions: TaskFilter, *, limit: int) -> tuple[list[Task], bool]:
        page = await self._tasks.list(self._project, conditions, limit=limit)
        return list(page.items), page.next_cursor is not None

    async def get(self, task: str) -> Task:
        return await self._tasks.get(self._project, task)

    async def comments(self, task: str, *, limit: int) -> list[TaskComment]:
        return list((await self._tasks.comments(self._project, task, limit=limit)).items)[::-1]

    async def create(self, fields: JsonObject) -> Task:
        return await self._tasks.create(Task(new_id(), self._project, ""), await self._author(), fields)

    async def update(self, task: str, fields: JsonObject) -> Task:
        return await self._tasks.update(self._project, task, fields, await self._author())

    async def comment(self, task: str, text: str) -> Task:
        await self._tasks.comment(self._project, task, text, await self._author())
        return await self.get(task)

    async def _author(self) -> Author:
        """Return the author of changes. For a sub-agent, the watcher and the depth are those of the topmost run."""
        run = first = self._leg.request.run
        while first.parent_run is not None:
            first = await self._leg.runtime.store.records.run(first.parent_run)
        depth = first.settings.get(DEPTH)
        return Author(run.agent, run.id, str(first.settings.get(WATCHER) or ""), depth if isinstance(depth, int) else 0)


class RunAdministration:
    """`Administration` for a run."""

    def __init__(self, leg: Caller) -> None:
        self._leg = leg

    async def read(self, key: str) -> Json:
        self._check_owner()
        found: Json = mask_secrets(await anyio.to_thread.run_sync(self._configuration))
        steps = key.split(".") if key else []
        for step in steps:
            if not isinstance(found, dict) or step not in found:
                known = [*found] if isinstance(found, dict) else []
                raise NotFound(
                    f"The configuration has no key {key!r}.{hint(step, known)}", fix=f"Available keys: {', '.join(known) or 'none'}."
                )
            found = found[step]
        return found

    def _configuration(self) -> JsonObject:
        home = self._leg.runtime.settings.home
        return load(home=home, environ=os.environ, directory=home).configuration

    async def change(self, key: str, value: Json) -> Json:
        self._check_owner()
        settings = self._leg.runtime.settings
        section, _, name = key.partition(".")
        if section == "limits" and name in LIMITS:
            _check_lower(settings, name, value)
        elif key not in CHANGEABLE:
            known = [*CHANGEABLE, *(f"limits.{name}" for name in LIMITS)]
            raise Refused(
                f"The key {key!r} can't be changed by a tool.{hint(key, known)}", fix=f"Keys that can be changed: {', '.join(known)}."
            )
        if section == "models":
            if not isinstance(value, str) or "${" in value:
                raise UsageError(f"Expected a model name, got {value!r}.", fix="moot models list")
            await self._leg.runtime.providers.choice(value)
        before = await self.read(key)
        await anyio.to_thread.run_sync(attribute(_WRITTEN), settings.home / FILE, key, value, os.environ)
        return before

    async def create_agent(self, name: str, values: JsonObject) -> str:
        self._check_owner()
        request, settings = self._leg.request, self._leg.runtime.settings
        directory = request.conversation.directory
        if name in known_agents() or agent_named(settings, name, directory) is not None:
            raise UsageError(f"Agent {name!r} already exists.", fix="Choose another name.")
        own = find_agent(settings, request.run.agent, request.settings, directory)
        _check_rights(values, own, self._tools(own), request.conversation)
        if own.mcp is not None:
            values = {**values, "mcp": list[Json](own.mcp)}
        create = attribute("moot.config.changes:create_agent")
        return str(await anyio.to_thread.run_sync(create, settings, name, values))

    def _tools(self, agent: Agent) -> set[str]:
        folder = has_folder(self._leg.request.conversation)
        return {tool.name for tool in tools_for(self._leg.runtime.settings, agent, folder=folder)}

    def _check_owner(self) -> None:
        if self._leg.request.conversation.owner != LOCAL_USER:
            raise Refused("Only the owner of this moot home can read and change the configuration.")


def _check_lower(settings: Settings, name: str, value: Json) -> None:
    """Raise Refused unless the value is a limit that is not higher than the current one."""
    wanted = attribute("moot.config.schema.basics:seconds")(value) if name == "seconds" else value
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or wanted <= 0:
        raise UsageError(f"Expected a number greater than 0 for limits.{name}, got {value!r}.", fix="Only a person can remove a limit.")
    current = getattr(settings.limits, name)
    if current and wanted * (NANO if name == "cost" else 1) > current:
        raise Refused(f"limits.{name} can only be lowered. Its current value is {current / NANO if name == 'cost' else current:g}.")


def _check_rights(values: Mapping[str, Json], own: Agent, tools: set[str], conversation: Conversation) -> None:
    """Raise Refused if the new agent would have a right that the calling agent lacks."""
    wanted = {key: set(map(str, cast("list[Json]", values.get(key) or []))) for key in ("tools", "agents", "allowed_uris")}
    if own.role == "read" and values.get("role") != "read":
        raise Refused("This agent may only read, so the new agent needs the role 'read'.")
    for key, allowed in (("tools", tools), ("agents", set(own.agents))):
        if missing := sorted(wanted[key] - allowed):
            raise Refused(f"The new agent can't have {key} that this agent doesn't have: {', '.join(missing)}.")
    roots = [str(folder) for folder in allowed_folders(conversation, Path(conversation.directory or "/nonexistent"))]
    for folder in sorted(wanted["allowed_uris"]):
        if not any(is_below(folder, root) for root in roots):
            raise Refused(f"The new agent can't use the folder {folder!r}, because this conversation can't use it.")
