"""The RunContext of a leg (the part of a run between two waits): log, journal, inbox and answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from moot.agents.journal import is_hand_over
from moot.agents.window import off_loop, sent_tokens
from moot.convert.fold import Folder
from moot.convert.history import for_model
from moot.convert.vendor import as_object
from moot.errors import LimitReached
from moot.guard.roots import allowed_folders, is_below
from moot.plugins.registry import attribute
from moot.runtime.approvals import requests
from moot.runtime.children import LegChildren, with_children
from moot.runtime.cron import RunJobs
from moot.runtime.history import WHOLE, StoredHistory, compact_for_run, load_history, stored_history, summarize_history
from moot.runtime.journal import Journal
from moot.runtime.outside import OutsideLeg, ask_during
from moot.runtime.runtime import Runtime
from moot.runtime.services import (
    Citations,
    ConfiguredMedia,
    LegPorts,
    OwnKnowledge,
    OwnSearch,
    OwnTranscripts,
    RunAdministration,
    RunSkills,
    RunTasks,
)
from moot.runtime.setup import (
    confined,
    find_agent,
    has_folder,
    limits_of,
    load_project_agents,
    mcp_servers_for,
    options_of,
    step_setup,
    successor_of,
    with_mode,
)
from moot.tools.memory import memory_folders
from moot.types import chunk
from moot.types.agent import Agent, Mode
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject
from moot.types.context import Result, StepSetup, Unknown, Verdict
from moot.types.conversation import DEFAULT_PROJECT, Project
from moot.types.crash import point
from moot.types.event import Event
from moot.types.hooks import HookAnswer
from moot.types.knowledge import KnowledgeScope, knowledge_folders
from moot.types.limits import QUESTION, Limits
from moot.types.message import Message
from moot.types.model import ModelRole
from moot.types.run import Run, RunRequest
from moot.types.sandbox import Access, Confinement
from moot.types.served import Served
from moot.types.store import Change, Fence, Fold, InboxItem, Park, Store, Use
from moot.types.token import LOCAL_USER
from moot.types.tool import Question, Tool, ToolContext, ToolServices

if TYPE_CHECKING:
    from moot.agents.checkpoints import Recorder

T = TypeVar("T")

ASKING = "tool-approval-request"

_TOOL_HOOKS = "moot.runtime.hooks.events:tool_hooks"
"""Loaded by path, because most configurations have no hooks."""

_RECORDER = "moot.agents.checkpoints:Recorder"
"""Loaded by path, because most runs change no files."""

_BUDGETS = "moot.runtime.approvals.budgets:check_budgets"
"""Loaded by path, because most configurations have no budgets."""

_WRITERS = frozenset({"write_file", "edit_file", "generate_image"})
"""Tools that write only the file that their argument `path` names."""

_NO_FOLDER = Path(os.devnull)
"""Directory of conversations without a folder: nothing is below it, and no program starts in it."""

_NO_PROJECT = Project(DEFAULT_PROJECT, DEFAULT_PROJECT)


async def events_of(store: Store, fence: Fence) -> list[Event]:
    """Return all events of the run so far, in order."""
    events: list[Event] = []
    while page := await store.log.read(fence.conversation, after=events[-1].seq if events else 0, run=fence.run):
        events += page
    return events


def folded(events: Sequence[Event]) -> Folder:
    """Return a `Folder` with the message built from a run's events."""
    folder = Folder()
    _feed(folder, events)
    return folder


def _feed(folder: Folder, events: Sequence[Event]) -> None:
    for event in events:
        folder.feed_all(event.chunks)


