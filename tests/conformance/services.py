"""Checks that every agent service must pass; a service that breaks the contract fails at least one of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from moot.config.settings import Models, Permissions, Settings
from moot.convert.fold import fold_parts
from moot.engine import Engine, open_engine
from moot.errors import FenceLost
from moot.runtime.leg import Leg, events_of
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.agent import Agent
from moot.types.chunk import problems
from moot.types.context import AgentService, HasTrials, Parked
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import TOOL_DONE, Message, is_tool, text_part
from moot.types.run import Prompt, Run, RunOutcome, RunRequest
from moot.types.store import Submission

SECOND = 1.0
"""Maximum seconds until a cancel takes effect. Checks allow more, because a test machine may be slow."""
ALLOWANCE = 29.0
BORDERS = frozenset({"start", "finish", "abort"})
OUTPUTS = frozenset({"tool-output-available", "tool-output-error", "tool-output-denied", "tool-input-error"})


def script(recorded: Recorded) -> Reply:
    """Script for services with a model: a tool call and an answer, or an answer that never ends."""
    if recorded.user_text == "slow":
        return Reply(text="working on it", hang_at=3)
    if "'role': 'tool'" in str(recorded.json["messages"]):
        return Reply(text="There are no files.")
    return Reply(tool_calls=[ToolCall("list_files", {"path": "."})])


@dataclass
class Stage:
    """Return a moot with one agent of the tested agent_type."""

    engine: Engine
    directory: Path

    async def submit(self, text: str) -> Run:
        return (await self.engine.runs.submit(Prompt((text_part(text),), directory=str(self.directory), agent="tried"))).run

    async def events(self, run: Run) -> list[Event]:
        return [event for event in await self.log(run) if event.run == run.id]

    async def log(self, run: Run) -> list[Event]:
        found: list[Event] = []
        while page := await self.engine.store.log.read(run.conversation, after=found[-1].seq if found else 0):
            found += page
        return found

    async def words(self, run: Run) -> None:
        """Return when the run has produced text."""
        with anyio.fail_after(60):
            while not any(chunk["type"] not in BORDERS | {"start-step"} for event in await self.events(run) for chunk in event.chunks):
                assert (await self.engine.store.records.run(run.id)).status in ("queued", "running"), "it ended before it said anything"
                await anyio.sleep(0.01)


@asynccontextmanager
async def staged(agent_type: str, service: AgentService, home: Path, trial: str) -> AsyncGenerator[Stage, None]:
    """The stage for one trial; an outside service lists the options to try in `trials`."""
    if agent_type != "moot":
        assert isinstance(service, HasTrials), f"{agent_type} has no `trials`, so nobody can say that it works"
        assert {"answer", "slow"} <= set(service.trials)
    options = service.trials[trial] if isinstance(service, HasTrials) else {}
    directory = home / "work"
    directory.mkdir(exist_ok=True, parents=True)
    async with ScriptedServer(script) as server:
        settings = Settings(
            home / "home",
            models=Models(main="scripted@mine"),
            providers={"mine": server.provider("mine")},
            permissions=Permissions(mode="auto"),
            agents={"default": Agent(), "tried": Agent("tried", agent_type=agent_type, options=options)},
        )
        async with open_engine(settings) as engine:
            yield Stage(engine, directory)


# ── a whole run, through the engine ─────────────────────────────────────────────────────────────────────────────────────────────────


async def check_answer(on: Stage) -> None:
    """A run finishes in one terminal state with an answer and a complete log."""
    run = await on.submit("answer")
    with anyio.fail_after(60):
        ended = await on.engine.runs.wait(run.id)
    assert ended.status == "finished", f"it ended {ended.status}: {ended.error}"
    message = await on.engine.store.conversations.message(ended.message)
    assert any(part.get("type") == "text" and part.get("text") for part in message.parts), "it answered nothing"
    await check_log(on, ended)


async def check_cancel(on: Stage) -> None:
    """A run stops within a second, leaves no process, and has a complete log."""
    before = children()
    run = await on.submit("slow")
    await on.words(run)
    began = anyio.current_time()
    await on.engine.runs.cancel(run.id)
    with anyio.fail_after(SECOND + ALLOWANCE):
        ended = await on.engine.runs.wait(run.id)
    assert ended.status == "cancelled", f"it ended {ended.status}"
    assert anyio.current_time() - began < SECOND + ALLOWANCE
    assert not children() - before, "it left a process behind"
    await check_log(on, ended)


async def check_log(on: Stage, run: Run) -> None:
    """Check the log of a finished run of any service."""
    log = await on.log(run)
    assert [event.seq for event in log] == list(range(1, len(log) + 1)), "seqs are not dense"
    events = [event for event in log if event.run == run.id]
    check_borders(events)
    check_calls(events)
    check_exchanges(events)
    for event in events:
        for chunk in event.chunks:
            assert not (found := problems(chunk, 7)), f"event {event.seq}: {found}"
    message = await on.engine.store.conversations.message(run.message)
    assert message.parts == fold_parts((), [chunk for event in events for chunk in event.chunks]), (
        "the message is not the fold of its events"
    )
    assert not [part for part in message.parts if part.get("state") in ("streaming", "input-streaming")], "a part was left open"
    for id in {event.exchange for event in events if event.exchange}:
        exchange = await on.engine.store.records.exchange(id)
        assert exchange is not None, f"raw of an exchange that was never opened: {id}"
        assert exchange.ended is not None, f"an exchange was never closed: {id}"


def check_borders(events: Sequence[Event]) -> None:
    """Check that the runtime writes start and finish once each, and that steps are balanced."""
    kinds = [(str(chunk["type"]), event.key) for event in events for chunk in event.chunks]
    borders = [(kind, key) for kind, key in kinds if kind in BORDERS]
    assert [key for _, key in borders] == ["run", "run"], f"start and finish are the runtime's to write: {borders}"
    assert borders[0][0] == "start" and kinds[0][0] == "start" and kinds[-1][0] in BORDERS
    assert sum(1 for event in events if event.key == "run" and event.phase == "end") == 1, "it has more than one end"
    depth = 0
    for kind, _ in kinds:
        depth += (kind == "start-step") - (kind == "finish-step")
        assert depth in (0, 1), "steps are not balanced"
    assert depth == 0, "a step was left open"


def check_calls(events: Sequence[Event]) -> None:
    """Check that every tool call has exactly one output."""
    chunks = [chunk for event in events for chunk in event.chunks]
    made = {str(chunk["toolCallId"]) for chunk in chunks if chunk["type"] in ("tool-input-available", "tool-input-error")}
    outputs = Counter(str(chunk["toolCallId"]) for chunk in chunks if chunk["type"] in OUTPUTS and not chunk.get("preliminary"))
    assert dict(outputs) == dict.fromkeys(made, 1), f"calls {sorted(made)} have the outputs {dict(outputs)}"
    parts = fold_parts((), chunks)
    assert all(part.get("state") in TOOL_DONE for part in parts if is_tool(part))


def check_exchanges(events: Sequence[Event]) -> None:
    """Check that all raw belongs to an exchange, and that each exchange is opened and closed once."""
    for event in events:
        assert event.raw is None or event.exchange is not None, f"event {event.seq} has raw and no exchange"
    for id in {event.exchange for event in events if event.exchange}:
        own = [event for event in events if event.exchange == id]
        borders = [event.phase for event in own if event.kind == "exchange"]
        assert borders == ["start", "end"], f"the exchange {id} has the borders {borders}"
        inside = [index for index, event in enumerate(own) if event.raw is not None]
        ends = [index for index, event in enumerate(own) if event.kind == "exchange"]
        assert all(ends[0] < index < ends[1] for index in inside), f"raw outside of the exchange {id}"


def children() -> set[int]:
    """Return the live child processes of this process."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.add(int(entry.name))
    return found


