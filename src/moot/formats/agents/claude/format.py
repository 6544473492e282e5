"""The format `claude`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

from moot.errors import UsageError
from moot.formats.agents.claude.configuration import configuration
from moot.formats.agents.claude.lines import is_session_line, is_without_message
from moot.formats.agents.claude.reader import SessionReader, Sidechains, call_that_began
from moot.formats.agents.claude.writer import SPACE, lines_of
from moot.formats.kit.bases import environment_folder
from moot.formats.kit.documents import GrowingSession, any_line, json_lines, lines_at
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of, session_id_of, unanswered, with_descendants
from moot.formats.kit.fields import items, milliseconds, obj, text
from moot.formats.kit.files import files_below, read_head
from moot.formats.kit.json import parse_json
from moot.formats.kit.steps import approximate
from moot.types.canonical import JsonObject
from moot.types.format import (
    Entry,
    ExportedConversation,
    ExportFile,
    Fidelity,
    FidelityLevel,
    ForeignConfiguration,
    ImportedConversation,
    ImportedFacts,
)
from moot.types.format import InstallableSession as Placement

AGENT = "claude-code"
_LOOKED_AT = 50
"""Maximum number of lines to examine in order to recognize a session."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOTE = 1 << 20
"""Maximum size of a file with facts about a session, in bytes."""
_ASIDE = "agent-aside_question-"
_LONGEST = 200
"""Maximum length of a folder name. Claude Code shortens a longer name and appends a hash."""
_CUT = (b'"parentUuid":', b'"isSidechain":', b'"sessionId":')
"""Keys by which a session is recognized if its first line is longer than the examined beginning of the file."""


