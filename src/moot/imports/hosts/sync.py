"""Synchronization: fetching what has changed on other machines into their mirrors, and importing the mirrors."""

from __future__ import annotations

import shutil
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import anyio
from anyio import to_thread

from moot.config.settings import HostSettings, mirror_of
from moot.convert.imports import path_at_host
from moot.errors import HostError, MootError, StoreError
from moot.imports.conversations import ImportOptions
from moot.imports.hosts.connection import LATEST, Connection, FileState, Listing, Part, Sink, commands, connect
from moot.imports.hosts.mirror import Mirror
from moot.imports.hosts.places import DATABASES, LOGS, database_of, remote_places
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import Source, local_sources
from moot.store.maintenance.purge.mirrors import is_purged
from moot.types.canonical import Json, JsonObject
from moot.types.store import OwnerStore

PARALLEL = 4
"""Maximum number of machines to fetch from at the same time."""
LARGEST = 4 << 30
"""Maximum size of a file in bytes. Larger ones are skipped and reported."""
_FREE = 256 << 20
"""Bytes of disk space to leave free."""
_WINDOW = 200
"""Number of units whose parts are requested together."""
_TRIES = 3
_OVERLAP = 4 << 10
"""Number of bytes at both ends of a copy that must be unchanged to fetch only the rest of a file."""
_SKEW = 5
"""Seconds by which clocks may differ before times are corrected."""
_PROBLEMS = 20


@dataclass(slots=True)
class HostReport:
    """The result for one machine."""

    name: str
    new: int = 0
    """Number of new files."""
    grown: int = 0
    """Number of files that have grown and of which only the new part was fetched."""
    changed: int = 0
    unchanged: int = 0
    gone: int = 0
    """Number of files that no longer exist on the machine. Their conversations are kept."""
    fetched: int = 0
    """Number of bytes received."""
    size: int = 0
    """Size of the mirror in bytes."""
    problems: list[str] = field(default_factory=list[str])
    """Descriptions of at most 20 files that were not fetched, and the number of the others."""
    error: str = ""
    """Why nothing was imported; empty if the files were fetched."""
    imported: Report = field(default_factory=Report)
    _omitted: int = 0

    @property
    def faulty(self) -> bool:
        return bool(self.error or self.problems or self.imported.faulty)

    def count(self, outcome: str, names: Collection[str]) -> None:
        match outcome:
            case "new":
                self.new += len(names)
            case "grown":
                self.grown += len(names)
            case _:
                self.changed += len(names)

    def problem(self, text: str) -> None:
        self._omitted += len(self.problems) >= _PROBLEMS
        self.problems[_PROBLEMS:] = (
            [f"{self._omitted:,} more {'problem' if self._omitted == 1 else 'problems'}."] if self._omitted else [text]
        )

    def to_json(self) -> JsonObject:
        files: JsonObject = {name: getattr(self, name) for name in ("new", "grown", "changed", "unchanged", "gone")}
        return {
            "host": self.name,
            "files": files,
            "bytes": {"fetched": self.fetched, "mirror": self.size},
            "problems": list[Json](self.problems),
            "error": self.error or None,
            "import": self.imported.to_json(),
        }


Progress = Callable[[str, int, int], None]
"""Called with the name of a machine, and the received and the expected number of bytes."""


@dataclass(slots=True)
class _Unit:
    """Files to fetch together: one file, or a database with its logs, which are consistent only if none of them changes meanwhile."""

    expected: dict[str, FileState | None]
    """Path → state, or None if the file doesn't exist."""
    parts: list[Part]
    outcome: str
    overlap: tuple[bytes, bytes] | None = None
    """Ends of the copy, if only the rest of the file is fetched."""

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


