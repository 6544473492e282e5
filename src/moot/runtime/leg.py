"""The RunContext of a leg (the part of a run between two waits): log, journal, inbox and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from moot.convert.fold import Folder
from moot.convert.history import estimate
from moot.guard.roots import folders
from moot.runtime import requests
from moot.runtime.context import ConfiguredMedia, LegPorts, OwnSearch
from moot.runtime.history import WHOLE, load_history, summarize_history
from moot.runtime.journal import Journal
from moot.runtime.outside import OutsideLeg
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent, in_project, step_setup
from moot.types import chunk
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject
from moot.types.context import Result, StepSetup, Unknown, Verdict
from moot.types.conversation import DEFAULT_PROJECT, Project
from moot.types.crash import point
from moot.types.event import Event
from moot.types.message import Message
from moot.types.model import ModelRole
from moot.types.run import RunRequest
from moot.types.served import Served
from moot.types.store import Change, Fence, Fold, InboxItem, Store, Use
from moot.types.tool import Question, Tool, ToolContext

T = TypeVar("T")

ASKING = "tool-approval-request"

HISTORY_PAGE = 64
"""Number of messages to read first."""

_NO_PROJECT = Project(DEFAULT_PROJECT, DEFAULT_PROJECT)


async def events_of(store: Store, fence: Fence) -> list[Event]:
    """Return all events of the run so far, in order."""
    events: list[Event] = []
    while page := await store.log.read(fence.conversation, after=events[-1].seq if events else 0, run=fence.run):
        events += page
    return events


def folded(events: Sequence[Event]) -> Folder:
    """Return the fold of a run's events."""
    folder = Folder()
    _feed(folder, events)
    return folder


def _feed(folder: Folder, events: Sequence[Event]) -> None:
    for event in events:
        folder.feed_all(event.chunks)


def step_open(events: Sequence[Event], before: bool = False) -> bool:
    """Return whether a step is open after these events. `before` tells whether a step was open before them."""
    for event in events:
        for piece in event.chunks:
            if (kind := piece["type"]) == "start-step":
                before = True
            elif kind == "finish-step":
                before = False
    return before


