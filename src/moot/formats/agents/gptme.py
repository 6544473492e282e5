"""The format `gptme`: conversations of gptme, `~/.local/share/gptme/logs/NAME/conversation.jsonl`.

Each line is a message. Files in `branches/` are complete copies that have diverged. Each of them is read as a conversation. A tool output
is a system message with the call's id or, in formats without ids, the system message after the answer. Reference: the modules
`gptme.message`, `gptme.logmanager`, `gptme.dirs` and `gptme.tools.base` of gptme 0.35.1 on PyPI, and its conversations.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from moot.errors import UsageError
from moot.formats.kit.bases import environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import amount, flag, items, milliseconds, money, obj, text, whole_number
from moot.formats.kit.files import open_regular
from moot.formats.kit.records import Output, Records, SessionRecord, reasoning, step, tool_call, usage_without_cache
from moot.formats.kit.sessions import LineFiles, LineRecords, RecordReader
from moot.types.canonical import JsonObject, empty
from moot.types.format import Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_CALL = re.compile(r"^@([^\r\n(]+)\(([\w\-:.]+)\):\s*(?=\{)", re.MULTILINE)
_USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
_CONFIG = "config.toml"
_THOUGHT = re.compile(r"\s*<think(?:ing)?>\n?(.*?)\n?</think(?:ing)?>\s*", re.DOTALL)


class Gptme(LineFiles):
    name = "gptme"
    version = 2
    files = ("conversation.jsonl", "branches/*.jsonl")

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share")
        yield environment_folder(environ.get("GPTME_LOGS_HOME"), data / "gptme" / "logs")
        yield home / "Library" / "Application Support" / "gptme" / "logs"

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        return text(first, "role") in _ROLES and all(isinstance(first.get(name), str) for name in ("content", "timestamp"))

    def knows_record(self, body: JsonObject) -> bool:
        return isinstance(body.get("content"), str)  # system messages, and outputs of which a part is kept

    def companions(self, path: Path) -> Iterator[Path]:
        yield _folder_of(path) / _CONFIG

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        if not any(text(line.value, "role") in _ROLES for line in json_lines(path)):
            raise UsageError(f"{str(path)!r} is not a gptme conversation: no line has a role.")
        folder = _folder_of(path)
        id = folder.name if path.name == "conversation.jsonl" else f"{folder.name}/{path.stem}"
        return ImportedConversation(id, ()), RecordReader(_Records(folder))


def _folder_of(path: Path) -> Path:
    return path.parent.parent if path.parent.name == "branches" else path.parent


class _Records(LineRecords):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = self._prompted = self._after_answer = False

    def take(self, line: Line) -> Records:
        if not self._started:
            self._started = True
            yield _facts(self._folder)
        yield from super().take(line)

    def convert(self, line: Line, value: JsonObject) -> Records:
        role = _ROLES.get(text(value, "role"))
        if role is None:
            yield ImportedRecord(line.raw, value, f"line {line.number} has no role")
            return
        self._prompted |= role == "user"
        if role == "system" and self._prompted and flag(value, "hide"):
            yield ImportedRecord(line.raw, value)  # a notice to the model in the middle of the conversation
            return
        yield _message(line, value, role, after_answer=self._after_answer)
        self._after_answer = role == "assistant" or (self._after_answer and role == "system")
        if role == "system" and self._after_answer and not text(value, "call_id"):
            yield ImportedFacts(Fidelity(approximated={"tool calls": 1}))


def _facts(folder: Path) -> ImportedFacts:
    """Return the facts in the `config.toml` of the conversation's folder."""
    try:
        with open_regular(folder / _CONFIG, links=False) as file:
            found = cast("JsonObject", tomllib.load(file))
    except (OSError, ValueError):
        found = empty()
    chat = obj(found, "chat")
    return ImportedFacts(title=text(chat, "name"), directory=text(chat, "workspace"), agent="gptme", model=text(chat, "model"))


def _message(line: Line, value: JsonObject, role: Role, *, after_answer: bool) -> SessionRecord:
    id, when = str(line.number), milliseconds(value, "timestamp")
    content, called = text(value, "content"), text(value, "call_id")
    attached: list[Part] = [{"type": "data-file", "data": {"path": name}} for name in items(value, "files") if isinstance(name, str)]
    if role == "system" and (called or after_answer):
        output = Output(called or f"output-{line.number}", content, name=text(value, "metadata", "tool"))
        return SessionRecord(id, "assistant", line.raw, outputs=(output,), at=when)
    if role != "assistant":
        return SessionRecord(id, role, line.raw, ((text_part(content),) if content else ()) + tuple(attached), at=when)
    return SessionRecord(id, role, line.raw, (*_parts(content), *attached), at=when, step=_step(obj(value, "metadata")))


def _parts(content: str) -> Iterator[Part]:
    """Return the reasoning, text and tool calls in the order of the model's output."""
    thought = _THOUGHT.match(content)
    if thought is not None:
        yield reasoning(thought[1])
        content = content[thought.end() :]
    begin = 0
    while (found := _CALL.search(content, begin)) is not None:
        try:
            arguments, end = json.JSONDecoder().raw_decode(content, found.end())
        except (ValueError, RecursionError):
            break
        if words := content[begin : found.start()].strip("\n"):
            yield text_part(words)
        yield tool_call(found[2], found[1], arguments)
        begin = end
    if words := content[begin:].strip("\n") if begin else content:
        yield text_part(words)


def _step(metadata: JsonObject) -> JsonObject:
    usage = usage_without_cache(*(whole_number(metadata, "usage", name) for name in _USAGE))
    model = text(metadata, "model")
    provider, _, name = model.partition("/")
    timings = [spent for part in ("ttft_ms", "gen_ms") if (spent := amount(metadata, "timings", part)) is not None]
    return step(
        name or model,
        provider if name else "",
        usage=usage.to_json(),
        cost=money(metadata, "cost"),
        ms=round(sum(timings)) if timings else None,
    )
