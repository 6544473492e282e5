"""Projects, including each owner's default project."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, LiteralString

from moot.errors import Busy, NotFound
from moot.plugins.registry import attribute
from moot.store.database.connection import Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.lookup import OWNED, match_cursor
from moot.store.rows import clean
from moot.store.search import text as words
from moot.store.search.knowledge import move_sources
from moot.types.conversation import DEFAULT_PROJECT, Page, Project
from moot.types.event import Event
from moot.types.ids import derived_id
from moot.types.token import LOCAL_USER

_COLUMNS = "id, name, description, root_path, context, rules, created_at, owner_id, updated_at"
_LIKE = "name || char(10) || description || char(10) || coalesce(CAST(root_path AS TEXT), '') LIKE ? ESCAPE '\\'"
_REMOVE_TASKS = "moot.store.tasks.items:remove_tasks"
"""Loaded by name, because that module imports this one."""
_FOLDER = (
    "CASE WHEN length(directory) > 0 THEN CAST(directory AS TEXT) ELSE coalesce(json_extract(CAST(origin AS TEXT), '$.directory'), '') END"
)
"""The folder of a conversation; for an imported conversation without a folder, the folder in its source."""
_COUNT_MOVED = (
    "SELECT count(*) FROM conversation WHERE owner_id = coalesce(?2, owner_id)"
    " AND (directory = ?1 OR substr(directory, 1, length(?1) + 1) = CAST(?1 || '/' AS BLOB)"
    " OR repository = ?1 OR substr(repository, 1, length(?1) + 1) = CAST(?1 || '/' AS BLOB))"
)
_MOVES = (
    "UPDATE conversation SET directory = CAST(?3 || substr(directory, length(?1) + 1) AS BLOB) WHERE owner_id = coalesce(?2, owner_id)"
    " AND (directory = ?1 OR substr(directory, 1, length(?1) + 1) = CAST(?1 || '/' AS BLOB))",
    "UPDATE conversation SET repository = CAST(?3 || substr(repository, length(?1) + 1) AS BLOB) WHERE owner_id = coalesce(?2, owner_id)"
    " AND (repository = ?1 OR substr(repository, 1, length(?1) + 1) = CAST(?1 || '/' AS BLOB))",
    "UPDATE project SET root_path = CAST(?3 || substr(root_path, length(?1) + 1) AS BLOB) WHERE owner_id = coalesce(?2, owner_id)"
    " AND (root_path = ?1 OR substr(root_path, 1, length(?1) + 1) = CAST(?1 || '/' AS BLOB))",
)
_CURSOR = re.compile(r"p([0-9a-f]{1,6})")


class SqliteProjects:
    """The SQLite implementation of `Projects`."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def get(self, reference: str) -> Project:
        return await self._reader.read(lambda connection: self._found(connection, reference))

    async def around(self, directory: str) -> Project:
        return await self._reader.read(
            lambda connection: self._found(connection, _around(connection, directory, self._owner or LOCAL_USER) or DEFAULT_PROJECT)
        )

    async def list(self, *, limit: int = 50, cursor: str | None = None, query: str = "") -> Page[Project]:
        skipped = 0 if cursor is None else int(match_cursor(_CURSOR, cursor)[1], 16)
        likes: list[str] = []
        wheres = ["true"]
        for word in query.split():
            patterns = words.like_patterns(word)
            wheres.append(f"({' OR '.join([_LIKE] * len(patterns))})")
            likes += patterns
        sql = f"SELECT {_COLUMNS} FROM project WHERE {' AND '.join(wheres)}{OWNED} ORDER BY id <> ?, name, id LIMIT ? OFFSET ?"

        def work(connection: Queries) -> Page[Project]:
            first = default_project_id(self._owner or LOCAL_USER)
            rows = connection.execute(sql, (*likes, self._owner, first, limit + 1, skipped)).fetchall()
            found = [_project_of(row) for row in rows[:limit]]
            if skipped == 0 and not query.split() and (not rows or rows[0][0] != first):
                found = [_unmade(self._owner), *found][:limit]  # the default project is stored only once it has content
            return Page(found, f"p{skipped + limit:x}" if len(rows) > limit else None)

        return await self._reader.read(work)

    async def create(self, project: Project) -> Project:
        value = replace(project, owner=self._owner or project.owner, name=clean(project.name))

        def work(transaction: Transaction) -> Project:
            if transaction.row("SELECT 1 FROM project WHERE id = ?", (value.id,)):
                raise Busy(f"A project with the id {value.id!r} already exists.")
            ensure_project(transaction, DEFAULT_PROJECT, value.owner)
            _free(transaction, value.root_path, value.owner)
            at = value.created_at or transaction.now_ms
            made = replace(value, created_at=at, updated_at=value.updated_at or at)
            _insert(transaction, made)
            return made

        return await self._writer.write(work, sync=True)

    async def update(
        self,
        id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        root_path: str | None = None,
        context: str | None = None,
        rules: str | None = None,
    ) -> Project:
        texts = {"name": name, "description": description, "context": context, "rules": rules}
        updates = {key: clean(text) for key, text in texts.items() if text is not None}

        def work(transaction: Transaction) -> Project:
            found = self._found(transaction, id)
            ensure_project(transaction, found.id, found.owner)
            changed = replace(found, **updates)
            if root_path is not None and (root_path or None) != found.root_path:
                _free(transaction, root_path or None, found.owner)
                changed = replace(changed, root_path=root_path or None)
            if changed == found:
                return found
            changed = replace(changed, updated_at=transaction.now_ms)
            transaction.execute(
                "UPDATE project SET name = ?, description = ?, root_path = ?, context = ?, rules = ?, updated_at = ? WHERE id = ?",
                (
                    *(changed.name, changed.description, _bytes(changed.root_path), changed.context, changed.rules),
                    *(changed.updated_at, changed.id),
                ),
            )
            return changed

        return await self._writer.write(work, sync=True)

    async def folders(self) -> Sequence[str]:
        return await self._folders("TRUE")

    async def unplaced(self) -> Sequence[str]:
        return await self._folders("repository IS NULL")

    async def _folders(self, condition: LiteralString) -> Sequence[str]:
        sql = f"SELECT DISTINCT {_FOLDER} FROM conversation WHERE {condition} AND {_FOLDER} <> ''{OWNED}"
        rows = await self._reader.read(lambda connection: connection.execute(sql, (self._owner,)).fetchall())
        return [folder for (folder,) in rows]

    async def place(self, repositories: Mapping[str, str]) -> None:
        sql = f"UPDATE conversation SET repository = ? WHERE repository IS NULL AND {_FOLDER} = ?{OWNED}"
        rows = [(os.fsencode(repository), folder, self._owner) for folder, repository in repositories.items()]
        await self._writer.write(lambda transaction: transaction.many(sql, rows))

    async def move(self, old: str, new: str, *, dry_run: bool = False) -> int:
        values = (os.fsencode(old), self._owner, os.fsencode(new))

        def work(transaction: Transaction) -> int:
            count: int = transaction.row(_COUNT_MOVED, values[:2])[0]
            for statement in _MOVES if not dry_run else ():
                transaction.execute(statement, values)
            transaction.forget()
            return count

        return await self._writer.write(work, sync=True)

    async def remove(self, id: str, *, dry_run: bool = False) -> int:
        def work(transaction: Transaction) -> int:
            found = self._found(transaction, id)
            default = default_project_id(found.owner)
            if found.id == default:
                raise Busy("The default project can't be removed.", fix="Change it with `moot projects edit default`.")
            rows: list[Any] = transaction.execute("SELECT no, deleted_at FROM conversation WHERE project_id = ?", (found.id,)).fetchall()
            if not dry_run:
                ensure_project(transaction, default, found.owner)
                for no, _ in rows:
                    transaction.add(no, (Event("meta", body={"project": default}),))
                transaction.execute("UPDATE conversation SET project_id = ? WHERE project_id = ?", (default, found.id))
                move_sources(transaction, found.id, default)
                attribute(_REMOVE_TASKS)(transaction, "project_id = ?", found.id)
                transaction.execute("DELETE FROM project WHERE id = ?", (found.id,))
            return sum(deleted_at is None for _, deleted_at in rows)

        return await self._writer.write(work, sync=True)

    def _found(self, queries: Queries, reference: str) -> Project:
        default = default_project_id(self._owner or LOCAL_USER)
        wanted = default if reference == DEFAULT_PROJECT else reference
        for where in ("id", "name"):
            rows = queries.execute(f"SELECT {_COLUMNS} FROM project WHERE {where} = ?{OWNED} LIMIT 2", (wanted, self._owner)).fetchall()
            if len(rows) == 1:
                return _project_of(rows[0])
            if rows:
                raise NotFound(f"{reference!r} matches several projects.", fix="Use the project's id.")
        if wanted == default:
            return _unmade(self._owner)
        raise NotFound(f"No project has the id or name {reference!r}.")


