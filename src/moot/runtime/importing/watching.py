"""Follows the sources of programs that are at work: what they write comes in while they write it.

The system tells which files change; nothing is looked at while nothing does. A source that was read is left alone for a multiple of the
time that reading it took, so a large one that is written to all day costs a bounded share of a core.
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

from moot.runtime.importing.bringing import bring_one, listed
from moot.runtime.importing.intake import Wanted
from moot.runtime.importing.reading import Here
from moot.runtime.importing.reports import Report
from moot.runtime.importing.sources import Places, Source, mark_of
from moot.types.store import Holdings

__all__ = ["Watcher"]

_STEP, _GATHER = 100, 300
"""ms between two looks at what the system told; at most so long is gathered."""
_LOOK = 1.0
"""Seconds between two looks whether places have come or gone."""
_POLLED = 1000
"""ms between two looks where the system can't tell of changes: too many folders for it, or a file system of another machine."""
_REST = 4.0
"""A reading that took t is followed by so many t without one of the same source."""
_LEAST = 0.3
"""Seconds between two readings of one source."""
_INDEX = 1.0
_ALL = Path()
"""Stands for the search for new sources, which rests like the reading of one."""
_BESIDE = ("-wal", "-journal", "-shm")


@dataclass(slots=True)
class Watcher:
    """Imports once, then whatever changes, until it is cancelled."""

    holdings: Holdings
    places: Places
    wanted: Wanted
    told: Callable[[Report], None]
    """Called after each import of which there is something to say."""
    reading: Here = field(default_factory=Here)
    known: dict[Path, Source] = field(default_factory=dict[Path, Source])
    _waiting: dict[Path, None] = field(default_factory=dict[Path, None])
    """Sources with news, oldest first."""
    _rest: dict[Path, float] = field(default_factory=dict[Path, float])
    """Source → when it may be read again."""
    _news: anyio.Event = field(default_factory=anyio.Event)
    _search_all: bool = False
    """Something changed that belongs to no source that is known."""

    async def run(self, first: Report | None = None, ready: Callable[[Report], None] = lambda _: None) -> None:
        """Never returns. `first` is the report of the import that comes before the watching, `ready` is called after it.

        Raises StoreError.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)  # before the first import: what changes meanwhile is news
            report = first or Report()
            await self._import(await self._found(), report)
            ready(report)
            while True:
                await self._news.wait()
                self._news = anyio.Event()
                await self._work_off()

    # ── what has changed ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self) -> None:
        """Takes note of what the system tells, and begins anew when places come or go."""
        while True:
            roots = await anyio.to_thread.run_sync(self._roots)
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._end_when_moved, roots, scope)
                    await self._hear([path for path, there in roots.items() if there is not None])
                    scope.cancel()
            self._search_all = True
            self._news.set()

    async def _hear(self, roots: list[Path]) -> None:
        """Returns when a place itself came or went: one that has come back under its name is another one."""
        if not roots:
            await anyio.sleep_forever()
        polled = False
        while True:
            try:
                async with aclosing(_changes(roots, polled=polled)) as changes:
                    async for paths in changes:
                        self._note(paths)
                        if any(Path(path) in roots for path in paths):
                            return
            except OSError:
                if polled:
                    raise
                polled = True  # no more watches to be had

    async def _end_when_moved(self, roots: Mapping[Path, int | None], scope: anyio.CancelScope) -> None:
        while True:
            await anyio.sleep(_LOOK)
            if await anyio.to_thread.run_sync(self._roots) != roots:
                scope.cancel()
                return

    def _roots(self) -> dict[Path, int | None]:
        """Each place with the inode of what is there; of a file its folder, for programs put new files in the place of old ones."""
        found: dict[Path, int | None] = {}
        for place in self.places.roots():
            root = place if place.is_dir() or not place.parent.is_dir() or not place.suffix else place.parent
            try:
                found[root] = root.stat().st_ino
            except OSError:
                found[root] = None
        return found

    def _note(self, paths: Iterable[str]) -> None:
        for name in paths:
            path = self._source_of(Path(name))
            if path is None:
                self._search_all = True
            else:
                self._waiting.setdefault(path)
        self._news.set()

    def _source_of(self, path: Path) -> Path | None:
        """The source that a file is or belongs to; None when it belongs to none that is known."""
        for ending in _BESIDE:
            if path.name.endswith(ending) and (owner := path.with_name(path.name.removesuffix(ending))) in self.known:
                return owner
        return next((one for one in (path, *path.parents) if one in self.known), None)

    # ── bringing it in ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _work_off(self) -> None:
        """Reads what has news, each source when it may be read again."""
        while self._waiting or self._search_all:
            if self._search_all and self._rest.get(_ALL, 0.0) <= time.monotonic():
                await self._search()
            now = time.monotonic()
            due = [path for path in self._waiting if self._rest.get(path, 0.0) <= now]
            for path in due:
                del self._waiting[path]
            await self._import(await anyio.to_thread.run_sync(lambda paths=due: list(self._marked(paths))), Report())
            if not due and (waiting := [*self._waiting, *([_ALL] if self._search_all else [])]):
                next_one = min(self._rest.get(path, 0.0) for path in waiting)
                with anyio.move_on_after(max(next_one - now, 0.0)):
                    await self._news.wait()
                self._news = anyio.Event()

    async def _search(self) -> None:
        """Brings in what was not there before."""
        self._search_all = False
        before, began = set(self.known), time.monotonic()
        fresh = [source for source in await self._found() if source.path not in before]
        took = time.monotonic() - began
        self._rest[_ALL] = began + took + took * _REST
        await self._import(fresh, Report())

    async def _found(self) -> list[Source]:
        sources = await listed(self.places.sources())
        self.known |= {source.path: source for source in sources}
        return sources

    def _marked(self, paths: Iterable[Path]) -> Iterator[Source]:
        """The sources as they stand now; what is gone is forgotten."""
        for path in paths:
            source = self.known[path]
            try:
                yield replace(source, mark=mark_of(source.format, path), problem="")
            except OSError:
                self.known.pop(path, None)
                self._rest.pop(path, None)

    async def _import(self, sources: list[Source], report: Report) -> None:
        changed = False
        report.sources += len(sources)
        report.bytes += sum(source.mark.size for source in sources)
        for source in sources:
            began = time.monotonic()
            await bring_one(self.holdings, source, self.wanted, self.reading, report)
            took = time.monotonic() - began
            self._rest[source.path] = began + took + max(_LEAST, took * _REST)
            changed = changed or report.taken.changed
        if sources and (changed or report.failed):
            self.told(report)
        if changed:
            await self.holdings.search.index(seconds=_INDEX)


async def _changes(roots: list[Path], *, polled: bool) -> AsyncGenerator[list[str], None]:
    changes: AsyncGenerator[set[tuple[object, str]], None] = awatch(  # type: ignore[assignment]
        *(os.fspath(root) for root in roots),
        watch_filter=None,
        debounce=_GATHER,
        step=_STEP,
        rust_timeout=_GATHER,  # a cancel waits so long
        force_polling=polled or None,
        poll_delay_ms=_POLLED,
        ignore_permission_denied=True,
    )
    async with aclosing(changes):
        async for found in changes:
            yield [path for _, path in found]
