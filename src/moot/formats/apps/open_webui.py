"""The format `open-webui`: the database `webui.db` of Open WebUI, and its JSON exports of chats.

A chat stores its messages as a map in which each message refers to its parent (`history`). Newer versions also write rows to
`chat_message`. These take precedence; messages that exist only in the map are added if a row needs them as a parent. Reference: the
modules `open_webui.models.chats`, `open_webui.models.chat_messages` and `open_webui.env` of open-webui 0.12.4 on PyPI, and a database
created by it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import ReadOnly
from moot.formats.kit.database import Connection, conversations_in, is_database, open_own, readable_rows, row_bytes, row_object, tables
from moot.formats.kit.documents import missing_messages
from moot.formats.kit.fields import flag, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.json import array_items, json_container, json_value, member, members_at, parse_json, parse_prefix, read_chunks
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, reasoning, step, tool_call
from moot.formats.kit.trees import find_branches, sort_tree
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import Entry, Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part
from moot.types.usage import Usage

REACHABLE = ("data:", "https://", "http://")
"""Prefixes of URLs that programs other than Open WebUI can open."""
_DETAILS = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"([^>]*)>\n?(.*?)</details>\n?', re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_SUMMARY = re.compile(r"<summary>.*?</summary>\n?", re.DOTALL)
_SEALS = ("reasoning_details", "encrypted_content")
"""Fields that must be sent back to the vendor together with the reasoning."""
_STEP: Part = {"type": "step-start"}


@dataclass(slots=True)
class Answer:
    """The parts of an assistant message and the outputs of its tool calls."""

    parts: list[Part] = field(default_factory=list[Part])
    outputs: list[Output] = field(default_factory=list[Output])
    missing: int = 0
    """Number of tool pictures that are missing from the source."""


def answer_of(words: str, output: list[JsonObject]) -> Answer:
    """Return the answer in the items of `output`. If there are no items, extract reasoning and tool calls from the text."""
    answer = Answer()
    before = ""
    for item in output:
        kind = text(item, "type")
        if before == "function_call_output" != kind:
            answer.parts.append(_STEP)
        _item(answer, kind, item)
        before = kind
    if not output:
        _read_text(answer, words)
    return answer


def _item(answer: Answer, kind: str, item: JsonObject) -> None:
    match kind:
        case "message":
            answer.parts += _words("".join(text(one, "text") for one in objects(item, "content")))
        case "reasoning":
            thought = "".join(text(one, "text") for one in objects(item, "summary") or objects(item, "content"))
            seals: JsonObject = {name: item[name] for name in _SEALS if item.get(name)}
            answer.parts += [reasoning(thought, {"open-webui": seals} if seals else None)] if thought or seals else []
        case "function_call":
            answer.parts.append(tool_call(_id(item), text(item, "name"), unpacked(item.get("arguments"))))
            if item.get("status") == "rejected":
                answer.outputs.append(Output(_id(item), "", denied=True))
        case "function_call_output":
            answer.outputs.append(_output(answer, item))
        case "open_webui:code_interpreter":
            answer.parts.append(tool_call(_id(item), "code_interpreter", {"code": text(item, "code"), "lang": text(item, "lang")}))
            if item.get("output"):
                answer.outputs.append(Output(_id(item), item["output"]))
        case _:
            answer.parts.append({"type": "data-item", "data": item})


def _id(item: JsonObject) -> str:
    return text(item, "call_id") or text(item, "id") or "call"


def _output(answer: Answer, item: JsonObject) -> Output:
    pieces = objects(item, "output")
    words = "".join(text(one, "text") for one in pieces) or text(item, "output")
    shown = [text(one, "image_url") for one in pieces if one.get("type") == "input_image"]
    pictures = [file(url, "" if url.startswith("data:") else "image/*") for url in shown if url.startswith(REACHABLE)]
    answer.missing += len(shown) - len(pictures)
    value: Json = {"type": "content", "value": [*_words(words), *pictures]} if pictures else words
    return Output(_id(item), value, error=text(item, "status") in ("failed", "incomplete"))


def _read_text(answer: Answer, words: str) -> None:
    begin = 0
    for found in _DETAILS.finditer(words):
        answer.parts += _words(words[begin : found.start()])
        begin = found.end()
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[2])}
        body = _SUMMARY.sub("", found[3]).strip("\n")
        if found[1] == "reasoning":
            lines = (line.removeprefix("> ").removeprefix(">") for line in html.unescape(body).split("\n"))
            answer.parts.append(reasoning("\n".join(lines)))
            continue
        id = attributes.get("id") or f"call-{len(answer.outputs) + 1}"
        answer.parts.append(tool_call(id, attributes.get("name", found[1]), unpacked(attributes.get("arguments", body))))
        if result := attributes.get("result") or attributes.get("output"):
            answer.outputs.append(Output(id, unpacked(result)))
    answer.parts += _words(words[begin:])


def _words(words: str) -> list[Part]:
    return [text_part(words)] if words.strip() else []


def unpacked(written: Json) -> Json:
    """Return the value of a JSON string, decoding up to two levels. Text that is not JSON is returned unchanged."""
    return json_container(json_container(written))


_USAGE = (
    (("input_tokens",), ("prompt_tokens",), ("prompt_eval_count",)),
    (("output_tokens",), ("completion_tokens",), ("eval_count",)),
    (("input_tokens_details", "cached_tokens"), ("prompt_tokens_details", "cached_tokens")),
    (("output_tokens_details", "reasoning_tokens"), ("completion_tokens_details", "reasoning_tokens")),
)
"""Names of the fields for input, output, cached and reasoning tokens. They depend on the model server."""
_SQLITE = "sqlite:///"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_OWN = {"chat": {"id", "user_id", "title", "chat", "created_at", "updated_at"}}
_CHATS = "SELECT * FROM chat ORDER BY created_at, id"
_ROWS = "SELECT * FROM chat_message WHERE chat_id = ? ORDER BY created_at, id"
_NAMES = {"parent_id": "parentId", "model_id": "model", "created_at": "timestamp"}
_JSON = frozenset({"content", "output", "files", "error", "usage"})
"""Columns with JSON text. A missing value is `null`."""


class OpenWebUi(ReadOnly):
    """The format `open-webui`, with the standard locations of the program's database."""

    name = "open-webui"
    version = 3
    suffix = ".json"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        if folder := environ.get("DATA_DIR"):
            yield Path(folder) / "webui.db"
        named = environ.get("DATABASE_URL", "").partition("?")[0]
        if named.startswith(_SQLITE):
            yield Path(named.removeprefix(_SQLITE))

    def sniff(self, path: Path, head: bytes) -> bool:
        if is_database(path, head, _OWN):
            return True
        value = parse_prefix(head)
        first = obj(value[0]) if isinstance(value, list) and value else {}
        return isinstance(obj(first, "chat").get("history"), dict)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        if next(read_chunks(path), b"").startswith(b"SQLite"):
            yield from _database_chats(path)
            return
        some = False
        for piece in array_items(read_chunks(path)):
            some = True
            value = obj(piece.value)
            span = member(piece.raw, "chat")
            chat = piece.raw[span.begin : span.end] if span is not None else b""
            about = {name: one for name, one in value.items() if name != "chat"}
            around = piece.raw if span is None else piece.raw[: span.begin] + piece.raw[span.end :]
            record = ImportedRecord(around, about, piece.problem)
            id = text(value, "id") or text(value, "chat", "id") or f"chat-{piece.number}"
            yield ImportedConversation(id, _entries(record, about, obj(value, "chat"), _messages(chat)))
        if not some:
            raise UsageError(f"{str(path)!r} is not an Open WebUI export: expected a JSON array of chats.")


