"""The format `grok`: sessions of Grok Build, `~/.grok/sessions/CWD/ID/{chat_history.jsonl, summary.json, updates.jsonl}`.

The history contains the messages, and `updates.jsonl` the tokens and the cost of each turn. moot stores these with the last answer of the
turn. The vendor doesn't document the files. Their format is known from other programs that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import ManyFiles, environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import at, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.json import json_value, parse_json, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, reasoning, step, tool_call
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_TICKS = 10
"""Number of ticks per nano-dollar. 10^10 ticks are one dollar."""
_PERSON = frozenset({"", "interjection"})
"""Values of `synthetic_reason` in user messages that a person wrote. All other user messages were written by the program."""
_FIELDS = frozenset({"type", "content", "synthetic_reason", "prompt_index", "tool_calls", "model_id"})
"""Fields of the first line."""
_SPEECH = frozenset({"system", "user", "assistant", "reasoning", "tool_result", "backend_tool_call"})


class Grok(ManyFiles):
    name = "grok"
    version = 3
    files = ("chat_history.jsonl",)
    companion_names: tuple[str, ...] = ("summary.json", "updates.jsonl")
    stored_files = ("summary.json", "updates.jsonl")
    depth = 4

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("GROK_HOME"), home / ".grok") / "sessions"

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        return text(first, "type") in _SPEECH and "content" in first and first.keys() <= _FIELDS

    def knows_record(self, body: JsonObject) -> bool:
        return text(body, "params", "update", "sessionUpdate") == "turn_completed"

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        if not any(text(line.value, "type") in _SPEECH for line in json_lines(path)):
            raise UsageError(f"{str(path)!r} is not a Grok Build history: no line has a known type.")
        about = _about(path.with_name("summary.json"))
        id = text(about, "info", "id") or path.parent.name
        yield ImportedConversation(
            id,
            entries_of(_records(path, about)),
            copied_from=text(about, "parent_session_id") or None,
            started_at=milliseconds(about, "created_at"),
        )


def _about(path: Path) -> JsonObject:
    try:
        return obj(parse_json(read_document(path)))
    except (UsageError, ValueError):
        return {}


def _records(path: Path, about: JsonObject) -> Records:
    yield ImportedFacts(
        title=text(about, "generated_title") or text(about, "session_summary"),
        directory=text(about, "info", "cwd"),
        agent="grok",
        model=text(about, "current_model_id"),
        created_at=milliseconds(about, "created_at"),
        updated_at=milliseconds(about, "updated_at"),
    )
    turns = _turns(path.with_name("updates.jsonl"))
    last: tuple[Line, JsonObject] | None = None
    """The newest answer, which may be the last one of its turn."""
    following: list[SessionRecord | ImportedRecord] = []
    """The records after this answer."""
    for line in json_lines(path):
        value = line.value
        kind = text(value, "type")
        is_prompt = kind == "user" and text(value, "synthetic_reason") in _PERSON
        if last is not None and (is_prompt or kind == "assistant"):
            yield _answer(*last, turns[: int(is_prompt)])
            yield from following
            last, following, turns = None, [], turns[int(is_prompt) :]
        if kind == "assistant" and value is not None:
            last = line, value
        elif last is None:
            yield _other(line, value, kind, is_prompt=is_prompt)
        else:
            following.append(_other(line, value, kind, is_prompt=is_prompt))
    if last is not None:
        yield _answer(*last, turns)  # including those that were cancelled before they were answered
        yield from following
    else:
        yield from (ImportedRecord(raw, problem="the tokens of a turn belong to no answer, so they are not counted") for raw, _ in turns)


def _turns(path: Path) -> list[tuple[bytes, JsonObject]]:
    """Return the usage of each completed turn, with its bytes. A turn that is reported twice is counted once."""
    found: dict[str, tuple[bytes, JsonObject]] = {}
    if path.is_file() and not path.is_symlink():
        for line in json_lines(path):
            update = obj(line.value, "params", "update")
            if text(update, "sessionUpdate") == "turn_completed" and obj(update, "usage", "modelUsage"):
                found[text(update, "prompt_id") or str(line.number)] = line.raw, obj(update, "usage", "modelUsage")
    return list(found.values())


def _other(line: Line, value: JsonObject | None, kind: str, *, is_prompt: bool) -> SessionRecord | ImportedRecord:
    id = f"line-{line.number}"
    if value is None or kind not in _SPEECH:
        return ImportedRecord(line.raw, value, line.problem)
    if kind == "tool_result":
        return SessionRecord(id, "assistant", line.raw, outputs=(Output(text(value, "tool_call_id"), _output(value.get("content"))),))
    if kind == "reasoning":
        words = "\n\n".join(text(one, "text") for one in objects(value, "summary"))
        return SessionRecord(id, "assistant", line.raw, (reasoning(words),))
    if kind == "backend_tool_call":
        call = tool_call(text(value, "id") or id, text(value, "kind", "tool_type"), at(value, "kind", "action"))
        return SessionRecord(id, "assistant", line.raw, (call,))
    return SessionRecord(id, "user" if is_prompt else "system", line.raw, tuple(_content(value.get("content"))))


def _answer(line: Line, value: JsonObject, turns: list[tuple[bytes, JsonObject]]) -> SessionRecord:
    content = value.get("content", value)
    is_known = content is None or isinstance(content, str | list)
    parts: list[Part] = list(_content(content)) if is_known else [{"type": "data-block", "data": value}]
    for call in objects(value, "tool_calls"):
        parts.append(tool_call(text(call, "id"), text(call, "name"), json_value(call.get("arguments"))))
    model = text(value, "model_id")
    if not turns:
        return SessionRecord(f"line-{line.number}", "assistant", line.raw, tuple(parts), step=step(model) or {"model": ""})
    raw = line.raw + b"".join(raw for raw, _ in turns)
    usage, cost = Usage(), 0
    names = ("inputTokens", "outputTokens", "cachedReadTokens", "cacheWriteTokens", "reasoningTokens")
    for counted in (counted for _, models in turns for counted in models.values()):
        usage += Usage(*(whole_number(counted, name) for name in names))
        cost += (whole_number(counted, "costUsdTicks") or 0) // _TICKS
    facts = step(model or next(iter(turns[-1][1])), usage=usage.to_json()) | {TOTAL_OF: "turn", "cost": cost}
    return SessionRecord(f"line-{line.number}", "assistant", raw, tuple(parts), step=facts)


def _content(content: Json) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield text_part(content)
        return
    for block in objects({"content": content}, "content"):
        yield text_part(text(block, "text")) if block.get("type") == "text" else {"type": "data-block", "data": block}


def _output(content: Json) -> Json:
    blocks = objects({"content": content}, "content")
    is_text = bool(blocks) and all(block.get("type") == "text" for block in blocks)
    return "\n".join(text(block, "text") for block in blocks) if is_text else content
