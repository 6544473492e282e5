"""`gemini -o stream-json`: message pieces, calls, outputs, and one result. It does not include reasoning."""

from __future__ import annotations

from typing import NamedTuple

from moot.convert._acp_wire import message_of
from moot.convert._headless import Said, Saying, opened
from moot.convert._vendor import as_object, as_text, count, failure
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, data
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage


class State(NamedTuple):
    said: Said
    facts: JsonObject | None = None
    status: str = ""
    usage: JsonObject | None = None
    error: JsonObject | None = None
    notes: int = 0
    noise: int = 0


class GeminiStream:
    """The translator, also for qwen, which is a fork of the same program."""

    name = "gemini-stream-json"
    version = 1

    def open(self, options: ExchangeOptions) -> State:
        return State(opened(options))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        event = message_of(raw)
        if event is None:
            return (state._replace(noise=state.noise + 1) if raw.strip() else state), ()
        writer = Saying(state.said)
        match event.get("type"):
            case "init":
                facts: JsonObject = {"session": event.get("session_id"), "model": event.get("model")}
                state = state._replace(facts={name: value for name, value in facts.items() if isinstance(value, str) and value})
            case "message" if event.get("role") == "assistant":
                if event.get("delta") is not True:
                    writer.end_text()
                writer.text("text", as_text(event.get("content")))
            case "tool_use":
                arguments: Json = event.get("parameters") if event.get("parameters") is not None else {}
                writer.call(as_text(event.get("tool_id")), as_text(event.get("tool_name")), arguments)
            case "tool_result":
                _output(writer, event)
            case "error":
                return _warned(state, event)
            case "result":
                state = _over(state, event)
            case _:
                pass
        return state._replace(said=writer.said), writer.chunks

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        writer = Saying(state.said)
        writer.close(ended)
        error = Failure.from_json(state.error) if state.error is not None else None
        if error is None and not state.status and ended != "cancelled":
            error = Failure("gemini ended before its answer was whole", "cut")
        reason = "error" if error is not None else "stop" if state.status else "other"
        metadata = dict(state.facts or {})
        if state.noise:
            metadata["noise_lines"] = state.noise
        return writer.chunks, Ending(reason, state.status or None, Usage.from_json(state.usage or {}), None, error, metadata)


def _output(writer: Saying, event: JsonObject) -> None:
    failed = event.get("status") == "error"
    text = as_text(event.get("output")) or as_text(as_object(event.get("error")).get("message"))
    writer.output(as_text(event.get("tool_id")), text, failed=failed)


def _warned(state: State, event: JsonObject) -> tuple[State, tuple[Chunk, ...]]:
    """Add a warning as a note. An error may still be followed by a successful result, which then counts."""
    text = as_text(event.get("message"))
    if event.get("severity") == "error":
        return state._replace(error=failure(event).to_json()), ()
    note = data("note", {"text": text}, id=f"{state.said.parts.prefix}:note:{state.notes}")
    return state._replace(notes=state.notes + 1), (note,) if text else ()


def _over(state: State, event: JsonObject) -> State:
    stats, status = as_object(event.get("stats")), as_text(event.get("status")) or "success"
    usage = Usage(count(stats.get("input_tokens")), count(stats.get("output_tokens")), count(stats.get("cached")))
    error = failure(event.get("error") or event).to_json() if status == "error" else None
    return state._replace(status=status, usage=usage.to_json(), error=error)