def default_project_id(owner: str) -> str:
    """Return the id of the owner's default project."""
    return DEFAULT_PROJECT if owner == LOCAL_USER else f"{DEFAULT_PROJECT}:{owner}"


def ensure_project(transaction: Transaction, id: str, owner: str) -> str:
    """Return the id of an owner's project, creating the owner and the default project if needed.

    Raise NotFound if the owner has no such project.
    """
    default = default_project_id(owner)
    wanted = default if id == DEFAULT_PROJECT else id
    if transaction.row("SELECT 1 FROM project WHERE id = ? AND owner_id = ?", (wanted, owner)) is None:
        if wanted != default:
            raise NotFound(f"No project has the id {id!r}.")
        now = transaction.now_ms
        transaction.execute("INSERT OR IGNORE INTO user (id, name, created_at) VALUES (?, ?, ?)", (owner, owner, now))
        _insert(transaction, replace(_unmade(owner), created_at=now))
    return wanted


def ensure_imported(transaction: Transaction, project: Project) -> str:
    """Return the id of an imported project. Create it if it is new, without its root folder if another project already has that folder."""
    id = derived_id(project.created_at, "project", project.owner, project.id)
    if transaction.row("SELECT 1 FROM project WHERE id = ?", (id,)) is None:
        ensure_project(transaction, DEFAULT_PROJECT, project.owner)
        root = project.root_path
        taken = root and transaction.row("SELECT 1 FROM project WHERE root_path = ? AND owner_id = ?", (os.fsencode(root), project.owner))
        texts = {key: clean(getattr(project, key)) for key in ("name", "description", "context", "rules")}
        made = replace(project, **texts, id=id, root_path=None if taken else root, created_at=project.created_at or transaction.now_ms)
        _insert(transaction, made)
    return id


