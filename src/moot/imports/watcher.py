"""Continuous import of sources while programs write them.

The operating system reports changed files; where it can't, moot polls the files. If lines were appended to a source, only these are read,
as far as the format allows it. After a source was imported, the watcher waits for a multiple of the time that this took before it reads
that source again. So even a large, frequently written source uses only a fifth of a core.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.to_thread
from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_source, list_sources
from moot.imports.reader import ReadingStates, ThreadReader
from moot.imports.report import Report
from moot.imports.sources import Places, Source, mark_of
from moot.types.format import HasCompanions
from moot.types.store import OwnerStore

_STEP, _GATHER = 50, 150
"""Interval between checks for reported changes, and maximum time to collect them, in ms."""
_LOOK = 1.0
"""Seconds between checks for watched locations that were created or removed."""
_POLLED = 1000
"""Interval between polls, in ms, where the operating system can't report changes: too many folders, or a network file system."""
_REST = 4.0
"""After importing a source for t seconds, wait this many times t before reading it again. The same applies to searching for new sources."""
_LEAST = 0.1
"""Minimum seconds between two reads of a source."""
_AT_ONCE = 16
"""Maximum number of sources that are imported before their messages are indexed."""
_INDEX = 1.0
_BESIDE = ("-wal", "-journal", "-shm")


