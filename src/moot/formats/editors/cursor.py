"""The format `cursor`: transcripts of Cursor's agent, `~/.cursor/projects/FOLDER/agent-transcripts/ID.jsonl` or `ID.txt`.

They don't contain times, models, tokens or call ids, and only the text form contains tool outputs. A transcript is skipped if the database
of Cursor's editor has the same conversation, because that copy is more complete. The files are not documented. Reference: the findings of
other programs that read them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from moot.errors import UsageError
from moot.formats.anthropic import content_parts
from moot.formats.editors.cursor_ide import VALUE
from moot.formats.editors.folders import user_folders
from moot.formats.kit.bases import ManyFiles, first_object
from moot.formats.kit.database import first_value
from moot.formats.kit.documents import json_lines
from moot.formats.kit.fields import items, obj, objects, text
from moot.formats.kit.files import read_head
from moot.formats.kit.json import json_object, json_value, parse_prefix, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, reasoning, tool_call
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part

_ROLES = ("user", "assistant")
_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_SPEAKER = re.compile(rb"(?m)^(user|assistant):[ \t]*\r?$\n?")
_MARK = re.compile(r"\[(Thinking|Tool call|Tool result)\] ?(.*)")
_FOLDERS = 2_000
"""Maximum number of folders to examine in order to find a project's folder."""


class Cursor(ManyFiles):
    name = "cursor"
    version = 1
    resume_command = ("cursor-agent", "--resume")
    files = tuple(f"agent-transcripts/{place}*{end}" for place in ("", "*/") for end in (".jsonl", ".txt"))
    depth = sniffed_depth = 4

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".cursor" / "projects"

    def sources(self, folder: Path) -> Iterator[Path]:
        known = _Editor(folder)
        for path in super().sources(folder):
            if (path.suffix == ".jsonl" or not path.with_suffix(".jsonl").exists()) and not known.has(path.stem):
                yield path

    def is_own(self, path: Path, head: bytes) -> bool:
        return _is_line(first_object(head) or obj(parse_prefix(head))) or _is_text(head)

    def knows_record(self, body: JsonObject) -> bool:
        return _is_line(body) and all(_is_known(block) for block in items(body, "message", "content"))

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        records = _text_records(path) if _is_text(read_head(path)) else _line_records(path)
        yield ImportedConversation(path.stem, entries_of(_with_facts(path, records)))


def _is_line(value: JsonObject) -> bool:
    """Return whether a line belongs to a transcript: it has a role and a message with a list of blocks, and nothing else."""
    is_named = text(value, "role") in _ROLES and not value.keys() - {"role", "message"}
    return is_named and isinstance(obj(value, "message").get("content"), list)


def _is_text(head: bytes) -> bool:
    return head.lstrip().startswith(b"user:") and b"<user_query>" in head


def _is_known(block: Json) -> bool:
    if text(block, "type") == "tool_use":
        return bool(text(block, "name")) and "input" in obj(block)
    return text(block, "type") == "text" and isinstance(obj(block).get("text"), str)


def _with_facts(path: Path, records: Records) -> Records:
    project = next((one.parent.name for one in path.parents if one.name == "agent-transcripts"), "")
    changed = 0
    with suppress(OSError):
        changed = path.stat().st_mtime_ns // 1_000_000
    yield ImportedFacts(agent="cursor", directory=project_folder(project), updated_at=changed)
    yield from records


def _line_records(path: Path) -> Records:
    found = False
    for line in json_lines(path):
        if line.value is None:
            yield ImportedRecord(line.raw, problem=line.problem)
            continue
        blocks = objects(line.value, "message", "content")
        if text(line.value, "role") not in _ROLES or not blocks:
            yield ImportedRecord(line.raw, line.value, f"line {line.number} is not a message")
            continue
        found = True
        id = str(line.number)
        if text(line.value, "role") == "user":
            parts = [_typed(part) for block in blocks for part in content_parts([block])]
            yield SessionRecord(id, "user", line.raw, tuple(parts))
            continue
        parts = [_with_id(part, f"{id}.{number}") for number, part in enumerate(content_parts(list[Json](blocks)))]
        yield SessionRecord(id, "assistant", line.raw, tuple(parts))
    if not found:
        raise UsageError(f"{str(path)!r} is not a Cursor transcript: it has no messages.")


def _with_id(part: Part, id: str) -> Part:
    """Return a call with an id, because transcripts have none."""
    return {**part, "toolCallId": id} if part.get("type") == "dynamic-tool" and not part.get("toolCallId") else part


