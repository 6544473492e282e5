"""Notices what other processes commit: one connection of this process looks at the database's version while somebody watches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

from moot.store.connect import connect
from moot.store.library import sqlite
from moot.store.writer import Writer

__all__ = ["Poller"]

LINGER = 2.0
"""Seconds that the thread and its connection wait, without looking, for the next watcher: to begin anew costs as much as a short run."""


class _Watch:
    """One iterator of `others`, and how often it wants to look."""

    __slots__ = ("changed", "interval")

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.changed = asyncio.Event()


class Poller:
    """Looks as often as the most eager watcher wants, and not at all without one. Our own commits are not reported."""

    def __init__(self, path: Path, writer: Writer) -> None:
        self._path = path
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._watches: set[_Watch] = set()
        self._thread: threading.Thread | None = None
        self._nudge = threading.Event()
        """Has the thread look at once."""
        self._closed = False
        self._leaving = threading.Lock()
        """Held while the thread decides to go, and while a watcher looks whether there is one."""
        self._own = -1
        """The writer's view of the version when it was last asked."""

    async def others(self, interval: float) -> AsyncGenerator[None, None]:
        """Something each time another process may have committed since the last time, and once when the looking begins; several
        commits may come as one."""
        watch = _Watch(interval)
        self._watches.add(watch)
        self._start()
        try:
            while True:
                await watch.changed.wait()
                watch.changed.clear()
                yield
        finally:
            self._watches.discard(watch)

    def stop(self) -> None:
        """For good; returns when its connection is closed, so that it is not the one that goes last: it can't fold the log."""
        self._closed = True
        self._nudge.set()
        if (thread := self._thread) is not None:
            thread.join()

    def _start(self) -> None:
        with self._leaving:
            self._nudge.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="moot-store-poller", daemon=True)
                self._thread.start()

    def _look(self) -> None:
        try:
            connection = connect(self._path)
        except sqlite.Error:  # as below; whoever reads or writes is told why by their own connection
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
                if version is None:  # what was committed before a watcher's first look would be told by nobody
                    self._loop.call_soon_threadsafe(self._wake)
                elif found != version:
                    # a commit of ours may show before it is counted as done, so those that have begun are compared
                    self._loop.call_soon_threadsafe(self._notify, self._writer.begun == commits)
                version, commits = found, before
                if (pause := self._pause()) is not None and not self._closed:
                    self._nudge.wait(pause)
        except (sqlite.Error, RuntimeError):  # the file or the loop is gone: nobody can be told anything more
            return
        finally:
            connection.close()

    def _pause(self) -> float | None:
        """Seconds to the next look; None = nobody watches."""
        return min((watch.interval for watch in tuple(self._watches)), default=None)

    def _awaited(self) -> bool:
        """Waits for a watcher; False when none came and the thread is given up."""
        while self._pause() is None:
            self._nudge.clear()
            if self._closed or self._pause() is not None:  # before the clearing
                break
            if not self._nudge.wait(LINGER):
                with self._leaving:
                    if self._pause() is None:
                        self._thread = None
                        return False
        return not self._closed

    def _notify(self, certain: bool) -> None:
        """On the loop. Our own commits change the version too: when there were some, the writer's connection knows about the others'."""
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