@dataclass(slots=True)
class Watcher:
    """A watcher that imports all sources once, then those that change, until it is cancelled."""

    holdings: OwnerStore
    places: Places
    wanted: ImportOptions
    told: Callable[[Report], None]
    """Called after each import that stored something or failed."""
    reading: ThreadReader = field(init=False)
    states: ReadingStates = field(default_factory=ReadingStates)
    """From where to continue reading the sources to which lines are appended."""
    known: dict[Path, Source] = field(default_factory=dict[Path, Source])
    _companions: dict[Path, Path] = field(default_factory=dict[Path, Path])
    """Companion of a source → the source."""
    _waiting: dict[Path, None] = field(default_factory=dict[Path, None])
    """Changed sources, oldest first."""
    _next_read: dict[Path, float] = field(default_factory=dict[Path, float])
    """Source → earliest time of its next read."""
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _unknown: anyio.Event = field(default_factory=anyio.Event)
    """Set if a changed file doesn't belong to a known source, so that new sources must be searched for."""

    def __post_init__(self) -> None:
        self.reading = ThreadReader(self.wanted.prices, self.states)

    async def run(self, first: Report | None = None, ready: Callable[[Report], None] = lambda _: None) -> None:
        """Run forever. `first` is the report of the initial import; `ready` is called after it.

        Raise StoreError if storing fails.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)  # before the first import, so that changes during it are noticed
            report = first or Report()
            await self._import(await self._found(), report)
            ready(report)
            await self._catch_up()  # with what an earlier import has left
            tasks.start_soon(self._search)
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                await self._read_changed()

    # ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self) -> None:
        """Collect reported changes. Start watching again when a location appears or disappears."""
        while True:
            roots = await anyio.to_thread.run_sync(self._roots)
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._end_when_moved, roots, scope)
                    await self._receive([path for path, there in roots.items() if there is not None])
                    scope.cancel()
            self._unknown.set()

    async def _receive(self, roots: list[Path]) -> None:
        """Collect changes below `roots` until one of them is itself changed, because a new folder with the same name needs a new watch."""
        if not roots:
            await anyio.sleep_forever()
        polled = False
        while True:
            try:
                async with aclosing(_changes(roots, polled=polled)) as changes:
                    async for paths in changes:
                        for path in paths:
                            owner = self._source_of(Path(path))
                            if owner is None:
                                self._unknown.set()
                            else:
                                self._waiting.setdefault(owner)
                        self._changed.set()
                        if any(Path(path) in roots for path in paths):
                            return
            except OSError:
                if polled:
                    raise
                polled = True  # the operating system has no more watches

    async def _end_when_moved(self, roots: Mapping[Path, int | None], scope: anyio.CancelScope) -> None:
        while True:
            await anyio.sleep(_LOOK)
            if await anyio.to_thread.run_sync(self._roots) != roots:
                scope.cancel()
                return

    def _roots(self) -> dict[Path, int | None]:
        """Return each location with its inode, or None if it is missing. For a file, use its folder, because programs replace files."""
        found: dict[Path, int | None] = {}
        for place in self.places.roots():
            root = place if place.is_dir() or not place.parent.is_dir() or not place.suffix else place.parent
            try:
                found[root] = root.stat().st_ino
            except OSError:
                found[root] = None
        return found

    def _source_of(self, path: Path) -> Path | None:
        """Return the source that a file belongs to, or None."""
        for ending in _BESIDE:
            if path.name.endswith(ending) and (owner := path.with_name(path.name.removesuffix(ending))) in self.known:
                return owner
        return next((one for one in (path, *path.parents) if one in self.known), self._companions.get(path))

    # ── imports ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read_changed(self) -> None:
        """Import the changed sources, each as soon as its waiting time is over."""
        while self._waiting:
            now = time.monotonic()
            due = [path for path in self._waiting if self._next_read.get(path, 0.0) <= now][:_AT_ONCE]
            for path in due:
                del self._waiting[path]
            await self._import(await anyio.to_thread.run_sync(lambda paths=due: list(self._marked(paths))), Report())
            if not due:
                next_one = min(self._next_read.get(path, 0.0) for path in self._waiting)
                with anyio.move_on_after(max(next_one - now, 0.0)):
                    await self._changed.wait()
                self._changed = anyio.Event()

    async def _search(self) -> None:
        """Find sources that did not exist before, and have them imported."""
        while True:
            await self._unknown.wait()
            self._unknown = anyio.Event()
            before, began = set(self.known), time.monotonic()
            self._waiting |= {source.path: None for source in await self._found() if source.path not in before}
            self._changed.set()
            await anyio.sleep((time.monotonic() - began) * _REST)

    async def _found(self) -> list[Source]:
        sources = await list_sources(self.places.sources())
        self.known |= {source.path: source for source in sources}
        for source in sources:
            if isinstance(source.format, HasCompanions):
                self._companions |= dict.fromkeys(source.format.companions(source.path), source.path)
        return sources

    def _marked(self, paths: Iterable[Path]) -> Iterator[Source]:
        """Yield the sources with their current state, and forget those that no longer exist."""
        for path in paths:
            source = self.known.get(path)
            if source is None:
                continue  # deleted while its change was reported
            try:
                yield replace(source, mark=mark_of(source.format, path), problem="")
            except OSError:
                self.known.pop(path, None)
                self._next_read.pop(path, None)

    async def _import(self, sources: list[Source], report: Report) -> None:
        changed = False
        report.sources += len(sources)
        report.bytes += sum(source.mark.size for source in sources)
        durations: dict[Path, float] = {}
        for source in sources:
            began = _Stopwatch()
            await import_source(self.holdings, source, self.wanted, self.reading, report)
            durations[source.path] = began.seconds()
            changed = changed or report.counts.changed
        if sources and (changed or report.failed):
            self.told(report)
        began = _Stopwatch()
        if changed:
            await self._catch_up()
        now, shared = time.monotonic(), began.seconds() / max(len(sources), 1)
        self._next_read |= {path: now + max(_LEAST, (duration + shared) * _REST) for path, duration in durations.items()}

    async def _catch_up(self) -> None:
        """Index new messages and count the usage of new answers."""
        await self.holdings.search.index(seconds=_INDEX)
        await self.holdings.stats.count(seconds=_INDEX)


class _Stopwatch:
    """Measures the time that work takes, without the time during which other programs use the processor."""

    def __init__(self) -> None:
        self._began, self._used = time.monotonic(), time.process_time()

    def seconds(self) -> float:
        return min(time.monotonic() - self._began, time.process_time() - self._used)


async def _changes(roots: list[Path], *, polled: bool) -> AsyncGenerator[list[str], None]:
    changes: AsyncGenerator[set[tuple[object, str]], None] = awatch(  # type: ignore[assignment]
        *(os.fspath(root) for root in roots),
        watch_filter=None,
        debounce=_GATHER,
        step=_STEP,
        rust_timeout=_GATHER,  # maximum delay of a cancellation
        force_polling=polled or None,
        poll_delay_ms=_POLLED,
        ignore_permission_denied=True,
    )
    async with aclosing(changes):
        async for found in changes:
            yield [path for _, path in found]
