"""Imports that a server runs: uploaded files, queued imports, and continuous import from the agents on its machine."""

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

_LONGEST = 200
"""Maximum length of a file name in bytes; file systems allow 255."""
_ALONE = ("of", "its", "own")
"""Names of nested folders around an uploaded file. They separate uploads, because some formats also read neighboring files."""


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file."""

    folder: Path
    """Folder that is deleted together with the file."""
    file: Path
    """Path of the file. Its folder is named after the content's hash, because some formats use that name as the conversation id."""
    name: str

    def hide_path(self, text: str) -> str:
        """Return the text with the temporary path replaced by the file's own name."""
        return text.replace(str(self.file), self.name)

    async def drop(self) -> None:
        """Delete the file; errors are ignored."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(partial(shutil.rmtree, self.folder, ignore_errors=True))


async def upload(home: Path, name: str, body: AsyncIterable[bytes]) -> Upload:
    """Store the body as a file; an incomplete upload is deleted. Raise StoreError if it can't be stored."""
    place = _uploads(home)
    await anyio.Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, dir=place)))
    received = Upload(folder, folder / "coming", _named(name))
    try:
        digest = hashlib.sha256()
        async with await anyio.open_file(received.file, "xb") as file:
            async for piece in body:
                digest.update(piece)
                await file.write(piece)
        target = folder.joinpath(*_ALONE, digest.hexdigest()[:32])
        await anyio.Path(target).mkdir(parents=True)
        await anyio.Path(received.file).rename(target / received.name)
    except OSError as error:
        await received.drop()
        raise StoreError(f"Can't store {received.name!r}: {error.strerror}.", fix="Free some space.") from error
    except BaseException:
        await received.drop()
        raise
    return Upload(folder, target / received.name, received.name)


def clear_uploads(home: Path) -> None:
    """Delete uploads left by a killed server. Only call this while no other server uses the home."""
    shutil.rmtree(_uploads(home), ignore_errors=True)


def _uploads(home: Path) -> Path:
    return home / "state" / "uploads"


def _named(name: str) -> str:
    """Return the last component of the file name; a name that is too long keeps its end, which contains the extension."""
    last = PurePosixPath(clean(name).replace("\\", "/")).name
    cut = last.encode()[-_LONGEST:].decode("utf-8", "ignore")
    return cut if cut.strip(". ") else "upload"


State: TypeAlias = Literal["queued", "running", "finished", "failed"]

_REMEMBERED = 50
_WAITING = 20
_INDEX = 30.0


@dataclass(slots=True)
class ImportJob:
    """An import that a user has requested, and its progress."""

    owner: str
    holdings: OwnerStore
    sources: Callable[[Report], Iterable[Source]]
    """Function that returns the files to import. It adds files without a known format to the report."""
    options: ImportOptions
    sent: Upload | None = None
    """The uploaded file, deleted when the import ends."""
    id: str = field(default_factory=new_id)
    state: State = "queued"
    error: str = ""
    report: Report = field(default_factory=Report)
    asked_at: int = field(default_factory=lambda: int(time.time() * 1000))
    ended_at: int = 0
    """End time in ms; 0 = not ended."""


class ImportJobs:
    """Imports of one server. They stop with the server; conversations that are already stored are kept."""

    def __init__(self) -> None:
        self._jobs: deque[ImportJob] = deque(maxlen=_REMEMBERED)
        self._waiting: deque[ImportJob] = deque()
        self._queued = anyio.Event()

    def check(self) -> None:
        """Raise Busy if too many imports are queued."""
        if len(self._waiting) >= _WAITING:
            raise Busy(f"{_WAITING} imports are already queued.", fix="Wait until one of them has finished.")

    def ask(self, job: ImportJob) -> ImportJob:
        """Queue an import. Raise Busy if too many are queued."""
        self.check()
        self._jobs.append(job)
        self._waiting.append(job)
        self._queued.set()
        return job

    def of(self, owner: str) -> Iterator[ImportJob]:
        """Return the owner's imports, newest first."""
        return (job for job in reversed(self._jobs) if job.owner == owner)

    def get(self, id: str, owner: str) -> ImportJob:
        """Return an import. Raise NotFound if it does not exist."""
        found = next((job for job in self.of(owner) if job.id == id), None)
        if found is None:
            raise NotFound(f"No import has the id {id!r}.")
        return found

    async def work(self) -> None:
        """Process queued imports. Never returns."""
        while True:
            await self._queued.wait()
            self._queued = anyio.Event()
            while self._waiting:
                await self._do(self._waiting.popleft())

    async def _do(self, job: ImportJob) -> None:
        job.state = "running"
        try:
            await import_sources(job.holdings, job.sources(job.report), job.options, job.report)
            if job.report.counts.changed and not job.options.dry_run:
                await job.holdings.search.index(seconds=_INDEX)
        except MootError as error:
            job.error = error.advice() if job.sent is None else job.sent.hide_path(error.advice())
        finally:
            if job.sent is not None:
                await job.sent.drop()
        job.ended_at = int(time.time() * 1000)
        job.state = "failed" if job.error else "finished"


WATCHERS = Registry("moot.server.watchers", {"imports": "moot.imports.watcher:Watcher"})
"""File watchers by name. They are loaded by name, so that the module is only imported while continuous import is active."""
INTERVAL = 0.5
"""Seconds between checks of the setting `imports.watch`."""
RETRY_DELAY = 30.0
"""Seconds before a retry after an error of the store or the system."""

log = logging.getLogger("moot.server")


@dataclass(slots=True)
class ImportWatch:
    """Continuous import of the agents' conversations. `on_change` is called with True when it starts and False when it stops."""

    engine: Engine
    on_change: Callable[[bool], None] = lambda _: None
    since: int = 0
    """Start time in ms; 0 = not active."""
    sources: int = 0
    """Number of files and databases with conversations, found when continuous import started."""
    messages: int = 0
    """Number of messages imported or extended since continuous import started."""
    last_at: int = 0
    """Time of the last import in ms; 0 = none."""
    problem: str = ""
    """Why continuous import is not active although it is enabled; empty if it is active or disabled."""
    _places: Places = field(init=False)

    def __post_init__(self) -> None:
        data = self.engine.settings.database.parent
        self._places = Places(
            lambda: [location.place for location in local_places(Path.home(), os.environ)],
            partial(local_sources, Path.home(), os.environ, data),
        )

    async def work(self) -> None:
        """Watch while the setting is enabled. Never returns."""
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
            await anyio.sleep(INTERVAL)

    async def _follow(self) -> None:
        while True:
            self.sources = self.messages = self.last_at = 0
            self._note(int(time.time() * 1000))
            try:
                watcher = WATCHERS.load("imports")(
                    self.engine.store, self._places, ImportOptions.of(self.engine.settings, home=Path.home()), self._imported
                )
                await watcher.run(ready=self._started)
            except* (MootError, OSError) as errors:
                self.problem = str(errors.exceptions[0])
                log.error("can't watch the agents' conversations: %s", self.problem)
            self._note(0)
            await anyio.sleep(RETRY_DELAY)

    def _started(self, report: Report) -> None:
        self.problem = ""
        self.sources = report.sources

    def _imported(self, report: Report) -> None:
        imported = report.counts
        if imported.changed:
            self.messages += imported.added + imported.rewritten + imported.grown
            self.last_at = int(time.time() * 1000)
        for failed in report.failed:
            log.warning("%s can't be read: %s", failed.path, failed.problem)

    def _note(self, since: int) -> None:
        if bool(self.since) != bool(since):
            self.on_change(bool(since))
        self.since = since
