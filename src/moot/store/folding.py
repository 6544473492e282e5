"""Folds the write-ahead log into the database beside the writer, so that no commit waits for it.

The library would do it inside of whichever commit makes the log long, and that one waits until all pages are copied and fsynced. Here a
thread with a connection of its own does it, a passive checkpoint, which holds up neither writers nor readers. The log begins anew when
all of it is folded at the instant at which somebody begins to write; so behind a long stretch of writing without a gap the writer
itself folds the little that is left.
"""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from pathlib import Path

from moot.store.connect import Connection, connect
from moot.store.library import sqlite

__all__ = ["LIMIT", "Folding"]

LIMIT = 8 << 20
"""Bytes of the log at which folding begins: the few pages that every commit changes are then folded once for many. A log that began anew
keeps no more room than that, so the size of its file says how much is in it."""
_MOST = 32 << 20
"""Bytes from which on the writer helps, and the thread does not rest."""
_STEP = 4 << 20
"""Bytes that come before the writer helps again."""
_LATE = 96 << 20
"""Bytes that have come behind which the writer helps also when much is left: the disk is slower than what is written."""
_REST = 0.25
"""Seconds between two folds: what was committed during one of them is left for the next, which is quicker."""
_FRAME = 4096 + 24
"""Bytes of a page in the log."""

log = logging.getLogger("moot.store")


class Folding:
    """One per writer, whose thread alone calls it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._help_at = _MOST
        """Bytes of the log."""
        self._folded = 0
        """Bytes of it that were folded last."""
        self._first = 0
        """Bytes that it had when it was seen to be long: writing the whole database anew makes it long at once."""
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()
        self._ended = threading.Event()
        self._working = threading.Lock()

    def committed(self, connection: Connection) -> None:
        """To be told behind each commit, outside of transactions."""
        size = self._size()
        if size <= LIMIT:
            self._begin()
            return
        self._first = self._first or size
        late = size - self._first > _LATE
        if size > self._help_at and (late or size - self._folded <= LIMIT) and self._working.acquire(blocking=late):
            self._help_at = size + _STEP
            self._help(connection)
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="moot-store-folding", daemon=True)
            self._thread.start()
        self._wanted.set()

    def stop(self) -> None:
        """Returns when nothing is being folded, and its connection is closed; the next commit may have it begin again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            self._wanted.set()
            thread.join()
            self._ended.clear()
            self._wanted.clear()
        self._begin()

    def _begin(self) -> None:
        self._help_at, self._folded, self._first = _MOST, 0, 0

    def _help(self, connection: Connection) -> None:
        try:
            fold(connection)
        except sqlite.Error as error:  # what was committed is in the log
            self._tell(error)
        finally:
            self._working.release()

    def _tell(self, error: sqlite.Error) -> None:
        log.warning("the write-ahead log of %r could not be folded: %s", str(self._path), error)

    def _size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:  # there is none
            return 0

    def _main(self) -> None:
        try:
            with closing(connect(self._path, writing=True)) as connection:
                while self._wanted.wait() and not self._ended.is_set():
                    self._wanted.clear()
                    with self._working:
                        self._folded = fold(connection)
                    if self._ended.wait(_REST if self._size() < _MOST else 0):
                        return
        except sqlite.Error as error:  # the log is longer than it need be until the writer folds it
            self._tell(error)


def fold(connection: Connection) -> int:
    """Bytes of the log that are in the file now: not all of it while somebody else is at it, or a reader wants an old state."""
    _, _, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return max(done, 0) * _FRAME
