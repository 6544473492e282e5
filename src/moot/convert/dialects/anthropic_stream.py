"""Conversion of Anthropic's stream events to chunks (reference: Claude API, streaming messages).

The events mark the start and end of each block. Blocks of unknown kinds become `custom` parts and are sent back unchanged. A signature
arrives just before the end of its block and is attached to the end of the part.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import orjson

from moot.convert.dialects.stream import NO_FACTS, StreamTranslator, Turn
from moot.convert.vendor import as_list, as_object, as_text, count
from moot.convert.writer import Parts
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, tool_error, tool_output
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending
from moot.types.usage import Usage

REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "compaction": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content-filter",
}
PAUSES = frozenset({"pause_turn", "compaction"})
"""Stop reasons that only pause the answer. The model continues it when its output so far is sent back."""


def usage_of(usage: JsonObject) -> Usage:
    """Convert the token counts to moot's. The vendor's `input_tokens` excludes tokens read from or written to the cache."""
    fresh, read, written = (count(usage.get(name)) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
    total = None if fresh is None and read is None and written is None else (fresh or 0) + (read or 0) + (written or 0)
    reasoning = count(as_object(usage.get("output_tokens_details")).get("thinking_tokens"))
    for_an_hour = count(as_object(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"))
    searches = count(as_object(usage.get("server_tool_use")).get("web_search_requests"))
    return Usage(total, count(usage.get("output_tokens")), read, written, reasoning, for_an_hour or None, searches or None)


def _citation_key(citation: JsonObject) -> str:
    url = as_text(citation.get("url"))
    return url or (f"{citation['document_index']}:{_title(citation)}" if "document_index" in citation else "")


def _source(citation: JsonObject, id: str) -> Chunk:
    url, title = as_text(citation.get("url")), _title(citation)
    if url:
        found: Chunk = {"type": "source-url", "sourceId": id, "url": url}
        return {**found, "title": title} if title else found
    media_type = "application/pdf" if citation.get("type") == "page_location" else "text/plain"
    return {"type": "source-document", "sourceId": id, "mediaType": media_type, "title": title}


def _title(citation: JsonObject) -> str:
    return as_text(citation.get("title")) or as_text(citation.get("document_title"))


METADATA = "anthropic"

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_EVENT = b"event: content_block_delta\ndata: "


class State(NamedTuple):
    parts: Parts
    provider: str = ""
    facts: JsonObject | None = None
    at: int = -1
    """The index of the open block."""
    kind: Literal["", "text", "thinking", "other"] = ""
    """The kind of the open block; empty if no block is open or if it is a call. Calls are found by their index."""
    block: JsonObject | None = None
    """The open block's signature or citations, or the whole block if its kind is unknown."""
    sources: tuple[str, ...] = ()
    reason: str = ""
    ending: JsonObject | None = None
    """Other fields of the event that ended the message."""
    usage: JsonObject | None = None
    error: JsonObject | None = None
    stopped: bool = False
    unreadable: int = 0
    body: str = ""


