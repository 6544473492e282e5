"""The state of a run's tool calls as chunks arrive, and which calls share a line."""

from __future__ import annotations

from collections.abc import Callable

from moot.cli.console.messages import edited_input
from moot.cli.terminal.look import Look
from moot.cli.transcript.sections import Card, Group, Piece
from moot.cli.transcript.tool_cards import Call, Folded, State, reads
from moot.types.canonical import Json
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.message import Part, tool_name

_STATES: dict[str, State] = {
    "output-available": "done",
    "output-error": "failed",
    "output-denied": "denied",
    "approval-requested": "asked",
}


class Calls:
    """The calls of a run by id. `put` appends a piece to the transcript. Call `close_group` before appending any other piece."""

    def __init__(
        self,
        put: Callable[[Piece], None],
        remember: Callable[[Folded], None],
        reveal: Callable[[int], str],
        number: int,
        *,
        announces: bool = False,
    ) -> None:
        self._put = put
        self._announces = announces
        self._remember = remember
        self._reveal = reveal
        self._number = number
        self._calls: dict[str, Call] = {}
        self._approvals: dict[str, str] = {}
        self._group: Group | None = None
        self._handlers: dict[str, Callable[[Call, Chunk, int], None]] = {
            "tool-input-delta": self._input_delta,
            "tool-input-available": self._input,
            "tool-input-error": self._input_error,
            "tool-approval-request": self._approval_request,
            "tool-approval-response": self._approval_response,
            "tool-output-available": self._output,
            "tool-output-error": lambda call, chunk, now: self._end_call(call, "failed", chunk.get("errorText"), now),
            "tool-output-denied": lambda call, chunk, now: self._end_call(call, "denied", None, now),
        }

    @property
    def busy(self) -> bool:
        """True if a call is running and none waits for an approval."""
        states = {call.state for call in self._calls.values()}
        return bool(states & {"input", "running"}) and "asked" not in states

    def feed(self, look: Look, chunk: Chunk, event: Event) -> None:
        """Apply a chunk of type `tool-…`. Chunks of unknown calls are ignored."""
        kind = str(chunk.get("type"))
        id = str(chunk.get("toolCallId", ""))
        if kind == "tool-approval-response":
            id = self._approvals.get(str(chunk.get("approvalId", "")), "")
        call = self._calls.get(id)
        if call is None and "toolName" in chunk:
            call = self._open(look, id, str(chunk["toolName"]))
        handler = self._handlers.get(kind)
        if call is not None and handler is not None:
            if kind == "tool-output-available":
                call.value = _value(event)
            handler(call, chunk, event.at)
            if kind == "tool-approval-response":
                _edit(call, event)

    def stored(self, look: Look, part: Part) -> None:
        """Add a call of a stored message."""
        call = self._open(look, str(part.get("toolCallId", "")), tool_name(part))
        _restore(call, part)
        if call.over:
            self._calls.pop(call.id)

    def end(self) -> None:
        """Close all calls; those without an outcome stay open in the record."""
        for call in self._calls.values():
            call.waited, call.state = call.state == "asked", "open"
            call.views.clear()
        self._calls = {}
        self.close_group()

    def close_group(self) -> None:
        """Start a new group: later calls do not share a line with earlier ones."""
        if self._group is not None:
            self._group.closed = True
            self._group = None

    def _open(self, look: Look, id: str, name: str) -> Call:
        self._number += 1
        call = self._calls[id] = Call(id, self._number, name)
        if not reads(name):
            self.close_group()
            self._put(Card(look, call, self._remember, self._reveal, announces=self._announces))
            return call
        if self._group is None:
            self._group = Group(look, self._remember, self._reveal)
            self._put(self._group)
        self._group.calls.append(call)
        return call

    # ── chunks ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _input_delta(self, call: Call, chunk: Chunk, now: int) -> None:
        call.characters += len(str(chunk.get("inputTextDelta", "")))

    def _input(self, call: Call, chunk: Chunk, now: int) -> None:
        call.arguments, call.state, call.began = chunk.get("input"), "running", now
        call.views.clear()

    def _input_error(self, call: Call, chunk: Chunk, now: int) -> None:
        call.arguments = chunk.get("input")
        self._end_call(call, "failed", chunk.get("errorText"), now)

    def _approval_request(self, call: Call, chunk: Chunk, now: int) -> None:
        call.state = "asked"
        self._approvals[str(chunk.get("approvalId", ""))] = call.id

    def _approval_response(self, call: Call, chunk: Chunk, now: int) -> None:
        reason = chunk.get("reason")
        if chunk.get("approved") is True:
            call.state, call.began, call.reason = "running", now, "approved"
        elif isinstance(reason, str):
            call.reason = reason

    def _output(self, call: Call, chunk: Chunk, now: int) -> None:
        if chunk.get("preliminary") is True:
            call.output, call.state, call.began = chunk.get("output"), "running", call.began or now
        else:
            self._end_call(call, "done", chunk.get("output"), now)

    def _end_call(self, call: Call, state: State, output: Json, now: int) -> None:
        call.state, call.output, call.ended = state, output, now
        call.views.clear()
        self._calls.pop(call.id, None)


def call_of(part: Part, number: int) -> Call:
    """Return a stored call."""
    call = Call(str(part.get("toolCallId", "")), number, tool_name(part))
    _restore(call, part)
    return call


def _restore(call: Call, part: Part) -> None:
    call.arguments = part.get("input")
    if (edited := edited_input(part)) is not None:
        call.edit(edited)
    approval = part.get("approval")
    if isinstance(approval, dict) and approval.get("approved") is False and isinstance(reason := approval.get("reason"), str):
        call.reason = reason
    if part.get("preliminary") is not True:
        call.state = _STATES.get(str(part.get("state", "")), "input")
        call.output = part.get("errorText") if call.state == "failed" else part.get("output")


def _value(event: Event) -> Json:
    """Return the tool's structured result, which comes with the event rather than in the chunk."""
    value = event.body.get("value") if isinstance(event.body, dict) else None
    return value.get("value") if isinstance(value, dict) else None


def _edit(call: Call, event: Event) -> None:
    """Apply arguments that the user edited; they come with the event of the approval."""
    if isinstance(event.body, dict) and "input" in event.body and call.state == "running":
        call.edit(event.body["input"])