def _typed(part: Part) -> Part:
    """Return the text that the user typed, without the context that Cursor added."""
    return text_part(_query(str(part["text"]))) if part.get("type") == "text" else part


def _query(words: str) -> str:
    return "\n\n".join(_QUERY.findall(words)) or words


def _text_records(path: Path) -> Records:
    """Read the text form: `user:` and `assistant:` on lines of their own, followed by text and by marked blocks with an indented body."""
    data = read_document(path)
    starts = [*_SPEAKER.finditer(data)]
    for number, start in enumerate(starts, 1):
        end = starts[number].start() if number < len(starts) else len(data)
        raw, words = data[start.start() : end], data[start.end() : end].decode("utf-8", "replace")
        if start[1] == b"user":
            yield SessionRecord(str(number), "user", raw, (text_part(_query(words).strip()),))
        else:
            parts, outputs = _blocks(words, str(number))
            yield SessionRecord(str(number), "assistant", raw, tuple(parts), tuple(outputs))


def _blocks(words: str, id: str) -> tuple[list[Part], list[Output]]:
    parts: list[Part] = []
    outputs: list[Output] = []
    calls: list[tuple[str, str]] = []
    for number, (mark, name, body) in enumerate(_divided(words)):
        if mark == "Thinking":
            parts.append(reasoning(f"{name}\n{body}".strip()))
        elif mark == "Tool call":
            calls.append((name, f"{id}.{number}"))
            parts.append(tool_call(f"{id}.{number}", name, _arguments(body)))
        elif mark == "Tool result":
            at = next((at for at, call in enumerate(calls) if call[0] == name), None)
            call = calls.pop(at)[1] if at is not None else f"{id}.{number}"
            outputs.append(Output(call, body, name=name))
        elif body.strip():
            parts.append(text_part(body.strip()))
    return parts, outputs


def _divided(words: str) -> Iterator[tuple[str, str, str]]:
    """Yield the mark, name and body of each block. Text outside blocks has no mark."""
    mark, name, lines = "", "", list[str]()
    for line in words.splitlines():
        found = _MARK.match(line)
        if found or (mark and line.strip() and not line[0].isspace()):
            yield mark, name, _unindented(lines) if mark else "\n".join(lines)
            mark, name, lines = (found[1], found[2].strip(), []) if found else ("", "", [line])
        else:
            lines.append(line)
    yield mark, name, _unindented(lines) if mark else "\n".join(lines)


def _unindented(lines: list[str]) -> str:
    """Return the lines without their common indentation."""
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[depth:] for line in lines).strip("\n")


def _arguments(body: str) -> Json:
    """Return the arguments of a call: JSON, lines `NAME=VALUE`, or the text itself, such as a patch."""
    value = json_value(body)
    if not isinstance(value, str) or not value:
        return value or {}
    named: dict[str, Json] = {}
    for line in value.splitlines():
        name, equals, rest = line.partition("=")
        if equals and name.isidentifier():
            named[name] = rest
        elif named:
            last = next(reversed(named))
            named[last] = f"{named[last]}\n{line}"
        else:
            return {"text": value}
    return named


class _Editor:
    """The database of Cursor's editor in the home folder that contains a folder of transcripts."""

    def __init__(self, folder: Path) -> None:
        cursor = next((one for one in (folder, *folder.parents) if one.name == ".cursor"), None)
        places = user_folders(cursor.parent, {}, ("Cursor",)) if cursor is not None else ()
        self._databases = [path for user in places if (path := user / "globalStorage" / "state.vscdb").is_file() and not path.is_symlink()]

    def has(self, id: str) -> bool:
        """Return whether the editor has stored messages of this conversation."""
        for path in self._databases:
            value = json_object(first_value(path, VALUE, f"composerData:{id}"))
            if value.get("fullConversationHeadersOnly") or value.get("conversation"):
                return True
        return False


def project_folder(name: str) -> str:
    """Return the existing folder whose path results in this name when Cursor replaces `/` and `.` with `-`.
    Return "" if several folders match.
    """
    found: list[Path] = []
    queue = [(Path("/"), name)] if name else []
    left = _FOLDERS
    while queue and left > 0:
        folder, rest = queue.pop()
        try:
            entries = [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        left -= 1
        for entry in entries:
            written = entry.replace(".", "-").lstrip("-") if folder == Path("/") else entry.replace(".", "-")
            if rest == written:
                found.append(folder / entry)
            elif rest.startswith(f"{written}-"):
                queue.append((folder / entry, rest[len(written) + 1 :]))
    return str(found[0]) if len(found) == 1 else ""
