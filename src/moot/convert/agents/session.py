"""An assistant's message in an agent's session file, built line by line: its parts, its open calls and the facts of its steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from moot.convert.fold import fold_parts
from moot.convert.tool_parts import OUTPUTS
from moot.convert.writer import UNSETTLED
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, data
from moot.types.message import Part

PREFIX = "1.0"
"""Prefix of the ids of parts."""

LATER = 900_000
"""Minimum time in ms between the start of an answer and a model call for the call's own time to be stored.
Statistics don't need a finer resolution.
"""

EXACTLY = "moot"
"""Name of the additional field in lines that moot writes. It contains facts about a part that the agent's own fields can't represent."""


@dataclass(slots=True)
class SessionStep:
    """One model call."""

    id: str = ""
    model: str = ""
    begun: int = 0
    until: int = 0
    usage: JsonObject = field(default_factory=dict[str, Json])
    cost: int | None = None
    service_tier: str = ""
    """Service tier with a price of its own, such as `batch`; empty for the default tier."""
    identity: str = ""
    """Identity of the model call, which is the same in all copies of the session; empty if it is unknown."""

    def facts(self, number: int, reason: str, usage: JsonObject, began: int) -> JsonObject:
        """Return the step's entry for the metadata of a message that started at `began`.

        The entry contains the step's own time only if it is much later than `began`.
        """
        facts: JsonObject = {"step": number, "model": self.model, "finish_reason": reason, "usage": usage, "cost": self.cost}
        if self.until > self.begun > 0:
            facts["ms"] = self.until - self.begun
        if began and self.until - began >= LATER:
            facts["at"] = self.until
        if self.service_tier:
            facts["service_tier"] = self.service_tier
        if self.id:
            facts["response_id"] = self.id  # the same in all copies of a session, so that the cost is counted once
        return facts


class SessionMessage:
    """Base class of an agent's messages, which are built line by line."""

    __slots__ = ("_calls", "_next_id", "_parts", "began", "error", "last_at")

    def __init__(self, at: int = 0) -> None:
        self._parts: list[Part] = []
        self._calls: dict[str, int] = {}
        """For each tool call without an output, the index of its part. The keys are the agent's ids of the calls."""
        self._next_id = 0
        self.began = at
        self.error = ""
        """The text of the error that ended the message; empty if there is none."""
        self.last_at = at
        """Time of the newest line (initially, of the prompt), in ms since the epoch; 0 if unknown."""

    @property
    def waits(self) -> bool:
        """Return True if a call has no output yet."""
        return bool(self._calls)

    def parts(self, *, over: bool) -> tuple[Part, ...]:
        """Return the parts so far. If `over` is True, no more lines follow, and calls without an output are marked as failed."""
        parts: list[Part] = list(self._parts)
        for place in self._calls.values() if over else ():
            parts[place] = {**parts[place], "state": "output-error", "errorText": UNSETTLED["eof"]}
        if self.error:
            parts.append({"type": "data-note", "data": {"text": self.error}, "id": f"{PREFIX}.error"})
        return tuple(parts)

    def _begin_call(self, vendor_id: str, id: str, name: str, arguments: Json) -> None:
        self._calls[vendor_id] = len(self._parts)
        call: Part = {"type": "dynamic-tool", "toolName": name, "toolCallId": id, "state": "input-available"}
        self._parts.append({**call, "toolMetadata": {"vendorId": vendor_id}, "providerExecuted": True, "input": arguments})

    def _apply_output(self, place: int, chunk: Chunk) -> None:
        self._parts[place] = OUTPUTS[str(chunk["type"])](self._parts[place], chunk)

    def _fold(self, *chunks: Chunk) -> None:
        self._parts = list(fold_parts(self._parts, chunks))

    def _show_plan(self, plan: JsonObject) -> None:
        self._fold(data("plan", plan, id="plan"))

    def _show_note(self, text: str, kind: str) -> None:
        if text:
            self._fold(data("note", {"text": text}, id=f"{PREFIX}.{kind}"))
