"""Sub-agents of a leg: runs in their own conversations. They never get more rights, folders, budget or nesting depth than the parent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import anyio

from moot.convert.exchanges import totals
from moot.convert.vendor import as_list, as_object
from moot.errors import LimitReached, NotFound, StoreError, UsageError
from moot.guard.roots import is_below
from moot.plugins.registry import attribute
from moot.runtime.journal import Journal
from moot.runtime.outside import Deadline
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent, limits_of, mode_of
from moot.tools.catalogue import tools_for
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.children import BACKGROUND, DELEGATING, FINISH, Child, ChildTask
from moot.types.context import Parked
from moot.types.conversation import Conversation
from moot.types.crash import point
from moot.types.hooks import HOOKS
from moot.types.message import Part, text_of, text_part
from moot.types.run import TERMINAL, Prompt, References, Run, RunRequest
from moot.types.store import Park
from moot.types.token import LOCAL_USER
from moot.types.workflow import WORKFLOW

if TYPE_CHECKING:  # most runs start no program that changes files
    from moot.agents.checkpoints import Recorder

_PLACE, _REFERENCES = (f"moot.features.prompts.references:{name}" for name in ("Place", "read_references"))
"""Loaded by path, because only the prompts of workflows are read here."""

BRIEFLY = 2.0
"""Seconds for which a call waits for its sub-agent before the run is parked. Parking and resuming a run cost more than a short answer."""

_BEFORE = 20
"""Maximum number of earlier runs to search for the last one that started."""


def is_awaited(run: Run) -> bool:
    """Return whether a sub-agent's parent is waiting for it."""
    return run.status not in TERMINAL and run.settings.get(BACKGROUND) is not True


def summary_of(parts: Iterable[Part]) -> str:
    """Return a sub-agent's result: the last summary that it reported, else its last text."""
    parts = tuple(parts)
    for part in reversed(parts):
        given = part.get("input") if part.get("type") == f"tool-{FINISH}" and part.get("state") == "output-available" else None
        if isinstance(given, dict) and isinstance(summary := given.get("summary"), str):
            return summary
    return next((text for part in reversed(parts) if (text := text_of([part]).strip())), "")


def committed(run: str, below: Iterable[Run]) -> int | None:
    """Return the cost that a run's sub-agents have caused or may still cause, in nano-dollars; None if that of an ended one is unknown.

    `below` are all runs below the run. For a run that has not ended, its cost limit is counted, which includes its own sub-agents.
    """
    children: dict[str | None, list[Run]] = {}
    for one in below:
        children.setdefault(one.parent_run, []).append(one)
    total, pending = 0, [run]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child.status not in TERMINAL:
                promised = child.settings.get("max_cost")
                total += promised if isinstance(promised, int) else 0
                continue
            if child.cost is None and child.started_at is not None:
                return None
            total += child.cost or 0
            pending.append(child.id)
    return total


class Parent(Protocol):
    """The part of a leg that is needed to start sub-agents."""

    runtime: Runtime
    request: RunRequest
    index: Journal
    parking: Park
    has_background: bool
    recorder: Recorder | None
    deadline: Deadline