def project_for_directory(transaction: Transaction, directory: str, owner: str) -> str:
    """Return the id of the owner's project whose root is the closest ancestor of the directory, or else the id of the default project."""
    return _around(transaction, directory, owner) or ensure_project(transaction, DEFAULT_PROJECT, owner)


def _around(queries: Queries | Transaction, directory: str, owner: str) -> str:
    folder = os.fsencode(directory)
    rows: list[Any] = queries.execute("SELECT id, root_path FROM project WHERE owner_id = ? AND root_path IS NOT NULL", (owner,)).fetchall()
    around = [(len(root), id) for id, root in rows if folder == root or folder.startswith(root.rstrip(b"/") + b"/")]
    return max(around)[1] if around else ""


def project_of(queries: Queries, id: str) -> Project:
    """Return the project with exactly this id, of any owner. Raise NotFound if there is none."""
    row = queries.execute(f"SELECT {_COLUMNS} FROM project WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(f"No project has the id {id!r}.")
    return _project_of(row)


def _unmade(owner: str | None) -> Project:
    whole = owner or LOCAL_USER
    return Project(default_project_id(whole), DEFAULT_PROJECT, owner=whole)


def _insert(transaction: Transaction, project: Project) -> None:
    transaction.execute(
        f"INSERT INTO project ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(project.id, project.name, project.description, _bytes(project.root_path), project.context, project.rules),
            *(project.created_at, project.owner, project.updated_at or project.created_at),
        ),
    )


def _free(transaction: Transaction, root_path: str | None, owner: str) -> None:
    if root_path is None:
        return
    row: Any = transaction.row("SELECT name FROM project WHERE root_path = ? AND owner_id = ?", (os.fsencode(root_path), owner))
    if row is not None:
        raise Busy(f"The folder {root_path!r} is already the root of project {row[0]!r}.")


def _project_of(row: Any) -> Project:
    values: list[Any] = [*row]
    values[3] = os.fsdecode(row[3]) if row[3] is not None else None
    return Project(*values)


def _bytes(path: str | None) -> bytes | None:
    return None if path is None else os.fsencode(path)
