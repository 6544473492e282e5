"""Checkpoints of the write-ahead log in a separate thread, so that no commit waits for one.

SQLite would checkpoint inside the commit that makes the log too long, and that commit would wait until all pages are copied and fsynced.
Instead, a thread with its own connection runs passive checkpoints, which delay neither writers nor readers. The log is reset when a write
starts while all of it is checkpointed. Under continuous writing that never happens, so the writer itself checkpoints the small remainder.
"""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from pathlib import Path

from moot.store.database.connection import Connection, connect, sqlite

LIMIT = 8 << 20
"""Log size in bytes at which checkpoints start, so that pages changed by every commit are copied once for many commits. A reset log file
is truncated to this size, so that the file size reflects its content."""
_MOST = 32 << 20  # log size in bytes above which the writer checkpoints too and the thread does not pause
_STEP = 4 << 20  # bytes written to the log before the writer checkpoints again
_LATE = 96 << 20  # log growth in bytes after which the writer checkpoints even if much remains, because the disk is too slow
_REST = 0.25  # seconds between checkpoints. Commits during a checkpoint are left for the next one, which is then faster.
_FRAME = 4096 + 24  # size in bytes of a page in the log

log = logging.getLogger("moot.store")


class Checkpointer:
    """The checkpointer of a writer; only the writer's thread calls it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._help_at = _MOST
        """Log size in bytes above which the writer checkpoints next."""
        self._folded = 0
        """Bytes of the log that are checkpointed."""
        self._first = 0
        """Log size in bytes when it first exceeded the limit. Growth counts from here: rewriting the database adds much at once."""
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()
        self._ended = threading.Event()
        self._working = threading.Lock()

    def committed(self, connection: Connection) -> None:
        """Checkpoint if necessary; call it after each commit, outside transactions."""
        size = self._size()
        if size <= LIMIT:
            self._reset()
            return
        self._first = self._first or size
        late = size - self._first > _LATE
        if size > self._help_at and (late or size - self._folded <= LIMIT) and self._working.acquire(blocking=late):
            self._help_at = size + _STEP
            try:
                run_checkpoint(connection)
            except sqlite.Error as error:  # the log still has all commits
                self._warn(error)
            finally:
                self._working.release()
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="moot-store-folding", daemon=True)
            self._thread.start()
        self._wanted.set()

    def stop(self) -> None:
        """Wait for the current checkpoint and close the connection; the next commit may start the thread again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            self._wanted.set()
            thread.join()
            self._ended.clear()
            self._wanted.clear()
        self._reset()

    def _reset(self) -> None:
        self._help_at, self._folded, self._first = _MOST, 0, 0

    def _warn(self, error: sqlite.Error) -> None:
        log.warning("checkpoint of %r failed: %s", str(self._path), error)

    def _size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:  # there is no log file
            return 0

    def _main(self) -> None:
        try:
            with closing(connect(self._path, writing=True)) as connection:
                while self._wanted.wait() and not self._ended.is_set():
                    self._wanted.clear()
                    with self._working:
                        self._folded = run_checkpoint(connection)
                    if self._ended.wait(_REST if self._size() < _MOST else 0):
                        return
        except sqlite.Error as error:  # the log grows until the writer checkpoints it
            self._warn(error)


def run_checkpoint(connection: Connection) -> int:
    """Run a passive checkpoint and return the number of log bytes that are checkpointed.

    This can be less than the whole log if another checkpoint is running or a reader needs an old state.
    """
    _, _, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return max(done, 0) * _FRAME