def step_open(events: Sequence[Event], before: bool = False) -> bool:
    """Return whether a step is open after these events. `before` is True if one was open before them."""
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
        *,
        has_background: bool = True,
    ) -> None:
        """`inbox` contains the items that had arrived when the leg started, or None if they have not been read yet."""
        super().__init__()
        self.runtime = runtime
        self.request = request
        self.fence = fence
        self.index = Journal(events)
        if (mode := accepted_mode(self.index)) is not None:
            self.request = with_mode(request, mode)
        self.asked = frozenset(str(piece.get("approvalId")) for event in events for piece in event.chunks if piece["type"] == ASKING)
        holdings = runtime.store.of(request.conversation.owner)
        transcripts = OwnTranscripts(runtime, fence.conversation, message.parent, message.id)
        self.ports = LegPorts(runtime, holdings.blobs, lambda: attribute(_TOOL_HOOKS)(self), partial(recorded, self), transcripts)
        self.past = (holdings.search, holdings.tree)
        self._message = message
        self._events = list(events)
        self._inbox = inbox
        self.project = project
        self._is_set_up = False
        self._history = StoredHistory()
        self._is_condensed = False
        self._may_compact = True
        """False after a compaction failed or found nothing to summarize."""
        self._chosen_model = ""
        self._reported: dict[str, str] = {}
        """Problems of MCP servers that the answer already shows, by server."""
        self.folder = folded(events)
        self.step_open = step_open(events)
        """True if the last step event in the log is a start."""
        self._order = asyncio.Lock()
        self.citations = Citations(self.message, self.append)
        self.children = LegChildren(self)
        self.has_background = has_background
        """False if the conversation certainly has no sub-agents in the background."""
        self.parking = Park()
        """The wait to record if this leg ends without an open request to a person or the client."""
        self.recorder: Recorder | None = None
        """The recorder of changed files, for undo; None until something may change files."""
        self.torn = False
        """True if the result of an append is unknown, so that `folder` and `index` may lack events of the log."""

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

    async def history(self, tokens: int, *, compact_to: int = 0) -> list[Message]:
        served, conversation = Served.of(self.request.settings), self.request.conversation
        has_own = served is not None and bool(served.history)
        if served is not None and has_own and not self._history.is_whole:
            self._history = StoredHistory(tuple(await load_history(self.runtime.store, served.history)), is_whole=True)
        if compact_to and not has_own and self._may_compact:
            self._may_compact, notes = await compact_for_run(
                self.runtime, self.request, self._message.parent, compact_to, self._chosen_model
            )
            self._history = StoredHistory()
            if notes:
                await self.append(Event("chunks", notes), fold=True)
        if not self._history.is_whole and await off_loop(self._history.messages, sent_tokens) < tokens:
            head = self._message.parent
            self._history = await stored_history(self.runtime.store, conversation.id, head, tokens, prompt=head)
        if self.request.run.agent_type != "moot" and tokens >= WHOLE and not self._is_condensed:
            self._is_condensed = True  # an outside agent gets the history as one text; the loop trims it itself
            messages, notes = await summarize_history(self.runtime, conversation.id, for_model(self._history.as_sent()))
            self._history = StoredHistory(tuple(messages), is_whole=True)
            if notes:
                await self.append(Event("chunks", notes))
        return self._history.as_sent()

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

    @property
    def limits(self) -> Limits:
        """The run's limits in the current configuration."""
        return limits_of(self.runtime.settings, self.request.settings)

    async def setup(self, role: ModelRole = "main") -> StepSetup:
        runtime = self.runtime
        if self._is_set_up:  # settings of the conversation may have changed since the last step
            current = await runtime.store.conversations.get(self.fence.conversation)
            options = options_of(self.request.run.settings, current)
            self.request = replace(self.request, conversation=confined(current, self.project), settings=options)
        self._is_set_up, request = True, self.request
        await check_budgets(self)
        directory = request.conversation.directory
        await load_project_agents(runtime.settings, directory)
        agent = find_agent(runtime.settings, request.run.agent, request.settings, directory)
        self.deadline.change(self.limits.seconds)
        setup = await step_setup(
            runtime.settings,
            runtime.providers,
            agent,
            request.run,
            request.conversation,
            self.project,
            role=role,
            now=runtime.clock.now(),
            mcp=runtime.mcp,
        )
        await self._report_missing_servers(agent)
        self._chosen_model = str(setup.choices[0].model.id)
        if setup.limits.wait_for_reset and await successor(self) is not None:
            setup = replace(setup, limits=replace(setup.limits, wait_for_reset=0))
        return await self._with_children(setup) if agent.agents or setup.limits.cost else setup

    async def _report_missing_servers(self, agent: Agent) -> None:
        """Add a note to the answer, once per leg, for MCP servers that can't be reached or are waiting for a person."""
        mcp = self.runtime.mcp
        servers = mcp_servers_for(self.runtime.settings, agent, self.request.conversation) if mcp is not None else ()
        problems = mcp.problems(servers) if mcp is not None and servers else {}
        new = {name: text for name, text in problems.items() if self._reported.get(name) != text}
        if new:
            self._reported |= new
            notes = tuple(chunk.data("note", {"text": text}, id=f"mcp-{name}") for name, text in new.items())
            await self.append(Event("chunks", notes), fold=True)

    async def _with_children(self, setup: StepSetup) -> StepSetup:
        """Subtract the cost of sub-agents from the run's cost limit, and tell the model which background sub-agents have ended."""
        limits = setup.limits
        if limits.cost:
            if (below := await self.children.committed()) is None:
                raise LimitReached("The run stopped because a cost limit is set, but the cost of a sub-agent is unknown.")
            limits = replace(limits, cost=max(1, limits.cost - below))  # 0 would be no limit
        return replace(setup, limits=limits, system=with_children(await self.children.ended(), setup.system))

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

    async def allow(self, tool: Tool, key: str, tool_call: str, arguments: bytes, subject: str, hook: HookAnswer | None = None) -> Verdict:
        return await requests.allow(self, tool, key, tool_call, arguments, subject, hook)

    async def ask(self, key: str, approval: Approval) -> Answer:
        return await requests.ask(self, approval)

    async def inbox(self) -> list[InboxItem]:
        found, self._inbox = self._inbox, None
        if found is not None:  # later messages are read after the next step, or prevent the run from ending
            return list(found)
        return await self.runtime.store.records.inbox(self.fence.run)

    def tool_context(self, tool: Tool, key: str, tool_call: str) -> ToolContext:
        return Tooling(self, tool, key, tool_call)


