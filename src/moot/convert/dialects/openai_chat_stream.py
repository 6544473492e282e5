"""Conversion of `chat.completion.chunk` events to chunks (reference: OpenAI API, streaming events).

The start and end of a part are not marked: a part starts with its first token and ends when a part of another kind starts. Vendors put
reasoning, usage and errors in different places. All known places are read; everything else is ignored.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
import orjson

from moot.convert.dialects import frames
from moot.convert.dialects.stream import NO_FACTS, StreamTranslator, Turn
from moot.convert.vendor import as_list, as_object, as_text, count, nano_dollars
from moot.convert.writer import Call, Parts
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, Failure
from moot.types.usage import Usage

NotOnePiece = (msgspec.MsgspecError, ValueError, RecursionError)
"""Raised by `text_piece` for any event that is not just a text delta."""


class _Delta(msgspec.Struct, forbid_unknown_fields=True):
    content: str
    role: str | None = None
    refusal: None = None


class _Choice(msgspec.Struct):
    delta: _Delta
    index: int = 0
    finish_reason: None = None
    usage: None = None


class _Piece(msgspec.Struct):
    """An event with only a text delta. Decoding fails for events with other content."""

    choices: list[_Choice]
    usage: None = None
    error: None = None


text_piece = msgspec.json.Decoder(_Piece).decode


METADATA = "openai-chat"

_REASONS = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "sensitive": "content-filter",
    "refusal": "content-filter",
}
_FAILURES = {
    "error": Failure("the provider broke off with an error and gave no reason", "overloaded", retryable=True),
    "network_error": Failure("the provider broke off: network error", "transport", retryable=True),
    "insufficient_system_resource": Failure("the provider broke off: it has no resources left", "overloaded", retryable=True),
}
_FACTS = {
    "id": "response_id",
    "model": "model",
    "provider": "upstream",
    "system_fingerprint": "system_fingerprint",
    "service_tier": "service_tier",
}


class State(NamedTuple):
    parts: Parts
    provider: str = ""
    facts: JsonObject | None = None
    """Facts about the whole answer from the first event; None before that event."""
    reason: str = ""
    usage: JsonObject | None = None
    error: JsonObject | None = None
    done: bool = False
    """True once `[DONE]` has been received."""
    refused: bool = False
    detail: JsonObject | None = None
    """The entry of `reasoning_details` for the open reasoning part, without its text."""
    unreadable: int = 0
    body: str = ""


class _Turn(Turn[State]):
    metadata = METADATA

    def take(self, event: JsonObject, name: str) -> None:
        if self._state.facts is None:
            facts: JsonObject = {ours: event[theirs] for theirs, ours in _FACTS.items() if event.get(theirs) is not None}
            self._state = self._state._replace(facts=facts or NO_FACTS)
        error = _error_of(event, name)
        if error is not None:
            self.fail(error)
        choice: JsonObject = {}
        for item in as_list(event.get("choices")):
            if isinstance(item, dict) and not item.get("index"):
                choice = item
                self._choice(item)
        usage = event.get("usage") or choice.get("usage") or as_object(event.get("x_groq")).get("usage")
        if isinstance(usage, dict) and usage != self._state.usage:
            self._state = self._state._replace(usage=usage)

    def _choice(self, choice: JsonObject) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message") if not self.writer.parts.next and not self.writer.parts.calls else None
        if isinstance(delta, dict):
            self._delta(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.end_open()
            self.writer.close(cut=reason in _FAILURES)
            if not self._state.reason:
                self._state = self._state._replace(reason=reason)

    def _delta(self, delta: JsonObject) -> None:
        details = [item for item in as_list(delta.get("reasoning_details")) if isinstance(item, dict)]
        if not any(as_text(item.get("text")) or as_text(item.get("summary")) for item in details):
            self._think(as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning")))
        for item in details:
            self._detail(item)
        content = delta.get("content")
        if isinstance(content, str):
            self._append_text(content)
        for piece in as_list(content):
            self._piece(as_object(piece))
        if refusal := as_text(delta.get("refusal")):
            self.end_reasoning()
            if not self._state.refused:
                self._state = self._state._replace(refused=True)
                self.writer.begin("text", {METADATA: {"refusal": True}})
            self.writer.say("text", refusal)
        for index, call in enumerate(as_list(delta.get("tool_calls"))):
            if isinstance(call, dict):
                self._call(call, index)
        if isinstance(function := delta.get("function_call"), dict):
            self._call({"index": 0, "function": function}, 0)
        self._extras(delta)

    def _append_text(self, text: str) -> None:
        if text:
            self.end_reasoning()
            self.writer.say("text", text)

    def _piece(self, piece: JsonObject) -> None:
        """Handle one piece of a content list. Some vendors send thinking and text in such a list."""
        if piece.get("type") == "text":
            self._append_text(as_text(piece.get("text")))
        elif piece.get("type") == "thinking":
            thinking = piece.get("thinking")
            text = thinking if isinstance(thinking, str) else "".join(as_text(as_object(item).get("text")) for item in as_list(thinking))
            self._think(text)

    def _think(self, text: str) -> None:
        if text:
            self.writer.say("reasoning", text, self._made_by({}))

    def _detail(self, item: JsonObject) -> None:
        """Handle an entry of `reasoning_details`. Its text goes into a reasoning part, its other fields into the part's metadata."""
        text = as_text(item.get("text")) or as_text(item.get("summary"))
        rest: JsonObject = {name: value for name, value in item.items() if name not in ("text", "summary") and value is not None}
        known = self._state.detail
        if known is not None and all(known.get(name) == rest.get(name) for name in ("type", "index")):
            self._state = self._state._replace(detail={**known, **rest})
        else:
            self.end_reasoning()
            self.writer.begin("reasoning", self._made_by({}))
            self._state = self._state._replace(detail=rest)
        self.writer.say("reasoning", text)

    def end_reasoning(self) -> None:
        """Close the open reasoning part, if there is one. Attach the metadata that must be sent back to its provider."""
        if self.writer.parts.kind == "reasoning":
            detail = self._state.detail
            self.writer.end(self._made_by({"detail": detail}) if detail is not None else None)
            self._state = self._state._replace(detail=None)

    def end_open(self) -> None:
        self.end_reasoning()
        self.writer.end()

    def _made_by(self, fields: JsonObject) -> JsonObject | None:
        return self.made_by(fields) if fields or self._state.provider else None

    def _call(self, delta: JsonObject, position: int) -> None:
        function = as_object(delta.get("function")) or as_object(delta.get("custom"))
        vendor_id, name = as_text(delta.get("id")), as_text(function.get("name"))
        call = self._find(delta, vendor_id, name, position)
        if call is None:
            self.end_reasoning()
            key = _index(delta, len(self.writer.parts.calls) if vendor_id else position)
            extra = as_object(delta.get("extra_content"))  # thought signatures of Gemini models behind this API
            metadata = self._made_by({"extra_content": extra}) if extra else None
            call = self.writer.call(key, vendor_id, name, free=isinstance(delta.get("custom"), dict), metadata=metadata)
        elif name and not call.name:
            call = self.writer.name(call, name)
        arguments = function.get("arguments", function.get("input"))
        if isinstance(arguments, dict):
            arguments = canonical.dumps(arguments).decode()
        self.writer.arguments(call, as_text(arguments))

    def _find(self, delta: JsonObject, vendor_id: str, name: str, position: int) -> Call | None:
        """Return the call that a delta continues, or None for a new call.
        Some vendors use the same index for every call, or none at all.
        """
        calls = self.writer.parts.calls
        if isinstance(delta.get("index"), int):
            call = self.writer.find(_index(delta, position))
        elif vendor_id:
            call = next((call for call in calls if call.vendor_id == vendor_id and not call.done), None)
        else:
            call = calls[-1] if calls and not name else None
        if call is not None and vendor_id and call.vendor_id and vendor_id != call.vendor_id and name:
            return None
        return call

    def _extras(self, delta: JsonObject) -> None:
        for item in as_list(delta.get("annotations")):
            source = as_object(as_object(item).get("url_citation"))
            if url := as_text(source.get("url")):
                chunk: Chunk = {"type": "source-url", "sourceId": self.writer.part_id(), "url": url}
                if title := as_text(source.get("title")):
                    chunk["title"] = title
                self.writer.chunks.append(chunk)
        for item in as_list(delta.get("images")):
            url = as_text(as_object(as_object(item).get("image_url")).get("url"))
            if url.startswith("data:"):
                self.writer.chunks.append({"type": "file", "url": url, "mediaType": url[5:].partition(";")[0] or "image/png"})


