"""TalkCody's records as messages: one record for each model call, tool call and output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moot.formats._saying import call as call_part
from moot.formats._source.pieces import object_in
from moot.formats._source.turns import Turns
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import Entry
from moot.types.part import Part, text_part

__all__ = ["Record", "Rows"]


class Record(NamedTuple):
    """A row of the database or a message of a snapshot."""

    id: str
    role: str
    content: Json
    """Text, JSON text of an object (tool rows of the database), or objects."""
    raw: bytes
    lead: bytes = b""
    at: int = 0
    thought: str = ""
    files: tuple[Part, ...] = ()
    metadata: JsonObject | None = None


class _Tool(NamedTuple):
    """A tool call or its output."""

    call: str
    name: str
    input: Json
    is_output: bool
    output: Json = None
    failed: bool = False


class Rows:
    """A converter of records to messages. An empty answer was interrupted by a crash, unless it called a tool."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self._empty: Record | None = None
        self._thought = ""

    def take(self, record: Record) -> Iterator[Entry]:
        tools = [_tool(one) for one in _objects(record)] if record.role == "tool" else _envelope(record)
        if record.role == "tool" or tools:
            yield from self._tools(record, tools)
            return
        yield from self._settled()
        match record.role:
            case "user":
                yield from self.turns.say("user", record.id, record.raw, _said(record), at=record.at, metadata=record.metadata)
            case "system":
                yield from self.turns.say("system", record.id, record.raw, _said(record), at=record.at)
            case "assistant":
                self._answer(record)
            case _:
                yield from self.turns.end()
                yield self.turns.broken(record.raw, f"message {record.id!r} has the role {record.role!r}", lead=record.lead)

    def end(self) -> Iterator[Entry]:
        yield from self._settled()
        yield from self.turns.end()

    def _answer(self, record: Record) -> None:
        thoughts = _thoughts(record.thought)
        self._thought = record.thought
        said = _said(record)
        if not thoughts and not said:
            self._empty = record
        else:
            self.turns.step(record.id, record.raw, [*thoughts, *said], lead=record.lead, at=record.at)

    def _settled(self) -> Iterator[Entry]:
        """Yield an empty answer that no tool call followed."""
        record, self._empty = self._empty, None
        if record is not None:
            yield self.turns.broken(
                record.raw, f"answer {record.id!r} is empty, probably because TalkCody crashed while streaming", lead=record.lead
            )

    def _tools(self, record: Record, tools: list[_Tool | None]) -> Iterator[Entry]:
        if not tools or None in tools:
            yield from self._settled()
            yield self.turns.broken(record.raw, f"tool message {record.id!r} is neither a call nor an output", lead=record.lead)
            return
        empty, self._empty = self._empty, None
        if empty is not None:
            self.turns.step(empty.id, empty.raw, [], lead=empty.lead, at=empty.at)
        self._calls(record, [tool for tool in tools if tool is not None])

    def _calls(self, record: Record, tools: list[_Tool]) -> None:
        thoughts = _thoughts(record.thought) if record.thought != self._thought else []
        self._thought = record.thought or self._thought
        calls = [*thoughts, *(call_part(tool.call, tool.name, tool.input) for tool in tools if not tool.is_output)]
        if calls and not self.turns.is_open():
            self.turns.step(record.id, record.raw, calls, lead=record.lead, at=record.at)
        elif calls:
            self.turns.add(record.id, record.raw, calls, lead=record.lead, at=record.at)
        raw = b"" if calls else record.raw
        for tool in tools:
            if tool.is_output:
                self.turns.output(
                    tool.call, record.id, raw, name=tool.name, lead=record.lead if raw else b"", output=tool.output, failed=tool.failed
                )
                raw = b""


def _said(record: Record) -> list[Part]:
    text = record.content
    if isinstance(text, str) and (enveloped := _parsed(text, '{"content"')) is not None:
        inner = enveloped.get("content")
        text = inner.get("text") if isinstance(inner, dict) and inner.get("type") == "text" else text
    return [*([text_part(text)] if isinstance(text, str) and text else []), *record.files]


def _thoughts(text: str) -> list[Part]:
    return [{"type": "reasoning", "text": text, "state": "done"}] if text else []


def _objects(record: Record) -> Iterable[JsonObject]:
    content = record.content
    if isinstance(content, str):
        parsed = _parsed(content, "{")
        return [parsed] if parsed is not None else []
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


def _tool(value: JsonObject) -> _Tool | None:
    call, name, kind = str(value.get("toolCallId") or ""), str(value.get("toolName") or ""), value.get("type")
    if kind == "tool-call":
        return _Tool(call, name, value.get("input"), is_output=False)
    if kind == "tool-result":
        return _result(value, call, name)
    inner = value.get("content")
    result = inner.get("result") if isinstance(inner, dict) and inner.get("type") == "tool_result" else None
    return _result(result, str(result.get("toolCallId") or ""), str(result.get("toolName") or "")) if isinstance(result, dict) else None


def _result(value: JsonObject, call: str, name: str) -> _Tool:
    output = value.get("output")
    reason = output.get("error") if isinstance(output, dict) and output.get("success") is not True else None
    failed = value.get("status") == "error" or ("status" not in value and isinstance(reason, str))
    if not failed:
        return _Tool(call, name, value.get("input"), is_output=True, output=output)
    error = value.get("errorMessage") or reason or output
    return _Tool(call, name, value.get("input"), True, error if isinstance(error, str) else dumps(error).decode(), failed=True)


def _envelope(record: Record) -> list[_Tool | None]:
    """Return the tool calls that TalkCody's server stores in the answer's own row."""
    value = _parsed(record.content, '{"content"') if isinstance(record.content, str) and record.role == "assistant" else None
    inner = value.get("content") if value is not None else None
    calls = inner.get("calls") if isinstance(inner, dict) and inner.get("type") == "tool_calls" else None
    if not isinstance(calls, list):
        return []
    objects = [one for one in calls if isinstance(one, dict)]
    return [_Tool(str(one.get("id") or ""), str(one.get("name") or ""), one.get("input"), is_output=False) for one in objects]


def _parsed(text: str, start: str) -> JsonObject | None:
    return object_in(text) or None if text.startswith(start) else None