class LegChildren:
    """`Children` of a leg's run, for one of its tool calls."""

    def __init__(self, leg: Parent, order: asyncio.Lock | None = None, call: tuple[str, str] = ("", "")) -> None:
        """`call` is the journal key and the id of the tool call."""
        self._leg = leg
        self._order = order or asyncio.Lock()
        self._key, self._tool_call = call

    def of_call(self, key: str, tool_call: str) -> LegChildren:
        """Return an object for another call that shares the same sub-agents."""
        return LegChildren(self._leg, self._order, (key, tool_call))

    @property
    def _runtime(self) -> Runtime:
        return self._leg.runtime

    async def start(self, task: ChildTask, number: int = 0, *, background: bool = False) -> Child:
        request, runs = self._leg.request, self._runtime.runs
        if runs is None:
            raise UsageError("This process can't start sub-agents.")
        name = f"delegate:{request.run.id}:{self._key}.{number}"
        store = self._runtime.store.of(request.conversation.owner)
        async with self._order:  # the budget of a sub-agent depends on those started before it
            if (known := await store.conversations.by_key(name)) is not None:
                own = await self._runtime.store.records.children(request.run.id)
                (run,) = (run for run in own if run.conversation == known.id)
                return await self._child(run if run.status in TERMINAL else await runs.revive(run.id), known)
            prompt = await self._prompt(name, task, background)
            self._leg.has_background |= background
            submitted = await runs.submit(prompt)
        point("child.started")
        return await self._child(submitted.run, submitted.conversation)

    async def references(self, agent: str, prompt: str, *, attended: bool) -> References:
        request, settings = self._leg.request, self._runtime.settings
        conversation = request.conversation
        mode = mode_of(settings, request.settings, conversation)
        place = attribute(_PLACE)(self._runtime, conversation.directory, conversation, agent, attended, mode)
        found: References = await attribute(_REFERENCES)(prompt, place)
        return found

    async def status(self) -> list[Child]:
        runs = self._runtime.runs
        return [
            await self._child(run if run.status in TERMINAL or runs is None else await runs.revive(run.id)) for run in await self._known()
        ]

    async def result(self, child: Child) -> Child:
        if child.run.status in TERMINAL:
            return child
        if (recorder := self._leg.recorder) is not None:  # files that people change meanwhile aren't this run's changes
            await recorder.close()
        if (runs := self._runtime.runs) is not None:
            with self._leg.deadline.paused(), suppress(StoreError), anyio.move_on_after(BRIEFLY):
                # if its end could not be stored, it is resumed later, and so is this run
                run = await runs.wait(child.run.id)
                if run.status in TERMINAL:
                    return await self._child(run)
        self._leg.parking = Park("run")  # if the child has ended meanwhile, the run is resumed at once
        raise Parked

    async def cancel(self, run: str) -> None:
        if all(child.id != run for child in await self._known()) or self._runtime.runs is None:
            raise NotFound(f"This conversation has no sub-agent with the run id {run!r}.", fix="Call run_status without arguments.")
        await self._runtime.runs.cancel(run)

    async def _known(self) -> list[Run]:
        """Return the sub-agents of the run, and those that earlier runs of its conversation started in the background."""
        request = self._leg.request
        found = await self._runtime.store.records.children(conversation=request.conversation.id)
        return [run for run in found if run.parent_run == request.run.id or run.settings.get(BACKGROUND) is True]

    async def _child(self, run: Run, conversation: Conversation | None = None) -> Child:
        conversations = self._runtime.store.conversations
        known = conversation or await conversations.get(run.conversation)
        if run.status not in TERMINAL:
            return Child(run, known.title)
        summary = summary_of((await conversations.message(run.message)).parts)
        if known.owner == LOCAL_USER and known.directory != self._leg.request.conversation.directory:
            work = await attribute("moot.guard.worktrees:work_in")(known.directory)
            summary = "\n\n".join(filter(None, (summary, work)))
        return Child(run, known.title, summary)

    async def ended(self) -> list[Run]:
        """Return the ended background sub-agents whose end the model may not know about yet.

        These are the run's own, and those of earlier runs that ended after the previous run had started.
        """
        request, records = self._leg.request, self._runtime.store.records
        if not self._leg.has_background:
            return []
        found = [run for run in await self._known() if run.status in TERMINAL and run.settings.get(BACKGROUND) is True]
        own = request.run
        if all(run.parent_run == own.id for run in found):
            return found
        before = await records.runs(conversation=own.conversation, before=own.no, limit=_BEFORE)
        since = next((run.started_at for run in before if run.started_at is not None), 0)
        return [run for run in found if run.parent_run == own.id or (run.ended_at or 0) >= since]

    async def committed(self) -> int | None:
        """Return the cost that the run's sub-agents have caused or may still cause. See the function `committed`."""
        run = self._leg.request.run.id
        return committed(run, await self._runtime.store.records.children(run, tree=True))

    # ── what a child may do ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _prompt(self, key: str, task: ChildTask, background: bool) -> Prompt:
        """Return the prompt of a new child. Raise UsageError if its agent can't be called, LimitReached at the depth or cost limit."""
        request, settings = self._leg.request, self._runtime.settings
        agent = self._callable(task.agent)
        is_workflow = WORKFLOW in request.settings  # which costs nothing itself
        attached, calls = self._attached() if is_workflow else ((), [])
        await self._check_depth(request.run, settings.limits.depth)
        conversation = request.conversation
        texts = [text for text in (task.context.strip(), task.prompt.strip()) if text]
        return Prompt(
            parts=(*attached, *(text_part(text) for text in texts)),
            key=key,
            directory=conversation.directory,
            project=conversation.project,
            allowed_uris=_folders(agent, conversation.allowed_uris, conversation.directory),
            agent=task.agent,
            model=request.run.model or None if is_workflow and task.agent == request.run.agent else None,
            mode=mode_of(settings, request.settings, conversation),
            trigger="delegate",
            on_crash="resume" if background else request.run.on_crash,  # no one follows it, so no one could be asked
            settings={
                **await self._options(agent, 0 if is_workflow else task.left, background),
                **({HOOKS: {"before_run": calls}} if calls else {}),
            },
            parent_run=request.run.id,
            parent_tool_call=self._tool_call,
            user=None if conversation.owner == LOCAL_USER else conversation.owner,
        )

    def _attached(self) -> tuple[tuple[Part, ...], list[Json]]:
        """Return the attachments of a workflow step's prompt, as stored with the step's call, and the calls to make before the prompt."""
        event = self._leg.index.ends.get(f"{self._key}:call.0")
        stored = as_object(event.body) if event is not None else {}
        return tuple(map(as_object, as_list(stored.get("parts")))), as_list(stored.get("calls"))

    def _callable(self, name: str) -> Agent:
        request, settings = self._leg.request, self._runtime.settings
        directory = request.conversation.directory
        allowed = find_agent(settings, request.run.agent, request.settings, directory).agents
        if name not in allowed:
            raise UsageError(f"The agent {name!r} can't be called from here. Available agents: {', '.join(allowed) or 'none'}.")
        return find_agent(settings, name, {}, directory)

    async def _check_depth(self, run: Run, limit: int) -> None:
        depth = 1
        while run.parent_run is not None:
            run = await self._runtime.store.records.run(run.parent_run)
            depth += 1
        if limit and depth > limit:
            raise LimitReached(f"Sub-agents can be nested {limit} levels deep, and this agent is at the last level.")

    async def _options(self, agent: Agent, tasks: int, background: bool) -> JsonObject:
        own = self._leg.request.settings
        options: JsonObject = {name: own[name] for name in ("unattended", "attended", "timeout") if name in own}
        if background:
            options[BACKGROUND] = True
        if own.get("web_search") is False:
            options["web_search"] = False
        if isinstance(tools := own.get("tools"), list):
            offered = {*DELEGATING, *(tool.name for tool in tools_for(self._runtime.settings, agent))}
            options["tools"] = [name for name in tools if name in offered] or False
        if cost := limits_of(self._runtime.settings, own).cost:
            options["max_cost"] = await self._share(cost, tasks)
        return options

    async def _share(self, limit: int, tasks: int) -> int:
        """Return the cost limit for the next of `tasks` sub-agents to start. The remaining budget is divided among them and the run
        itself; with 0 tasks, the next one gets all of it."""
        index = self._leg.index
        _, spent, _ = totals([*index.starts.values(), *index.ends.values()])
        below = await self.committed()
        share = (limit - (spent or 0) - (below or 0)) // (tasks + 1)
        if below is None or share <= 0:
            raise LimitReached(
                "The run's cost limit leaves no budget for another sub-agent.", fix="Raise it with --max-cost or limits.cost."
            )
        return share


def _folders(agent: Agent, allowed: Sequence[str], directory: str) -> tuple[str, ...]:
    """Return a child's folders: the agent's own folders that the parent may use, or the parent's folders if there are none."""
    own = tuple(folder for folder in agent.allowed_uris if any(is_below(folder, root) for root in (*allowed, directory) if root))
    return own or tuple(allowed)


def with_children(ended: Iterable[Run], system: str) -> str:
    """Return the system prompt with a line for each background sub-agent that has ended."""
    lines = [f"The background agent {run.agent} ({run.id}) has ended: {run.status}." for run in ended]
    return "\n".join([f"{system}\n", *lines, "Read results with run_status."]) if lines else system
