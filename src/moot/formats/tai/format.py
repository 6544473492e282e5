"""TAI's folder and its `agent.db`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.database import columns, opened, tables
from moot.formats._source.plain import head_of
from moot.formats.tai.configuration import configuration
from moot.formats.tai.reading import conversations
from moot.formats.tai.writing import HOLDS, database
from moot.types.format import ExportedConversation, ForeignConfiguration, ImportedConversation, Written

__all__ = ["Tai"]

_SESSIONS = frozenset({"id", "key", "model", "provider"})
_MESSAGES = frozenset({"session_id", "role", "content", "tool_calls", "tool_call_id"})
DATABASE = "agent.db"


class Tai:
    """`Format`, `Holding`, `Placed`, `Split`, `Configured`, `Sampled`."""

    name = "tai"
    version = 1
    suffix = ".db"
    words = "a database for TAI with the conversation as a session"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return bool(inner := head_of(path / DATABASE)) and self.sniff(path / DATABASE, inner)
        return _is_own(columns(path, head))

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        return [Path(environ["TAI_HOME"]) if environ.get("TAI_HOME") else home / ".tailored-ai"]

    def sources(self, folder: Path) -> Iterator[Path]:
        yield folder / DATABASE

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        path = path / DATABASE if path.is_dir() else path
        with opened(path) as connection:
            if not _is_own(tables(connection)):
                raise UsageError(f"{str(path)!r} is not a database of TAI.")
            yield from conversations(connection)

    def configuration(self, path: Path) -> ForeignConfiguration:
        return configuration(path if path.is_dir() else path.parent)

    def write(self, exported: ExportedConversation) -> Written:
        return database(exported)


def _is_own(found: Mapping[str, frozenset[str]]) -> bool:
    return found.get("sessions", frozenset()) >= _SESSIONS and found.get("messages", frozenset()) >= _MESSAGES