class _Turn(Turn[State]):
    metadata = METADATA

    def take(self, event: JsonObject, name: str = "") -> None:
        kind = as_text(event.get("type")) or name
        if self._state.facts is None and kind != "ping":
            self._state = self._state._replace(facts=NO_FACTS)
        if kind == "error" or event.get("error"):
            self.fail(event.get("error") or {**event, "type": kind})
            return
        match kind:
            case "message_start":
                self._message(as_object(event.get("message")))
            case "content_block_start":
                self._start(_index(event), as_object(event.get("content_block")))
            case "content_block_delta":
                self._delta(_index(event), as_object(event.get("delta")))
            case "content_block_stop":
                self._stop(_index(event))
            case "message_delta":
                self._message_delta(as_object(event.get("delta")), event.get("usage"))
            case "message_stop":
                self._state = self._state._replace(stopped=True)
            case "message":
                self._whole(event)
            case _:
                pass  # ping, and future kinds

    def _message(self, message: JsonObject) -> None:
        facts: JsonObject = {"response_id": message.get("id"), "model": message.get("model")}
        self._state = self._state._replace(facts=facts)
        self._count(message.get("usage"))

    def _whole(self, message: JsonObject) -> None:
        """Handle a message that was not streamed."""
        self._message(message)
        for index, block in enumerate(as_list(message.get("content"))):
            self._start(index, as_object(block))
            self._stop(index)
        self._message_delta(message, None)

    def _count(self, usage: Json) -> None:
        if isinstance(usage, dict):
            known = self._state.usage or {}
            self._state = self._state._replace(usage={**known, **{name: value for name, value in usage.items() if value is not None}})

    def _message_delta(self, delta: JsonObject, usage: Json) -> None:
        self._count(usage)
        self.end_open()
        reason = as_text(delta.get("stop_reason"))
        if reason and not self._state.reason:
            self.writer.close(cut=False)
            ending: JsonObject = {
                name: delta[name] for name in ("stop_sequence", "stop_details", "container") if delta.get(name) is not None
            }
            self._state = self._state._replace(reason=reason, ending=ending or None)

    def _start(self, index: int, block: JsonObject) -> None:
        kind = as_text(block.get("type"))
        self.end_open()
        if kind in _CALLS:
            self._call(index, kind, block)
        elif kind.endswith("_tool_result"):
            self._result(kind, block)
        elif kind == "text":
            self._open(index, "text", {"citations": as_list(block.get("citations"))})
            self._append_text(as_text(block.get("text")))
            for citation in as_list(block.get("citations")):
                self._source(as_object(citation))
        elif kind == "thinking":
            self._open(index, "thinking", {"signature": as_text(block.get("signature"))})
            self.writer.begin("reasoning", self.made_by({}))
            self.writer.say("reasoning", as_text(block.get("thinking")))
        elif kind == "redacted_thinking":
            self.writer.begin("reasoning", self.made_by({"redactedData": block.get("data")}))
            self.writer.end()
        elif kind:
            self._open(index, "other", block)

    def _open(self, index: int, kind: Literal["text", "thinking", "other"], block: JsonObject) -> None:
        self._state = self._state._replace(at=index, kind=kind, block=block)

    def _call(self, index: int, kind: str, block: JsonObject) -> None:
        id = as_text(block.get("id"))
        known = self.writer.find(index)
        if known is not None and id and known.vendor_id == id:
            return  # a repeated start
        rest: JsonObject = {name: value for name, value in block.items() if name not in ("type", "id", "name", "input")}
        own = kind == "tool_use"
        details = self.made_by({} if own and not rest else {"type": kind, "block": rest})
        name, server = as_text(block.get("name")), not own
        call = self.writer.call(
            index, id, name, executed=server, dynamic=kind == "mcp_tool_use", metadata=details if server or rest else None
        )
        arguments = block.get("input")
        if isinstance(arguments, dict) and arguments:
            self.writer.arguments(call, canonical.dumps(arguments).decode())
        elif isinstance(arguments, str):
            self.writer.arguments(call, arguments)

    def _result(self, kind: str, block: JsonObject) -> None:
        """Handle the output of a vendor's tool. The call is in this exchange, or in an earlier exchange that was paused."""
        vendor_id, content = as_text(block.get("tool_use_id")), block.get("content")
        calls = self.writer.parts.calls
        call = next((call for call in reversed(calls) if call.vendor_id == vendor_id), None)
        if call is not None:
            self.writer.finish(call)
        rest: JsonObject = {name: value for name, value in block.items() if name not in ("type", "tool_use_id", "content")}
        details: JsonObject = {"type": kind, "block": rest}
        id = call.id if call is not None else vendor_id
        error = as_text(as_object(content).get("error_code"))
        chunk = tool_output(id, content)
        if error:
            chunk = tool_error(id, error)
            details["content"] = content
        chunk["providerExecuted"] = True
        chunk["providerMetadata"] = self.made_by(details)
        self.writer.chunks.append(chunk)

    def _delta(self, index: int, delta: JsonObject) -> None:
        match delta.get("type"):
            case "text_delta":
                self._expect(index, "text", {"citations": []})
                self._append_text(as_text(delta.get("text")))
            case "thinking_delta":
                self._expect(index, "thinking", {"signature": ""})
                self.writer.say("reasoning", as_text(delta.get("thinking")), self.made_by({}))
            case "signature_delta":
                self._expect(index, "thinking", {"signature": ""})
                signature = as_text(as_object(self._state.block).get("signature")) + as_text(delta.get("signature"))
                self._state = self._state._replace(block={"signature": signature})
            case "citations_delta":
                self._expect(index, "text", {"citations": []})
                citation = as_object(delta.get("citation"))
                citations: list[Json] = [*as_list(as_object(self._state.block).get("citations")), citation]
                self._state = self._state._replace(block={"citations": citations})
                self._source(citation)
            case "input_json_delta":
                call = self.writer.find(index)
                if call is not None:
                    self.writer.arguments(call, as_text(delta.get("partial_json")))
            case _:
                self._grow(index, delta)

    def _expect(self, index: int, kind: Literal["text", "thinking"], block: JsonObject) -> None:
        """Open the block of a delta if the block's start event was lost."""
        if self._state.kind != kind or self._state.at != index:
            self.end_open()
            self._open(index, kind, block)

    def _grow(self, index: int, delta: JsonObject) -> None:
        """Apply an unknown delta to a block of an unknown kind: strings are appended, everything else is replaced."""
        state = self._state
        if state.kind != "other" or state.at != index:
            return
        block = dict(state.block or {})
        for name, value in delta.items():
            known = block.get(name)
            if name != "type":
                block[name] = known + value if isinstance(known, str) and isinstance(value, str) else value
        self._state = state._replace(block=block)

    def _stop(self, index: int) -> None:
        call = self.writer.find(index)
        if call is not None and not call.done:
            self.writer.finish(call)
        elif index == self._state.at:
            self.end_open()

    def end_open(self) -> None:
        """Close the open block. Attach the metadata that must be sent back to its provider."""
        state = self._state
        block = state.block or {}
        if state.kind == "thinking" and block.get("signature"):
            if self.writer.parts.kind != "reasoning":
                self.writer.begin("reasoning")
            self.writer.end(self.made_by({"signature": block["signature"]}))
        elif state.kind == "text" and block.get("citations"):
            self.writer.end(self.made_by({"citations": block["citations"]}))
        elif state.kind == "other":
            self.writer.end()
            kept: Chunk = {"type": "custom", "kind": f"{METADATA}.{block.get('type')}", "providerMetadata": self.made_by({"block": block})}
            self.writer.chunks.append(kept)
        self.writer.end()
        if state.kind:
            self._state = state._replace(at=-1, kind="", block=None)

    def _append_text(self, text: str) -> None:
        if text:
            self.writer.say("text", text)

    def _source(self, citation: JsonObject) -> None:
        name = _citation_key(citation)
        if name and name not in self._state.sources:
            self._state = self._state._replace(sources=(*self._state.sources, name))
            self.writer.chunks.append(_source(citation, self.writer.part_id()))