@dataclass(slots=True)
class _Fetch:
    """Fetching from one machine."""

    connection: Connection
    mirror: Mirror
    report: HostReport
    progress: Progress
    skew: int = 0
    """Seconds to add to the machine's times."""
    total: int = 0

    async def run(self, listing: Listing, units: Sequence[_Unit]) -> None:
        """Fetch the units. Raise HostError if the connection fails. What has already arrived completely is kept."""
        try:
            if listing.is_complete:  # before fetching, because a file can have the name of a deleted folder
                self.report.gone = await to_thread.run_sync(self.mirror.keep_only, listing.files)
            waiting = list(units)
            for attempt in range(_TRIES):
                again: list[_Unit] = []
                left = sum(unit.size for unit in waiting)
                self.total += left
                for at in range(0, len(waiting), _WINDOW):
                    window = waiting[at : at + _WINDOW]
                    await to_thread.run_sync(self._check_space, left)
                    again += await self._window(window, is_last=attempt == _TRIES - 1)
                    left -= sum(unit.size for unit in window)
                waiting = again
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self.mirror.save)

    def _check_space(self, size: int) -> None:
        free = shutil.disk_usage(self.mirror.folder).free
        if size > free - _FREE:
            raise HostError(f"There is not enough disk space: {size >> 20:,} MB are needed, {free >> 20:,} MB are free.")

    def plan(self, listing: Listing) -> list[_Unit]:
        """Return the files to fetch, and count the rest."""
        units: list[_Unit] = []
        for names in _units(listing.files):
            states = {name: listing.files.get(name) for name in names}
            if not is_purged(names[0], self.mirror.purged) and (unit := self._unit(states)).parts:
                units.append(unit)
        return units

    def _unit(self, states: Mapping[str, FileState | None], *, whole: bool = False) -> _Unit:
        """Return the unit to fetch. If nothing has changed or a file is too large, it has no parts. If `whole`, fetch whole files."""
        mirror, report = self.mirror, self.report
        if any(state is not None and state.size > LARGEST for state in states.values()):
            report.problem(f"~/{next(iter(states))} is larger than {LARGEST >> 30} GiB and is skipped.")
            return _Unit(dict(states), [], "skipped")
        names = [name for name, state in states.items() if state is not None]
        changed = [name for name in names if whole or not self._is_done(name, states[name])]
        if whole and not names:
            report.problem(f"~/{next(iter(states))} disappeared or became a link while it was fetched.")
        if not whole:
            report.unchanged += len(names) - len(changed)
        if not changed:
            return _Unit(dict(states), [], "unchanged")
        if not whole and (tail := self._tail(changed[0], states)) is not None:
            return tail
        outcome = "new" if mirror.states.get(changed[0]) is None else "changed"
        return _Unit(dict(states), [Part(one, 0, found.size) for one in changed if (found := states[one]) is not None], outcome)

    def _tail(self, name: str, states: Mapping[str, FileState | None]) -> _Unit | None:
        """Return the unit that fetches only the new end of a line-based file, or None if that is not possible."""
        state, known = states[name], self.mirror.states.get(name)
        if state is None or known is None or not name.endswith(".jsonl") or known.inode != state.inode:
            return None
        if not 0 < known.size < state.size or self.mirror.size(name) != known.size:
            return None
        first, last = self.mirror.ends(name, _OVERLAP)
        parts = [Part(name, 0, len(first)), Part(name, known.size - len(last), state.size - known.size + len(last))]
        return _Unit(dict(states), parts, "grown", (first, last))

    def _is_done(self, name: str, state: FileState | None) -> bool:
        return state is not None and self.mirror.is_current(name, state)

    async def _window(self, units: Sequence[_Unit], *, is_last: bool) -> list[_Unit]:
        """Fetch some units. Return those that changed meanwhile and must be fetched again."""
        self.connection.send("\n".join(commands(unit.parts, unit.expected) for unit in units))
        again: list[_Unit] = []
        for unit in units:
            try:
                other = await self._receive(unit)
            except OSError as error:
                self.report.problem(f"~/{unit.parts[0].path} can't be stored: {error.strerror or error}.")
                continue
            if other is None:
                self.report.count(unit.outcome, {part.path for part in unit.parts})
            elif other.parts and is_last:
                self.report.problem(f"~/{unit.parts[0].path} can't be read completely, or keeps changing.")
            elif other.parts:
                again.append(other)
        return again

    async def _receive(self, unit: _Unit) -> _Unit | None:
        """Receive a unit and store it. Return the unit to fetch instead if it changed meanwhile."""
        received: list[Path] = []
        error: OSError | None = None
        for number, part in enumerate(unit.parts):
            path, is_received = self.mirror.folder / f"part{number}", False
            try:
                async with _written(path) as file:
                    await self.connection.part(part, self._sink(file))
                    is_received = True
            except OSError as problem:  # the answers that follow must be received in any case
                error = problem
                if not is_received:
                    await self.connection.part(part, _ignore)
            received.append(path)
        states = dict(zip(unit.expected, await self.connection.states(len(unit.expected)), strict=True))
        if error is not None:
            raise error
        return await to_thread.run_sync(self._store, unit, received, states)

    def _sink(self, file: BinaryIO) -> Sink:
        async def sink(data: bytes) -> None:
            self.report.fetched += len(data)
            self.progress(self.report.name, self.report.fetched, self.total)
            await to_thread.run_sync(file.write, data)

        return sink

    def _store(self, unit: _Unit, received: Sequence[Path], states: Mapping[str, FileState | None]) -> _Unit | None:
        is_complete = all(path.stat().st_size == part.size for path, part in zip(received, unit.parts, strict=True))
        if not is_complete or not _is_unchanged(unit, states):
            return self._unit(states, whole=True)
        if unit.overlap is not None:
            return self._extend(unit, received, states)
        for name in [name for name, state in unit.expected.items() if state is None]:
            self.mirror.remove(name)
        for path, part in zip(received, unit.parts, strict=True):
            state = unit.expected[part.path]
            assert state is not None
            self.mirror.replace(part.path, self._certain(state), path, self._modified(state))
        return None

    def _extend(self, unit: _Unit, received: Sequence[Path], states: Mapping[str, FileState | None]) -> _Unit | None:
        assert unit.overlap is not None
        first, last = unit.overlap
        name, state = next(iter(unit.expected.items()))
        assert state is not None
        with received[1].open("rb") as rest:
            if received[0].read_bytes() != first or rest.read(len(last)) != last:
                return self._unit(states, whole=True)
            self.mirror.extend(name, self._certain(state), rest, self._modified(state))
        return None

    def _certain(self, state: FileState) -> FileState:
        """Return the state to remember. It has no time if that is recent and in whole seconds: the file may still change in that second."""
        is_recent = "." not in state.modified and int(state.modified) >= self.connection.now - 2
        return state._replace(modified="") if is_recent else state

    def _modified(self, state: FileState) -> int:
        """Return the time in ns to give to the copy.

        File systems can't store every time, so times outside of the supported range are limited.
        """
        whole, _, part = state.modified.partition(".")
        return min(max(int(whole) + self.skew, 0), LATEST) * 1_000_000_000 + int(f"{part[:9]:0<9}")


