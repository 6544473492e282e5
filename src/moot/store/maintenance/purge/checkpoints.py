"""Purging and redacting checkpoints, which have their own database. All functions block and can be repeated."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, LiteralString

from moot.store.content.checkpoints import get, opened, rewrite, sweep
from moot.store.database.connection import Connection, checkpoints_path
from moot.store.maintenance.purge.redactor import Redactor
from moot.store.maintenance.purge.tables import delete, select
from moot.types.canonical import Json, dumps
from moot.types.maintenance import FileOutcome

_OF = "conversation IN (SELECT value FROM json_each(?))"
_PATHS: tuple[tuple[LiteralString, LiteralString], ...] = (
    *(("change", "path"), ("baseline", "path"), ("seen", "path"), ("left_out", "path")),
    *(("change", "root"), ("opened", "root"), ("folder", "root")),
)
"""Columns with paths of files."""


def forget_checkpoints(database: Path, conversations: Collection[str], *, dry_run: bool = False) -> list[FileOutcome]:
    """Delete the checkpoints of these conversations, and what is known about the folders in which they worked."""
    path, ids = checkpoints_path(database), dumps(list[Json](conversations)).decode()
    if not path.exists():
        return []
    with opened(path) as connection:
        if dry_run:
            found = connection.execute(f"SELECT no FROM checkpoint WHERE {_OF}", (ids,)).fetchall()
            return _outcome(path, len(found), "checkpoint of files", "checkpoints of files")
        numbers = f"(SELECT no FROM checkpoint WHERE {_OF})"
        connection.execute(
            f"DELETE FROM folder WHERE root IN (SELECT root FROM change WHERE checkpoint IN {numbers}"
            f" UNION SELECT root FROM opened WHERE checkpoint IN {numbers})",
            (ids, ids),
        )
        count = connection.execute(f"DELETE FROM checkpoint WHERE {_OF}", (ids,)).rowcount
        connection.execute(f"DELETE FROM undone WHERE {_OF}", (ids,))
        sweep(connection)
    rewrite(path)
    return _outcome(path, count, "checkpoint of files", "checkpoints of files")


def redact_checkpoints(
    database: Path, needles: Redactor, conversations: Collection[str] | None, *, dry_run: bool = False
) -> list[FileOutcome]:
    """Delete the contents and paths that contain the secret; undo then leaves those files unchanged. `None` means all conversations."""
    path = checkpoints_path(database)
    if not path.exists():
        return []
    with opened(path) as connection:
        count = 0
        for digest in _digests(connection, conversations):
            if _is_within(connection, digest, needles):
                count += 1 if dry_run else _delete_content(connection, digest)
        for table, column in _PATHS if conversations is None else ():
            named = [name for (name,) in connection.execute(select(column, table, "true")).fetchall() if needles.within(name)]
            count += len(named)
            for name in () if dry_run else set(named):
                connection.execute(delete(table, f"{column} = ?"), (name,))
        if dry_run:
            return _outcome(path, count, "match", "matches")
        sweep(connection)
    rewrite(path)
    return _outcome(path, count, "match deleted", "matches deleted")


def _outcome(path: Path, count: int, one: str, more: str) -> list[FileOutcome]:
    return [FileOutcome(str(path), "rewritten", f"{count:,} {one if count == 1 else more}")] if count else []


def _digests(connection: Connection, conversations: Collection[str] | None) -> list[bytes]:
    if conversations is None:
        return [digest for (digest,) in connection.execute("SELECT digest FROM content")]
    numbers = f"(SELECT no FROM checkpoint WHERE {_OF})"
    rows: Any = connection.execute(
        f"SELECT digest FROM content WHERE digest IN (SELECT digest FROM change WHERE checkpoint IN {numbers}"
        f" UNION SELECT after_digest FROM change WHERE checkpoint IN {numbers}"
        f" UNION SELECT digest FROM baseline WHERE (run, root) IN (SELECT run, root FROM opened WHERE checkpoint IN {numbers}))",
        (dumps(list[Json](conversations)).decode(),) * 3,
    )
    return [digest for (digest,) in rows.fetchall()]


def _is_within(connection: Connection, digest: bytes, needles: Redactor) -> bool:
    data = get(connection, digest)
    return data is None or needles.within(data)  # damaged content can't be searched


def _delete_content(connection: Connection, digest: bytes) -> int:
    connection.execute("DELETE FROM seen WHERE digest = ?", (digest,))
    return connection.execute("DELETE FROM content WHERE digest = ?", (digest,)).rowcount
