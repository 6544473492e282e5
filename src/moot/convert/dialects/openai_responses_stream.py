"""Item events of OpenAI responses to chunks (reference: OpenAI API, streaming events of responses).

A response is a list of items, each with its own start and end. Other facts of an item (its id, its encrypted content, unknown fields) go
into the metadata of its part, so that it is sent back unchanged. Items of unknown kinds become `custom` parts. An item that was not
streamed is read from its end event, and one without an end event from the response's.
"""

from __future__ import annotations

import re

import orjson

from moot.convert.dialects import frames
from moot.convert.dialects.frames import event_of, feed_body
from moot.convert.dialects.openai_responses_items import (
    METADATA,
    OWN_CALLS,
    REASONS,
    ItemWriter,
    State,
    at_of,
    error_of,
    facts_of,
    input_of,
    is_call,
    is_output,
    picture,
    rest_of,
    tool_of,
    usage_of,
)
from moot.convert.vendor import as_list, as_object, as_text, failure, garbled_failure, unfinished_failure
from moot.convert.writer import Call, begin
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, tool_error, tool_output
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure

_TEXT = b"event: response.output_text.delta\ndata: "
_EXACT = re.compile(rb'"(?:action|operation|arguments)"\s*:\s*\{')
_NO_FACTS: JsonObject = {"response_id": None}
_DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "summary",
    "response.reasoning_text.delta": "thought",
}
_INPUTS = ("response.function_call_arguments", "response.custom_tool_call_input", "response.mcp_call_arguments")


class ResponsesStream:
    name = "openai-responses"
    version = 1

    def open(self, options: ExchangeOptions) -> State:
        return State(begin(options), as_text(options.extra.get("provider")))

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
        return _feed(state, raw)

    def spoiled(self, state: State) -> bool:
        return state.unreadable > 0 and state.facts is not None

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        whole = state.status in ("completed", "incomplete") and state.error is None
        error = Failure.from_json(state.error) if state.error is not None else None
        if error is None and state.facts is not None:
            error = garbled_failure(ended, state.unreadable)
        if error is None and not whole:
            error = unfinished_failure(ended, seen=state.facts is not None, unreadable=state.unreadable, body=state.body)
        turn = _Turn(state)
        turn.end_open()
        turn.writer.close(cut=not whole)
        metadata: JsonObject = {name: value for name, value in (state.facts or {}).items() if value is not None}
        if state.unreadable:
            metadata["unreadable_events"] = state.unreadable
        reason = "error" if error is not None else _reason(state, turn.writer.parts.calls)
        raw_reason = state.reason or state.status or None
        return tuple(turn.writer.chunks), Ending(reason, raw_reason, usage_of(state.usage or {}), None, error, metadata)


def _reason(state: State, calls: tuple[Call, ...]) -> str:
    if state.refused:
        return "content-filter"
    if state.status == "incomplete":
        return REASONS.get(state.reason, "other")
    if state.status != "completed":
        return "other"
    return "tool-calls" if any(not call.executed for call in calls) else "stop"