_Message = tuple[str, JsonObject, bytes]


def _database_chats(path: Path) -> Iterator[ImportedConversation]:
    with open_own(path, "Open WebUI", _OWN) as connection:
        has_rows = "chat_message" in tables(connection)

        def convert(about: JsonObject, _: bytes) -> ImportedConversation:
            written = text(about, "chat").encode()
            chat, problem = _parsed(written)
            about = {name: one for name, one in about.items() if name != "chat"}
            problems = [problem] if problem else []
            messages = list(_of_rows(connection, text(about, "id"), problems)) if has_rows else []
            record = ImportedRecord(dumps(about) + b"\n", about, "; ".join(problems))
            messages = _with_ancestors(messages, {one[0]: one for one in _messages(written)})
            return ImportedConversation(text(about, "id"), _entries(record, about, chat, iter(messages)))

        yield from conversations_in(connection, _CHATS, convert)


def _with_ancestors(rows: list[_Message], older: dict[str, _Message]) -> list[_Message]:
    """Return the rows and those of their ancestors that exist only in the chat's map. If there are no rows, return the map."""
    if not rows:
        return list(older.values())
    there = {id for id, _, _ in rows}
    for _, value, _ in (messages := list(rows)):
        parent = text(value, "parentId")
        if parent in older and parent not in there:
            there.add(parent)
            messages.append(older[parent])
    return messages


