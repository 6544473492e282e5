"""What the agents on the server's machine write comes in while they write it, for as long as `imports.watch` says so."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

from moot.engine import Engine
from moot.errors import MootError
from moot.plugins.registry import Registry
from moot.runtime.importing import Places, Report, Wanted, places_here, sources_here

__all__ = ["Following"]

WATCHERS = Registry("moot.server.watchers", {"imports": "moot.runtime.importing.watching:Watcher"})
"""By name: what tells of changes in folders is imported only where they are followed."""
LOOK = 0.5
"""Seconds between two looks at the setting."""
AGAIN = 30.0
"""Seconds after which it is tried again when the store or the system refused."""

log = logging.getLogger("moot.server")


@dataclass(slots=True)
class Following:
    """That of one server; `told` is called with each change of whether it follows."""

    engine: Engine
    told: Callable[[bool], None] = lambda _: None
    since: int = 0
    """ms; 0 = it does not follow."""
    sources: int = 0
    """Found at the beginning."""
    messages: int = 0
    """That came, or grew, since."""
    last_at: int = 0
    """ms of the last time that something came; 0 = never."""
    problem: str = ""
    """Why it does not follow though it should."""
    _places: Places = field(init=False)

    def __post_init__(self) -> None:
        data = self.engine.settings.database.parent
        self._places = Places(_roots, partial(sources_here, Path.home(), os.environ, data))

    async def work(self) -> None:
        """Never returns."""
        while True:
            await self._until(wanted=True)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow)
                await self._until(wanted=False)
                tasks.cancel_scope.cancel()
            self._note(0)

    async def _until(self, *, wanted: bool) -> None:
        while True:
            if self.engine.runtime.settings.imports.watch is wanted:
                return
            await anyio.sleep(LOOK)

    async def _follow(self) -> None:
        while True:
            self.sources = self.messages = self.last_at = 0
            self._note(int(time.time() * 1000))
            try:
                watcher = WATCHERS.load("imports")(self.engine.store, self._places, Wanted(home=Path.home()), self._brought)
                await watcher.run(ready=self._begun)
            except* (MootError, OSError) as errors:
                self.problem = str(errors.exceptions[0])
                log.error("what agents write is not followed: %s", self.problem)
            self._note(0)
            await anyio.sleep(AGAIN)

    def _begun(self, report: Report) -> None:
        self.problem = ""
        self.sources = report.sources

    def _brought(self, report: Report) -> None:
        taken = report.taken
        if taken.changed:
            self.messages += taken.added + taken.rewritten + taken.grown
            self.last_at = int(time.time() * 1000)
        for failed in report.failed:
            log.warning("%s can't be read: %s", failed.path, failed.problem)

    def _note(self, since: int) -> None:
        if bool(self.since) != bool(since):
            self.told(bool(since))
        self.since = since


def _roots() -> Iterable[Path]:
    return [place for _, place in places_here(Path.home(), os.environ)]
