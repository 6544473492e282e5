"""The checkpoint database: file contents, what is known about folders, the changes made by runs, and undos that can be redone.

It is a separate file next to the store, because it describes the files of this machine, and because its contents may be as large as the
folders that agents work in. All functions block; those that take a connection run inside the transaction that `opened` starts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import zstandard

from moot.errors import StoreTooNew
from moot.store.database.connection import Connection, sqlite
from moot.store.database.errors import translated_errors
from moot.store.rows import parse_stored_list
from moot.types.canonical import Json, dumps
from moot.types.checkpoint import Checkpoint, FileChange, FilePlace, FileStamp, FileState, FolderState, SeenFile, Undone

_VERSION = 1
_WAIT = 120.0
"""Seconds to wait for another process that is taking a snapshot of a large folder."""
_LEVEL = 1
_SCHEMA = """
CREATE TABLE content (
    digest BLOB PRIMARY KEY,
    data BLOB NOT NULL  -- compressed with zstd
) STRICT;
-- What is known about the files of a folder, so that unchanged files are not read again.
CREATE TABLE folder (
    no INTEGER PRIMARY KEY,
    root BLOB NOT NULL UNIQUE,
    seen_at INTEGER NOT NULL,  -- ms
    problem TEXT NOT NULL  -- why there is no snapshot; empty = there is one
) STRICT;
CREATE TABLE seen (
    folder INTEGER NOT NULL REFERENCES folder (no) ON DELETE CASCADE,
    path BLOB NOT NULL,
    inode INTEGER NOT NULL, size INTEGER NOT NULL, changed_ns INTEGER NOT NULL, status_ns INTEGER NOT NULL,
    kind TEXT NOT NULL, mode INTEGER NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (folder, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoint (
    no INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    conversation TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX checkpoint_conversation ON checkpoint (conversation);
-- Folders whose changes by commands are still to be determined, by the run or sub-agent that opened them.
CREATE TABLE opened (
    run TEXT NOT NULL,
    root BLOB NOT NULL,
    checkpoint INTEGER NOT NULL REFERENCES checkpoint (no) ON DELETE CASCADE,
    since INTEGER NOT NULL,  -- µs
    PRIMARY KEY (run, root)
) STRICT, WITHOUT ROWID;
CREATE INDEX opened_checkpoint ON opened (checkpoint);
-- Their files before the first command.
CREATE TABLE baseline (
    run TEXT NOT NULL,
    root BLOB NOT NULL,
    path BLOB NOT NULL,
    kind TEXT NOT NULL, mode INTEGER NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (run, root, path),
    FOREIGN KEY (run, root) REFERENCES opened (run, root) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE TABLE change (
    checkpoint INTEGER NOT NULL REFERENCES checkpoint (no) ON DELETE CASCADE,
    root BLOB NOT NULL,
    path BLOB NOT NULL,
    since INTEGER NOT NULL,  -- µs; when the file was in this state
    kind TEXT NOT NULL, mode INTEGER NOT NULL, digest BLOB NOT NULL,
    after_kind TEXT, after_mode INTEGER, after_digest BLOB,  -- NULL = unknown
    settled INTEGER,  -- µs; when the file was in that state
    mixed INTEGER NOT NULL DEFAULT 0,  -- 1 = someone else has changed the file in between
    PRIMARY KEY (checkpoint, root, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE left_out (
    checkpoint INTEGER NOT NULL REFERENCES checkpoint (no) ON DELETE CASCADE,
    path BLOB NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (checkpoint, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE undone (
    no INTEGER PRIMARY KEY,
    conversation TEXT NOT NULL,
    prompt TEXT NOT NULL,
    runs TEXT NOT NULL,  -- JSON list
    head_before TEXT, head_after TEXT, newest TEXT,
    talk INTEGER NOT NULL, files INTEGER NOT NULL
) STRICT;
"""
_AT = "checkpoint = ? AND root = ? AND path = ?"
_MOST_LEFT_OUT = 100
"""Maximum number of paths not covered by undo that are stored for each checkpoint. Further paths are not recorded."""


@contextmanager
def opened(path: Path) -> Generator[Connection]:
    """Open the database, creating it if needed, in a transaction that is committed at the end of the block.

    Raise StoreError if a statement fails.
    """
    with translated_errors(path):
        is_new = not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with closing(sqlite.connect(path, timeout=_WAIT, isolation_level=None, cached_statements=64)) as connection:
            for setting in ("auto_vacuum = INCREMENTAL", "secure_delete = ON", "synchronous = NORMAL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN IMMEDIATE")
            if is_new:
                path.chmod(0o600)
            try:
                _prepare(connection, path)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise


def _prepare(connection: Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > _VERSION:
        raise StoreTooNew(
            f"{str(path)!r} was written by a newer version of moot (schema {version}, this version supports {_VERSION}).",
            fix="Upgrade moot.",
        )
    if version == 0:
        for statement in _SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")


# ── content ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def put(connection: Connection, data: bytes) -> bytes:
    """Store content and return its digest."""
    digest = hashlib.sha256(data).digest()
    if connection.execute("SELECT 1 FROM content WHERE digest = ?", (digest,)).fetchone() is None:
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(data)
        connection.execute("INSERT INTO content (digest, data) VALUES (?, ?)", (digest, packed))
    return digest


def get(connection: Connection, digest: bytes) -> bytes | None:
    """Return content; None if it was redacted or is damaged."""
    row: Any = connection.execute("SELECT data FROM content WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        return None
    try:
        data = zstandard.ZstdDecompressor().decompress(row[0])
    except zstandard.ZstdError:
        return None
    return data if hashlib.sha256(data).digest() == digest else None


def sweep(connection: Connection, before: int = 0) -> None:
    """Forget folders that were not examined since `before` (ms), delete unreferenced content, and shrink the file."""
    connection.execute("DELETE FROM folder WHERE seen_at < ?", (before,))
    connection.execute(
        "DELETE FROM content WHERE digest NOT IN (SELECT digest FROM seen UNION SELECT digest FROM baseline UNION SELECT digest FROM change"
        " UNION SELECT after_digest FROM change WHERE after_digest IS NOT NULL)"
    )
    connection.execute("PRAGMA incremental_vacuum").fetchall()


def rewrite(path: Path) -> None:
    """Rewrite the whole file, because SQLite leaves some deleted data in it. Raise StoreError if that fails."""
    with translated_errors(path), closing(sqlite.connect(path, timeout=_WAIT, isolation_level=None)) as connection:
        connection.execute("VACUUM")


def damaged(path: Path) -> Generator[str]:
    """Verify all content. Yield the hash of each damaged piece, or an error message if the file can't be read."""
    if not path.exists():
        return
    try:
        with closing(sqlite.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT)) as connection:
            for (digest,) in connection.execute("SELECT digest FROM content").fetchall():
                # redacted content no longer has a row
                if get(connection, digest) is None and connection.execute("SELECT 1 FROM content WHERE digest = ?", (digest,)).fetchone():
                    yield digest.hex()
    except sqlite.DatabaseError as error:
        yield str(error)


# ── folders ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def seen(connection: Connection, root: bytes) -> dict[bytes, SeenFile]:
    """Return what is known about the files of a folder."""
    rows: Any = connection.execute(
        "SELECT s.path, s.inode, s.size, s.changed_ns, s.status_ns, s.kind, s.mode, s.digest FROM seen AS s JOIN folder AS f"
        " ON f.no = s.folder WHERE f.root = ?",
        (root,),
    )
    return {path: SeenFile(FileStamp(*stamp), FileState(kind, mode, digest)) for path, *stamp, kind, mode, digest in rows}


def problem_of(connection: Connection, root: bytes, since: int) -> str:
    """Return why the last snapshot of a folder failed, if that was after `since` (ms); otherwise empty."""
    row: Any = connection.execute("SELECT problem FROM folder WHERE root = ? AND seen_at > ?", (root, since)).fetchone()
    return row[0] if row is not None else ""


def remember(connection: Connection, root: bytes, before: Mapping[bytes, SeenFile], found: FolderState, now: int) -> None:
    """Store what is known about a folder's files. `before` contains the stored entries."""
    no = _folder(connection, root, now, "")
    gone = [(no, path) for path in before if path not in found.files]
    connection.executemany("DELETE FROM seen WHERE folder = ? AND path = ?", gone)
    connection.executemany(
        "INSERT OR REPLACE INTO seen (folder, path, inode, size, changed_ns, status_ns, kind, mode, digest)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((no, path, *file.stamp, *file.state) for path, file in found.files.items() if before.get(path) != file),
    )


def remember_problem(connection: Connection, root: bytes, problem: str, now: int) -> None:
    """Store why a folder can't be snapshotted, and forget its files."""
    connection.execute("DELETE FROM seen WHERE folder = ?", (_folder(connection, root, now, problem),))


def _folder(connection: Connection, root: bytes, now: int, problem: str) -> int:
    return connection.execute(
        "INSERT INTO folder (root, seen_at, problem) VALUES (?, ?, ?)"
        " ON CONFLICT (root) DO UPDATE SET seen_at = excluded.seen_at, problem = excluded.problem RETURNING no",
        (root, now, problem),
    ).fetchone()[0]


# ── changes of runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def begin(connection: Connection, run: str, conversation: str) -> int:
    """Return the number of the run's checkpoint, which is created if needed."""
    connection.execute("INSERT OR IGNORE INTO checkpoint (run, conversation) VALUES (?, ?)", (run, conversation))
    return connection.execute("SELECT no FROM checkpoint WHERE run = ?", (run,)).fetchone()[0]


def opened_roots(connection: Connection, run: str) -> list[bytes]:
    """Return the folders that a run or sub-agent has opened."""
    return [root for (root,) in connection.execute("SELECT root FROM opened WHERE run = ?", (run,))]


def open_runs(connection: Connection, no: int) -> list[str]:
    """Return the run and sub-agents that have open folders."""
    return [run for (run,) in connection.execute("SELECT DISTINCT run FROM opened WHERE checkpoint = ?", (no,))]


def open_folder(connection: Connection, no: int, run: str, root: bytes, found: FolderState, since: int) -> None:
    """Record a folder as it is before the first command of a run or sub-agent."""
    connection.execute("INSERT INTO opened (run, root, checkpoint, since) VALUES (?, ?, ?, ?)", (run, root, no, since))
    connection.executemany(
        "INSERT INTO baseline (run, root, path, kind, mode, digest) VALUES (?, ?, ?, ?, ?, ?)",
        ((run, root, path, *file.state) for path, file in found.files.items()),
    )


def baseline(connection: Connection, run: str, root: bytes) -> tuple[int, int, dict[bytes, FileState]]:
    """Return the checkpoint of an open folder, when it was opened, and its files at that time."""
    no, since = connection.execute("SELECT checkpoint, since FROM opened WHERE run = ? AND root = ?", (run, root)).fetchone()
    rows: Any = connection.execute("SELECT path, kind, mode, digest FROM baseline WHERE run = ? AND root = ?", (run, root))
    return no, since, {path: FileState(*state) for path, *state in rows}


def close_folder(connection: Connection, run: str, root: bytes) -> None:
    """Forget an open folder once all changes are recorded."""
    connection.execute("DELETE FROM opened WHERE run = ? AND root = ?", (run, root))


def keep(connection: Connection, no: int, place: FilePlace, before: FileState, since: int, *, written: bool = True) -> None:
    """Record a file's state before a write. If a prompt writes it repeatedly, the earliest state is kept.

    The state after the write is unknown until `settle` is called. Without `written`, the recorded state after an earlier write is kept.
    """
    connection.execute(
        "INSERT INTO change (checkpoint, root, path, since, kind, mode, digest) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (checkpoint, root, path) DO NOTHING",
        (no, *place, since, *before),
    )
    at = (no, *place)
    connection.execute(
        f"UPDATE change SET since = ?, kind = ?, mode = ?, digest = ? WHERE {_AT} AND since > ?", (since, *before, *at, since)
    )
    connection.execute(
        f"UPDATE change SET mixed = 1 WHERE {_AT} AND settled <= ? AND (after_kind, after_mode, after_digest) IS NOT (?, ?, ?)",
        (*at, since, *before),
    )
    if written:
        connection.execute(f"UPDATE change SET after_kind = NULL, after_mode = NULL, after_digest = NULL, settled = NULL WHERE {_AT}", at)


def settle(connection: Connection, no: int, place: FilePlace, after: FileState, now: int) -> None:
    """Record a file's state after a write."""
    connection.execute(
        f"UPDATE change SET after_kind = ?, after_mode = ?, after_digest = ?, settled = ? WHERE {_AT}", (*after, now, no, *place)
    )


def leave_out(connection: Connection, no: int, left_out: Iterable[tuple[bytes, str]]) -> None:
    """Record files that undo doesn't cover, at most `_MOST_LEFT_OUT` of them."""
    for path, reason in list(left_out)[:_MOST_LEFT_OUT]:
        connection.execute("INSERT OR IGNORE INTO left_out (checkpoint, path, reason) VALUES (?, ?, ?)", (no, path, reason))


def left_out(connection: Connection, no: int) -> list[tuple[bytes, str]]:
    """Return the absolute paths of files that undo doesn't cover, each with the reason."""
    return connection.execute("SELECT path, reason FROM left_out WHERE checkpoint = ? ORDER BY path", (no,)).fetchall()


def load(connection: Connection, runs: Sequence[str]) -> list[Checkpoint]:
    """Return the checkpoints of these runs, oldest first."""
    rows: Any = connection.execute(
        "SELECT no, run, undone FROM checkpoint WHERE run IN (SELECT value FROM json_each(?)) ORDER BY no", (_json(runs),)
    ).fetchall()
    return [
        Checkpoint(
            run,
            no,
            tuple(_changes(connection, no)),
            tuple((os.fsdecode(path), reason) for path, reason in left_out(connection, no)),
            bool(open_runs(connection, no)),
            bool(undone),
        )
        for no, run, undone in rows
    ]


def _changes(connection: Connection, no: int) -> Generator[FileChange]:
    rows: Any = connection.execute(
        "SELECT root, path, kind, mode, digest, after_kind, after_mode, after_digest, mixed FROM change WHERE checkpoint = ?", (no,)
    )
    for root, path, kind, mode, digest, *after, mixed in rows:
        before = FileState(kind, mode, digest)
        if before != (state := None if after[0] is None else FileState(*after)):
            yield FileChange(FilePlace(root, path), before, state, bool(mixed))


def mark(connection: Connection, runs: Sequence[str], *, undone: bool) -> None:
    """Record that the files of these runs were undone or redone."""
    connection.execute("UPDATE checkpoint SET undone = ? WHERE run IN (SELECT value FROM json_each(?))", (undone, _json(runs)))


# ── undos ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def push(connection: Connection, undone: Undone) -> None:
    """Record an undo. Earlier undos that can no longer be redone are dropped."""
    connection.execute("DELETE FROM undone WHERE conversation = ? AND newest IS NOT ?", (undone.conversation, undone.newest))
    connection.execute(
        "INSERT INTO undone (conversation, prompt, runs, head_before, head_after, newest, talk, files) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(undone.conversation, undone.prompt, _json(undone.runs), undone.head_before, undone.head_after),
            *(undone.newest, undone.talk, undone.files),
        ),
    )


def undos(connection: Connection, conversation: str) -> list[Undone]:
    """Return the undos of a conversation, newest first."""
    rows: Any = connection.execute(
        "SELECT conversation, prompt, runs, head_before, head_after, newest, talk, files, no FROM undone WHERE conversation = ?"
        " ORDER BY no DESC",
        (conversation,),
    )
    return [
        Undone(id, prompt, tuple(map(str, parse_stored_list(runs.encode()))), heads[0], heads[1], heads[2], bool(talk), bool(files), no)
        for id, prompt, runs, *heads, talk, files, no in rows
    ]


def redone(connection: Connection, undone: Undone) -> None:
    """Record which parts of an undo can still be redone; drop it if there are none."""
    if undone.talk or undone.files:
        connection.execute("UPDATE undone SET talk = ?, files = ? WHERE no = ?", (undone.talk, undone.files, undone.no))
    else:
        connection.execute("DELETE FROM undone WHERE no = ?", (undone.no,))


def _json(values: Collection[str]) -> str:
    return dumps(list[Json](values)).decode()