class OpenAIStream(StreamTranslator[State]):
    name = "openai-chat"
    _begin = State
    _turn = _Turn
    _input = (b'"arguments"', re.compile(rb'"arguments"\s*:\s*\{'))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        # nearly all events append to the open part and leave the state unchanged
        kind = state.parts.kind
        if kind and state.detail is None and raw.startswith(b'data: {"'):
            try:
                if kind == "text":
                    (piece,) = text_piece(raw[6:]).choices
                    if piece.delta.content and not piece.index:
                        return state, ({"type": "text-delta", "id": state.parts.id, "delta": piece.delta.content},)
            except NotOnePiece:
                pass
            try:
                event = orjson.loads(raw[6:])
                choice = event["choices"][0]
                delta = choice["delta"]
                bare = not (
                    choice.get("finish_reason") or choice.get("index") or choice.get("usage") or event.get("usage") or "error" in event
                )
                if bare and kind == "text":
                    text = delta["content"]
                    if text.__class__ is str and text and (len(delta) == 1 or _only(delta, "content")):
                        return state, ({"type": "text-delta", "id": state.parts.id, "delta": text},)
                elif bare:
                    name = "reasoning_content" if "reasoning_content" in delta else "reasoning"
                    text = delta[name]
                    if text.__class__ is str and text and _only(delta, name):
                        return state, ({"type": "reasoning-delta", "id": state.parts.id, "delta": text},)
            except (ValueError, LookupError, TypeError, AttributeError):
                pass
        return self._feed_frame(state, raw)

    def _feed_frame(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        frame = frames.read(raw)
        if frame is None:
            return self._feed_body(state, raw)
        data = frame[1].strip()
        if data == b"[DONE]":
            return state._replace(done=True), ()
        return self._feed_data(state, data, frame[0], cut=raw[-1:] not in (b"\n", b"\r")) if data else (state, ())

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        whole = bool(state.reason or (state.done and state.facts is not None))
        usage, cost = _usage(state.usage or {})
        return _Turn(state).close(
            ended,
            whole=whole,
            reason=_reason(state),
            raw_reason=state.reason,
            usage=usage,
            cost=cost,
            error=_FAILURES.get(state.reason),
        )


def _only(delta: JsonObject, name: str) -> bool:
    return not any(value for key, value in delta.items() if key != name and key != "role")


def _index(delta: JsonObject, otherwise: int) -> int:
    index = delta.get("index")
    return index if isinstance(index, int) else otherwise


def _error_of(event: JsonObject, name: str) -> Json:
    if event.get("error"):
        return event["error"]
    if event.get("object") == "error" or event.get("type") == "error" or name == "error" or ("detail" in event and "choices" not in event):
        return event
    return None


def _reason(state: State) -> str:
    if state.refused:
        return "content-filter"
    reason = _REASONS.get(state.reason, "other") if state.reason else ("stop" if state.done else "other")
    return "tool-calls" if reason == "stop" and state.parts.calls else reason  # local servers report stop after a call


def _usage(usage: JsonObject) -> tuple[Usage, int | None]:
    into, out = as_object(usage.get("prompt_tokens_details")), as_object(usage.get("completion_tokens_details"))
    prompt, completion = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    reasoning = count(out.get("reasoning_tokens"))
    total = count(usage.get("total_tokens"))
    if reasoning and None not in (prompt, completion) and total == (prompt or 0) + (completion or 0) + reasoning:
        completion = (completion or 0) + reasoning  # xAI's completion count excludes reasoning
    reads = (into.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    read = next((number for value in reads if (number := count(value)) is not None), None)
    written = count(into.get("cache_write_tokens"))
    return Usage(prompt, completion, read, written, reasoning), nano_dollars(usage.get("cost"))
