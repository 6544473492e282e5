"""Continuous import of sources while programs write them.

The operating system reports changed files; where it can't, moot polls the files. After reading a source, the watcher waits for a multiple
of the reading time before it reads that source again. So even a large, frequently written source uses only a bounded share of a core.
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
from moot.imports.reader import ThreadReader
from moot.imports.report import Report
from moot.imports.sources import Places, Source, mark_of
from moot.types.format import HasCompanions
from moot.types.store import OwnerStore

_STEP, _GATHER = 100, 300
"""Interval between checks for reported changes, and maximum time to collect them, in ms."""
_LOOK = 1.0
"""Seconds between checks for watched locations that were created or removed."""
_POLLED = 1000
"""Interval between polls, in ms, where the operating system can't report changes: too many folders, or a network file system."""
_REST = 4.0
"""After reading a source for t seconds, wait this many times t before reading it again."""
_LEAST = 0.3
"""Minimum seconds between two reads of a source."""
_INDEX = 1.0
_ALL = Path()
"""Key of the search for new sources in `_next_read`, because the search is throttled like a source."""
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
    known: dict[Path, Source] = field(default_factory=dict[Path, Source])
    _companions: dict[Path, Path] = field(default_factory=dict[Path, Path])
    """Companion of a source → the source."""
    _waiting: dict[Path, None] = field(default_factory=dict[Path, None])
    """Changed sources, oldest first."""
    _next_read: dict[Path, float] = field(default_factory=dict[Path, float])
    """Source → earliest time of its next read."""
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _search_all: bool = False
    """True if a changed file doesn't belong to a known source, so that new sources must be searched for."""

    def __post_init__(self) -> None:
        self.reading = ThreadReader(self.wanted.prices)

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
            self._search_all = True
            self._changed.set()

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
                                self._search_all = True
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
        while self._waiting or self._search_all:
            if self._search_all and self._next_read.get(_ALL, 0.0) <= time.monotonic():
                await self._search()
            now = time.monotonic()
            due = [path for path in self._waiting if self._next_read.get(path, 0.0) <= now]
            for path in due:
                del self._waiting[path]
            await self._import(await anyio.to_thread.run_sync(lambda paths=due: list(self._marked(paths))), Report())
            if not due and (waiting := [*self._waiting, *([_ALL] if self._search_all else [])]):
                next_one = min(self._next_read.get(path, 0.0) for path in waiting)
                with anyio.move_on_after(max(next_one - now, 0.0)):
                    await self._changed.wait()
                self._changed = anyio.Event()

    async def _search(self) -> None:
        """Import sources that did not exist before."""
        self._search_all = False
        before, began = set(self.known), time.monotonic()
        new_sources = [source for source in await self._found() if source.path not in before]
        duration = time.monotonic() - began
        self._next_read[_ALL] = began + duration + duration * _REST
        await self._import(new_sources, Report())

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
            source = self.known[path]
            try:
                yield replace(source, mark=mark_of(source.format, path), problem="")
            except OSError:
                self.known.pop(path, None)
                self._next_read.pop(path, None)

    async def _import(self, sources: list[Source], report: Report) -> None:
        changed = False
        report.sources += len(sources)
        report.bytes += sum(source.mark.size for source in sources)
        for source in sources:
            began = time.monotonic()
            await import_source(self.holdings, source, self.wanted, self.reading, report)
            duration = time.monotonic() - began
            self._next_read[source.path] = began + duration + max(_LEAST, duration * _REST)
            changed = changed or report.counts.changed
        if sources and (changed or report.failed):
            self.told(report)
        if changed:
            await self._catch_up()

    async def _catch_up(self) -> None:
        """Index new messages and count the usage of new answers."""
        await self.holdings.search.index(seconds=_INDEX)
        await self.holdings.stats.count(seconds=_INDEX)


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
