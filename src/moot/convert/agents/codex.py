"""Conversion of the Codex app-server's lines (JSON-RPC) to chunks.

A model call is a step. It consists of items (reasoning, texts, calls) and ends with its token usage (`thread/tokenUsage/updated`) once its
calls are done. Items of other threads belong to sub-agents. Responses to moot's requests and messages about accounts, limits and status
produce no chunk. A resumed session first reports its earlier usage.
"""

from __future__ import annotations

from typing import NamedTuple

from moot.convert.agents.codex_calls import Call, failure_of, input_of, is_call, mark_own, note_of, output_of, plan_of, usage_of
from moot.convert.vendor import as_list, as_object, as_text
from moot.convert.vendor import count as number_of
from moot.convert.writer import UNSETTLED, free_id
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import FINISH_STEP, START_STEP, Chunk, data, sub_agent, tool_error, tool_input_error, tool_output
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage

_NOTHING: JsonObject = {}
_TALK = {"agentMessage": "text", "plan": "text", "reasoning": "reasoning"}
_DELTAS = {
    "item/agentMessage/delta": ("agentMessage", ""),
    "item/plan/delta": ("plan", ""),
    "item/reasoning/summaryTextDelta": ("reasoning", "summary"),
    "item/reasoning/textDelta": ("reasoning", "content"),
}
_SHOWN = 16_384
"""Maximum number of characters of output shown while a command is running."""
_EACH = 4_096
"""Number of characters up to which output is shown again after every change.
Longer output is shown again each time its length has doubled.
"""


class Part(NamedTuple):
    """An open text or reasoning part. Its start chunk is sent when the first content arrives."""

    item: str
    kind: str
    id: str
    source: str = ""
    """For reasoning, the field that is shown: summary or content, whichever came first. The other field has the same content."""
    piece: int = 0
    said: int = 0


class State(NamedTuple):
    prefix: str
    used: tuple[str, ...] = ()
    """Ids of the calls in the message."""
    made: int = 0
    """Number of part ids that have been assigned."""
    thread: str = ""
    turn: str = ""
    inner: tuple[str, ...] = ()
    """Threads of sub-agents, in order of appearance."""
    started_by: tuple[tuple[str, str], ...] = ()
    """Threads of sub-agents, each with the id of the first call that mentioned it."""
    inner_turns: tuple[str, ...] = ()
    """Turns of sub-agents that started in this exchange. If a sub-agent was resumed, its earlier usage is not counted."""
    step: bool = False
    counted: bool = False
    """True once the model call has reported its tokens, so that the step ends with the last of its tool calls."""
    parts: tuple[Part, ...] = ()
    calls: tuple[Call, ...] = ()
    """Tool calls without an output."""
    turns: int = 0
    """Number of turns that have ended."""
    reason: str = ""
    error: JsonObject | None = None
    usage: JsonObject = _NOTHING
    facts: JsonObject = _NOTHING
    lost: int = 0


