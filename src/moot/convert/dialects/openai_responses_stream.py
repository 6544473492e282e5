"""Conversion of the Responses API's stream events to chunks (reference: OpenAI API, streaming events).

A response is a list of items, each with a start and an end event. Other fields of an item (its id, encrypted content, unknown fields) are
stored in the metadata of its part, so that the item can be sent back unchanged. Items of unknown kinds become `custom` parts. An item that
was not streamed is read from its end event, or from the end event of the response.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from moot.convert.dialects.stream import NO_FACTS, StreamTranslator, Turn
from moot.convert.vendor import as_list, as_object, as_text, count
from moot.convert.writer import Call, Parts
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, tool_error, tool_output
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending
from moot.types.usage import Usage

METADATA = "openai"

OWN_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""For each type of tool call that moot runs, the field of the item that contains its input."""

REASONS = {"max_output_tokens": "length", "content_filter": "content-filter"}
"""Finish reasons, keyed by the reason why a response is incomplete."""

_GIVEN = ("action", "actions", "queries", "operation", "arguments", "code", "container_id")
_PICTURES = {"jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif", "svg": "image/svg+xml"}
_FACTS = {"id": "response_id", "model": "model", "service_tier": "service_tier"}
_THOUGHTS = {"summary_text": "summary"}
_WORDS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "thought"}
_SPOKEN = {"text": "text", "refusal": "text", "summary": "reasoning", "thought": "reasoning"}
"""Kinds of moot's parts, keyed by the kind of text in an item."""
_TEXT = b"event: response.output_text.delta\ndata: "
_DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "summary",
    "response.reasoning_text.delta": "thought",
}
_INPUTS = ("response.function_call_arguments", "response.custom_tool_call_input", "response.mcp_call_arguments")


def _is_call(kind: str) -> bool:
    """Return True for an item that is a call of a tool that the vendor runs."""
    return kind not in OWN_CALLS and (kind.endswith("_call") or kind in ("program", "mcp_approval_request"))


def _rest_of(item: JsonObject, *without: str) -> JsonObject:
    return {name: value for name, value in item.items() if name not in ("type", "id", *without)}


def _picture(item: JsonObject) -> Chunk | None:
    data = as_text(item.get("result"))
    if not data:
        return None
    media_type = _PICTURES.get(as_text(item.get("output_format")), "image/png")
    return {"type": "file", "url": f"data:{media_type};base64,{data}", "mediaType": media_type}


def _error_of(item: JsonObject) -> str:
    """Return the reason why a call of a vendor's tool failed, or an empty string if it did not fail."""
    error = item.get("error")
    text = as_text(error) or as_text(as_object(error).get("message"))
    if not text and isinstance(error, dict):
        text = "\n".join(as_text(as_object(piece).get("text")) for piece in as_list(error.get("content"))) or as_text(error.get("type"))
    return text or ("the tool failed" if item.get("status") == "failed" else "")


def _annotation_key(annotation: JsonObject) -> str:
    """Return a key that identifies the target of an annotation, or an empty string if it has none."""
    return as_text(annotation.get("url")) or as_text(annotation.get("file_id"))


def _source(annotation: JsonObject, id: str) -> Chunk:
    url, name = as_text(annotation.get("url")), as_text(annotation.get("filename"))
    if url:
        found: Chunk = {"type": "source-url", "sourceId": id, "url": url}
        title = as_text(annotation.get("title"))
        return {**found, "title": title} if title else found
    document: Chunk = {"type": "source-document", "sourceId": id, "mediaType": "text/plain", "title": name or _annotation_key(annotation)}
    return {**document, "filename": name} if name else document


def usage_of(usage: JsonObject) -> Usage:
    into, out = as_object(usage.get("input_tokens_details")), as_object(usage.get("output_tokens_details"))
    return Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(into.get("cached_tokens")),
        count(into.get("cache_write_tokens")),
        count(out.get("reasoning_tokens")),
    )


def _texts_of(item: JsonObject) -> list[tuple[str, int, str, list[Json]]]:
    """Return the text pieces of a message or reasoning item: kind, index, text, annotations."""
    found: list[tuple[str, int, str, list[Json]]] = []
    for field, kinds in (("summary", _THOUGHTS), ("content", _WORDS)):
        for index, piece in enumerate(as_list(item.get(field))):
            one = as_object(piece)
            kind = kinds.get(as_text(one.get("type")))
            if kind:
                found.append((kind, index, as_text(one.get("text")) or as_text(one.get("refusal")), as_list(one.get("annotations"))))
    return found


def _at_of(event: JsonObject) -> str:
    """Return the position of the item that an event is about: its index, or its id if the server sends no index."""
    index = event.get("output_index")
    return str(index) if isinstance(index, int) else as_text(event.get("item_id")) or as_text(as_object(event.get("item")).get("id"))