def _units(names: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """Yield the names of files that must be fetched together."""
    seen: set[str] = set()
    for name in sorted(names):
        base = database_of(name)
        if base not in seen:
            seen.add(base)
            yield (base, *(f"{base}{end}" for end in LOGS)) if base.endswith(DATABASES) else (base,)


def _is_unchanged(unit: _Unit, states: Mapping[str, FileState | None]) -> bool:
    """Return whether the files are still as expected. A line-based file may have grown."""
    if states == unit.expected:
        return True
    name, expected = next(iter(unit.expected.items()))
    now = states[name]
    return (
        name.endswith(".jsonl") and expected is not None and now is not None and now.inode == expected.inode and now.size >= expected.size
    )


async def _ignore(data: bytes) -> None:
    """Ignore the data."""


@asynccontextmanager
async def _written(path: Path) -> AsyncGenerator[BinaryIO, None]:
    file = await to_thread.run_sync(lambda: path.open("wb"))
    try:
        yield file
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(file.close)


async def _fetch(host: HostSettings, mirror: Mirror, report: HostReport, progress: Progress, *, dry_run: bool) -> None:
    async with connect(host) as connection:
        listing = await connection.list(await to_thread.run_sync(remote_places, host.agents))
        report.problems += listing.problems
        difference = await to_thread.run_sync(_difference, listing.now)
        fetch = _Fetch(connection, mirror, report, progress, difference)
        units = await to_thread.run_sync(fetch.plan, listing)
        if dry_run:
            for unit in units:
                report.count(unit.outcome, {part.path for part in unit.parts})
                report.fetched += unit.size
        else:
            await fetch.run(listing, units)
    report.size = await to_thread.run_sync(mirror.total)


def _difference(now: int) -> int:
    """Return the seconds by which the machine's clock is behind, or 0 if the difference is small."""
    difference = int(time.time()) - now
    return difference if abs(difference) > _SKEW else 0


def mirrored_sources(mirror: Mirror, host: str) -> Iterator[Source]:
    """Yield the sources in a mirror. Their folders are on the other machine, so they are not trusted here."""
    nowhere = mirror.folder / "none"  # moot's own data folder, which is skipped, is not in the mirror
    for source in local_sources(mirror.home, {}, nowhere):
        # a list of projects may name other files of this machine
        if source.path.is_relative_to(mirror.home) and source.path.resolve().is_relative_to(mirror.home.resolve()):
            called = path_at_host(host, str(source.path.relative_to(mirror.home)))
            yield replace(source, placed=False, host=host, called=called)


async def sync_hosts(
    holdings: OwnerStore,
    hosts: Sequence[HostSettings],
    data: Path,
    wanted: ImportOptions,
    *,
    progress: Progress = lambda _host, _done, _total: None,
    reported: Callable[[list[HostReport]], None] = lambda _: None,
) -> list[HostReport]:
    """Fetch from the machines, several at a time, and import. Return a report for each. Raise StoreError if storing fails.

    A problem with one machine doesn't affect the others. If the connection fails, nothing of that machine is imported, but files that
    have arrived completely are kept for the next time. `data` is the folder of the database.
    """
    reports = [HostReport(host.name, imported=Report(lambda: reported(reports))) for host in hosts]
    limit, importing = anyio.CapacityLimiter(PARALLEL), anyio.Lock()
    failures: list[StoreError] = []

    async def one(host: HostSettings, report: HostReport) -> None:
        mirror = Mirror(mirror_of(data, host.name))
        async with limit:
            try:
                with await to_thread.run_sync(mirror.locked):
                    await to_thread.run_sync(mirror.load)
                    await _fetch(host, mirror, report, progress, dry_run=wanted.dry_run)
                    async with importing:
                        if not wanted.dry_run:
                            await import_sources(holdings, mirrored_sources(mirror, host.name), wanted, report.imported)
            except StoreError as error:  # raised below, because the task group would wrap it in an ExceptionGroup
                failures.append(error)
                tasks.cancel_scope.cancel()
            except MootError as error:
                report.error = error.advice()
            except OSError as error:
                report.error = f"The copies can't be stored in {str(mirror.folder)!r}: {error.strerror or error}."

    async with anyio.create_task_group() as tasks:
        for host, report in zip(hosts, reports, strict=True):
            tasks.start_soon(one, host, report)
    if failures:
        raise failures[0]
    return reports