class Line:
    """Handler of one line: updates `state` and collects `chunks`."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.chunks: list[Chunk] = []

    def take(self, message: JsonObject) -> None:
        """Handle a message of the app-server."""
        method, params = as_text(message.get("method")), as_object(message.get("params"))
        if not method:
            self._response(as_object(message.get("result")))
        elif method in _DELTAS:
            self._delta(params, *_DELTAS[method])
        elif method.startswith("item/"):
            self._of_item(method, params)
        else:
            self._of_turn(method, params)

    def _of_item(self, method: str, params: JsonObject) -> None:
        if method in ("item/started", "item/completed"):
            handle = self.completed if method == "item/completed" else self.started
            handle(as_object(params.get("item")), self._inner(params))
        elif method == "item/commandExecution/outputDelta":
            self._output(as_text(params.get("itemId")), as_text(params.get("delta")))
        elif method.endswith("/requestApproval"):
            self._asked(as_text(params.get("itemId")), params)

    def _asked(self, id: str, params: JsonObject) -> None:
        """Mark the call that the user is asked to approve. An approval request may be the first mention of its call."""
        if id and "command" in params and not any(call.item == id for call in self.state.calls):
            self._call({"type": "commandExecution", "id": id, "command": params["command"]}, self._inner(params))
        calls = tuple(call._replace(asked=True) if call.item == id else call for call in self.state.calls)
        self.state = self.state._replace(calls=calls)

    def _of_turn(self, method: str, params: JsonObject) -> None:
        match method:
            case "thread/started":
                self._session_started(as_object(params.get("thread")))
            case "turn/started":
                turn = as_text(as_object(params.get("turn")).get("id"))
                if self._inner(params):
                    self.state = self.state._replace(inner_turns=(*self.state.inner_turns, turn))
                else:
                    self.state = self.state._replace(turn=turn)
                    self.know(turn_id=turn)
            case "turn/completed":
                self._turn_completed(params)
            case "turn/plan/updated":
                self.chunks.append(data("plan", plan_of(params), id="plan"))
            case "thread/tokenUsage/updated":
                self._usage_updated(params)
            case "error":
                self._failed(params)
            case _:
                self.note(method, params)

    # ── the session and its turns ─────────────────────────────────────────────────────────────────────────────────────────────

    def _response(self, result: JsonObject) -> None:
        """Handle a response to one of moot's requests: the session that was started, resumed or forked, or the turn."""
        if (thread := as_object(result.get("thread"))) and "model" in result:
            self._session_started(thread, forced=True)
            self.know(model=as_text(result.get("model")))
        elif (turn := as_object(result.get("turn"))) and "id" in turn and turn.get("status") == "inProgress":
            self.state = self.state._replace(turn=as_text(turn.get("id")))
        elif agent := as_text(result.get("userAgent")):
            self.know(agent_version=agent.partition("/")[2].partition(" ")[0])

    def _session_started(self, thread: JsonObject, *, forced: bool = False) -> None:
        if forced or not self.state.thread:
            self.state = self.state._replace(thread=as_text(thread.get("id")))
            self.know(session_id=self.state.thread)

    def know(self, **facts: str) -> None:
        """Record facts for the message's metadata."""
        self.state = self.state._replace(facts={**self.state.facts, **{name: value for name, value in facts.items() if value}})

    def _inner(self, params: JsonObject) -> str:
        """Return the thread of the sub-agent that the message is about, or an empty string for the agent itself."""
        thread = as_text(params.get("threadId"))
        return thread if self.state.thread and thread and thread != self.state.thread else ""

    def _turn_completed(self, params: JsonObject) -> None:
        turn = as_object(params.get("turn"))
        if self._inner(params) or (self.state.turn and turn.get("id") != self.state.turn):
            return
        status = as_text(turn.get("status"))
        reported = as_object(turn.get("error"))
        error = failure_of(reported) if status == "failed" and reported else None
        if status == "interrupted":
            error = Failure("Codex was stopped before its answer was whole", "interrupted")
        self.over(status, error)

    def over(self, status: str, error: Failure | None) -> None:
        """End a turn and close everything that is open."""
        for part in self.state.parts:
            self.end_part(part)
        if status != "completed":
            for call in self.state.calls:
                self.give_up(call, "the agent stopped before this call had an output")
        self.end_step()
        kept = self.state.error if status == "failed" and error is None else None
        failed = error.to_json() if error is not None else kept
        self.state = self.state._replace(turns=self.state.turns + 1, reason=status, error=failed, turn="")

    def _failed(self, params: JsonObject) -> None:
        failure = failure_of(as_object(params.get("error")))
        if self._inner(params):
            return
        if params.get("willRetry") is True:
            self.chunks.append(data("note", {"text": failure.message}, id=f"{self.state.prefix}.retry"))
        else:
            self.state = self.state._replace(error=failure.to_json())

    def note(self, method: str, params: JsonObject) -> None:
        """Add a note for the user, if the message is one that the user should see."""
        if text := note_of(method, params):
            self.chunks.append(data("note", {"text": text}, id=f"{self.state.prefix}.{method}"))

    # ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin_step(self) -> None:
        if self.state.step and self.state.counted:
            self.end_step()
        if not self.state.step:
            self.state = self.state._replace(step=True, counted=False)
            self.chunks.append(START_STEP)

    def end_step(self) -> None:
        """End the step if one is open. Its tool calls may continue."""
        if self.state.step:
            for part in self.state.parts:
                self.end_part(part)
            self.state = self.state._replace(step=False, counted=False)
            self.chunks.append(FINISH_STEP)

    def _end_step_if_due(self) -> None:
        if self.state.counted and not self.state.calls and not self.state.parts:
            self.end_step()

    def _usage_updated(self, params: JsonObject) -> None:
        reported = as_object(params.get("tokenUsage"))
        last, window = as_object(reported.get("last")), number_of(reported.get("modelContextWindow"))
        if self._inner(params):
            if params.get("turnId") in self.state.inner_turns:
                self.add(usage_of(last))
            return
        if not self.state.turn or params.get("turnId") != self.state.turn:
            return  # tokens used earlier in the session
        self.add(usage_of(last))
        if window and (total := number_of(last.get("totalTokens"))):
            self.state = self.state._replace(facts={**self.state.facts, "context_usage": round(min(total / window, 1.0), 4)})
        if self.state.step:
            self.state = self.state._replace(counted=True)
            self._end_step_if_due()

    def add(self, usage: Usage) -> None:
        """Add the tokens of a model call to the total."""
        self.state = self.state._replace(usage=(Usage.from_json(self.state.usage) + usage).to_json())

    # ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def started(self, item: JsonObject, inner: str = "") -> None:
        kind, id = as_text(item.get("type")), as_text(item.get("id"))
        if is_call(item):
            self._link(item, self._call(item, inner))
        elif kind in _TALK and not inner:
            self._part(id, kind)

    def completed(self, item: JsonObject, inner: str = "") -> None:
        kind, id = as_text(item.get("type")), as_text(item.get("id"))
        if is_call(item):
            call = self._call(item, inner)
            if call.waits:
                self._input(call, input_of(item)[1])
            self.chunks.append(output_of(item, call))
            self._forget(call)
            self._link(item, call)
        elif kind in _TALK and inner:
            self._inner_words(item, inner)
        elif kind in _TALK:
            self._whole(item, self._part(id, kind))
        else:
            self.note(f"item/{kind}", item)
        self._end_step_if_due()

    def _link(self, item: JsonObject, call: Call) -> None:
        """Remember which sub-agents the call started or, if an earlier exchange started them, mentioned first."""
        known = dict(self.state.started_by)
        fresh = [(thread, call.id) for thread in map(as_text, as_list(item.get("receiverThreadIds"))) if thread and thread not in known]
        if fresh:
            self.state = self.state._replace(started_by=(*self.state.started_by, *fresh))

    def _part(self, item: str, kind: str) -> Part:
        known = next((part for part in self.state.parts if part.item == item), None)
        if known is not None:
            return known
        self._begin_step()
        part = Part(item, _TALK[kind], f"{self.state.prefix}.{self.state.made}")
        self.state = self.state._replace(made=self.state.made + 1, parts=(*self.state.parts, part))
        return part

    def _delta(self, params: JsonObject, kind: str, source: str) -> None:
        delta = as_text(params.get("delta"))
        if not delta or self._inner(params):
            return
        part = self._part(as_text(params.get("itemId")), kind)
        index = number_of(params.get("summaryIndex", params.get("contentIndex"))) or 0
        if part.source not in ("", source):
            return
        self._append_text(part._replace(source=source), delta if not part.said or index == part.piece else f"\n\n{delta}", index)

    def _append_text(self, part: Part, text: str, index: int = 0) -> None:
        if not part.said:
            self.chunks.append({"type": f"{part.kind}-start", "id": part.id})
        self.chunks.append({"type": f"{part.kind}-delta", "id": part.id, "delta": text})
        updated = part._replace(said=part.said + len(text), piece=index)
        self.state = self.state._replace(parts=tuple(updated if known.id == part.id else known for known in self.state.parts))

    def _whole(self, item: JsonObject, part: Part) -> None:
        """Add the text that is still missing to a streamed part, and end the part."""
        text = _text_of(item, part.source)
        if len(text) > part.said:
            self._append_text(part, text[part.said :], part.piece)
        self.end_part(next(known for known in self.state.parts if known.id == part.id))

    def end_part(self, part: Part) -> None:
        """End a text or reasoning part. A part without content was never started."""
        if part.said:
            self.chunks.append({"type": f"{part.kind}-end", "id": part.id})
        self.state = self.state._replace(parts=tuple(known for known in self.state.parts if known.id != part.id))

    def _inner_words(self, item: JsonObject, inner: str) -> None:
        if text := _text_of(item, ""):
            if inner not in self.state.inner:
                self.state = self.state._replace(inner=(*self.state.inner, inner))
            name = f"sub-agent {self.state.inner.index(inner) + 1}"  # Codex sends the name of the sub-agent only to the model
            id, kind = f"{self.state.prefix}.{self.state.made}", _TALK[as_text(item.get("type"))]
            self.chunks.append(sub_agent(id, kind, text, agent=name, parent=self._parent(inner), details={"thread": inner}))
            self.state = self.state._replace(made=self.state.made + 1)

    def _parent(self, inner: str) -> str:
        """Return the id of the call that started a sub-agent, or an empty string if it is unknown."""
        return dict(self.state.started_by).get(inner, "")

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _call(self, item: JsonObject, inner: str) -> Call:
        """Return the item's call, starting it if it is new."""
        id = as_text(item.get("id"))
        known = next((call for call in reversed(self.state.calls) if call.item == id), None)
        if known is not None:
            return known
        if not inner:
            self._begin_step()
        name, value, waiting = input_of(item)
        fresh = free_id(id or "call", self.state.used, f"{id or 'call'}#{self.state.prefix}", 0)
        call = Call(id, fresh, name, inner, waiting, parent=self._parent(inner))
        self.state = self.state._replace(used=(*self.state.used, call.id), calls=(*self.state.calls, call))
        self.chunks.append(mark_own({"type": "tool-input-start", "toolCallId": call.id, "toolName": name}, call))
        if not waiting:
            self._input(call, value)
        return call

    def _input(self, call: Call, value: JsonObject) -> None:
        self.chunks.append(mark_own({"type": "tool-input-available", "toolCallId": call.id, "toolName": call.name, "input": value}, call))

    def _output(self, item: str, delta: str) -> None:
        call = next((call for call in reversed(self.state.calls) if call.item == item), None)
        if call is None or not delta:
            return
        updated = call._replace(output=(call.output + delta)[:_SHOWN], said=call.said + len(delta))
        if updated.said <= _EACH or updated.said >= 2 * call.shown:
            updated = updated._replace(shown=updated.said)
            more = f"\n[{updated.said - _SHOWN} more characters]" if updated.said > _SHOWN else ""
            self.chunks.append({**mark_own(tool_output(call.id, updated.output + more), call), "preliminary": True})
        self.state = self.state._replace(calls=tuple(updated if known.id == call.id else known for known in self.state.calls))

    def give_up(self, call: Call, why: str) -> None:
        """End a call that will never have an output."""
        if call.waits:
            self.chunks.append(mark_own(tool_input_error(call.id, call.name, None, why), call))
        else:
            self.chunks.append(mark_own(tool_error(call.id, f"{why}; its output so far:\n{call.output}" if call.output else why), call))
        self._forget(call)

    def _forget(self, call: Call) -> None:
        self.state = self.state._replace(calls=tuple(known for known in self.state.calls if known.id != call.id))