class State(NamedTuple):
    parts: Parts
    provider: str = ""
    facts: JsonObject | None = None
    open: JsonObject | None = None
    """Origin of the open part, with the fields `at`, `itemId`, `kind`, `index`, `phase` and `annotations`; None if no part is open."""
    begun: tuple[str, ...] = ()
    """Positions of the items that have started."""
    said: tuple[str, ...] = ()
    """Positions of the items that have produced text."""
    ended: tuple[str, ...] = ()
    phases: JsonObject | None = None
    """Phases of messages, by position."""
    sources: tuple[str, ...] = ()
    status: str = ""
    """The status of the whole response, once it has ended."""
    reason: str = ""
    """The reason why the response is incomplete; empty if it is complete."""
    usage: JsonObject | None = None
    error: JsonObject | None = None
    refused: bool = False
    unreadable: int = 0
    body: str = ""


class _Turn(Turn[State]):
    metadata = METADATA

    def take(self, event: JsonObject, name: str) -> None:
        kind = as_text(event.get("type")) or name
        if self._state.facts is None:
            self._state = self._state._replace(facts=NO_FACTS)
        if kind == "error" or (event.get("error") and not kind.startswith("response.") and event.get("object") != "response"):
            self.fail(event.get("error") or event)
        elif event.get("object") == "response":
            self._whole(event, as_text(event.get("status")))
        elif isinstance(event.get("response"), dict):
            self._whole(as_object(event["response"]), kind.removeprefix("response."))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(_at_of(event), as_object(event.get("item")), ended=kind.endswith(".done"))
        elif kind in _DELTAS:
            self._say(_DELTAS[kind], event, as_text(event.get("delta")))
        else:
            self._more(kind, event)

    def _more(self, kind: str, event: JsonObject) -> None:
        """Handle events that add something other than text to an item."""
        head, _, what = kind.rpartition(".")
        if head in _INPUTS:
            self._input(event, what)
        elif kind == "response.code_interpreter_call_code.delta":
            # streamed code is wrapped into an object, because a call's input is an object
            if (call := self._call(_at_of(event))) is not None:
                piece = canonical.dumps(as_text(event.get("delta"))).decode()[1:-1]
                self.writer.arguments(call, piece if call.text else f'{{"code":"{piece}')
        elif kind == "response.reasoning_summary_part.added":
            self._say("summary", event, "")
        elif kind == "response.output_text.annotation.added":
            self._annotate([event.get("annotation")], _at_of(event))
        elif kind == "response.image_generation_call.partial_image":
            self._draft(event)

    def _whole(self, response: JsonObject, status: str) -> None:
        """Handle a complete response object: at the start, at the end, or sent instead of a stream."""
        if facts := {ours: response[theirs] for theirs, ours in _FACTS.items() if response.get(theirs) is not None}:
            self._state = self._state._replace(facts={**(self._state.facts or {}), **facts})
        if isinstance(usage := response.get("usage"), dict):
            self._state = self._state._replace(usage=usage)
        if response.get("error") or status == "failed":
            self.fail(response.get("error") or {"message": "the provider broke off and gave no reason", "type": "server_error"})
        if status not in ("completed", "incomplete", "failed", "cancelled"):
            return
        for index, item in enumerate(as_list(response.get("output"))):
            id = as_text(as_object(item).get("id"))  # its position in a stream without positions
            known = id and id in self._state.begun + self._state.said
            self._item(id if known else str(index), as_object(item), ended=True)
        self.end_open()
        self.writer.close(cut=status in ("failed", "cancelled"))
        reason = as_text(as_object(response.get("incomplete_details")).get("reason"))
        self._state = self._state._replace(status=self._state.status or status, reason=reason)

    def _item(self, at: str, item: JsonObject, *, ended: bool) -> None:
        if at not in self._state.begun:
            self._state = self._state._replace(begun=(*self._state.begun, at))
            self._begin(at, item)
        if ended and at not in self._state.ended:
            self._state = self._state._replace(ended=(*self._state.ended, at))
            self._end(at, item)

    def _begin(self, at: str, item: JsonObject) -> None:
        kind, vendor_id = as_text(item.get("type")), as_text(item.get("call_id")) or as_text(item.get("id"))
        if kind == "message" and as_text(item.get("phase")):
            self._state = self._state._replace(phases={**(self._state.phases or {}), at: item["phase"]})
        elif kind in OWN_CALLS:
            self.end_open()
            details: JsonObject = {"itemId": as_text(item.get("id"))}
            rest: JsonObject = _rest_of(item, "call_id", "name", "status", OWN_CALLS[kind])
            if any(rest.values()):
                details["item"] = rest
            free = kind == "custom_tool_call"
            self.writer.call(self._state.begun.index(at), vendor_id, as_text(item.get("name")), free=free, metadata=self.made_by(details))
        elif _is_call(kind):
            self.end_open()
            made, name = (
                self.made_by({"type": kind, "itemId": as_text(item.get("id"))}),
                as_text(item.get("name")) or kind.removesuffix("_call"),
            )
            dynamic = kind.startswith("mcp_")
            self.writer.call(self._state.begun.index(at), vendor_id, name, executed=True, dynamic=dynamic, metadata=made)

    def _end(self, at: str, item: JsonObject) -> None:
        kind = as_text(item.get("type"))
        call = self._call(at)
        if kind in ("message", "reasoning"):
            self._end_spoken(at, item)
        elif kind in OWN_CALLS:
            self._end_own(call, item.get(OWN_CALLS[kind]))
        elif kind.endswith("_output"):
            self._output(item)
        elif call is not None and _is_call(kind):
            self._end_call(call, item)
        elif kind:
            self.end_open()
            self.writer.end()
            kept = self.made_by({"block": item})
            self.writer.chunks.append({"type": "custom", "kind": f"{METADATA}.{kind}", "providerMetadata": kept})

    def _call(self, at: str) -> Call | None:
        return self.writer.find(self._state.begun.index(at)) if at in self._state.begun else None

    def _end_own(self, call: Call | None, value: Json) -> None:
        if call is None:
            return
        text = value if isinstance(value, str) else canonical.dumps(value).decode() if isinstance(value, dict) else ""
        if call.text or not text:
            self.writer.finish(call)
        else:
            self.writer.give(call, text)

    def _end_call(self, call: Call, item: JsonObject) -> None:
        """End a call that the vendor runs. Most of these calls include their output."""
        kind, arguments = as_text(item.get("type")), item.get("arguments")
        asks = kind == "mcp_approval_request"
        paired = bool(item.get("call_id") or item.get("execution") or asks)
        if kind == "code_interpreter_call" and call.text:
            call = self.writer.arguments(call, '"}')
        details: JsonObject | None = None
        if paired:  # the output is another item, so store this item's fields with the call
            details = self.made_by({"type": kind, "itemId": as_text(item.get("id")), "item": _rest_of(item)})
        given = {name: item[name] for name in _GIVEN if item.get(name) is not None}
        if call.text or call.done:
            self.writer.finish(call)
        else:
            self.writer.give(call, arguments if isinstance(arguments, str) else canonical.dumps(given).decode(), details)
        if asks:
            self.writer.chunks.append({"type": "tool-approval-request", "approvalId": as_text(item.get("id")), "toolCallId": call.id})
        elif not paired:
            self._answer(call, item, _rest_of(item, "result"))

    def _output(self, item: JsonObject) -> None:
        """Handle an item with the output of a call of this response."""
        id, kind = as_text(item.get("call_id")), as_text(item.get("type"))
        calls = [call for call in self.writer.parts.calls if call.executed]
        like = kind.removesuffix("_output")
        call = next((call for call in reversed(calls) if (call.vendor_id == id if id else call.name == like)), None)
        if call is not None:
            self.end_open()
            self.writer.finish(call)
            self._answer(call, item, _rest_of(item))

    def _answer(self, call: Call, item: JsonObject, output: JsonObject) -> None:
        details: JsonObject = {"type": as_text(item.get("type")), "itemId": as_text(item.get("id"))}
        if error := _error_of(item):
            chunk, details["item"] = tool_error(call.id, error), output
        else:
            chunk = tool_output(call.id, output)
        if call.dynamic:
            chunk["dynamic"] = True
        self.writer.chunks.append({**chunk, "providerExecuted": True, "providerMetadata": self.made_by(details)})
        if (shown := _picture(item)) is not None and item.get("type") == "image_generation_call":
            self.writer.chunks.append({**shown, "providerMetadata": self.made_by({"itemId": as_text(item.get("id"))})})

    def _draft(self, event: JsonObject) -> None:
        """Show a partial image as the preliminary output."""
        call = self._call(_at_of(event))
        data = as_text(event.get("partial_image_b64"))
        if call is not None and data:
            self.writer.give(call, "{}")
            drawn = _picture({**event, "result": data}) or {}
            output: JsonObject = {"partial": event.get("partial_image_index"), "url": drawn.get("url")}
            self.writer.chunks.append({**tool_output(call.id, output), "preliminary": True, "providerExecuted": True})

    def _input(self, event: JsonObject, what: str) -> None:
        call = self._call(_at_of(event))
        if call is None:
            return
        if what == "delta":
            self.writer.arguments(call, as_text(event.get("delta")))
        elif not call.executed:
            self._end_own(call, event.get("arguments", event.get("input")))

    # ── texts and reasoning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _say(self, kind: str, event: JsonObject, text: str) -> None:
        """Append a piece of text to an item, starting its part if needed."""
        at, id = _at_of(event), as_text(event.get("item_id"))
        index = event.get("content_index", event.get("summary_index"))
        self._append_text(kind, at, id, index if isinstance(index, int) else 0, text)

    def _append_text(self, kind: str, at: str, id: str, index: int, text: str) -> None:
        known = self._state.open
        part_kind = _SPOKEN[kind]
        same = known is not None and (known["at"], known["kind"], known["index"]) == (at, kind, index)
        if not same or self.writer.parts.kind != part_kind:
            self.end_open()
            now: JsonObject = {"at": at, "itemId": id, "kind": kind, "index": index}
            if phase := as_text((self._state.phases or {}).get(at)):
                now["phase"] = phase
            with_text = self._state.said if at in self._state.said else (*self._state.said, at)
            self._state = self._state._replace(open=now, said=with_text, refused=self._state.refused or kind == "refusal")
            self.writer.begin("text" if part_kind == "text" else "reasoning", self._made_of(now))
        if text:
            self.writer.say("text" if part_kind == "text" else "reasoning", text)

    def _end_spoken(self, at: str, item: JsonObject) -> None:
        """End a message or reasoning item. Attach the metadata that must be sent back to its provider."""
        if at not in self._state.said:
            for kind, index, text, _ in _texts_of(item):
                if text or kind == "summary":
                    self._append_text(kind, at, as_text(item.get("id")), index, text)
        for _, _, _, pointers in _texts_of(item):
            self._annotate(pointers, at)
        sealed = as_text(item.get("encrypted_content"))
        known = self._state.open
        if sealed and (known is None or known["at"] != at):
            self._append_text("summary", at, as_text(item.get("id")), -1, "")
        known = self._state.open
        if known is not None and known["at"] == at:
            named = {"itemId": as_text(item.get("id")) or known["itemId"]}
            more: JsonObject = {"encryptedContent": sealed} if sealed else {}
            self._state = self._state._replace(open={**known, **named, **more})
            self.end_open()

    def _annotate(self, annotations: list[Json], at: str) -> None:
        """Record the annotations of a text, and emit each source once."""
        known: JsonObject | None = self._state.open
        for annotation in [as_object(one) for one in annotations]:
            recorded: list[Json] = as_list(known.get("annotations")) if known is not None else []
            if known is not None and known["at"] == at and annotation and annotation not in recorded:
                pointers: list[Json] = [*recorded, annotation]
                known = {**known, "annotations": pointers}
            name = _annotation_key(annotation)
            if name and name not in self._state.sources:
                self._state = self._state._replace(sources=(*self._state.sources, name))
                self.writer.chunks.append(_source(annotation, self.writer.part_id()))
        self._state = self._state._replace(open=known)

    def end_open(self) -> None:
        """Close the open part. Attach the metadata that must be sent back to its provider."""
        known = self._state.open
        if known is not None:
            extra = known.get("annotations") or known.get("encryptedContent")
            self.writer.end(self._made_of(known) if extra else None)
            self._state = self._state._replace(open=None)

    def _made_of(self, known: JsonObject) -> JsonObject:
        return self.made_by({name: value for name, value in known.items() if name != "at"})