class ClaudeFormat:
    name = "claude"
    version = 4
    stored_files: tuple[str, ...] = (
        *("????????-????-????-????-????????????.jsonl", "agent-*.jsonl", "agent-*.meta.json"),
        "local-agent-mode-sessions/*/*/local_*.json",
    )
    suffix = ".jsonl"
    agent_type = AGENT
    resumable: Literal[True] = True
    resume_command = ("claude", "--resume")
    words = "a session that Claude Code can resume"
    holds: Mapping[str, FidelityLevel] = {
        **ALL_KEPT,
        "branches": "kept",
        "sub-agents": "approximated",
    }

    def sniff(self, path: Path, head: bytes) -> bool:
        heads = [head] if head else map(read_head, islice(_sessions(path, depth=2), _LOOKED_AT)) if path.is_dir() else ()
        return any(any_line(one, is_session_line, _CUT, _LOOKED_AT) for one in heads)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        session = _session_of(path)
        conversation, reader, others = _growing(path, session)
        entries: Iterator[Entry] = reader.entries(json_lines(path))
        if conversation.parent is None and (about := _desktop_facts(path, session.id)) is not None:
            entries = chain(entries, (about,))
        yield replace(conversation, entries=entries)
        for _ in entries:
            pass  # sub-agents are read even if the caller skips the session
        yield from others()

    def growing(self, path: Path) -> GrowingSession | None:
        session = _session_of(path)
        conversation, reader, others = _growing(path, session)
        # the desktop program's note about a session can change without the session
        is_continuable = session.id and (conversation.parent is not None or _desktop_note(path) is None)
        return GrowingSession(conversation, reader, others) if is_continuable else None

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        configured = environ.get("CLAUDE_CONFIG_DIR", "")
        folders = [Path(one) for one in configured.split(",") if one.strip()] or [home / ".claude", home / ".config" / "claude"]
        return [folder / "projects" for folder in folders]

    def variants(self, home: Path, environ: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        yield "openclaude", environment_folder(environ.get("OPENCLAUDE_CONFIG_DIR"), home / ".openclaude") / "projects"
        yield "qoder", home / ".qoder" / "projects"
        yield "commandcode", home / ".commandcode" / "projects"
        for data in (home / ".config" / "Claude", home / "Library" / "Application Support" / "Claude"):
            yield "cowork", data / "local-agent-mode-sessions"

    def configuration(self, path: Path) -> ForeignConfiguration:
        return configuration(path)

    def sources(self, folder: Path) -> Iterator[Path]:
        return _sessions(folder)

    def companions(self, path: Path) -> Iterator[Path]:
        if path.stem.startswith("agent-"):
            yield path.with_suffix(".meta.json")
        elif (note := _desktop_note(path)) is not None:
            yield note

    def knows_record(self, body: JsonObject) -> bool:
        return is_without_message(body)

    def write(self, exported: ExportedConversation) -> ExportFile:
        data = b"".join(lines_of(exported, session_id_of(exported.conversation.id, SPACE)))
        return ExportFile(data, self._fidelity(exported))

    def _fidelity(self, exported: ExportedConversation) -> Fidelity:
        """Return the fidelity counts. The title of a sub-agent is lost,
        and a branch that starts after the last message is only approximated.
        """
        untitled: Mapping[str, FidelityLevel] = {thing: keeping for thing, keeping in self.holds.items() if thing != "titles"}
        ends = [(one.others, one.messages[-1].id) for one, _ in with_descendants(exported) if one.messages]
        longer = sum(any(message.parent == end for message in others) for others, end in ends)
        return approximate(fidelity_of(exported, self.holds, weak=unanswered, inside=untitled), "branches", longer)

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> Placement:
        path = places[0] / folder_of(str(directory)) / f"{id}.jsonl"
        data = b"".join(lines_of(exported, id))
        return Placement(path, data, (*self.resume_command, id), directory, self._fidelity(exported))


def folder_of(directory: str) -> str:
    """Return the name of the folder in which Claude Code stores the sessions of a directory."""
    units = memoryview(directory.encode("utf-16-le")).cast("H")
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(name) <= _LONGEST:
        return name
    number = 0
    for unit in units:
        number = (number * 31 + unit) & 0xFFFFFFFF
    number, digits = abs(number - (1 << 32) if number >> 31 else number), ""  # written in base 36
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{name[:_LONGEST]}-{digits}"


def _sessions(folder: Path, depth: int = 8) -> Iterator[Path]:
    """Yield the files whose names look like those of sessions, in a projects folder or its parent. The files are not opened."""
    projects = folder / "projects"
    for path in files_below(projects if projects.is_dir() and not projects.is_symlink() else folder, ".jsonl", depth=depth):
        if path.name.startswith("agent-") or _UUID.fullmatch(path.stem):
            yield path


def _growing(path: Path, session: _Session) -> tuple[ImportedConversation, SessionReader, Callable[[], Iterator[ImportedConversation]]]:
    """Return the conversation without entries, its reader, and a function that yields its sub-agents' conversations afterwards."""
    if path.stem.startswith("agent-") and session.id:
        call = call_that_began(path, session.id)
        # calls that are in the files of both a session and its sub-agent are the sub-agent's, except in a copy of the session for an aside
        rank = 1 if path.stem.startswith(_ASIDE) else -1
        conversation = ImportedConversation(f"{session.id}/{path.stem}", (), session.id, call, rank=rank)
        return conversation, SessionReader(AGENT), lambda: iter(())
    id, sidechains = session.name or session.id or path.stem, Sidechains()

    def others() -> Iterator[ImportedConversation]:
        for side in sidechains.found:
            entries = SessionReader(AGENT).entries(lines_at(path, side.offsets))
            yield ImportedConversation(f"{id}/{side.id}", entries, id, sidechains.call_of(side), rank=-1)

    # a background session starts with a copy
    return ImportedConversation(id, (), rank=int(session.is_background)), SessionReader(AGENT, sidechains), others


def _desktop_note(path: Path) -> Path | None:
    """Return the file in which the desktop program stores facts about a session, or None if another program started the session."""
    return next((above.with_name(f"{above.name}.json") for above in path.parents[:6] if above.name.startswith("local_")), None)


def _desktop_facts(path: Path, session: str) -> ImportedFacts | None:
    """Return the title and folder of a session started by the desktop program, which stores them in a file next to the session's folder."""
    if (note := _desktop_note(path)) is None:
        return None
    try:
        about = obj(parse_json(read_head(note, _NOTE, links=False)))
    except (OSError, ValueError):
        return None
    if text(about, "cliSessionId") not in ("", session):
        return None
    folders = [one for one in items(about, "userSelectedFolders") if isinstance(one, str)]
    return ImportedFacts(title=text(about, "title"), directory=next(iter(folders), ""), created_at=milliseconds(about, "createdAt"))


class _Session(NamedTuple):
    id: str
    """Session id in the file's lines, or an empty string."""
    name: str
    """Session id in the file's name, or an empty string."""
    is_background: bool = False


def _session_of(path: Path) -> _Session:
    """Return the session's ids. Raise UsageError if no line belongs to a session."""
    ours = False
    for number, line in enumerate(json_lines(path)):
        if line.value is not None:
            ours = ours or is_session_line(line.value)
            if isinstance(session := line.value.get("sessionId"), str) and session:
                return _Session(session, path.stem if _UUID.fullmatch(path.stem) else "", line.value.get("sessionKind") == "bg")
        if number > _LOOKED_AT and not ours:
            break
    if not ours:
        raise UsageError(f"{str(path)!r} is not a Claude Code session.", fix="Specify the format with -f.")
    return _Session("", path.stem if _UUID.fullmatch(path.stem) else "")