def _text_of(item: JsonObject, source: str) -> str:
    if item.get("type") != "reasoning":
        return as_text(item.get("text"))
    summary, content = as_list(item.get("summary")), as_list(item.get("content"))
    pieces = content if source == "content" or not summary else summary
    return "\n\n".join(as_text(piece) for piece in pieces) or as_text(item.get("text"))


class CodexAppServer:
    name = "codex-app-server"
    version = 3
    """Version 2 counts the usage of sub-agents and gives them names. Version 3 keeps the decision on a denied call, and links the calls of
    sub-agents to the call that started them."""

    def open(self, options: ExchangeOptions) -> State:
        return State(options.prefix, options.tool_call_ids)

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        try:
            message: Json = canonical.loads(raw)
            if b'"arguments"' in raw:  # keeps all digits of integers in a call's input
                message = canonical.loads_exact(raw)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            return (state._replace(lost=state.lost + 1) if raw.strip() else state), ()
        line = Line(state)
        line.take(message)
        return line.state, tuple(line.chunks)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return close(state, ended)


def close(state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
    """Implement `Translator.close`."""
    line = Line(state)
    for part in state.parts:
        line.end_part(part)
    for call in line.state.calls:
        line.give_up(call, UNSETTLED[ended])
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


def call_id(state: State, item: str) -> str:
    """Return moot's `toolCallId` for an item of Codex."""
    return next((call.id for call in reversed(state.calls) if call.item == item), item)
