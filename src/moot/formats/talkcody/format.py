"""The format `talkcody`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.database import SQLITE, columns, opened, tables
from moot.formats._source.documents import sketch
from moot.formats._source.plain import head_of
from moot.formats.talkcody.configuration import configuration
from moot.formats.talkcody.database import conversations
from moot.formats.talkcody.snapshot import read_snapshot
from moot.formats.talkcody.writing import HOLDS, snapshot
from moot.types.format import ExportedConversation, ForeignConfiguration, ImportedConversation, Written

__all__ = ["DATABASE", "TalkCody"]

DATABASE = "talkcody.db"
_FOLDER = "com.talkcody"
_CONVERSATIONS = frozenset({"id", "title", "project_id", "message_count"})
_MESSAGES = frozenset({"conversation_id", "role", "content", "timestamp", "assistant_id"})


class TalkCody:
    """`Format`, `Holding`, `Placed`, `Split`, `Configured`, `Sampled`."""

    name = "talkcody"
    version = 1
    suffix = ".json"
    words = "a snapshot for TalkCody"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return bool(inner := head_of(path / DATABASE)) and self.sniff(path / DATABASE, inner)
        if head.startswith(SQLITE):
            return _is_own(columns(path, head))
        found, task = sketch(head), sketch(head, "task")
        return bool(found.text("version")) and bool(task.text("id")) and "messageCount" in task and found.raw("messages").startswith(b"[")

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        base = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        return [base / _FOLDER, home / "Library" / "Application Support" / _FOLDER]

    def sources(self, folder: Path) -> Iterator[Path]:
        yield folder / DATABASE

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        path = path / DATABASE if path.is_dir() else path
        if not head_of(path).startswith(SQLITE):
            yield from read_snapshot(path)
            return
        with opened(path) as connection:
            if not _is_own(tables(connection)):
                raise UsageError(f"{str(path)!r} is not a database of TalkCody.")
            yield from conversations(connection, path.parent)

    def configuration(self, path: Path) -> ForeignConfiguration:
        """Convert the database's configuration. Snapshots have none."""
        path = path / DATABASE if path.is_dir() else path
        return configuration(path) if head_of(path).startswith(SQLITE) else ForeignConfiguration()

    def write(self, exported: ExportedConversation) -> Written:
        return snapshot(exported)


def _is_own(found: Mapping[str, frozenset[str]]) -> bool:
    return found.get("conversations", frozenset()) >= _CONVERSATIONS and found.get("messages", frozenset()) >= _MESSAGES
