"""`opencode run --format json`: a line for each finished part, and for each step with its tokens."""

from __future__ import annotations

from typing import NamedTuple

from moot.convert._acp_facts import usage_of
from moot.convert._acp_wire import message_of
from moot.convert._headless import Said, Saying, opened
from moot.convert._vendor import as_object, as_text, failure, nano_dollars
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import FINISH_REASONS, Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage


class State(NamedTuple):
    said: Said
    session: str = ""
    reason: str = ""
    usage: JsonObject | None = None
    cost: int | None = None
    error: JsonObject | None = None
    noise: int = 0


class OpencodeRun:
    name = "opencode-run"
    version = 1

    def open(self, options: ExchangeOptions) -> State:
        return State(opened(options))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        event = message_of(raw)
        if event is None:
            return (state._replace(noise=state.noise + 1) if raw.strip() else state), ()
        writer, part = Saying(state.said), as_object(event.get("part"))
        state = state._replace(session=as_text(event.get("sessionID")) or state.session)
        match event.get("type"):
            case "step_start":
                writer.step()
                state = state._replace(reason="")
            case "text":
                writer.end_text()
                writer.text("text", as_text(part.get("text")))
            case "reasoning":
                writer.end_text()
                writer.text("reasoning", as_text(part.get("text")))
            case "tool_use":
                _call(writer, part)
            case "step_finish":
                writer.end_step()
                state = _counted(state, part)
            case "error":
                state = state._replace(error=_failure(event.get("error")).to_json())
            case _:
                pass
        return state._replace(said=writer.said), writer.chunks

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        writer = Saying(state.said)
        writer.close(ended)
        error = Failure.from_json(state.error) if state.error is not None else None
        # a refused permission ends the program after a step that was to continue
        if error is None and ended != "cancelled" and state.reason in ("", "tool-calls"):
            error = Failure("opencode ended before its answer was whole", "cut")
        reason = "error" if error is not None else state.reason if state.reason in FINISH_REASONS else "other"
        metadata: JsonObject = {"session": state.session} if state.session else {}
        if state.noise:
            metadata["noise_lines"] = state.noise
        return writer.chunks, Ending(reason, state.reason or None, Usage.from_json(state.usage or {}), state.cost, error, metadata)


def _call(writer: Saying, part: JsonObject) -> None:
    state, id = as_object(part.get("state")), as_text(part.get("callID"))
    arguments: Json = state.get("input") if state.get("input") is not None else {}
    writer.call(id, as_text(part.get("tool")), arguments, as_text(state.get("title")))
    match state.get("status"):
        case "completed":
            writer.output(id, as_text(state.get("output")))
        case "error":
            writer.output(id, as_text(state.get("error")), failed=True)
        case _:
            pass


def _counted(state: State, part: JsonObject) -> State:
    tokens, cost = as_object(part.get("tokens")), nano_dollars(part.get("cost"))
    cache = as_object(tokens.get("cache"))
    counted: JsonObject = {
        "inputTokens": tokens.get("input"),
        "outputTokens": tokens.get("output"),
        "cachedReadTokens": cache.get("read"),
        "cachedWriteTokens": cache.get("write"),
        "thoughtTokens": tokens.get("reasoning"),
        "totalTokens": tokens.get("total"),
    }
    usage = Usage.from_json(state.usage or {}) + usage_of({"usage": counted})
    known = state.cost if cost is None else (state.cost or 0) + cost
    return state._replace(usage=usage.to_json(), cost=known, reason=as_text(part.get("reason")))


def _failure(error: Json) -> Failure:
    """Return the failure of an error, which opencode names and describes in `data`."""
    inside = as_object(as_object(error).get("data"))
    return failure({**as_object(error), **inside} if inside else error)
