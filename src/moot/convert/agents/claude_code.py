"""Conversion of Claude Code's stdout (`--output-format stream-json`) to chunks, with and without partial messages.

Without partial messages, a model call arrives as `assistant` lines, one per block. With partial messages, it also arrives as events of the
Messages API, and each line precedes the end event of its block. Tool outputs are `user` lines. The lines of a sub-agent contain the id of
the call that started it. Lines of the control protocol (`control_request`, `control_response`) and most `system` events produce no chunk.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from moot.convert.agents.claude_calls import (
    NAME,
    Call,
    context_usage,
    cost_of,
    failure_of,
    input_chunks,
    mark_own,
    note_of,
    output_of,
    plan_of,
    usage_of_turn,
)
from moot.convert.dialects import anthropic_stream
from moot.convert.dialects.anthropic_stream import REASONS, usage_of
from moot.convert.dialects.stream import event_of
from moot.convert.vendor import as_list, as_object, as_text
from moot.convert.writer import UNSETTLED, Writer, begin, free_id
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import FINISH_STEP, START_STEP, Chunk, data, sub_agent, tool_error
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage

_FILLED_INPUT = re.compile(rb'"input"\s*:\s*\{\s*"')
_NOTHING: JsonObject = {}
_REMEMBERED = 8
"""Number of most recent streamed messages whose `assistant` lines are still recognized."""


class State(NamedTuple):
    inner: anthropic_stream.State
    """The state of the open model call."""
    resumed: bool = False
    step: bool = False
    message: str = ""
    """The id of the model's open message."""
    streamed: tuple[str, ...] = ()
    """Ids of the newest messages that arrived as events, including the open one. The `assistant` lines of these messages add nothing."""
    block: int = 0
    calls: tuple[Call, ...] = ()
    """Tool calls without an output."""
    facts: JsonObject = _NOTHING
    usage: JsonObject = _NOTHING
    """The usage so far, as returned by `Usage.to_json`. Until a turn has ended, it is the sum over the model calls."""
    cost: int | None = None
    unpriced: bool = False
    turns: int = 0
    """Number of results received."""
    spoke: bool = False
    reason: str = ""
    error: JsonObject | None = None
    lost: int = 0


class ClaudeCode:
    name = NAME
    version = 2
    """Version 2 keeps the reason of a denied call, and links the calls of sub-agents to the call that started them."""

    def open(self, options: ExchangeOptions) -> State:
        return State(anthropic_stream.State(begin(options), NAME), options.extra.get("resumed") is True)

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        event = event_of(raw.strip(), b'"input"', _FILLED_INPUT)
        if event is None:
            return (state._replace(lost=state.lost + 1) if raw.strip() else state), ()
        line = _Line(state)
        line.take(event)
        return line.state, tuple(line.chunks)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        line = _Line(state)
        line.end_call(cut=not state.turns)
        line.chunks += [tool_error(call.id, UNSETTLED[ended]) for call in line.state.calls]
        line.chunks += [FINISH_STEP] if line.state.step else []
        state = line.state
        error = Failure.from_json(state.error) if state.error is not None else None
        if not state.turns and ended != "cancelled":
            error = Failure("Claude Code ended before its answer did", "cut")
        if ended == "cancelled" and error is not None and error.kind == "interrupted":
            error = None
        reason = "error" if error else REASONS.get(state.reason, "other") if state.reason else "stop" if ended == "eof" else "other"
        cost = None if state.unpriced or not state.turns else state.cost
        facts = {**state.facts, "unreadable_lines": state.lost} if state.lost else state.facts
        return tuple(line.chunks), Ending(reason, state.reason or None, Usage.from_json(state.usage), cost, error, facts)


class ClaudeStreamJson(ClaudeCode):
    """The same translator under a different name, for captures of `claude -p --output-format stream-json`."""

    name = "claude-stream-json"


def call_id(state: State, vendor_id: str) -> str:
    """Return moot's `toolCallId` for a call of the agent."""
    return next((call.id for call in reversed(state.calls) if call.vendor_id == vendor_id), vendor_id)