class Leg(OutsideLeg):
    """RunContext for one claim of a run. Created and ended by `drive`, which owns its cancel scope."""

    def __init__(
        self,
        runtime: Runtime,
        request: RunRequest,
        fence: Fence,
        message: Message,
        events: Sequence[Event],
        inbox: Sequence[InboxItem] | None = None,
        project: Project = _NO_PROJECT,
    ) -> None:
        """`inbox` has the messages that had arrived when the leg started; None = not read."""
        super().__init__()
        self.runtime = runtime
        self.request = request
        self.fence = fence
        self.index = Journal(events)
        self.asked = frozenset(str(piece.get("approvalId")) for event in events for piece in event.chunks if piece["type"] == ASKING)
        holdings = runtime.store.of(request.conversation.owner)
        self.ports = LegPorts(runtime, holdings.blobs)
        self.past = holdings.search
        self._message = message
        self._events = list(events)
        self._inbox = inbox
        self._project = project
        self._history: list[Message] = []
        self._history_whole = False
        self._shortened = False
        self.folder = folded(events)
        self.step_open = step_open(events)
        """True if the last step event in the log is a start."""
        self._order = asyncio.Lock()
        self.torn = False
        """True if the result of an append is unknown, so that fold and index may lack events of the log."""

    async def append(self, *events: Event, changes: Sequence[Change] = (), sync: bool = False, fold: bool = False) -> range:
        now = self.runtime.clock.now()
        run = self.fence.run
        stamped = [event if event.at else event._replace(run=run, at=now) for event in events]
        async with self._order:  # serialized, because a stored fold must contain exactly the events before it in the log
            await mend(self)
            folder = self.folder
            if fold:
                folder = Folder(folder.parts(), folder.metadata())
                _feed(folder, stamped)
                changes = (*changes, Fold(folder.parts(), folder.metadata()))
            try:
                seqs = await self.runtime.store.log.append(self.fence.conversation, stamped, fence=self.fence, changes=changes, sync=sync)
            except BaseException:  # a cancelled task does not learn whether its append was committed
                self.torn = True
                self.runtime.hub.touch(self.fence.conversation)
                raise
            if not fold:
                _feed(folder, stamped)
            self.folder = folder
            self.step_open = step_open(stamped, self.step_open)
            for event in stamped:
                if event.key is not None:
                    self.index.add(event)
            self.runtime.hub.publish(self.fence.conversation, seqs, stamped)
        return seqs

    async def journal(self) -> list[Event]:
        """Return the events that existed when the leg started."""
        return self._events

    async def history(self, tokens: int) -> list[Message]:
        served = Served.of(self.request.settings)
        if served is not None and served.history and not self._history_whole:
            self._history = await load_history(self.runtime.store, served.history)
            self._history_whole = True
        # in pages, so that the cost of a step does not grow with the conversation
        before = self._message.parent
        while before and not self._history_whole and sum(estimate(message.parts) for message in self._history) < tokens:
            limit = max(HISTORY_PAGE, 4 * len(self._history))
            self._history = await self.runtime.store.conversations.branch(self.fence.conversation, head=before, limit=limit)
            self._history_whole = len(self._history) < limit
        if self.request.run.agent_type != "moot" and tokens >= WHOLE and not self._shortened:
            self._shortened = True  # an outside agent gets the history as one text; the loop trims it itself
            self._history, notes = await summarize_history(self.runtime, self.fence.conversation, self._history)
            if notes:
                await self.append(Event("chunks", notes))
        return self._history

    def message(self) -> Message:
        own = self._message
        return Message(
            id=own.id,
            role="assistant",
            parts=self.folder.parts(),
            metadata=self.folder.metadata(),
            conversation=own.conversation,
            parent=own.parent,
            run=self.fence.run,
            status="streaming",
        )

    async def setup(self, role: ModelRole = "main") -> StepSetup:
        runtime, request = self.runtime, self.request
        agent = in_project(find_agent(runtime.settings, request.run.agent, request.settings), self._project)
        return await step_setup(
            runtime.settings, runtime.providers, agent, request.run, request.conversation, role=role, now=runtime.clock.now()
        )

    async def once(
        self, key: str, *, idempotent: bool, work: Callable[[], Awaitable[Result]], body: JsonObject, verdict: Verdict | None = None
    ) -> Result | Unknown:
        attempt = self.index.next_attempt(key)
        for earlier in range(attempt):
            if (ended := self.index.ends.get(f"{key}.{earlier}")) is not None:
                value = ended.body.get("value") if isinstance(ended.body, dict) else None
                return Result(value, ended.chunks)
        if attempt and not idempotent:
            mark = f"{key}.{attempt - 1}"
            return Unknown(mark, self.index.starts[mark].at, self.index.notes.get(mark, {}))
        mark = f"{key}.{attempt}"
        uses = (Use(verdict.approval, verdict.digest),) if verdict is not None and verdict.approval else ()
        await self.append(Event("journal", phase="start", key=mark, body=body), changes=uses, sync=not idempotent)
        point("tool.started")
        result = await work()
        point("tool.worked")
        await self.append(
            Event("chunks", result.chunks, phase="end", key=mark, body={"value": result.value}), sync=not idempotent, fold=True
        )
        point("tool.ended")
        return result

    def standing(self, key: str) -> Literal["new", "begun", "ended"]:
        return self.index.standing(key)

    async def allow(self, tool: Tool, key: str, tool_call: str, arguments: bytes, subject: str) -> Verdict:
        return await requests.allow(self, tool, key, tool_call, arguments, subject)

    async def ask(self, key: str, approval: Approval) -> Answer:
        return await requests.ask(self, approval)

    async def inbox(self) -> list[InboxItem]:
        found, self._inbox = self._inbox, None
        if found is not None:  # later messages are read at the next border, or keep the run from ending
            return list(found)
        return await self.runtime.store.records.inbox(self.fence.run)

    def tool_context(self, tool: Tool, key: str, tool_call: str) -> ToolContext:
        return Tooling(self, tool, key, tool_call)


class Tooling:
    """The `ToolContext` of a call."""

    def __init__(self, leg: Leg, tool: Tool, key: str, tool_call: str) -> None:
        conversation = leg.request.conversation
        self.directory = Path(conversation.directory or ".").absolute()
        self.roots = folders(conversation.allowed_uris) or (self.directory,)
        self.settings = leg.runtime.settings.tools.get(tool.name, {})
        self.key = f"{leg.fence.run}/{key}"
        self.blobs = leg.ports.blobs
        self.media = ConfiguredMedia(leg.runtime, conversation.id)
        self.past = OwnSearch(leg.past, conversation.id)
        self._leg = leg
        self._tool = tool
        self._key = key
        self._tool_call = tool_call

    def kept(self, name: str, make: Callable[[], T]) -> T:
        return self._leg.runtime.drawers.kept(self._leg.request.conversation.id, f"{self._tool.name}:{name}", make)

    async def ask(self, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
        return await requests.question(self._leg, self._tool, self._key, self._tool_call, questions)

    async def client_output(self, arguments: JsonObject) -> JsonObject:
        return await requests.client_output(self._leg, self._tool, self._key, self._tool_call, arguments)

    async def report(self, value: Json) -> None:
        await self._leg.append(Event("chunks", ({**chunk.tool_output(self._tool_call, value), "preliminary": True},)))

    async def note(self, body: JsonObject) -> None:
        attempt = max(self._leg.index.next_attempt(self._key) - 1, 0)
        await self._leg.append(Event("journal", key=f"{self._key}.{attempt}", body=body), sync=True)
        point("tool.noted")


async def mend(leg: Leg) -> None:
    """Rebuild fold and index if the log may have more events."""
    if leg.torn:
        events = await events_of(leg.runtime.store, leg.fence)
        leg.folder, leg.index, leg.step_open = folded(events), Journal(events), step_open(events)
        leg.torn = False
