"""Conversion of `codex exec --json`: complete items without deltas, with names in snake_case.

The end of a model call is not marked, so text or reasoning after a tool call starts the next model call. Tokens are reported once, at the
end of the turn. In a resumed session, they include earlier turns, so the usage stays unknown.
"""

from __future__ import annotations

from moot.convert.agents.codex import Line, State, close
from moot.convert.agents.codex_calls import camel, failure_of, usage_of
from moot.convert.vendor import as_list, as_object, as_text, plan_of
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, data
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions

_TYPES = {"collabToolCall": "collabAgentToolCall"}
_TALK = frozenset({"agentMessage", "reasoning"})
_STATES = {"in_progress": "inProgress"}


class CodexExec:
    """Translator for the headless stream."""

    name = "codex-exec"
    version = 2
    """Version 2 reports a call as failed if it was declined without asking the user."""

    def open(self, options: ExchangeOptions) -> State:
        facts: JsonObject = {"resumed": True} if options.extra.get("resumed") is True else {}
        return State(options.prefix, options.tool_call_ids, facts=facts)

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        try:
            event = canonical.loads(raw)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            return (state._replace(lost=state.lost + 1) if raw.strip() else state), ()
        line = Line(state)
        _take(line, event)
        return line.state, tuple(line.chunks)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return close(state._replace(facts={name: value for name, value in state.facts.items() if name != "resumed"}), ended)


def _take(line: Line, event: JsonObject) -> None:
    item = _item(as_object(event.get("item")))
    match event.get("type"):
        case "thread.started":
            line.know(session_id=as_text(event.get("thread_id")))
        case "item.started":
            _step(line, item)
            line.started(item)
        case "item.updated" | "item.completed" if item.get("type") == "todoList":
            steps = map(as_object, as_list(item.get("items")))
            items: list[Json] = [{**step, "status": "completed" if step.get("completed") is True else ""} for step in steps]
            line.chunks.append(data("plan", plan_of(items, "text"), id="plan"))
        case "item.completed":
            _step(line, item)
            line.completed(item)
            line.state = line.state._replace(counted=line.state.counted or (line.state.step and item.get("type") not in _TALK))
        case "turn.completed":
            if not line.state.facts.get("resumed"):
                line.add(usage_of(as_object(event.get("usage"))))
            line.over("completed", None)
        case "turn.failed":
            line.over("failed", failure_of(as_object(event.get("error"))))
        case "error":
            line.state = line.state._replace(error=failure_of(event).to_json())
        case _:
            pass


def _step(line: Line, item: JsonObject) -> None:
    """Let a tool call continue the open step. Only text or reasoning after a call's output starts the next step."""
    if item.get("type") not in _TALK and line.state.step:
        line.state = line.state._replace(counted=False)


def _item(item: JsonObject) -> JsonObject:
    """Return the item with the field names of the app-server."""
    fields: JsonObject = {camel(name): value for name, value in item.items()}
    kind = camel(as_text(item.get("type")))
    fields["type"] = _TYPES.get(kind, kind)
    status = as_text(item.get("status"))
    if status:
        fields["status"] = _STATES.get(status, status)
    return fields