@asynccontextmanager
async def recorded(leg: Leg, tool: Tool, input: Json) -> AsyncGenerator[None]:
    """Implement `Ports.recorded`."""
    path = as_object(input).get("path")
    if tool.name in _WRITERS:
        if isinstance(path, str) and path and (recorder := file_recorder(leg)) is not None:
            async with recorder.keeping(path):
                yield
            return
    elif _may_change_files(tool):
        await keep_folders(leg)
    yield


def _may_change_files(tool: Tool) -> bool:
    if "execute" in tool.effects:
        return not getattr(tool, "read_only", False)
    # tools of MCP servers (they have a rule name) need no folder, but may change files in it
    return "write" in tool.effects and (getattr(tool, "needs_folder", True) or bool(getattr(tool, "rule_name", "")))


def file_recorder(leg: Leg) -> Recorder | None:
    """Return the recorder of the leg's file changes, or None if the conversation has no folder."""
    conversation = leg.request.conversation
    if leg.recorder is None and has_folder(conversation):
        directory, records = Path(conversation.directory or ".").absolute(), leg.runtime.store.records

        async def prompt() -> Run:
            run = leg.request.run
            while run.parent_run is not None:
                run = await records.run(run.parent_run)
            return run

        folders = allowed_folders(conversation, directory)
        leg.recorder = attribute(_RECORDER)(leg.runtime.settings.database, leg.fence.run, folders, directory, prompt, leg.runtime.now)
    return leg.recorder


async def keep_folders(leg: Leg) -> None:
    """Snapshot the conversation's folders before a program may change them, once per prompt."""
    if (recorder := file_recorder(leg)) is not None:
        await recorder.keep_folders()


async def check_budgets(leg: Leg) -> None:
    """Warn about budgets that are nearly used up, and ask whether the run may continue if one is used up. If a step is open, do nothing."""
    if leg.step_open:
        return
    if leg.runtime.settings.budgets or any(f"/{QUESTION}:" in str(part.get("id")) for part in leg.folder.parts()):
        await attribute(_BUDGETS)(leg)


async def close_checkpoint(leg: Leg) -> None:
    """Determine which files the leg's commands have changed."""
    # an earlier leg, whose process was killed, may have recorded something
    recorder = leg.recorder or (file_recorder(leg) if await leg.journal() else None)
    if recorder is not None:
        await recorder.close()


