"""The interactive `moot ps`: the runs of all processes, grouped by what they need. It ends when the user leaves or opens a conversation."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import anyio

from moot.cli.approvals.requests import decide
from moot.cli.commands.chat.runs import INTERVAL, LATE, RunLine, live_lines
from moot.cli.console.format import age
from moot.cli.console.lines import write_error
from moot.cli.console.output import Output
from moot.cli.context.engine import opened
from moot.cli.terminal.prompts.items import Action, Choice, Column, Item, Live, Picked, Scope
from moot.cli.terminal.prompts.pick import choose
from moot.cli.terminal.prompts.plain import confirm
from moot.engine import Engine
from moot.errors import MootError, NotFound
from moot.features.family import asking_conversation
from moot.guard.terminal import visible_line
from moot.plugins.registry import attribute
from moot.types.run import TERMINAL, Run

NEEDS_YOU, RUNNING, DONE = "Needs you", "Running", "Done"
COLUMNS = (
    Column("SINCE", 6, right=True),
    Column("TITLE", 20, grows=True),
    Column("STATE", 22, grows=True),
    Column("AGENT", 10, rank=1),
    Column("MODEL", 18, rank=2),
)
_ANSWER, _STOP = "answer", "stop"
KEYS: Mapping[str, Action] = {"y": Action(_ANSWER), "n": Action(_ANSWER), "s": Action(_STOP), "c": Action(_STOP)}
_RECENT: Final = 10
"""Number of ended runs shown."""
_READ = 40
"""Number of ended runs read, because sub-agents are left out."""
_RECENT_SECONDS = 24 * 60 * 60
_STOP_SECONDS = 3.0
"""Maximum number of seconds to wait for another process to stop a run."""
_CONVERSE = "moot.cli.repl.loop:run_repl"
"""Import path, loaded on first use."""


async def browse(output: Output) -> int:
    """Show the runs until the user leaves. Return the exit code of the conversation that was opened, or 0."""
    async with opened(output) as engine:
        picked = await choose(_choice(engine, "", ""), output)
        while picked is not None and picked.action:
            try:
                await _ACTIONS[picked.action](engine, await engine.store.records.run(picked.item.key), output)
            except NotFound as error:
                output.say(f"moot: {error.message}", "yellow")  # another process changed it first
            except MootError as error:
                write_error(output, error.message, error.fix)
            picked = await choose(_choice(engine, picked.filter, picked.item.key), output)
        conversation = await _conversation_of(engine, picked)
    if conversation is None:
        return 0
    converse: Callable[[str, Output], Awaitable[int]] = attribute(_CONVERSE)
    return await converse(conversation, output)


async def _conversation_of(engine: Engine, picked: Picked | None) -> str | None:
    return None if picked is None else (await engine.store.records.run(picked.item.key)).conversation


def _choice(engine: Engine, filter: str, at: str) -> Choice:
    scope = Scope("Runs", Live(partial(_snapshots, engine)))
    return Choice((scope,), COLUMNS, KEYS, "open", "No runs yet", filter, at, letters=True)


async def _snapshots(engine: Engine) -> AsyncGenerator[Sequence[Item], None]:
    while True:
        yield await read_items(engine, time.time())
        await anyio.sleep(INTERVAL)


async def read_items(engine: Engine, now: float) -> list[Item]:
    """Return the live and the recently ended runs as rows: first those that need the user. `now` is in seconds since the epoch."""
    groups: dict[str, list[Item]] = {NEEDS_YOU: [], RUNNING: [], DONE: []}
    for line in await live_lines(engine):
        group = NEEDS_YOU if needs_user(line.run, now) else RUNNING
        groups[group].append(_item(line, group, _state(line), now))
    for run in await _ended(engine, now):
        state = f"failed: {run.error.message}" if run.status == "failed" and run.error is not None else run.status
        with suppress(NotFound):  # the conversation was purged meanwhile
            line = RunLine(run, await engine.store.conversations.get(run.conversation), None, "")
            groups[DONE].append(_item(line, DONE, state, now))
    return [item for items in groups.values() for item in items]


async def _ended(engine: Engine, now: float) -> list[Run]:
    """Return the newest runs that ended within a day, without sub-agents."""
    found = await engine.store.records.runs(statuses=TERMINAL, limit=_READ)
    recent = [run for run in found if run.parent_run is None and (run.ended_at or 0) / 1000 > now - _RECENT_SECONDS]
    return sorted(recent, key=lambda run: run.ended_at or 0, reverse=True)[:_RECENT]


def needs_user(run: Run, now: float) -> bool:
    """Return True if the run can't continue without the user: an answer is missing, or no process continues it."""
    if run.status == "waiting":
        return run.awaits in ("person", None) or (run.awaits == "time" and now > (run.wake_at or 0) / 1000 + LATE)
    return run.status == "interrupted"


def _state(line: RunLine) -> str:
    run = line.run
    if run.status == "interrupted":
        return "interrupted; Enter opens it"
    if run.status != "waiting":
        return run.status
    if run.awaits == "person":
        return line.waits_for or "answered; Enter continues it"
    return f"waits for {line.waits_for}" if line.waits_for else "waiting"


def _item(line: RunLine, group: str, state: str, now: float) -> Item:
    run, title = line.run, line.conversation.title or "untitled"
    since = run.ended_at if group == DONE and run.ended_at is not None else line.since
    model = line.model
    words = f"{title} {state} {run.agent} {model} {run.status} {line.conversation.directory} {run.conversation}"
    return Item(run.id, (age(since, now), title, state, run.agent, model.rpartition("@")[0] or model or "-"), words, group)


# ── actions ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _answer(engine: Engine, run: Run, output: Output) -> None:
    """Show the run's oldest open approval in full and store the user's answer. The process that waits for the answer continues the run."""
    approvals = [one for one in await engine.store.records.approvals(run=run.id, tree=True) if not one.by_client]
    if not approvals:
        output.say("moot: this run doesn't wait for an answer", "dim")
        return
    decision = await decide(engine, approvals[0], await asking_conversation(engine.store, approvals[0], run), output)
    if decision.outcome == "stop":
        await _cancel(engine, run, output)
    elif decision.answer is not None:
        # this process ends with the list, so it must not continue the run itself
        await engine.runs.answer(approvals[0].id, decision.answer, wake=False)


async def _stop(engine: Engine, run: Run, output: Output) -> None:
    """Stop a run and its sub-agents after confirmation."""
    conversation = await engine.store.conversations.get(run.conversation)
    title = visible_line(conversation.title) or "untitled"
    if run.status in TERMINAL:
        output.say(f"moot: this run has already ended: {run.status}", "dim")
    elif await confirm(f"Stop {run.agent} in {title!r}? The output so far is kept.", output):
        await _cancel(engine, run, output)
    else:
        output.say("moot: not stopped", "dim")


async def _cancel(engine: Engine, run: Run, output: Output) -> None:
    await engine.runs.cancel(run.id)
    with anyio.move_on_after(_STOP_SECONDS):
        await engine.runs.wait(run.id)
    found = await engine.runs.current(run.id)
    output.say(f"moot: {found.status}" if found.status in TERMINAL else "moot: stopping")


_ACTIONS: Mapping[str, Callable[[Engine, Run, Output], Awaitable[None]]] = {"y": _answer, "n": _answer, "s": _stop, "c": _stop}
