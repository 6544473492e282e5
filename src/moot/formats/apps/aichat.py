"""The format `aichat`: sessions of aichat (`sessions/NAME.yaml`) and its log `messages.md`, where each chat is one prompt and answer.

Compressed sessions keep their older messages under `compressed_messages`. Reference: `src/config/session.rs`, `src/config/mod.rs` and
`src/client/message.rs` of https://github.com/sigoden/aichat, as of February 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from moot.errors import UsageError
from moot.formats.kit.bases import ManyFiles, environment_folder
from moot.formats.kit.fields import milliseconds, obj, objects, text
from moot.formats.kit.json import parse_json, read_chunks, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, step, tool_call
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "assistant"}
_CHAT = re.compile(rb"^# CHAT: (.*) \[([^\]\n]+)\](?: \((.*)\))?\n", re.MULTILINE)
_BETWEEN = b"\n--------\n"
_CALLS = re.compile(rb"<tool_calls>\n(.*?)(\[.*\])\n</tool_calls>\n+", re.DOTALL)
_TIMED = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)-(.*)")


class Aichat(ManyFiles):
    name = "aichat"
    version = 1
    suffix = ".yaml"
    files = ("sessions/*.yaml", "sessions/_/*.yaml", "messages.md")
    depth = 5

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        base = environment_folder(environ.get("XDG_CONFIG_HOME"), home / ".config") / "aichat"
        yield environment_folder(environ.get("AICHAT_CONFIG_DIR"), base)
        yield home / "Library" / "Application Support" / "aichat"
        for name in ("AICHAT_SESSIONS_DIR", "AICHAT_MESSAGES_FILE"):
            if named := environ.get(name):
                yield Path(named)

    def is_own(self, path: Path, head: bytes) -> bool:
        if _CHAT.match(head) is not None:
            return True
        named = path.suffix in (".yaml", ".yml") and head.startswith(b"model: ")
        return named and re.search(rb"^(?:compressed_)?messages:\n- role: ", head, re.MULTILINE) is not None

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        if _CHAT.match(next(read_chunks(path), b"")) is not None:
            yield from _log(read_document(path))
            return
        data = read_document(path)
        value, nodes = _session(path, data)
        parts = [part for part in path.with_suffix("").parts[-5:] if part not in ("sessions", "_")]
        owned = "agents" in parts and parts.index("agents") < len(parts) - 2
        name = f"{parts[-2]}/{parts[-1]}" if owned else parts[-1]  # aichat's own name for the session, including its agent
        yield ImportedConversation(name, entries_of(_records(path, data, value, nodes)))


def _session(path: Path, data: bytes) -> tuple[JsonObject, list[tuple[int, int]]]:
    """Return the session, and the position of each of its messages in the text."""
    written = data.decode("utf-8", "surrogateescape")
    try:
        yaml: Any = YAML(typ="safe", pure=True)
        value: Json = parse_json(dumps(yaml.load(written)))
        root: Any = yaml.compose(written)
    except (YAMLError, ValueError, RecursionError, TypeError) as error:
        raise UsageError(f"Can't read {str(path)!r} as YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(value, dict) or root is None or root.id != "mapping":
        raise UsageError(f"{str(path)!r} is not an aichat session: expected a mapping with 'messages'.")
    lists = [found for name in ("compressed_messages", "messages") for key, found in root.value if key.value == name]
    return value, [(one.start_mark.index, one.end_mark.index) for found in lists if found.id == "sequence" for one in found.value]


def _records(path: Path, data: bytes, value: JsonObject, places: list[tuple[int, int]]) -> Records:
    about: JsonObject = {name: one for name, one in value.items() if name not in ("messages", "compressed_messages")}
    written = data.decode("utf-8", "surrogateescape")
    provider, _, model = text(value, "model").partition(":")
    timed = _TIMED.fullmatch(path.stem)
    created_at = milliseconds("{}-{}-{}T{}:{}:{}".format(*timed.groups()[:6])) if timed is not None else 0
    yield ImportedRecord(written[: places[0][0] if places else None].encode("utf-8", "surrogateescape"), about)
    title = timed[7] if timed is not None else path.stem
    yield ImportedFacts(title=title, agent="aichat", model=f"{model}@{provider}" if model else provider, created_at=created_at)
    messages = [*objects(value, "compressed_messages"), *objects(value, "messages")]
    for number, (message, (begin, end)) in enumerate(zip(messages, places, strict=False), 1):
        raw = written[begin:end].encode("utf-8", "surrogateescape")
        role = _ROLES.get(text(message, "role"))
        if role is None:
            yield ImportedRecord(raw, message, f"message {number} has no role")
            continue
        parts, outputs = _content(message.get("content"))
        facts = step(model, provider) if role == "assistant" and model else None
        yield SessionRecord(str(number), role, raw, tuple(parts), tuple(outputs), step=facts)


def _content(content: Json) -> tuple[list[Part], list[Output]]:
    if isinstance(content, dict):
        return _calls(objects(content, "tool_results"), text(content, "text"))
    return [text_part(content)] if isinstance(content, str) and content else [_piece(piece) for piece in objects(content)], []


def _calls(results: list[JsonObject], words: str) -> tuple[list[Part], list[Output]]:
    """Return tool calls and their outputs, which aichat stores together."""
    parts = [text_part(words)] if words else []
    outputs: list[Output] = []
    for number, result in enumerate(results, 1):
        made = obj(result, "call")
        id = text(made, "id") or f"call-{number}"
        parts.append(tool_call(id, text(made, "name"), made.get("arguments")))
        outputs.append(Output(id, result.get("output")))
    return parts, outputs


def _piece(piece: JsonObject) -> Part:
    match piece.get("type"):
        case "text":
            return text_part(text(piece, "text"))
        case "image_url":
            url = text(piece, "image_url", "url")
            return file(url, "" if url.startswith("data:") else "image/*")
        case _:
            return {"type": "data-piece", "data": piece}


def _log(data: bytes) -> Iterator[ImportedConversation]:
    """Yield the chats in the log. A chat's id consists of its time and its number within that second."""
    found = list(_CHAT.finditer(data))
    seen: dict[str, int] = {}
    for number, chat in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(data)
        when = chat[2].decode("utf-8", "replace")
        seen[when] = seen.get(when, 0) + 1
        id = when if seen[when] == 1 else f"{when}#{seen[when]}"
        yield ImportedConversation(id, entries_of(_chat(chat, data[chat.start() : end])))


