"""The command `moot ps`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import anyio

from moot.cli.arguments.parameters import Parameter
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.showing import brief
from moot.cli.tables import print_table
from moot.cli.times import age
from moot.engine import Engine
from moot.engine.owners import Place, place_of
from moot.types.approval import Approval
from moot.types.canonical import Json, JsonObject, loads
from moot.types.conversation import Conversation
from moot.types.run import STARTED, Run, RunStatus

_INTERVAL = 0.5
"""Seconds between two queries with --watch."""
_LIVE: frozenset[RunStatus] = STARTED | frozenset[RunStatus]({"queued"})


@dataclass(frozen=True, slots=True)
class _Line:
    run: Run
    conversation: Conversation
    place: Place | None
    waits_for: str

    def to_json(self) -> JsonObject:
        run = self.run
        return {
            "id": run.id,
            "conversation": run.conversation,
            "title": self.conversation.title,
            "agent": run.agent,
            "model": self.model,
            "status": run.status,
            "owner": run.owner,
            "pid": self.place.pid if self.place else None,
            "host": self.place.host if self.place else None,
            "since": self.since,
            "waits_for": self.waits_for or None,
        }

    @property
    def model(self) -> str:
        return self.run.model or self.conversation.model

    @property
    def since(self) -> int:
        return self.run.started_at or self.run.created_at


Watch = Annotated[bool, Parameter(name="--watch", help="Print the list again after every change, until Ctrl+C.")]


async def ps(*, watch: Watch = False, json: AsJson = False, output: Out) -> None:
    """Print running, waiting, interrupted and queued runs, oldest first."""
    async with opened(output) as engine:
        if watch:
            await _watch(engine, output, json=json)
            return
        lines = await _live(engine)
    _show(lines, output, json=json)


async def _watch(engine: Engine, output: Output, *, json: bool) -> None:
    """Print the list whenever it has changed: a table, or a line of JSON."""
    shown: list[JsonObject] | None = None
    while True:
        lines = await _live(engine)
        found = [line.to_json() for line in lines]
        if found != shown:
            shown = found
            if not json and output.stdout_terminal:
                output.say(time.strftime("── %H:%M:%S"), "dim")
            _show(lines, output, json=json)
        await anyio.sleep(_INTERVAL)


async def _live(engine: Engine) -> list[_Line]:
    runs = await engine.store.records.runs(statuses=_LIVE)
    return [await _line(engine, run) for run in reversed(runs)]


def _show(lines: Sequence[_Line], output: Output, *, json: bool) -> None:
    if json:
        output.json({"data": list[Json]([line.to_json() for line in lines]), "next_cursor": None})
        return
    if not lines:
        output.say("moot: no live runs", "dim")
        return
    now = time.time()
    head = ["ID", "STATUS", "SINCE", "PROCESS", "AGENT", "MODEL", "WAITS FOR", "TITLE"]
    print_table(output, head, [_row(line, now) for line in lines])


async def _line(engine: Engine, run: Run) -> _Line:
    conversation = await engine.store.conversations.get(run.conversation)
    place = place_of(engine.settings.owners, run.owner) if run.owner is not None else None
    return _Line(run, conversation, place, await _waits_for(engine, run))


async def _waits_for(engine: Engine, run: Run) -> str:
    """Describe what the run waits for. Empty if it is not waiting."""
    if run.status == "queued":
        return "another run"
    if run.status == "interrupted":
        return f"moot chat resume {run.conversation[:13]}"
    asked = await engine.store.records.approvals(run=run.id) if run.status == "waiting" else []
    return ", ".join(_wants(approval) for approval in asked)


def _wants(approval: Approval) -> str:
    if approval.by_client:
        return f"client to run {approval.tool}"
    return "answer" if approval.questions else f"approval of {approval.tool} {brief(loads(approval.arguments))}"


def _row(line: _Line, now: float) -> list[str]:
    place = f"{line.place.pid} on {line.place.host}" if line.place else "-"
    run = line.run
    title = line.conversation.title or "untitled"
    waits_for = line.waits_for or "-"
    return [run.conversation[:13], run.status, age(line.since, now), place, run.agent, line.model or "-", waits_for, title]
