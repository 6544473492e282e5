"""A run's tool calls: their state, updated as chunks arrive, and their grouping on shared lines."""

from __future__ import annotations

from collections.abc import Callable

from moot.cli.console.messages import edited_input
from moot.cli.terminal.look import Look
from moot.cli.terminal.text import DIM
from moot.cli.transcript.sections import Card, Group, LateCard, Note, Piece
from moot.cli.transcript.tool_cards import Call, Folded, State
from moot.tools.views import reads
from moot.types.canonical import Json
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.hooks import hook_label
from moot.types.message import Part, tool_name
from moot.types.part_tree import parent_call

_STATES: dict[str, State] = {
    "output-available": "done",
    "output-error": "failed",
    "output-denied": "denied",
    "approval-requested": "asked",
}


class Calls:
    """The tool calls of a run, keyed by id. `put` appends a piece to the transcript.
    Call `close_group` before appending a piece in any other way.
    """

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
        self._cards: dict[str, tuple[Card, Call]] = {}
        """For each call id: the card that contains the call and has not been printed yet, and the call itself."""
        self._printed: dict[str, str] = {}
        """Titles of calls whose cards have been printed, keyed by call id."""
        self._late = ""
        """Id of the call whose sub-agent the last piece belongs to, if the card of this call has already been printed; otherwise empty."""

    @property
    def busy(self) -> bool:
        """True if a call is running and none is waiting for approval."""
        states = {call.state for call in self._calls.values()}
        return bool(states & {"input", "running"}) and "asked" not in states

    def feed(self, look: Look, chunk: Chunk, event: Event) -> None:
        """Apply a chunk of type `tool-…`. Chunks for unknown calls are ignored."""
        kind = str(chunk.get("type"))
        id = str(chunk.get("toolCallId", ""))
        if kind == "tool-approval-response":
            id = self._approvals.get(str(chunk.get("approvalId", "")), "")
        call = self._calls.get(id)
        if call is None and "toolName" in chunk:
            call = self._open(look, id, str(chunk["toolName"]), parent_call(chunk))
            call.reason = hook_label(chunk)
        if call is not None:
            self._apply(call, kind, chunk, event)

    def stored(self, look: Look, part: Part) -> None:
        """Add a call from a stored message."""
        call = self._open(look, str(part.get("toolCallId", "")), tool_name(part), parent_call(part))
        call.reason = hook_label(part)
        _restore(call, part)
        if isinstance(approval := part.get("approval"), dict):
            self._approvals[str(approval.get("id"))] = call.id
        if call.over:
            self._calls.pop(call.id)

    def end(self) -> None:
        """Close all calls. Calls without an outcome are shown as open."""
        for call in self._calls.values():
            call.waited, call.state = call.state == "asked", "open"
            call.views.clear()
        self._calls = {}
        self.close_group()

    def add_words(self, look: Look, parent: str, words: str) -> bool:
        """Show text from a sub-agent together with the call that started the sub-agent. Return False if this call is unknown."""
        self._forget_printed()
        if (holder := self._cards.get(parent)) is not None:
            holder[1].inner.append(words)
            return True
        if parent not in self._printed:
            return False
        self._put(Note(look, words, DIM, kind=self._late_kind(look, parent), margin="  "))
        return True

    def _late_kind(self, look: Look, parent: str) -> str:
        """Repeat the title of a printed card, unless the last piece also belongs to that card.
        Return the kind of the pieces below the title.
        """
        kind = f"inside {parent}"
        if self._late != parent:
            self.close_group()
            self._late = parent
            self._put(Note(look, f"{look.sign('↳', '>')} {self._printed[parent]}", DIM, kind=kind))
        return kind

    def _forget_printed(self) -> None:
        for id, (card, call) in list(self._cards.items()):
            if card.taken:
                self._printed[id] = call.view().title
                del self._cards[id]

    def close_group(self) -> None:
        """Start a new group, so that later calls do not share a line with earlier calls."""
        self._late = ""
        if self._group is not None:
            self._group.closed = True
            self._group = None

    def _open(self, look: Look, id: str, name: str, parent: str) -> Call:
        self._number += 1
        call = self._calls[id] = Call(id, self._number, name)
        self._forget_printed()
        if (holder := self._cards.get(parent)) is not None:
            holder[1].inner.append(call)
            self._cards[id] = (holder[0], call)
            return call
        if parent in self._printed or not reads(name):
            card = self._card(look, call, parent)
            self._cards[id] = (card, call)
            self._put(card)
            return call
        self._late = ""
        if self._group is None:
            self._group = Group(look, self._remember, self._reveal)
            self._put(self._group)
        self._group.calls.append(call)
        return call

    def _card(self, look: Look, call: Call, parent: str) -> Card:
        if parent in self._printed:
            return LateCard(look, call, self._remember, self._reveal, kind=self._late_kind(look, parent))
        self.close_group()
        return Card(look, call, self._remember, self._reveal, announces=self._announces)

    def _apply(self, call: Call, kind: str, chunk: Chunk, event: Event) -> None:
        match kind:
            case "tool-input-delta":
                call.characters += len(str(chunk.get("inputTextDelta", "")))
            case "tool-input-available":
                call.arguments, call.state, call.began = chunk.get("input"), "running", event.at
                call.views.clear()
            case "tool-input-error":
                call.arguments = chunk.get("input")
                self._end_call(call, "failed", chunk.get("errorText"), event.at)
            case "tool-approval-request":
                call.state = "asked"
                self._approvals[str(chunk.get("approvalId", ""))] = call.id
            case "tool-approval-response":
                _answer(call, chunk, event)
            case "tool-output-available" if chunk.get("preliminary") is True:
                call.value, call.output, call.state, call.began = _value(event), chunk.get("output"), "running", call.began or event.at
            case "tool-output-available":
                call.value = _value(event)
                self._end_call(call, "done", chunk.get("output"), event.at)
            case "tool-output-error":
                self._end_call(call, "failed", chunk.get("errorText"), event.at)
            case "tool-output-denied":
                self._end_call(call, "denied", None, event.at)
            case _:
                pass

    def _end_call(self, call: Call, state: State, output: Json, now: int) -> None:
        call.state, call.output, call.ended = state, output, now
        call.views.clear()
        self._calls.pop(call.id, None)


def call_of(part: Part, number: int) -> Call:
    """Return the tool call stored in a message part."""
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


def _answer(call: Call, chunk: Chunk, event: Event) -> None:
    if chunk.get("approved") is True:
        call.state, call.began, call.reason = "running", event.at, "approved"
    elif isinstance(reason := chunk.get("reason"), str):
        call.reason = reason
    if isinstance(event.body, dict) and "input" in event.body and call.state == "running":
        call.edit(event.body["input"])  # arguments that the user edited