def _parsed(data: bytes) -> tuple[JsonObject, str]:
    try:
        return obj(parse_json(data)), ""
    except ValueError as error:
        return {}, f"the chat is not valid JSON: {error}"


def _messages(chat: bytes) -> Iterator[_Message]:
    """Yield each message of the history with its bytes, but without the list of children, which changes with every answer."""
    children = (0, 0)
    for way, span in members_at(chat, ("history", "messages", "*", "childrenIds")):
        if len(way) == 4:
            children = (span.begin, span.end)
        elif len(way) == 3:
            value, _ = _parsed(chat[span.begin : span.end])
            begin, end = children if children[0] > span.begin else (span.end, span.end)
            yield span.name, value, chat[span.begin : begin] + chat[end : span.end]


def _of_rows(connection: Connection, chat: str, problems: list[str]) -> Iterator[_Message]:
    for row in readable_rows(connection, problems, _ROWS, chat):
        stored = row_object(row)
        value = {_NAMES.get(name, name): json_value(one) if name in _JSON else one for name, one in stored.items()}
        value["parentId"] = text(value, "parentId").removeprefix(f"{chat}-")
        yield text(stored, "id").removeprefix(f"{chat}-"), value, row_bytes(row)


def _entries(record: ImportedRecord, about: JsonObject, chat: JsonObject, messages: Iterator[_Message]) -> Iterator[Entry]:
    placed, cut = sort_tree((id, text(value, "parentId") or None, (value, raw)) for id, value, raw in messages)
    tree = find_branches((id, parent, text(value, "role") in _ROLES) for id, parent, (value, _) in placed)

    def records() -> Records:
        yield record
        yield from () if placed else missing_messages(chat, "history", "messages", kind=dict)
        yield ImportedFacts(
            Fidelity(approximated={"branches": cut} if cut else {}),
            title=text(about, "title") or text(chat, "title"),
            agent="open-webui",
            created_at=milliseconds(about, "created_at") or milliseconds(chat, "timestamp"),
            updated_at=milliseconds(about, "updated_at"),
            archived=flag(about, "archived") or about.get("archived") == 1,
        )
        for id, parent, (value, raw) in placed:
            if text(value, "role") not in _ROLES:
                yield ImportedRecord(raw, value, f"message {id!r} has no role")
                continue
            role, words = (
                _ROLES[text(value, "role")],
                text(value, "content") or "".join(text(one, "text") for one in objects(value, "content")),
            )
            answer = answer_of(words, objects(value, "output")) if role == "assistant" else Answer([text_part(words)] if words else [])
            answer.parts += _files(value)
            lost = {"files": sum(part.get("type") == "data-file" for part in answer.parts), "pictures": answer.missing}
            if any(lost.values()):
                yield ImportedFacts(Fidelity(lost={name: count for name, count in lost.items() if count}))
            if not (words or answer.parts or answer.outputs) and value.get("content") not in ("", []):
                yield ImportedRecord(b"", problem=f"the content of message {id!r} has an unknown shape")
            error = text(value, "error", "content") or text(value, "error") or None
            facts = step(text(value, "model"), usage=_usage(value).to_json(), error=error) if role == "assistant" else None
            yield SessionRecord(id, role, raw, tuple(answer.parts), tuple(answer.outputs), parent, milliseconds(value, "timestamp"), facts)

    shown = text(about, "current_message_id") or text(chat, "history", "currentId")
    return entries_of(records(), tree, shown.removeprefix(f"{text(about, 'id')}-") or None)


def _files(value: JsonObject) -> Iterator[Part]:
    """Yield the files stored in the chat, and the names of all other files."""
    for one in objects(value, "files"):
        url, name = text(one, "url"), text(one, "name")
        if url.startswith(REACHABLE):
            yield file(
                url, text(one, "content_type") or ("image/*" if one.get("type") == "image" and not url.startswith("data:") else ""), name
            )
        else:
            yield {"type": "data-file", "data": {"id": text(one, "id"), "name": name or url}}


def _usage(value: JsonObject) -> Usage:
    """Return the token usage. Field names depend on the model server."""
    usage = obj(value, "usage") or obj(value, "info", "usage") or obj(value, "info")
    prompt, answer, cached, thoughts = (
        next((count for path in paths if (count := whole_number(usage, *path)) is not None), None) for paths in _USAGE
    )
    return Usage(prompt, answer, cached, None, thoughts)