def _chat(head: re.Match[bytes], raw: bytes) -> Records:
    when = milliseconds(head[2].decode("utf-8", "replace"))
    yield ImportedFacts(title=head[1].decode("utf-8", "replace"), agent="aichat", created_at=when)
    begin = head.end() - head.start()
    middle = raw.find(_BETWEEN, begin - 1)
    prompt = raw[begin : middle if middle >= 0 else len(raw)].decode("utf-8", "replace")
    yield SessionRecord("1", "user", raw[: middle + len(_BETWEEN)] if middle >= 0 else raw, (text_part(prompt),), at=when)
    if middle < 0:
        yield ImportedRecord(b"", problem="the chat ends after the prompt")
        return
    rest = raw[middle + len(_BETWEEN) :]
    body = rest.rstrip(b"\n").removesuffix(b"--------").removesuffix(b"\n")
    parts, outputs = list[Part](), list[Output]()
    if made := _CALLS.match(body):
        results: Json = None
        try:
            results = parse_json(made[2])
        except ValueError:
            parts.append(text_part(made[0].decode("utf-8", "replace")))
        tool_parts, outputs = _calls(objects(results), made[1].decode("utf-8", "replace").strip("\n"))
        parts += tool_parts
        body = body[made.end() :]
    parts += [text_part(body.decode("utf-8", "replace"))] if body else []
    if rest:
        yield SessionRecord("2", "assistant", rest, tuple(parts), tuple(outputs), at=when)