class _Line:
    def __init__(self, state: State) -> None:
        self.state = state
        self.chunks: list[Chunk] = []

    def take(self, event: JsonObject) -> None:
        parent = as_text(event.get("parent_tool_use_id"))
        match event.get("type"):
            case "stream_event" if not parent:
                self._stream(as_object(event.get("event")))
            case "assistant" if parent:
                self._sub_agent(event, parent)
            case "assistant":
                self._assistant(event)
            case "user":
                self._outputs(event)
            case "system":
                self._system(event)
            case "result":
                self._result(event)
            case _:
                pass  # the control protocol, and future kinds

    def _stream(self, event: JsonObject) -> None:
        kind = as_text(event.get("type"))
        if kind == "message_start":
            self._begin(as_text(as_object(event.get("message")).get("id")), streamed=True)
        elif kind in ("error", "ping", ""):
            return  # Claude Code retries by itself and reports it
        elif not self.state.step:
            self._begin("", streamed=True)
        self._append_text(event)

    def _begin(self, message: str, *, streamed: bool) -> None:
        self.end_step(cut=False)
        state = self.state
        inner = anthropic_stream.State(state.inner.parts._replace(calls=()), NAME)
        known = (*state.streamed, message)[-_REMEMBERED:] if streamed else state.streamed
        self.state = state._replace(inner=inner, step=True, message=message, streamed=known, block=0)
        self.chunks.append(START_STEP)

    def end_step(self, *, cut: bool) -> None:
        """End the open model call, if any, and its outputs."""
        if self.state.step:
            self.end_call(cut=cut)
            self.state = self.state._replace(step=False)
            self.chunks.append(FINISH_STEP)

    def end_call(self, *, cut: bool) -> None:
        """Close the open text and calls of the model call, and add its usage."""
        state = self.state
        writer = Writer(state.inner.parts)
        writer.close(cut=cut)
        usage = Usage.from_json(state.usage)
        if state.step and not state.turns:
            usage += usage_of(state.inner.usage or {})
        inner = state.inner._replace(parts=writer.parts, kind="")
        self.state = state._replace(inner=inner, usage=usage.to_json(), reason=inner.reason or state.reason)
        self._show(writer.chunks)

    def _append_text(self, event: JsonObject) -> None:
        inner, chunks = anthropic_stream.take(self.state.inner, event)
        self.state = self.state._replace(inner=inner)
        self._show(chunks)

    def _show(self, chunks: tuple[Chunk, ...] | list[Chunk]) -> None:
        for chunk in chunks:
            kind = as_text(chunk.get("type"))
            if kind.startswith("tool-input") and chunk.get("providerExecuted") is not True:
                self._call(kind, chunk)
            else:
                self.chunks.append(chunk)
                if kind == "text-delta" and not self.state.spoke:
                    self.state = self.state._replace(spoke=True)

    def _call(self, kind: str, chunk: Chunk) -> None:
        id = as_text(chunk.get("toolCallId"))
        call = next((call for call in self.state.calls if call.id == id), None)
        if call is None:
            call = Call(id, as_text(as_object(chunk.get("toolMetadata")).get("vendorId")) or id)
        self.chunks.append(chunk if kind == "tool-input-delta" else mark_own(chunk, call))
        if kind == "tool-input-start":
            self.state = self.state._replace(calls=(*self.state.calls, call))
        elif kind == "tool-input-error":
            self._settled(call)
        elif chunk.get("toolName") == "TodoWrite" and kind.endswith("available") and (plan := plan_of(chunk.get("input"))) is not None:
            self.chunks.append(data("plan", plan, id="plan"))

    def _settled(self, call: Call) -> None:
        self.state = self.state._replace(calls=tuple(known for known in self.state.calls if known.id != call.id))

    def _assistant(self, event: JsonObject) -> None:
        message = as_object(event.get("message"))
        self._note("session_at", event.get("uuid"))
        if event.get("is_api_error_message") is True or as_text(event.get("error")):
            return  # the result repeats the error and marks the end
        id, blocks, state = as_text(message.get("id")), as_list(message.get("content")), self.state
        if id in state.streamed or (state.step and not state.message and state.streamed):
            self.state = state._replace(
                message=id, streamed=(*state.streamed, id)[-_REMEMBERED:] if id not in state.streamed else state.streamed
            )
            self._complete([as_object(block) for block in blocks])
            return
        if not state.step or id != state.message:
            self._begin(id, streamed=False)
            self._append_text({"type": "message_start", "message": {name: message.get(name) for name in ("id", "model", "usage")}})
        for block in blocks:
            index = self.state.block
            self.state = self.state._replace(block=index + 1)
            self._append_text({"type": "content_block_start", "index": index, "content_block": block})
            self._append_text({"type": "content_block_stop", "index": index})

    def _complete(self, blocks: list[JsonObject]) -> None:
        """Complete the inputs of calls before their blocks end, because approvals and tool outputs may come first."""
        for block in blocks:
            call = next((call for call in self.state.inner.parts.calls if call.vendor_id == block.get("id") and not call.done), None)
            if block.get("type") == "tool_use" and call is not None:
                writer = Writer(self.state.inner.parts)
                writer.finish(call)
                self.state = self.state._replace(inner=self.state.inner._replace(parts=writer.parts))
                self._show(writer.chunks)

    def _sub_agent(self, event: JsonObject, parent: str) -> None:
        kind = as_text(event.get("subagent_type"))
        for block in map(as_object, as_list(as_object(event.get("message")).get("content"))):
            (self._sub_call if block.get("type") == "tool_use" else self._sub_words)(block, parent, kind)

    def _sub_call(self, block: JsonObject, parent: str, kind: str) -> None:
        parts = self.state.inner.parts
        vendor_id, stem, number = as_text(block.get("id")), f"{as_text(block.get('id')) or 'call'}#{parts.prefix}", len(parts.used)
        id = free_id(vendor_id or f"{stem}.{number}", parts.used, stem, number)
        call = Call(id, vendor_id, call_id(self.state, parent), kind)
        inner = self.state.inner._replace(parts=parts._replace(used=(*parts.used, id)))
        chunks = input_chunks(call, block)
        waiting = chunks[-1].get("type") == "tool-input-available"
        self.state = self.state._replace(inner=inner, calls=(*self.state.calls, call) if waiting else self.state.calls)
        self.chunks += chunks

    def _sub_words(self, block: JsonObject, parent: str, kind: str) -> None:
        kind_of_text = "reasoning" if block.get("type") == "thinking" else "text"
        text = as_text(block.get("thinking")) or as_text(block.get("text"))
        if text:
            writer = Writer(self.state.inner.parts)
            id = writer.part_id()
            self.state = self.state._replace(inner=self.state.inner._replace(parts=writer.parts))
            self.chunks.append(sub_agent(id, kind_of_text, text, agent=kind, parent=call_id(self.state, parent)))

    def _outputs(self, event: JsonObject) -> None:
        for block in map(as_object, as_list(as_object(event.get("message")).get("content"))):
            vendor_id = as_text(block.get("tool_use_id"))
            call = next((call for call in self.state.calls if call.vendor_id == vendor_id), None)
            if block.get("type") == "tool_result" and call is not None:
                # complete the call's input before its output, because lines may have been lost
                if any(known.id == call.id and not known.done for known in self.state.inner.parts.calls):
                    self._complete([{"type": "tool_use", "id": vendor_id}])
                if call in self.state.calls:  # otherwise its input could not be parsed, and the parse error was its output
                    self.chunks.append(output_of(call, block, event))
                    self._settled(call)

    def _system(self, event: JsonObject) -> None:
        if event.get("subtype") == "init":
            for name, ours in (("session_id", "session_id"), ("model", "model"), ("claude_code_version", "agent_version")):
                self._note(ours, event.get(name))
        if text := note_of(event):
            prefix = self.state.inner.parts.prefix
            self.chunks.append(data("note", {"text": text}, id=f"{prefix}.{event.get('subtype')}"))

    def _result(self, event: JsonObject) -> None:
        state = self.state
        error = failure_of(event)
        text = as_text(event.get("result"))
        if text and not state.spoke and error is None:
            self._begin("", streamed=False)
            self._append_text({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}})
        self.end_step(cut=error is not None)
        state = self.state
        cost = cost_of(event, resumed=state.resumed)
        before = Usage.from_json(state.usage) if state.turns else Usage()
        self.state = state._replace(
            turns=state.turns + 1,
            usage=(before + usage_of_turn(event)).to_json(),
            cost=(state.cost or 0) + (cost or 0),
            unpriced=state.unpriced or cost is None,
            reason=as_text(event.get("stop_reason")) or state.reason,
            error=error.to_json() if error is not None else None,
            spoke=False,
        )
        self._note("session_id", event.get("session_id"))
        self._note("context_usage", context_usage(event, self.state.facts.get("model"), self.state.inner.usage))

    def _note(self, name: str, value: Json) -> None:
        """Record a fact for the message's metadata. The value None changes nothing."""
        if isinstance(value, str | float):
            self.state = self.state._replace(facts={**self.state.facts, name: value})
