"""Lines of the Codex app-server (JSON-RPC) to chunks.

A model call appears as items (reasoning, texts, calls) and ends with its token usage (`thread/tokenUsage/updated`) once its calls are
done; that is a step. Items of another thread than the one started belong to a sub-agent. Responses to our requests and messages about
accounts, limits and status produce no chunk. A resumed session first reports its earlier usage.
"""

from __future__ import annotations

from moot.convert._codex_line import Line, State
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage


class CodexAppServer:
    name = "codex-app-server"
    version = 2
    """2: the usage of sub-agents is counted, and they have names."""

    def open(self, options: ExchangeOptions) -> State:
        return State(options.prefix, options.tool_call_ids)

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        message = _read(raw)
        if message is None:
            return (state._replace(lost=state.lost + 1) if raw.strip() else state), ()
        line = Line(state)
        line.take(message)
        return line.state, tuple(line.chunks)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return close(state, ended)


def _read(raw: bytes) -> JsonObject | None:
    try:
        value: Json = canonical.loads(raw)
        if b'"arguments"' in raw:  # keeps all digits of integers in a call's input
            value = canonical.loads_exact(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def close(state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
    """Implement `Translator.close`."""
    line = Line(state)
    for part in state.parts:
        line.end_part(part)
    for call in line.state.calls:
        line.give_up(call, _UNSETTLED[ended])
    line.end_step()
    state = line.state
    error = Failure.from_json(state.error) if state.error is not None else None
    if error is None and not state.turns and ended != "cancelled":
        error = Failure("Codex ended before its answer did", "cut")
    if ended == "cancelled" and error is not None and error.kind == "interrupted":
        error = None
    reason = "error" if error is not None else "stop" if state.reason == "completed" else "other"
    facts = {**state.facts, "unreadable_lines": state.lost} if state.lost else state.facts
    return tuple(line.chunks), Ending(reason, state.reason or None, Usage.from_json(state.usage), None, error, facts)


_UNSETTLED: dict[Ended, str] = {
    "eof": "the agent ended without an output of this call",
    "cut": "the agent was cut off before this call had an output",
    "cancelled": "the run was stopped before this call had an output",
}


def call_id(state: State, item: str) -> str:
    """Return the toolCallId under which an item of Codex is shown."""
    return next((call.id for call in reversed(state.calls) if call.item == item), item)