# ── one leg, without the runtime around it ──────────────────────────────────────────────────────────────────────────────────────────


async def leg_of(on: Stage, text: str) -> Leg:
    """Return a claimed run with its first event written, ready for its service."""
    engine = on.engine
    agent = engine.settings.agents["tried"]
    conversation = Conversation(new_id(), agent="tried", agent_type=agent.agent_type, directory=str(on.directory))
    run = Run(new_id(), conversation.id, new_id(), agent="tried", agent_type=agent.agent_type)
    user = Message(new_id(), "user", (text_part(text),))
    accepted = await engine.store.records.submit(Submission(run, conversation, user, owner="tried"))
    assert accepted.fence is not None
    leg = await reopened(on, RunRequest(accepted.run, accepted.conversation, agent, {}), accepted.fence)
    await leg.append(Event("chunks", ({"type": "start", "messageId": run.message},), phase="start", key="run"))
    return leg


async def reopened(on: Stage, request: RunRequest, fence: Any) -> Leg:
    message = await on.engine.store.conversations.message(fence.message)
    return Leg(on.engine.runtime, request, fence, message, await events_of(on.engine.store, fence))


async def check_resumed_after_its_end(on: Stage, service: AgentService) -> None:
    """A leg resumed after its end repeats nothing and gives the same result."""
    leg = await leg_of(on, "answer")
    with anyio.fail_after(60):
        first = await service.run(leg.request, leg)
    said = await events_of(on.engine.store, leg.fence)
    again = await reopened(on, leg.request, leg.fence)
    with anyio.fail_after(60):
        second = await service.run(again.request, again)
    added = (await events_of(on.engine.store, leg.fence))[len(said) :]
    assert not added, f"a leg that had nothing left to do wrote {[(event.kind, event.key) for event in added]}"
    assert (first.status, second.status) == ("finished", "finished"), "it comes to something else when it is taken up again"


