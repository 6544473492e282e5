"""Checkpoints of a prompt's file changes: a copy of each file before a tool writes to it, and of whole folders before the first command."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from anyio import to_thread

from moot.errors import LimitReached, MootError
from moot.store.content import checkpoints as stored
from moot.store.database.connection import Connection, checkpoints_path
from moot.tools.snapshots import read_file, snapshot
from moot.tools.walk import IgnoreRules
from moot.types.checkpoint import NOTHING, FilePlace, FileState, FolderState
from moot.types.crash import point
from moot.types.run import Run

RETRIED = 3_600_000
"""Milliseconds after which to retry the snapshot of a folder that was too large."""

FORGOTTEN = 30 * 86_400_000
"""Milliseconds after which the stored state of a folder is deleted if no one is working in the folder."""
SWEPT = 16
"""Number of checkpoints between deletions of content that is no longer needed. Looking for it after each checkpoint would be slow."""

log = logging.getLogger("moot.agents")


class Recorder:
    """The recorder of one leg. Changes by sub-agents belong to the checkpoint of the prompt that started them.

    A failure is logged and doesn't stop the run: only undo is affected.
    """

    def __init__(
        self,
        database: Path,
        run: str,
        roots: Sequence[Path],
        directory: Path,
        prompt: Callable[[], Awaitable[Run]],
        now: Callable[[], int],
    ) -> None:
        """`run` is the leg's own run, and `prompt` returns the run of the user's prompt. `now` is in µs."""
        self._path = checkpoints_path(database)
        self._run = run
        self._roots = _outermost(roots)
        self._directory = directory
        self._prompt = prompt
        self._now = now
        self._kept = False
        """True if the folders were snapshotted."""

    async def keep_folders(self) -> None:
        """Snapshot the folders before the first command of the leg."""
        if not self._kept:
            self._kept = True
            await self._guarded(partial(_open_folders, run=self._run, roots=self._roots))
            point("checkpoint.opened")

    @asynccontextmanager
    async def keeping(self, path: str) -> AsyncGenerator[None]:
        """Store the current state of a file that is about to be written in the `with` block."""
        place = await to_thread.run_sync(self._place, path)
        if place is None:  # the tool refuses it
            yield
            return
        await self._guarded(partial(_keep, place))
        point("checkpoint.kept")
        yield
        await self._guarded(partial(_settle, place))

    async def close(self) -> None:
        """Record the file changes by commands at the end of a leg,
        so that changes that people make while a run is waiting aren't attributed to the run.
        """
        if await to_thread.run_sync(self._path.exists):
            await self._guarded(partial(_close_folders, run=self._run, interrupted=not self._kept))
        self._kept = False
        point("checkpoint.closed")

    def _place(self, path: str) -> FilePlace | None:
        real = os.fsencode(os.path.realpath(self._directory / path)) if "\0" not in path else b""
        return next((FilePlace(root, real[len(root.rstrip(b"/")) + 1 :]) for root in self._roots if _is_in(real, root)), None)

    async def _guarded(self, work: Callable[[Connection, int, int], None]) -> None:
        """Call `work` with the prompt's checkpoint and the time in µs. Log errors."""
        try:
            prompt = await self._prompt()

            def opened() -> None:
                with stored.opened(self._path) as connection:
                    work(connection, stored.begin(connection, prompt.id, prompt.conversation), self._now())

            await to_thread.run_sync(opened, abandon_on_cancel=True)
        except (MootError, OSError) as error:
            log.warning("files were not recorded for undo: %s", error)


def _outermost(roots: Sequence[Path]) -> list[bytes]:
    """Return the real paths of the folders, without those that are inside another of them."""
    found = sorted({os.fsencode(os.path.realpath(root)) for root in roots})
    return [root for root in found if not any(other != root and _is_in(root, other) for other in found)]


def _is_in(path: bytes, root: bytes) -> bool:
    return path.startswith(root.rstrip(b"/") + b"/") and path != root


