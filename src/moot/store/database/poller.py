"""Detection of other processes' commits: one connection polls the database's version as long as there are watchers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

from moot.store.database.connection import connect, sqlite
from moot.store.database.writer import Writer

LINGER = 2.0
"""Seconds that an idle thread waits for the next watcher before it ends, because starting a thread costs as much as a short run."""


class _Watch:
    """One iterator of `others`, with its polling interval."""

    __slots__ = ("changed", "interval")

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.changed = asyncio.Event()


class Poller:
    """A thread that polls at the shortest interval of any watcher, while there are any. It does not report this process's commits."""

    def __init__(self, path: Path, writer: Writer) -> None:
        self._path = path
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._watches: set[_Watch] = set()
        self._thread: threading.Thread | None = None
        self._nudge = threading.Event()
        """Set to poll at once."""
        self._closed = False
        self._leaving = threading.Lock()
        """Held while the thread decides to end, and while a new watcher checks whether the thread is running."""
        self._own = -1
        """The last database version that the writer's connection has seen."""

    async def others(self, interval: float) -> AsyncGenerator[None, None]:
        """Yield when another process may have committed since the last time, and once when polling starts. Several commits may be
        reported as one."""
        watch = _Watch(interval)
        self._watches.add(watch)
        with self._leaving:
            self._nudge.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="moot-store-poller", daemon=True)
                self._thread.start()
        try:
            while True:
                await watch.changed.wait()
                watch.changed.clear()
                yield
        finally:
            self._watches.discard(watch)

    def stop(self) -> None:
        """Stop permanently and close the read-only connection.

        Call it before the writer closes, because the last connection to close checkpoints the log.
        """
        self._closed = True
        self._nudge.set()
        if (thread := self._thread) is not None:
            thread.join()

    def _look(self) -> None:
        try:
            connection = connect(self._path)
        except sqlite.Error:  # ignored, because readers and writers get the error from their own connections
            return
        try:
            version = commits = None
            while not self._closed:
                if self._pause() is None:
                    version = None
                    if not self._awaited():
                        return
                if self._nudge.is_set():
                    self._nudge.clear()
                    version = None
                before = self._writer.commits
                found = connection.execute("PRAGMA data_version").fetchone()[0]
                if version is None:  # commits before a watcher's first poll would otherwise go unreported
                    self._loop.call_soon_threadsafe(self._wake)
                elif found != version:
                    # a commit of this process may be visible before it is counted in `commits`, so compare with `begun`
                    self._loop.call_soon_threadsafe(self._notify, self._writer.begun == commits)
                version, commits = found, before
                if (pause := self._pause()) is not None and not self._closed:
                    self._nudge.wait(pause)
            # the file or the loop is gone, so no one can be notified anymore
        except (sqlite.Error, RuntimeError):
            return
        finally:
            connection.close()

    def _pause(self) -> float | None:
        """Return the seconds until the next poll; None = no watchers."""
        return min((watch.interval for watch in tuple(self._watches)), default=None)

    def _awaited(self) -> bool:
        """Wait for a watcher; return False if none came and the thread must end."""
        while self._pause() is None:
            self._nudge.clear()
            if self._closed or self._pause() is not None:  # added before the flag was cleared
                break
            if not self._nudge.wait(LINGER):
                with self._leaving:
                    if self._pause() is None:
                        self._thread = None
                        return False
        return not self._closed

    def _notify(self, certain: bool) -> None:
        """Notify watchers; runs on the loop. If this process has committed, ask the writer's connection whether others have too."""
        if certain:
            self._wake()
        else:
            self._writer.data_version().add_done_callback(self._compare)

    def _compare(self, version: asyncio.Future[int]) -> None:
        if version.cancelled() or version.exception() is not None or version.result() != self._own:
            self._wake()
        if not version.cancelled() and version.exception() is None:
            self._own = version.result()

    def _wake(self) -> None:
        for watch in self._watches:
            watch.changed.set()
