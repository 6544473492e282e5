"""Deletion of purged conversations from the copies of other machines' files. The originals are not changed.

An empty file takes the place of a file with nothing but purged conversations, so that it is not fetched again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from moot.config.settings import mirror_of
from moot.convert.imports import key_at_host, path_at_host
from moot.store.database.connection import Queries
from moot.types.maintenance import FileOutcome

_SOURCES = (
    "SELECT host, json_extract(CAST(origin AS TEXT), '$.path'), json_extract(CAST(origin AS TEXT), '$.source_id') FROM conversation"
    " WHERE no = ?1 AND host <> ''"
    " UNION SELECT substr(path, 1, instr(path, ':~/') - 1), path, source_id FROM import_alias"
    " WHERE conversation = ?1 AND instr(path, ':~/') > 1"
)
_USERS = (
    "SELECT no FROM conversation WHERE host = ?1 AND host <> '' AND json_extract(CAST(origin AS TEXT), '$.path') = ?2"
    " UNION SELECT conversation FROM import_alias WHERE path = ?2"
)
_LOGS = ("-wal", "-journal")
_DATABASES = (".db", ".sqlite", ".sqlite3", ".vscdb")


@dataclass(frozen=True, slots=True)
class MirroredSource:
    """A source on another machine of which there is a copy."""

    host: str
    path: str
    """Path below the home folder there."""
    source_id: str
    shared: bool
    """True if it also contains other conversations."""

    @property
    def is_only(self) -> bool:
        """True if nothing else can be in the source, because it is named after the session."""
        parts = PurePosixPath(self.path).parts[-2:]
        return not self.shared and any(self.source_id in part for part in parts if self.source_id) and not self.path.endswith(_DATABASES)


def mirrored_sources(queries: Queries, conversations: Collection[int]) -> list[MirroredSource]:
    """Return the sources of these conversations on other machines."""
    found: dict[tuple[str, str], MirroredSource] = {}
    for no in conversations:
        rows: Any = queries.execute(_SOURCES, (no,)).fetchall()
        for host, shown, source_id in rows:
            path = str(shown or "").removeprefix(path_at_host(host, ""))
            if not path or path == shown or ".." in PurePosixPath(path).parts or path.startswith("/"):
                continue
            users: set[int] = {row[0] for row in queries.execute(_USERS, (host, shown)).fetchall()}
            found.setdefault(
                (host, path),
                MirroredSource(host, path, str(source_id or "").removeprefix(key_at_host(host, "")), not users.issubset(conversations)),
            )
    return list(found.values())


def delete_mirrored(sources: Collection[MirroredSource], data: Path) -> list[FileOutcome]:
    """Delete the copies of these sources and of the files that belong to them. Blocks."""
    outcomes: list[FileOutcome] = []
    for source in sources:
        for file in _files_of(mirror_of(data, source.host) / "home" / source.path, source.source_id):
            if not source.is_only:
                file.unlink(missing_ok=True)
                words = f"a copy of a file of {source.host}; the next sync fetches it again, because it may contain other conversations"
            elif file.stat().st_size:
                with file.open("r+b") as opened:
                    opened.truncate()
                words = f"a copy of a file of {source.host}, where the original remains"
            else:
                continue  # deleted by an earlier attempt
            outcomes.append(FileOutcome(str(file), "deleted", words))
    return outcomes


def _files_of(path: Path, source_id: str) -> Iterator[Path]:
    """Yield the files of a source: all in its own folder, or itself with the files that have the same name but another ending."""
    if path.is_dir():
        yield from (file for file in sorted(path.rglob("*")) if file.is_file() and not file.is_symlink())
    elif path.is_file() and not path.is_symlink():
        own_folder = bool(source_id) and source_id in path.parent.name
        beside = (file for file in sorted(path.parent.iterdir()) if file.is_file() and not file.is_symlink())
        logs = {f"{path.name}{end}" for end in _LOGS}
        yield from (
            file for file in beside if own_folder or file.name.partition(".")[0] == path.name.partition(".")[0] or file.name in logs
        )
