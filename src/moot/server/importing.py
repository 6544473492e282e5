"""Imports that a server was asked for: one after the other, each with a report that can be looked at while it grows."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
import anyio.to_thread

from moot.errors import Busy, MootError, NotFound
from moot.runtime.importing import Report, Source, Wanted, bring
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
    sources: Callable[[], Iterable[Source]]
    wanted: Wanted
    folder: Path | None = None
    """What was uploaded for it; gone with its end."""
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

    def ask(self, job: ImportJob) -> ImportJob:
        """Puts it behind the others. Raises Busy when there are too many."""
        if len(self._waiting) >= _WAITING:
            raise Busy(f"{_WAITING} imports are waiting already", fix="wait for one to end")
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
            await bring(job.holdings, job.sources(), job.wanted, job.report)
            if job.report.taken.changed and not job.wanted.dry_run:
                await job.holdings.search.index(seconds=_INDEX)
            job.state = "finished"
        except MootError as error:
            job.state, job.error = "failed", error.advice()
        finally:
            job.ended_at = int(time.time() * 1000)
            if job.folder is not None:
                folder = job.folder
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
