"""The format `zed`: threads of Zed's agent in its database `threads/threads.db`, as JSON that is usually compressed with zstd.

Zed stores the tokens of each prompt's last request and, in newer versions, the sum of all requests of a thread. Agents from other programs
that run in Zed store their own sessions. Reference: `crates/agent/src/{db,thread,legacy_thread}.rs` of
https://github.com/zed-industries/zed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path

import zstandard

from moot.formats.kit.bases import ReadOnly, environment_folder
from moot.formats.kit.database import Connection, is_database, open_own, readable_rows, row_bytes, row_object, rows
from moot.formats.kit.fields import flag, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.json import ArrayItem, array_items, member, parse_json
from moot.formats.kit.records import (
    Output,
    Records,
    SessionRecord,
    entries_of,
    file,
    output_value,
    reasoning,
    step,
    tool_call,
    usage_without_cache,
)
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF, Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part

_OWN = {"threads": {"id", "summary", "updated_at", "data_type", "data"}}
_ROW = "SELECT * FROM threads WHERE id = ?"
_LARGEST = 512 << 20
"""Maximum size of a thread, in bytes."""
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Zed(ReadOnly):
    name = "zed"
    version = 1
    suffix = ".db"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share")
        windows = environment_folder(environ.get("LOCALAPPDATA"), home / "AppData" / "Local")
        flatpak = home / ".var" / "app" / "dev.zed.Zed" / "data"
        for folder in (data / "zed", flatpak / "zed", home / "Library" / "Application Support" / "Zed", windows / "Zed"):
            yield folder / "threads" / "threads.db"

    def sniff(self, path: Path, head: bytes) -> bool:
        return is_database(path, head, _OWN)

    def knows_record(self, body: JsonObject) -> bool:
        return "version" in body and ("title" in body or "summary" in body)  # a thread without its messages

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        with open_own(path, "Zed", _OWN) as connection:
            problems: list[str] = []
            ids = [str(row[0]) for row in readable_rows(connection, problems, "SELECT id FROM threads ORDER BY updated_at, id")]
            for id in sorted(ids, key=lambda one: bool(_parent(connection, one))):
                for row in rows(connection, _ROW, id):
                    if isinstance(row, str):
                        problems.append(row)
                        continue
                    written, problem = _content(row["data"], text(row_object(row), "data_type"))
                    about, records = row_object(row), _thread(row_bytes(row), written, problem)
                    entries = entries_of(_with_facts(about, written, records))
                    created = milliseconds(about, "created_at")
                    yield ImportedConversation(id or "unnamed", entries, _parent(connection, id) or _delegated(written), started_at=created)
            if problems:
                yield ImportedConversation("damaged", tuple(ImportedRecord(b"", problem=problem) for problem in problems))


def _parent(connection: Connection, id: str) -> str | None:
    row = next(readable_rows(connection, [], _ROW, id), None)
    return text(row_object(row), "parent_id") or None if row is not None else None


def _content(data: object, kind: str) -> tuple[bytes, str]:
    """Return a thread's JSON, and a description of the problem if the JSON can't be read."""
    raw = data.encode() if isinstance(data, str) else data if isinstance(data, bytes) else b""
    if kind == "json":
        return raw, ""
    if kind != "zstd":
        return b"", f"the thread is stored in the unknown format {kind!r}"
    try:
        with zstandard.ZstdDecompressor().stream_reader(BytesIO(raw)) as reader:
            found = reader.read(_LARGEST + 1)
    except zstandard.ZstdError as error:
        return b"", f"the thread can't be decompressed: {error}"
    return (found, "") if len(found) <= _LARGEST else (b"", f"the thread is larger than {_LARGEST >> 20} MiB")


def _head(written: bytes) -> JsonObject:
    """Return the fields of a stored thread, with an empty list of messages."""
    span = member(written, "messages")
    try:
        return obj(parse_json(written if span is None else written[: span.begin] + b"[]" + written[span.end :]))
    except ValueError:
        return {}


def _delegated(written: bytes) -> str | None:
    return text(_head(written), "subagent_context", "parent_thread_id") or None


def _with_facts(row: JsonObject, written: bytes, records: Records) -> Records:
    head = _head(written)
    model, provider = text(head, "model", "model"), text(head, "model", "provider")
    folders, order = text(row, "folder_paths").splitlines(), text(row, "folder_paths_order").split(",")
    first = order.index("0") if "0" in order and len(order) == len(folders) else 0
    yield ImportedFacts(
        title=text(head, "title") or text(head, "summary") or text(row, "summary"),
        directory=folders[first] if folders else "",
        agent="zed",
        model=f"{model}@{provider}" if model and provider else model,
        created_at=milliseconds(row, "created_at"),
        updated_at=milliseconds(row, "updated_at"),
    )
    yield from records


def _thread(row: bytes, written: bytes, problem: str) -> Records:
    if problem:
        yield ImportedRecord(row, problem=problem)
        return
    head, span = _head(written), member(written, "messages")
    is_list = span is not None and written[span.begin : span.begin + 1] == b"["
    if not head or not is_list or span is None:
        yield ImportedRecord(written, head, "the thread is not valid JSON" if not head else "'messages' contains no messages")
        return
    yield ImportedRecord(written[: span.begin] + written[span.end :], head)
    elements = list(array_items([written[span.begin : span.end]]))
    usage = _usages(written, head, elements)
    for element in elements:
        counted = usage.get(element.number)
        yield from _message(element, head, *(counted or (b"", {})))
    if usage:  # Zed stores no tokens of single requests
        yield ImportedFacts(Fidelity({"usage": -len(usage)}, {"usage": len(usage)}))


def _usages(written: bytes, head: JsonObject, elements: list[ArrayItem]) -> dict[int, tuple[bytes, JsonObject]]:
    """Return the usage for the last message of each answer, keyed by message number, with the bytes from which it was read.

    The bytes become part of the message, so that a total can be moved from one answer to the next when the thread grows.
    """
    if flag(head, "imported"):  # another installation of Zed has made the requests
        return {}
    answers = [element.number for element in elements if _is_answer(element.value)]
    if answers and (total := _usage(obj(head, "cumulative_token_usage"))):
        span = member(written, "cumulative_token_usage")
        raw = written[span.begin : span.end] if span is not None else b""
        return {answers[-1]: (raw, {"usage": total, TOTAL_OF: "session"})}
    last: dict[str, int] = {}
    prompt = ""
    for element in elements:
        prompt = text(element.value, "User", "id") or prompt
        if _is_answer(element.value):
            last[prompt] = element.number
    found: dict[int, tuple[bytes, JsonObject]] = {}
    outer = member(written, "request_token_usage")
    for prompt, number in last.items():
        span = member(written, prompt, outer.begin) if outer is not None else None
        usage = _usage(obj(head, "request_token_usage", prompt))
        if span is not None and usage:
            found[number] = (written[span.begin : span.end], {"usage": usage})
    return found


def _is_answer(message: Json) -> bool:
    return "Agent" in obj(message) or text(message, "role") == "assistant"


def _usage(counts: JsonObject) -> JsonObject:
    fresh, output, read, write = (whole_number(counts, name) for name in _COUNTS)
    return usage_without_cache(fresh, output, read, write).to_json() if fresh or output or read or write else {}


def _message(element: ArrayItem, head: JsonObject, counted: bytes, facts: JsonObject) -> Iterator[SessionRecord | ImportedRecord]:
    value, number = obj(element.value), str(element.number)
    model = step(text(head, "model", "model"), text(head, "model", "provider"))
    user, agent = obj(value, "User"), obj(value, "Agent")
    if element.value == "Resume":
        yield ImportedRecord(element.raw, element.value)
    elif element.problem or not (user or agent or text(value, "role") in ("user", "assistant")):
        yield ImportedRecord(element.raw, element.value, element.problem or f"message {element.number} has an unknown type")
    elif user:
        yield SessionRecord(text(user, "id") or number, "user", element.raw, tuple(map(_part, objects(user, "content"))))
    elif agent:
        outputs = tuple(_output(id, obj(result)) for id, result in obj(agent, "tool_results").items())
        parts = tuple(map(_part, objects(agent, "content")))
        yield SessionRecord(number, "assistant", element.raw + counted, parts, outputs, step={**model, **facts})
    else:
        yield _older(element, value, {**model, **facts}, counted)


def _part(block: JsonObject) -> Part:
    kind, inner = next(iter(block.items()), ("", None))
    if kind == "Text" and isinstance(inner, str):
        return text_part(inner)
    if kind == "Thinking" and text(inner, "text"):
        signature = text(inner, "signature")
        return reasoning(text(inner, "text"), {"anthropic": {"signature": signature}} if signature else None)
    if kind == "RedactedThinking" and isinstance(inner, str):
        return reasoning("", {"anthropic": {"redactedData": inner}})
    if kind == "ToolUse" and text(inner, "name"):
        return tool_call(text(inner, "id"), text(inner, "name"), obj(inner).get("input"))
    if kind == "Image" and text(inner, "source"):
        return file(f"data:image/png;base64,{text(inner, 'source')}", "image/png")
    return {"type": f"data-{kind.lower()}" if kind in ("Mention",) else "data-block", "data": block}


def _output(id: str, result: JsonObject) -> Output:
    content = result.get("content")
    blocks = objects(content) if isinstance(content, list) else [content] if isinstance(content, dict) else []
    value: Json = output_value(list(map(_part, blocks)), "\n") if blocks else content
    call, output = text(result, "tool_use_id") or id, result.get("output")
    return Output(call, output if value is None else value, flag(result, "is_error"), text(result, "tool_name"))


def _older(element: ArrayItem, value: JsonObject, facts: JsonObject, counted: bytes) -> SessionRecord:
    """Read a message of an older version, in which text is divided into segments."""
    id = f"{value['id']}" if isinstance(value.get("id"), int | str) else str(element.number)
    parts: list[Part] = []
    for segment in objects(value, "segments"):
        kind, words = text(segment, "type"), text(segment, "text")
        if kind == "text":
            parts.append(text_part(words))
        elif kind == "thinking":
            parts.append(reasoning(words))
        else:
            parts.append({"type": "data-block", "data": segment})
    parts += [tool_call(text(one, "id"), text(one, "name"), one.get("input")) for one in objects(value, "tool_uses")]
    outputs = tuple(_output("", one) for one in objects(value, "tool_results"))
    if value["role"] == "user":
        return SessionRecord(id, "user", element.raw, tuple(parts))
    return SessionRecord(id, "assistant", element.raw + counted, tuple(parts), outputs, step=facts)
