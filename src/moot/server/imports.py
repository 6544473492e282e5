"""Imports of a server: uploads, queued imports with reports, and following the agents of the machine."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

import anyio
import anyio.to_thread

from moot.engine import Engine
from moot.errors import Busy, MootError, NotFound, StoreError
from moot.guard.terminal import clean
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import Places, Source, local_places, local_sources
from moot.plugins.registry import Registry
from moot.types.ids import new_id
from moot.types.store import OwnerStore

__all__ = ["Following", "ImportJob", "ImportJobs", "Upload", "clear_uploads", "upload"]


_LONGEST = 200
"""Bytes of a name: file systems take 255."""
_ALONE = ("of", "its", "own")
"""Folders around a file, so deep that a format which looks around for what belongs to its source finds nobody else's."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent."""

    folder: Path
    """Gone with it."""
    file: Path
    """In a folder that is named after what it holds: some formats take a folder's name for the conversation's id."""
    name: str

    def said(self, text: str) -> str:
        """The text with the file's own name where it names the place that it lies at."""
        return text.replace(str(self.file), self.name)

    async def drop(self) -> None:
        """Removes it, whatever comes."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(partial(shutil.rmtree, self.folder, ignore_errors=True))


async def upload(home: Path, name: str, body: AsyncIterable[bytes]) -> Upload:
    """The body as a file; nothing is left when it does not come to its end. Raises StoreError."""
    place = _uploads(home)
    await anyio.Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, dir=place)))
    kept = Upload(folder, folder / "coming", _named(name))
    try:
        digest = hashlib.sha256()
        async with await anyio.open_file(kept.file, "xb") as file:
            async for piece in body:
                digest.update(piece)
                await file.write(piece)
        own = folder.joinpath(*_ALONE, digest.hexdigest()[:32])
        await anyio.Path(own).mkdir(parents=True)
        await anyio.Path(kept.file).rename(own / kept.name)
    except OSError as error:
        await kept.drop()
        raise StoreError(f"can't keep {kept.name!r}: {error.strerror}", fix="free some space") from error
    except BaseException:
        await kept.drop()
        raise
    return Upload(folder, own / kept.name, kept.name)


def clear_uploads(home: Path) -> None:
    """Removes what a server that was killed has left. For whoever serves the home alone."""
    shutil.rmtree(_uploads(home), ignore_errors=True)


def _uploads(home: Path) -> Path:
    return home / "state" / "uploads"


def _named(name: str) -> str:
    """The last part of what it is called; of a name that is too long its end, which says what it is."""
    last = PurePosixPath(clean(name).replace("\\", "/")).name
    cut = last.encode()[-_LONGEST:].decode("utf-8", "ignore")
    return cut if cut.strip(". ") else "upload"


State: TypeAlias = Literal["queued", "running", "finished", "failed"]

_REMEMBERED = 50
_WAITING = 20
_INDEX = 30.0


@dataclass(slots=True)
class ImportJob:
    """One of them."""

    owner: str
    holdings: OwnerStore
    sources: Callable[[Report], Iterable[Source]]
    """Tells the report what is nobody's."""
    wanted: ImportOptions
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
            await import_sources(job.holdings, job.sources(job.report), job.wanted, job.report)
            if job.report.taken.changed and not job.wanted.dry_run:
                await job.holdings.search.index(seconds=_INDEX)
        except MootError as error:
            job.error = error.advice() if job.sent is None else job.sent.said(error.advice())
        finally:
            if job.sent is not None:
                await job.sent.drop()
        job.ended_at = int(time.time() * 1000)
        job.state = "failed" if job.error else "finished"


WATCHERS = Registry("moot.server.watchers", {"imports": "moot.imports.watcher:Watcher"})
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
        self._places = Places(_roots, partial(local_sources, Path.home(), os.environ, data))

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
                watcher = WATCHERS.load("imports")(self.engine.store, self._places, ImportOptions(home=Path.home()), self._brought)
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
    return [place for _, place in local_places(Path.home(), os.environ)]
