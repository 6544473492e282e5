"""Continuous import of sources while programs write them.

The operating system reports changed files; where it can't, moot polls the files. If lines were appended to a source, only these are read,
as far as the format allows it. After a source was imported, the watcher waits for a multiple of the time that this took before it reads
that source again. So even a large, frequently written source uses only a fifth of a core.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
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
from moot.types.imports import SourceMark
from moot.types.store import OwnerStore

_STEP, _GATHER, _PAUSE = 50, 150, 300
"""Interval between checks for reported changes, maximum time to collect them, and maximum delay of a cancellation, in ms."""
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
    """Sources with the state in which they were last found or imported."""
    _companions: dict[Path, set[Path]] = field(default_factory=dict[Path, set[Path]])
    """Companion → the sources that it belongs to."""
    _waiting: dict[Path, None] = field(default_factory=dict[Path, None])
    """Changed sources, oldest first."""
    _next_read: dict[Path, float] = field(default_factory=dict[Path, float])
    """Source → earliest time of its next read."""
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _unknown: anyio.Event = field(default_factory=anyio.Event)
    """Set if a changed file doesn't belong to a known source, or if changes may have been missed, so that all sources must be checked."""

    def __post_init__(self) -> None:
        self.reading = ThreadReader(self.wanted.prices, self.states)

    async def run(self, first: Report | None = None, ready: Callable[[Report], None] = lambda _: None) -> None:
        """Run forever. `first` is the report of the initial import; `ready` is called after it.

        Raise StoreError if storing fails.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)  # before the first import, so that changes during it are noticed
            report = first or Report()
            await self._found()
            await self._import([*self.known.values()], report)
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

    async def _receive(self, roots: list[Path]) -> None:
        """Collect changes below `roots` until one of them is itself changed, because a new folder with the same name needs a new watch.

        As soon as changes are reported, all sources are checked, because they may have changed before.
        """
        if not roots:
            await anyio.sleep_forever()
        polled = False
        while True:
            try:
                async with aclosing(_changes(roots, polled=polled)) as changes:
                    is_first = True
                    async for paths in changes:
                        self._note(paths, check_all=is_first)
                        is_first = False
                        if any(Path(path) in roots for path in paths):
                            return
            except OSError:
                if polled:
                    raise
                polled = True  # the operating system has no more watches

    def _note(self, paths: Iterable[str], *, check_all: bool) -> None:
        """Let the sources of changed files be imported. Check all sources if a file doesn't belong to one."""
        owners = [self._sources_of(Path(path)) for path in paths]
        self._waiting |= {owner: None for some in owners for owner in some if owner not in self._waiting}
        if any(owners):
            self._changed.set()
        if check_all or not all(owners):
            self._unknown.set()

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

    def _sources_of(self, path: Path) -> set[Path]:
        """Return the sources that a file belongs to."""
        for ending in _BESIDE:
            if path.name.endswith(ending) and (owner := path.with_name(path.name.removesuffix(ending))) in self.known:
                return {owner}
        own = next((one for one in (path, *path.parents) if one in self.known), None)
        return {one for one in (own, *self._companions.get(path, ())) if one in self.known}

    # ── imports ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read_changed(self) -> None:
        """Import the changed sources, each as soon as its waiting time is over."""
        while self._waiting:
            now = time.monotonic()
            due = [path for path in self._waiting if self._next_read.get(path, 0.0) <= now][:_AT_ONCE]
            for path in due:
                del self._waiting[path]
            await self._import(await self._marked(due), Report())
            if not due:
                next_one = min(self._next_read.get(path, 0.0) for path in self._waiting)
                with anyio.move_on_after(max(next_one - now, 0.0)):
                    await self._changed.wait()
                self._changed = anyio.Event()

    async def _search(self) -> None:
        """Find sources that are new, or that changed without being reported, and have them imported."""
        while True:
            await self._unknown.wait()
            self._unknown = anyio.Event()
            began = _Stopwatch()
            self._waiting |= dict.fromkeys(await self._found())
            self._changed.set()
            await anyio.sleep(began.seconds() * _REST)

    async def _found(self) -> list[Path]:
        """Find all sources. Return those that are new or have changed."""
        sources = await list_sources(self.places.sources())
        before = self.known.copy()
        self.known |= {source.path: source for source in sources}
        self._companions = await anyio.to_thread.run_sync(_companions_of, [*self.known.values()])
        return [path for path, source in self.known.items() if path not in before or not source.mark.same(before[path].mark)]

    async def _marked(self, paths: Iterable[Path]) -> list[Source]:
        """Return the sources with their current state, and forget those that no longer exist."""
        sources = [source for path in paths if (source := self.known.get(path)) is not None]
        found: list[Source] = []
        for source, mark in zip(sources, await anyio.to_thread.run_sync(_marks, sources), strict=True):
            if mark is None:
                self.known.pop(source.path, None)
                self._next_read.pop(source.path, None)
            else:
                self.known[source.path] = replace(source, mark=mark, problem="")
                found.append(self.known[source.path])
        return found

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


def _companions_of(sources: Iterable[Source]) -> dict[Path, set[Path]]:
    """Return the sources of each companion. Blocks."""
    found: dict[Path, set[Path]] = {}
    for source in sources:
        for path in source.format.companions(source.path) if isinstance(source.format, HasCompanions) else ():
            found.setdefault(path, set()).add(source.path)
    return found


def _marks(sources: Iterable[Source]) -> list[SourceMark | None]:
    """Return the current states of the sources, None for those that can't be read. Blocks."""
    found: list[SourceMark | None] = []
    for source in sources:
        try:
            found.append(mark_of(source.format, source.path))
        except OSError:
            found.append(None)
    return found


class _Stopwatch:
    """Measures the time that work takes, without the time during which other programs use the processor."""

    def __init__(self) -> None:
        self._began, self._used = time.monotonic(), time.process_time()

    def seconds(self) -> float:
        return min(time.monotonic() - self._began, time.process_time() - self._used)


async def _changes(roots: list[Path], *, polled: bool) -> AsyncGenerator[list[str], None]:
    """Yield the paths of changed files. Every now and then, yield an empty list, for the first time when changes begin to be reported."""
    changes: AsyncGenerator[set[tuple[object, str]], None] = awatch(  # type: ignore[assignment]
        *(os.fspath(root) for root in roots),
        watch_filter=None,
        debounce=_GATHER,
        step=_STEP,
        rust_timeout=_PAUSE,
        yield_on_timeout=True,
        force_polling=polled or None,
        poll_delay_ms=_POLLED,
        ignore_permission_denied=True,
    )
    async with aclosing(changes):
        async for found in changes:
            yield [path for _, path in found]