def _feed(state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
    frame = frames.read(raw)
    if frame is None:
        return feed_body(state, raw, _feed_data, lambda body: state._replace(body=body))
    name, data = frame
    return _feed_data(state, data, name, cut=raw[-1:] not in (b"\n", b"\r")) if data.strip() else (state, ())


def _feed_data(state: State, data: bytes, name: str, *, cut: bool = False) -> tuple[State, tuple[Chunk, ...]]:
    event = event_of(data, b'"', _EXACT)
    if event is None:
        # other servers end every stream with openai-chat's end marker
        return (state if cut or data.strip() == b"[DONE]" else state._replace(unreadable=state.unreadable + 1)), ()
    turn = _Turn(state)
    turn.take(event, name)
    return turn.state, tuple(turn.writer.chunks)


class _Turn(ItemWriter):
    def take(self, event: JsonObject, name: str) -> None:
        kind = as_text(event.get("type")) or name
        if self._state.facts is None:
            self._state = self._state._replace(facts=_NO_FACTS)
        if kind == "error" or (event.get("error") and not kind.startswith("response.") and event.get("object") != "response"):
            self._fail(event.get("error") or event)
        elif event.get("object") == "response":
            self._whole(event, as_text(event.get("status")))
        elif isinstance(event.get("response"), dict):
            self._whole(as_object(event["response"]), kind.removeprefix("response."))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(at_of(event), as_object(event.get("item")), ended=kind.endswith(".done"))
        elif kind in _DELTAS:
            self.say(_DELTAS[kind], event, as_text(event.get("delta")))
        else:
            self._more(kind, event)

    def _more(self, kind: str, event: JsonObject) -> None:
        """Handle events that add to an item but not to its text."""
        head, _, what = kind.rpartition(".")
        if head in _INPUTS:
            self._input(event, what)
        elif kind == "response.code_interpreter_call_code.delta":
            self._code(event)
        elif kind == "response.reasoning_summary_part.added":
            self.say("summary", event, "")
        elif kind == "response.output_text.annotation.added":
            self.annotate([event.get("annotation")], at_of(event))
        elif kind == "response.image_generation_call.partial_image":
            self._draft(event)

    def _fail(self, error: Json) -> None:
        if self._state.error is None:
            self._state = self._state._replace(error=failure(error).to_json())

    def _whole(self, response: JsonObject, status: str) -> None:
        """Handle the response as a whole: at its start, at its end, or sent in place of a stream."""
        if facts := facts_of(response):
            self._state = self._state._replace(facts={**(self._state.facts or {}), **facts})
        if isinstance(usage := response.get("usage"), dict):
            self._state = self._state._replace(usage=usage)
        if response.get("error") or status == "failed":
            self._fail(response.get("error") or {"message": "the provider broke off and gave no reason", "type": "server_error"})
        if status not in ("completed", "incomplete", "failed", "cancelled"):
            return
        for index, item in enumerate(as_list(response.get("output"))):
            self._item(self._place(index, as_object(item)), as_object(item), ended=True)
        self.end_open()
        self.writer.close(cut=status in ("failed", "cancelled"))
        reason = as_text(as_object(response.get("incomplete_details")).get("reason"))
        self._state = self._state._replace(status=self._state.status or status, reason=reason)

    def _place(self, index: int, item: JsonObject) -> str:
        """Return the position at which an item of the whole response was streamed; without positions in the events, its id."""
        id = as_text(item.get("id"))
        return id if id and id in self._state.begun + self._state.said else str(index)

    # ── items ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _item(self, at: str, item: JsonObject, *, ended: bool) -> None:
        if at not in self._state.begun:
            self._state = self._state._replace(begun=(*self._state.begun, at))
            self._begin(at, item)
        if ended and at not in self._state.ended:
            self._state = self._state._replace(ended=(*self._state.ended, at))
            self._end(at, item)

    def _begin(self, at: str, item: JsonObject) -> None:
        kind = as_text(item.get("type"))
        if kind == "message" and as_text(item.get("phase")):
            self._state = self._state._replace(phases={**(self._state.phases or {}), at: item["phase"]})
        elif kind in OWN_CALLS:
            self.end_open()
            details: JsonObject = {"itemId": as_text(item.get("id"))}
            rest: JsonObject = rest_of(item, "call_id", "name", "status", OWN_CALLS[kind])
            if any(rest.values()):
                details["item"] = rest
            free = kind == "custom_tool_call"
            vendor_id = as_text(item.get("call_id")) or as_text(item.get("id"))
            self.writer.call(self._state.begun.index(at), vendor_id, as_text(item.get("name")), free=free, metadata=self.made_by(details))
        elif is_call(item) or kind == "mcp_approval_request":
            self.end_open()
            details = {"type": kind, "itemId": as_text(item.get("id"))}
            vendor_id = as_text(item.get("call_id")) or as_text(item.get("id"))
            dynamic = kind.startswith("mcp_")
            self.writer.call(
                self._state.begun.index(at), vendor_id, tool_of(item), executed=True, dynamic=dynamic, metadata=self.made_by(details)
            )

    def _end(self, at: str, item: JsonObject) -> None:
        kind = as_text(item.get("type"))
        call = self._call(at)
        if kind in ("message", "reasoning"):
            self.end_spoken(at, item)
        elif kind in OWN_CALLS:
            self._end_own(call, item.get(OWN_CALLS[kind]))
        elif is_output(item):
            self._output(item)
        elif call is not None and (is_call(item) or kind == "mcp_approval_request"):
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
        """End a call that the vendor runs; most calls carry their own output."""
        kind, arguments = as_text(item.get("type")), item.get("arguments")
        asks = kind == "mcp_approval_request"
        paired = bool(item.get("call_id") or item.get("execution") or asks)
        if kind == "code_interpreter_call" and call.text:
            call = self.writer.arguments(call, '"}')
        details: JsonObject | None = None
        if paired:  # the output is an item of its own: this item's fields are stored next to the input
            details = self.made_by({"type": kind, "itemId": as_text(item.get("id")), "item": rest_of(item)})
        if call.text or call.done:
            self.writer.finish(call)
        else:
            self.writer.give(call, arguments if isinstance(arguments, str) else canonical.dumps(input_of(item)).decode(), details)
        if asks:
            self.writer.chunks.append({"type": "tool-approval-request", "approvalId": as_text(item.get("id")), "toolCallId": call.id})
        elif not paired:
            self._answer(call, item, rest_of(item, "result"))

    def _output(self, item: JsonObject) -> None:
        """Handle the output of a call of this response in an item of its own."""
        id, kind = as_text(item.get("call_id")), as_text(item.get("type"))
        calls = [call for call in self.writer.parts.calls if call.executed]
        like = kind.removesuffix("_output")
        call = next((call for call in reversed(calls) if (call.vendor_id == id if id else call.name == like)), None)
        if call is not None:
            self.end_open()
            self.writer.finish(call)
            self._answer(call, item, rest_of(item))

    def _answer(self, call: Call, item: JsonObject, output: JsonObject) -> None:
        details: JsonObject = {"type": as_text(item.get("type")), "itemId": as_text(item.get("id"))}
        if error := error_of(item):
            chunk, details["item"] = tool_error(call.id, error), output
        else:
            chunk = tool_output(call.id, output)
        if call.dynamic:
            chunk["dynamic"] = True
        self.writer.chunks.append({**chunk, "providerExecuted": True, "providerMetadata": self.made_by(details)})
        if (shown := picture(item)) is not None and item.get("type") == "image_generation_call":
            self.writer.chunks.append({**shown, "providerMetadata": self.made_by({"itemId": as_text(item.get("id"))})})

    def _draft(self, event: JsonObject) -> None:
        """Show a partial image as the preliminary output."""
        call = self._call(at_of(event))
        data = as_text(event.get("partial_image_b64"))
        if call is not None and data:
            self.writer.give(call, "{}")
            drawn = picture({**event, "result": data}) or {}
            output: JsonObject = {"partial": event.get("partial_image_index"), "url": drawn.get("url")}
            self.writer.chunks.append({**tool_output(call.id, output), "preliminary": True, "providerExecuted": True})

    def _input(self, event: JsonObject, what: str) -> None:
        call = self._call(at_of(event))
        if call is None:
            return
        if what == "delta":
            self.writer.arguments(call, as_text(event.get("delta")))
        elif not call.executed:
            self._end_own(call, event.get("arguments", event.get("input")))

    def _code(self, event: JsonObject) -> None:
        """Wrap streamed code into an object, because a call's input is an object."""
        call = self._call(at_of(event))
        if call is not None:
            piece = canonical.dumps(as_text(event.get("delta"))).decode()[1:-1]
            self.writer.arguments(call, piece if call.text else f'{{"code":"{piece}')
