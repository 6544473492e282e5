"""The format `codex`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from moot.errors import UsageError
from moot.formats.agents.codex.configuration import configuration
from moot.formats.agents.codex.lines import is_rollout_line, is_without_message, normalize
from moot.formats.agents.codex.reader import SessionReader, call_that_began, parent_of
from moot.formats.agents.codex.writer import SPACE, lines_of
from moot.formats.kit.documents import GrowingSession, Line, any_line, json_lines
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of, session_id_of, unanswered
from moot.formats.kit.fields import milliseconds, text
from moot.formats.kit.files import files_below
from moot.plugins.registry import attribute
from moot.types.canonical import JsonObject
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ForeignConfiguration, ImportedConversation
from moot.types.format import InstallableSession as Placement

AGENT = "codex"
_LOOKED_AT = 20
"""Maximum number of lines to examine in order to recognize a session."""
_CUT = (b'"timestamp":', b'"type":"session_meta"', b'"payload":')
"""Keys by which a session is recognized if its first line is longer than the examined beginning of the file."""
_ZSTD = b"\x28\xb5\x2f\xfd"
_PACKED, _PACKED_HEAD = (f"moot.formats.agents.codex.packed:{name}" for name in ("packed_lines", "packed_head"))
"""Names of functions that are loaded on first use, because their module imports a large package."""


class CodexFormat:
    name = "codex"
    version = 4
    stored_files: tuple[str, ...] = ("rollout-*.jsonl", "rollout-*.jsonl.zst")
    suffix = ".jsonl"
    agent_type = AGENT
    resumable: Literal[True] = True
    resume_command = ("codex", "resume")
    words = "a session that Codex can resume"
    holds: Mapping[str, FidelityLevel] = ALL_KEPT

    def sniff(self, path: Path, head: bytes) -> bool:
        if path.suffix == ".zst" and head.startswith(_ZSTD):
            head = attribute(_PACKED_HEAD)(path)
        if head:
            return any_line(head, is_rollout_line, _CUT, _LOOKED_AT)
        return path.is_dir() and next(_sessions(path), None) is not None

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        yield replace(_conversation(path, _meta_of(path)), entries=SessionReader(AGENT).entries(_lines(path)))

    def growing(self, path: Path) -> GrowingSession | None:
        meta = _meta_of(path) if path.suffix != ".zst" else {}
        return GrowingSession(_conversation(path, meta), SessionReader(AGENT)) if meta else None

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        configured = environ.get("CODEX_HOME", "")
        folder = Path(configured) if configured else home / ".codex"
        return [folder / "sessions", folder / "archived_sessions"]

    def variants(self, home: Path, environ: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        yield "traex", home / ".trae" / "cli" / "sessions"
        yield "traex", home / ".trae" / "cli" / "archived_sessions"

    def sources(self, folder: Path) -> Iterator[Path]:
        return _sessions(folder)

    def configuration(self, path: Path) -> ForeignConfiguration:
        return configuration(path)

    def knows_record(self, body: JsonObject) -> bool:
        return is_without_message(body)

    def write(self, exported: ExportedConversation) -> ExportFile:
        data = b"".join(lines_of(exported, session_id_of(exported.conversation.id, SPACE)))
        return ExportFile(data, fidelity_of(exported, self.holds, weak=unanswered))

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> Placement:
        started = datetime.fromtimestamp(max(exported.conversation.created_at, 0) // 1000, UTC)
        path = places[0] / f"{started:%Y}" / f"{started:%m}" / f"{started:%d}" / f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{id}.jsonl"
        data = b"".join(lines_of(exported, id))
        return Placement(path, data, (*self.resume_command, id), directory, fidelity_of(exported, self.holds, weak=unanswered))


def _sessions(folder: Path) -> Iterator[Path]:
    """Yield the session files in a folder and in its subfolders `sessions` and `archived_sessions`, with or without a folder for each day.

    Newer versions of Codex compress old files.
    """
    subfolders = [known for name in ("sessions", "archived_sessions") if (known := folder / name).is_dir() and not known.is_symlink()]
    for one in subfolders or [folder]:
        for path in files_below(one, "", depth=4):
            is_packed = path.name.endswith(".jsonl.zst") and not path.with_suffix("").exists()
            if path.name.startswith("rollout-") and (path.suffix == ".jsonl" or is_packed):
                yield path


def _conversation(path: Path, meta: JsonObject) -> ImportedConversation:
    """Return the conversation without its entries."""
    id = str(meta.get("id") or path.name.removesuffix(".zst").removesuffix(".jsonl"))
    parent = parent_of(meta)
    call = call_that_began(path, id, parent, _lines) if parent is not None else None
    copied_from = text(meta, "forked_from_id") or parent
    return ImportedConversation(id, (), parent, call, copied_from=copied_from, started_at=milliseconds(meta, "timestamp"))


def _lines(path: Path) -> Iterator[Line]:
    return attribute(_PACKED)(path) if path.suffix == ".zst" else json_lines(path)


def _meta_of(path: Path) -> JsonObject:
    """Return the session's metadata. Raise UsageError if no line belongs to a session."""
    ours = False
    for number, line in enumerate(_lines(path)):
        if line.value is not None:
            kind, body = normalize(line.value)
            if kind == "session_meta":
                return body
            ours = ours or is_rollout_line(line.value)
        if number > _LOOKED_AT:
            break
    if not ours:
        raise UsageError(f"{str(path)!r} is not a Codex session.", fix="Specify the format with -f.")
    return {}