class ResponsesStream(StreamTranslator[State]):
    name = "openai-responses"
    _begin = State
    _turn = _Turn
    _input = (b'"', re.compile(rb'"(?:action|operation|arguments)"\s*:\s*\{'))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        # nearly all events append to the open text and leave the state unchanged
        if state.open is not None and state.parts.kind == "text" and raw.startswith(_TEXT):
            try:
                event = orjson.loads(raw[len(_TEXT) :])
                text, known = event["delta"], state.open
                here = known["kind"] == "text" and known["at"] == str(event["output_index"]) and known["index"] == event["content_index"]
                if here and text.__class__ is str and text:
                    return state, ({"type": "text-delta", "id": state.parts.id, "delta": text},)
            except (ValueError, LookupError, TypeError):
                pass
        return self._feed_frame(state, raw)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return _Turn(state).close(
            ended,
            whole=state.status in ("completed", "incomplete"),
            reason=_reason(state),
            raw_reason=state.reason or state.status,
            usage=usage_of(state.usage or {}),
        )


def _reason(state: State) -> str:
    if state.refused:
        return "content-filter"
    if state.status == "incomplete":
        return REASONS.get(state.reason, "other")
    if state.status != "completed":
        return "other"
    return "tool-calls" if any(not call.executed for call in state.parts.calls) else "stop"
