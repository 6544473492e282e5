"""Cherry Studio's databases. They are read-only because their schema changes often and version 1 is obsolete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.database import columns, opened, tables
from moot.formats._source.plain import head_of
from moot.formats.cherry.configuration import configuration
from moot.formats.cherry.sessions import SESSIONS, sessions
from moot.formats.cherry.topics import topics
from moot.types.format import ExportedConversation, ForeignConfiguration, ImportedConversation, Written

__all__ = ["DATABASES", "Cherry"]

DATABASES = ("Data/cherrystudio.sqlite", "Data/agents.db", "agents.db", "cherrystudio.sqlite", "data/agents.db")
"""Paths below its folder, newest first. Newer versions migrate older databases but leave them in place."""
_FOLDERS = ("CherryStudio", "cherrystudio")
_MESSAGES = frozenset({"session_id", "role", "created_at"})


class Cherry:
    """`Format`, `Placed`, `Split`, `Configured`, `Sampled`."""

    name = "cherry"
    version = 1
    suffix = ".sqlite"

    def sniff(self, path: Path, head: bytes) -> bool:
        return _is_own(columns(path, head)) if head else any(True for _ in self.sources(path))

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        bases = [Path(environ.get("XDG_CONFIG_HOME") or home / ".config"), home / "Library" / "Application Support"]
        return [*(base / folder for base in bases for folder in _FOLDERS), home / ".cherrystudio"]

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the newest database. It contains the data of the older ones."""
        for name in DATABASES:
            file = folder / name
            if (head := head_of(file)) and self.sniff(file, head):
                yield file
                return

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for file in self.sources(path) if path.is_dir() else [path]:
            with opened(file) as connection:
                there = tables(connection)
                if not _is_own(there):
                    raise UsageError(f"{str(file)!r} is not a database of Cherry Studio.")
                yield from sessions(connection, there, file.parent)
                if {"topic", "message"} <= set(there):
                    yield from topics(connection)

    def configuration(self, path: Path) -> ForeignConfiguration:
        file = next(self.sources(path), None) if path.is_dir() else path
        return configuration(file) if file is not None else ForeignConfiguration()

    def write(self, exported: ExportedConversation) -> Written:
        raise UsageError("Cherry Studio's databases are read-only.", fix="Use moot export -f md, or -f ui for other programs.")


def _is_own(there: Mapping[str, frozenset[str]]) -> bool:
    own = any(there.get(one.messages, frozenset()) >= _MESSAGES and "agent_id" in there.get(one.sessions, ()) for one in SESSIONS)
    return own or (there.get("message", frozenset()) >= {"topic_id", "parent_id", "data"} and "active_node_id" in there.get("topic", ()))
