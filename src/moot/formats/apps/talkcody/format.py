"""The format `talkcody`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from moot.formats.apps.talkcody.configuration import configuration
from moot.formats.apps.talkcody.database import conversations
from moot.formats.apps.talkcody.snapshots import HOLDS, read_snapshot, snapshot
from moot.formats.kit.database import SQLITE, is_database, open_own
from moot.formats.kit.files import read_head
from moot.formats.kit.json import partial_document
from moot.types.canonical import JsonObject
from moot.types.format import ExportedConversation, ExportFile, ForeignConfiguration, ImportedConversation

DATABASE = "talkcody.db"
_FOLDER = "com.talkcody"
_OWN = {
    "conversations": {"id", "title", "project_id", "message_count"},
    "messages": {"conversation_id", "role", "content", "timestamp", "assistant_id"},
}


class TalkCody:
    name = "talkcody"
    version = 3
    stored_files: tuple[str, ...] = (DATABASE,)
    suffix = ".json"
    words = "a snapshot for TalkCody"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return bool(inner := read_head(path / DATABASE)) and self.sniff(path / DATABASE, inner)
        if head.startswith(SQLITE):
            return is_database(path, head, _OWN)
        found, task = partial_document(head), partial_document(head, "task")
        return bool(found.text("version")) and bool(task.text("id")) and "messageCount" in task and found.raw("messages").startswith(b"[")

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        base = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        return [base / _FOLDER, home / "Library" / "Application Support" / _FOLDER]

    def sources(self, folder: Path) -> Iterator[Path]:
        yield folder / DATABASE

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        path = path / DATABASE if path.is_dir() else path
        if not read_head(path).startswith(SQLITE):
            yield from read_snapshot(path)
            return
        with open_own(path, "TalkCody", _OWN) as connection:
            yield from conversations(connection, path.parent)

    def knows_record(self, body: JsonObject) -> bool:
        return "todo" in body

    def configuration(self, path: Path) -> ForeignConfiguration:
        """Convert the database's configuration. Snapshots have none."""
        path = path / DATABASE if path.is_dir() else path
        return configuration(path) if read_head(path).startswith(SQLITE) else ForeignConfiguration()

    def write(self, exported: ExportedConversation) -> ExportFile:
        return snapshot(exported)