async def successor(leg: Leg) -> Agent | None:
    """Return the agent that continues the run if the provider of the current one refuses further calls, or None."""
    handed = [as_object(event.body).get("from") for event in await leg.journal() if is_hand_over(event)]
    agent = leg.request.agent
    return await successor_of(leg.runtime.settings, agent, leg.request.conversation, {agent.name, *map(str, handed)})


EXIT_PLAN = "exit_plan"


class RunPlanMode:
    """`PlanMode` of a leg."""

    def __init__(self, leg: Leg) -> None:
        self._leg = leg

    async def leave(self, mode: Mode) -> None:
        leg = self._leg
        current = await leg.runtime.store.conversations.update(leg.fence.conversation, settings={"mode": mode})
        leg.request = with_mode(replace(leg.request, conversation=confined(current, leg.project)), mode)


def accepted_mode(index: Journal) -> Mode | None:
    """Return the mode in which the last accepted plan is carried out; None if no plan was accepted."""
    for key, start in reversed(index.starts.items()):
        if as_object(start.body).get("tool") == EXIT_PLAN and (end := index.ends.get(key)) is not None:
            mode = as_object(as_object(as_object(end.body).get("value")).get("value")).get("mode")
            if mode in ("ask", "edits"):
                return mode
    return None


class Tooling:
    """The `ToolContext` of a call."""

    def __init__(self, leg: Leg, tool: Tool, key: str, tool_call: str) -> None:
        conversation = leg.request.conversation
        if has_folder(conversation):
            self.directory = Path(conversation.directory or ".").absolute()
            self.roots = allowed_folders(conversation, self.directory)
        else:
            self.directory, self.roots = _NO_FOLDER, ()
        self.settings = leg.runtime.settings.tools.get(tool.name, {})
        self.checks = tuple(
            check for check in leg.runtime.settings.checks if not check.folder or is_below(str(self.directory), check.folder)
        )
        self.key = f"{leg.fence.run}/{key}"
        self.blobs = leg.ports.blobs
        is_local, folder = conversation.owner == LOCAL_USER, str(self.directory) if self.roots else ""
        scope = KnowledgeScope(conversation.project, knowledge_folders(leg.project.root_path or folder))
        self.past = OwnSearch(*leg.past, conversation.id)
        self.memory = memory_folders(
            leg.runtime.settings.home, leg.request.run.agent, folder, is_local=is_local, boundary=leg.project.root_path or ""
        )
        self.knowledge = OwnKnowledge(leg.runtime, conversation.owner, scope)
        media, children = ConfiguredMedia(leg.runtime, conversation.id), leg.children.of_call(key, tool_call)
        further = RunSkills(leg), RunPlanMode(leg)
        self.cite = leg.citations.cite
        self.services = ToolServices(media, children, RunJobs(leg), RunTasks(leg), RunAdministration(leg), *further)
        self._leg = leg
        self._tool = tool
        self._key = key
        self._tool_call = tool_call

    async def confinement(self, command: str, access: Access = "sandbox") -> Confinement | None:
        return await self._leg.confinement(command, self.directory, access)

    def kept(self, name: str, make: Callable[[], T]) -> T:
        return self._leg.runtime.drawers.kept(self._leg.request.conversation.id, f"{self._tool.name}:{name}", make)

    async def ask(self, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
        return await requests.question(self._leg, self._tool, self._key, self._tool_call, questions)

    async def ask_and_wait(self, title: str, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...] | None:
        return await ask_during(self._leg, self._tool, self._tool_call, title, questions)

    async def client_output(self, arguments: JsonObject) -> JsonObject:
        return await requests.client_output(self._leg, self._tool, self._key, self._tool_call, arguments)

    async def report(self, value: Json) -> None:
        await self._leg.append(Event("chunks", ({**chunk.tool_output(self._tool_call, value), "preliminary": True},)))

    async def note(self, body: JsonObject) -> None:
        attempt = max(self._leg.index.next_attempt(self._key) - 1, 0)
        await self._leg.append(Event("journal", key=f"{self._key}.{attempt}", body=body), sync=True)
        point("tool.noted")


async def mend(leg: Leg) -> None:
    """Rebuild `folder` and `index` if the log may have more events than they include."""
    if leg.torn:
        events = await events_of(leg.runtime.store, leg.fence)
        leg.folder, leg.index, leg.step_open = folded(events), Journal(events), step_open(events)
        leg.torn = False
