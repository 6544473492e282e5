"""Imports that a server was asked for: one after the other, each with a report that can be looked at while it grows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import anyio

from moot.errors import Busy, MootError, NotFound
from moot.runtime.importing import Report, Source, Wanted, bring
from moot.server.uploading import Upload
from moot.types.ids import new_id
from moot.types.store import Holdings

__all__ = ["ImportJob", "ImportJobs"]

State: TypeAlias = Literal["queued", "running", "finished", "failed"]

_REMEMBERED = 50
_WAITING = 20
_INDEX = 30.0


@dataclass(slots=True)
class ImportJob:
    """One of them."""

    owner: str
    holdings: Holdings
    sources: Callable[[Report], Iterable[Source]]
    """Tells the report what is nobody's."""
    wanted: Wanted
    sent: Upload | None = None
    """Gone with its end."""
    id: str = field(default_factory=new_id)
    state: State = "queued"
    error: str = ""
    report: Report = field(default_factory=Report)
    asked_at: int = field(default_factory=lambda: int(time.time() * 1000))
    ended_at: int = 0
    """ms; 0 = not yet."""


class ImportJobs:
    """Those of one server; they end with it, and what they stored stays."""

    def __init__(self) -> None:
        self._jobs: deque[ImportJob] = deque(maxlen=_REMEMBERED)
        self._waiting: deque[ImportJob] = deque()
        self._asked = anyio.Event()

    def check(self) -> None:
        """Raises Busy when too many are waiting."""
        if len(self._waiting) >= _WAITING:
            raise Busy(f"{_WAITING} imports are waiting already", fix="wait for one to end")

    def ask(self, job: ImportJob) -> ImportJob:
        """Puts it behind the others. Raises Busy when there are too many."""
        self.check()
        self._jobs.append(job)
        self._waiting.append(job)
        self._asked.set()
        return job

    def of(self, owner: str) -> Iterator[ImportJob]:
        """The owner's, newest first."""
        return (job for job in reversed(self._jobs) if job.owner == owner)

    def get(self, id: str, owner: str) -> ImportJob:
        """Raises NotFound."""
        found = next((job for job in self.of(owner) if job.id == id), None)
        if found is None:
            raise NotFound(f"no import with the id {id!r}")
        return found

    async def work(self) -> None:
        """Never returns."""
        while True:
            await self._asked.wait()
            self._asked = anyio.Event()
            while self._waiting:
                await self._do(self._waiting.popleft())

    async def _do(self, job: ImportJob) -> None:
        job.state = "running"
        try:
            await bring(job.holdings, job.sources(job.report), job.wanted, job.report)
            if job.report.taken.changed and not job.wanted.dry_run:
                await job.holdings.search.index(seconds=_INDEX)
        except MootError as error:
            job.error = error.advice() if job.sent is None else job.sent.said(error.advice())
        finally:
            if job.sent is not None:
                await job.sent.drop()
        job.ended_at = int(time.time() * 1000)
        job.state = "failed" if job.error else "finished"