def _open_folders(connection: Connection, no: int, now: int, *, run: str, roots: Sequence[bytes]) -> None:
    _close_folders(connection, no, now, run=run, interrupted=True)  # left over from a leg that was killed
    for root in roots:
        reason = stored.problem_of(connection, root, now // 1000 - RETRIED)
        if not reason:
            try:
                found = _look(connection, root, now)
            except LimitReached as error:
                reason = error.message
                stored.remember_problem(connection, root, reason, now // 1000)
            else:
                stored.leave_out(connection, no, [(FilePlace(root, path).absolute, why) for path, why in found.left_out])
                stored.open_folder(connection, no, run, root, found, now)
        if reason:
            stored.leave_out(connection, no, [(root, f"changes by commands are not covered, because {reason}")])


def _look(connection: Connection, root: bytes, now: int) -> FolderState:
    known = stored.seen(connection, root)
    found = snapshot(root, known, partial(stored.put, connection))
    stored.remember(connection, root, known, found, now // 1000)
    return found


def _keep(place: FilePlace, connection: Connection, no: int, now: int) -> None:
    try:
        stored.keep(connection, no, place, read_file(place, partial(stored.put, connection)).state, now)
    except LimitReached as error:
        stored.leave_out(connection, no, [(place.absolute, error.message)])


def _settle(place: FilePlace, connection: Connection, no: int, now: int) -> None:
    with suppress(LimitReached):  # the state stays unknown, so that undo asks before it replaces the file
        stored.settle(connection, no, place, read_file(place, partial(stored.put, connection)).state, now)


def _close_folders(connection: Connection, no: int, now: int, *, run: str, interrupted: bool) -> None:
    close_folders(connection, run, now, interrupted=interrupted)
    if no % SWEPT == 0:
        stored.sweep(connection, now // 1000 - FORGOTTEN)


def close_folders(connection: Connection, run: str, now: int, *, interrupted: bool) -> None:
    """Determine which files a run's commands have changed. If the run was interrupted, the state of the files at its end is unknown.

    This function blocks.
    """
    for root in stored.opened_roots(connection, run):
        try:
            found = _look(connection, root, now)
        except LimitReached as error:
            no, *_ = stored.baseline(connection, run, root)
            stored.leave_out(connection, no, [(root, f"changes by commands are not covered, because {error.message}")])
        except FileNotFoundError:  # the folder itself was deleted
            _close(connection, run, root, FolderState(), now, interrupted)
        else:
            _close(connection, run, root, found, now, interrupted)
        stored.close_folder(connection, run, root)


def _close(connection: Connection, run: str, root: bytes, found: FolderState, now: int, interrupted: bool) -> None:
    """Record what has changed in a folder."""
    no, since, before = stored.baseline(connection, run, root)
    uncovered = {path for path, _ in found.left_out} | {os.path.relpath(path, root) for path, _ in stored.left_out(connection, no)}
    hidden = _hidden(connection, before, found)
    for path in before.keys() | found.files.keys():
        was, place = before.get(path, NOTHING), FilePlace(root, path)
        if path in found.files:
            state = found.files[path].state
            if was == state or (path not in before and (path in uncovered or hidden(path))):
                continue
        elif path in uncovered:
            state = None
        else:  # deleted, or ignored now
            state = read_file(place).state
        stored.keep(connection, no, place, was, since, written=not interrupted)
        if state is not None and not interrupted:
            stored.settle(connection, no, place, state, now)


def _hidden(connection: Connection, before: Mapping[bytes, FileState], found: FolderState) -> Callable[[bytes], bool]:
    """Return a function that returns True if a file was ignored before the run, so that its earlier state is unknown."""
    names = [path for path in before.keys() | found.files.keys() if path.rpartition(b"/")[2] == b".gitignore"]
    if all(path in found.files and found.files[path].state == before.get(path) for path in names):
        return lambda path: False
    rules = IgnoreRules()
    for path in names:
        if path in before and before[path].kind == "file":
            rules.add(os.fsdecode(path.rpartition(b"/")[0]), stored.get(connection, before[path].digest) or b"")

    def hidden(path: bytes) -> bool:
        *folders, name = os.fsdecode(path).split("/")
        above = ("/".join(folders[: depth + 1]) for depth in range(len(folders)))
        return any(rules(folder, folder=True) for folder in above) or rules("/".join((*folders, name)), folder=False)

    return hidden