def _index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1


class AnthropicStream(StreamTranslator[State]):
    name = "anthropic"
    version = 2
    _begin = State
    _turn = _Turn
    _input = (b'"input"', re.compile(rb'"input"\s*:\s*\{\s*"'))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        # nearly all events append to the open part and leave the state unchanged
        if state.kind and state.parts.kind and raw.startswith(_EVENT):
            try:
                event = orjson.loads(raw[33:])
                delta = event["delta"]
                if event["index"] == state.at:
                    if state.kind == "text":
                        text = delta["text"]
                        if text.__class__ is str and text and delta["type"] == "text_delta":
                            return state, ({"type": "text-delta", "id": state.parts.id, "delta": text},)
                    elif state.kind == "thinking" and delta["type"] == "thinking_delta":
                        text = delta["thinking"]
                        if text.__class__ is str and text:
                            return state, ({"type": "reasoning-delta", "id": state.parts.id, "delta": text},)
            except (ValueError, LookupError, TypeError):
                pass
        return self._feed_frame(state, raw)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        stopped = state.stopped and state.facts is not None
        return _Turn(state).close(
            ended,
            whole=bool(state.reason) or stopped,
            reason=REASONS.get(state.reason, "other") if state.reason else "stop" if stopped else "other",
            raw_reason=state.reason,
            usage=usage_of(state.usage or {}),
            facts={**(state.ending or {}), **({"continue": True} if state.reason in PAUSES else {})},
        )


def take(state: State, event: JsonObject) -> tuple[State, tuple[Chunk, ...]]:
    """Convert an event that did not arrive as a server-sent event, for example because an agent forwarded it."""
    turn = _Turn(state)
    turn.take(event)
    return turn.state, tuple(turn.writer.chunks)