async def check_resumed_in_the_middle(on: Stage, service: AgentService) -> None:
    """A leg cut off midway is resumed and ends without repeating work under the same key."""
    leg = await leg_of(on, "slow")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(service.run, leg.request, leg)
            while not any(chunk["type"] == "text-delta" for event in await events_of(on.engine.store, leg.fence) for chunk in event.chunks):
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    said = await events_of(on.engine.store, leg.fence)
    again = await reopened(on, leg.request, leg.fence)
    outcome: list[RunOutcome] = []

    async def second() -> None:
        outcome.append(await service.run(again.request, again))

    async with anyio.create_task_group() as group:
        group.start_soon(second)
        with anyio.move_on_after(1):
            while not outcome:
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    events = await events_of(on.engine.store, leg.fence)
    assert events[: len(said)] == said, "it changed what was said"
    keys = Counter((event.key, event.phase) for event in events if event.key and event.phase)
    twice = [key for key, times in keys.items() if times > 1]
    assert not twice, f"journaled twice: {twice}"


class Intruder:
    """A context in which one method raises one of its documented errors at its n-th call."""

    def __init__(self, leg: Leg, method: str, error: BaseException, at: int = 0) -> None:
        self._leg = leg
        self._method = method
        self._error = error
        self._left = at
        self.raised = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._leg, name)
        if name != self._method:
            return found

        async def raising(*arguments: Any, **named: Any) -> Any:
            if self._left == 0:
                self.raised = True
                raise self._error
            self._left -= 1
            return await found(*arguments, **named)

        return raising


async def check_passes_through(on: Stage, service: AgentService, method: str, error: BaseException) -> None:
    """Errors that must reach the runtime do so, alone or in the exception group of an open task."""
    leg = await leg_of(on, "answer")
    context: Any = Intruder(leg, method, error)
    try:
        with anyio.fail_after(60):
            outcome = await service.run(leg.request, context)
    except BaseException as raised:  # noqa: BLE001  whatever it raises is judged
        assert _holds(raised, type(error)), f"it made {raised!r} of {error!r}"
        return
    assert not context.raised, f"it swallowed {error!r} and came to {outcome}"


def _holds(error: BaseException, kind: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_holds(inner, kind) for inner in error.exceptions)
    return isinstance(error, kind)


INTRUSIONS: tuple[tuple[str, BaseException], ...] = (
    ("append", FenceLost("somebody else has the run")),
    ("once", Parked()),
    ("allow", Parked()),
    ("ask", Parked()),
)
