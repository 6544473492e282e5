"""JSON lines of Ollama's own chat to chunks (reference: Ollama API, streaming responses).

A call arrives whole, its arguments as an object, usually without an id. The last line has `done`, with token counts and nanoseconds.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from moot.convert._feeding import event_of
from moot.convert._vendor import as_list, as_object, as_text, count, failure, garbled, unfinished
from moot.convert._writer import Call, Parts, Writer, begin
from moot.types import canonical
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage

METADATA = "ollama"

_REASONS = {"stop": "stop", "length": "length"}
_NANOSECONDS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
_OBJECT_ARGUMENTS = re.compile(rb'"arguments"\s*:\s*\{')
_BODY = 1000
_PICTURES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "UklGR": "image/webp", "R0lGO": "image/gif"}
"""Prefixes of image types in base64, because the wire format does not name the type."""


class State(NamedTuple):
    parts: Parts
    provider: str = ""
    facts: JsonObject | None = None
    """None until the first line of an answer."""
    reason: str = ""
    done: bool = False
    totals: JsonObject | None = None
    """Counts and durations of the last line."""
    error: JsonObject | None = None
    unreadable: int = 0
    body: str = ""
    """The beginning of a body sent in place of an answer."""


class OllamaStream:
    name = "ollama"
    version = 1

    def open(self, options: ExchangeOptions) -> State:
        return State(begin(options), as_text(options.extra.get("provider")))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        # nearly all lines append to the open text and leave the state unchanged
        if state.parts.kind == "text" and raw.startswith(b'{"model"'):
            try:
                line = orjson.loads(raw)
                message = line["message"]
                text = message["content"]
                if text.__class__ is str and text and len(message) == 2 and line["done"] is False and "error" not in line:
                    return state, ({"type": "text-delta", "id": state.parts.id, "delta": text},)
            except (ValueError, LookupError, TypeError):
                pass
        return _feed(state, raw)

    def spoiled(self, state: State) -> bool:
        return state.unreadable > 0 and state.facts is not None

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        whole = state.done and state.error is None
        error = Failure.from_json(state.error) if state.error is not None else None
        if error is None and state.facts is not None:
            error = garbled(ended, state.unreadable)
        if error is None and not whole:
            error = unfinished(ended, seen=state.facts is not None, unreadable=0 if state.body else state.unreadable, body=state.body)
        writer = Writer(state.parts)
        writer.close(cut=not whole)
        metadata: JsonObject = {name: value for name, value in (state.facts or {}).items() if value is not None}
        totals = state.totals or {}
        if times := {name: totals[name] for name in _NANOSECONDS if count(totals.get(name)) is not None}:
            metadata[METADATA] = times
        if state.unreadable:
            metadata["unreadable_events"] = state.unreadable
        usage = Usage(count(totals.get("prompt_eval_count")), count(totals.get("eval_count")))
        reason = "error" if error is not None else _reason(state, writer.parts.calls)
        return tuple(writer.chunks), Ending(reason, state.reason or None, usage, None, error, metadata)


def _reason(state: State, calls: tuple[Call, ...]) -> str:
    reason = _REASONS.get(state.reason, "other") if state.reason else "stop" if state.done else "other"
    return "tool-calls" if reason == "stop" and calls else reason


def _feed(state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
    text = raw.removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        return state, ()
    line = event_of(text, b'"arguments"', _OBJECT_ARGUMENTS)
    if line is None:
        if raw[-1:] != b"\n" and (state.facts is not None or text[:1] == b"{"):
            return state, ()  # a truncated tail is ignored
        body = state.body if state.facts is not None else (state.body + raw[:_BODY].decode("utf-8", "replace"))[:_BODY]
        return state._replace(unreadable=state.unreadable + 1, body=body), ()
    turn = _Turn(state)
    turn.take(line)
    return turn.state, tuple(turn.writer.chunks)


class _Turn:
    def __init__(self, state: State) -> None:
        self._state = state
        self.writer = Writer(state.parts)

    @property
    def state(self) -> State:
        return self._state._replace(parts=self.writer.parts)

    def take(self, line: JsonObject) -> None:
        if self._state.facts is None:
            self._state = self._state._replace(facts={"model": as_text(line.get("model")) or None})
        if line.get("error") and self._state.error is None:
            self._state = self._state._replace(error=failure(line["error"]).to_json())
        message = as_object(line.get("message"))
        if thinking := as_text(message.get("thinking")):
            self.writer.say("reasoning", thinking, self._made_by())
        if text := as_text(message.get("content")):
            self.writer.say("text", text)
        for image in as_list(message.get("images")):
            self._image(as_text(image))
        for call in as_list(message.get("tool_calls")):
            self._call(as_object(call))
        if line.get("done") is True:
            self._done(line)

    def _call(self, call: JsonObject) -> None:
        function = as_object(call.get("function"))
        name = as_text(function.get("name"))
        if not function:
            return
        made = self.writer.call(len(self.writer.parts.calls), as_text(call.get("id")), name)
        arguments = function.get("arguments")
        self.writer.give(made, arguments if isinstance(arguments, str) else canonical.dumps(as_object(arguments)).decode())

    def _image(self, data: str) -> None:
        if data:
            self.writer.end()
            media_type = next((kind for start, kind in _PICTURES.items() if data.startswith(start)), "image/png")
            self.writer.chunks.append({"type": "file", "url": f"data:{media_type};base64,{data}", "mediaType": media_type})

    def _done(self, line: JsonObject) -> None:
        self.writer.close(cut=False)
        names = ("prompt_eval_count", "eval_count", *_NANOSECONDS)
        totals: JsonObject = {name: line[name] for name in names if line.get(name) is not None}
        reason = as_text(line.get("done_reason"))
        self._state = self._state._replace(done=True, reason=self._state.reason or reason, totals=totals or self._state.totals)

    def _made_by(self) -> JsonObject | None:
        return {METADATA: {"provider": self._state.provider}} if self._state.provider else None
