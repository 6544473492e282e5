"""Runs."""

from __future__ import annotations

from typing import Any, Literal

from moot.convert.given import run_json
from moot.engine.owners import Place
from moot.server.wire.base import Out
from moot.types.run import Run, RunStatus


class PlaceOut(Out):
    """Where a run goes on."""

    pid: int
    host: str


class RunOut(Out):
    """A run: one prompt to its end. Times are milliseconds, money nano-dollars."""

    id: str
    no: int
    conversation: str
    message: str
    """The assistant message that it writes."""
    agent: str
    model: str
    trigger: Literal["user", "api", "cron", "webhook", "delegate", "channel", "import", "agent"]
    parent_run: str | None
    status: RunStatus
    error: dict[str, Any] | None
    usage: dict[str, Any]
    cost: int | None
    """Null = not known."""
    created_at: int
    started_at: int | None
    ended_at: int | None
    first_seq: int
    last_seq: int
    result_seq: int | None
    process: PlaceOut | None = None
    """Of a run that goes on."""


def run_out(run: Run, place: Place | None = None) -> RunOut:
    """A run as it is sent."""
    process = None if place is None else PlaceOut(pid=place.pid, host=place.host)
    return RunOut.model_validate({**run_json(run), "process": process})
