"""The lines of Codex's session files: one message per prompt, with the same parts that the app-server translator produces.

Nearly everything is recorded twice: as an item of the model API and as a display event. Text and reasoning come from the items.
Events say more about calls, so an event overrides the item of its call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from moot.convert._codex_calls import NAME, Call, input_of, is_call, output_of
from moot.convert._codex_facts import noted, plan_of, usage_of
from moot.convert._tool_parts import OUTPUTS
from moot.convert._vendor import as_list, as_object, as_text
from moot.convert.codex_items import API, CALLS, OUTPUT_TYPES, as_protocol, named, outcome_of, thought_of, vendor_output
from moot.convert.fold import fold_parts
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, data
from moot.types.part import Part, text_part

EXACTLY = "moot"
"""A field of lines that moot writes, for facts about a part that Codex's own fields can't hold."""

_PREFIX = "1.0"
_NO_OUTPUT = "the agent ended without an output of this call"


@dataclass(slots=True)
class _Step:
    model: str = ""
    begun: int = 0
    until: int = 0
    usage: JsonObject = field(default_factory=dict[str, Json])
    counted: bool = False
    told: bool = False
    """The count comes from the call itself, not from a display event."""
    id: str = ""
    cost: int | None = None


class Work:
    """An assistant's message, built line by line."""

    __slots__ = ("_calls", "_next_id", "_parts", "_settled", "_steps", "error", "last_at", "model", "reason", "turn")

    def __init__(self, at: int = 0, model: str = "") -> None:
        self._parts: list[Part] = []
        self._calls: dict[str, int] = {}
        """Tool calls without an output: id → index of the part."""
        self._settled: dict[str, int] = {}
        self._steps: list[_Step] = []
        self._next_id = 0
        self.last_at = at
        """The time of the newest line in ms; at first, of the prompt."""
        self.model = model
        self.reason = ""
        self.error = ""
        self.turn = ""
        """Codex's own id of the turn, after which it can continue; empty until the turn is over."""

    @property
    def waits(self) -> bool:
        """Return True if a call has no output yet."""
        return bool(self._calls)

    @property
    def between(self) -> bool:
        """Return True if the next text belongs to another model call."""
        return not self._steps or self._steps[-1].counted

    def item(self, item: JsonObject, at: int = 0, exactly: JsonObject | None = None) -> None:
        """Add an API item: text, reasoning, a call or its output. `exactly` holds the extra fields of a line that moot wrote."""
        kind, part = as_text(item.get("type")), as_object((exactly or {}).get("part"))
        if kind in OUTPUT_TYPES:
            self._output(item, exactly or {})
        else:
            self._in_step(at)
            if part:
                self._exactly(part, item, kind)
            elif kind == "message":
                self._add_text(item)
            elif kind == "reasoning":
                self._thoughts(item)
            elif kind in CALLS:
                self._call(item, kind)
        self.last_at = at or self.last_at
        if self._steps:
            self._steps[-1].until = self.last_at

    def _exactly(self, part: Part, item: JsonObject, kind: str) -> None:
        if kind in CALLS:
            self._calls[as_text(item.get("call_id"))] = len(self._parts)
        self._parts.append(part)
        self._next_id += 1

    def facts(self, step: int, model: str, cost: int | None) -> None:
        """Add a line of moot's about the model call with that number."""
        self.model = model or self.model
        if step > len(self._steps):
            self._steps.append(_Step(self.model, self.last_at, self.last_at))
            self._parts.append({"type": "step-start"})
        if self._steps:
            self._steps[-1].counted = False
            self._steps[-1].cost = cost if cost is not None else self._steps[-1].cost

    def _in_step(self, at: int) -> None:
        if self.between:
            self._steps.append(_Step(self.model, self.last_at, at))
            self._parts.append({"type": "step-start"})

    def _add_text(self, item: JsonObject) -> None:
        text = "".join(
            as_text(as_object(block).get("text")) or as_text(as_object(block).get("refusal")) for block in as_list(item.get("content"))
        )
        if text:
            self._parts.append(text_part(text))
        self._next_id += 1

    def _thoughts(self, item: JsonObject) -> None:
        part = thought_of(item)
        if part is not None:
            self._parts.append({**part, "id": f"{_PREFIX}.{self._next_id}"})
        self._next_id += 1

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _call(self, item: JsonObject, kind: str) -> None:
        id = as_text(item.get("call_id")) or as_text(item.get("id")) or f"call_{_PREFIX}_{len(self._parts)}"
        if id in self._calls or id in self._settled:
            return
        name, arguments = named(item)
        if name == "update_plan" and isinstance(arguments, dict):
            self.event("turn/plan/updated", arguments)
            return
        if self._begin(id, name, arguments) and kind in ("web_search_call", "image_generation_call"):
            self._settle(id, vendor_output(item, Call(id, id, name)))

    def _begin(self, id: str, name: str, arguments: Json) -> bool:
        self._calls[id] = len(self._parts)
        call: Part = {"type": "dynamic-tool", "toolName": name, "toolCallId": id, "state": "input-available"}
        self._parts.append({**call, "toolMetadata": {"vendorId": id}, "providerExecuted": True, "input": arguments})
        return True

    def _output(self, item: JsonObject, exactly: JsonObject) -> None:
        id = as_text(item.get("call_id"))
        if id in self._calls:
            self._settle(id, outcome_of(item))
            if exact := as_object(exactly.get("output")):
                place = self._settled[id]
                rest = {name: value for name, value in self._parts[place].items() if name not in ("output", "errorText")}
                self._parts[place] = {**rest, **exact}

    def _settle(self, id: str, chunk: Chunk) -> None:
        place = self._calls.pop(id, None)
        place = self._settled[id] if place is None else place
        self._settled[id] = place
        self._parts[place] = OUTPUTS[as_text(chunk["type"])](self._parts[place], chunk)

    def shown(self, item: JsonObject, at: int = 0) -> bool:
        """Add a display item; return True if it says more than the API's items."""
        protocol_item = as_protocol(item)
        if not is_call(protocol_item):
            self.event(f"item/{as_text(protocol_item.get('type'))}", protocol_item)
            return False
        id = as_text(protocol_item.get("id"))
        name, arguments, _ = input_of(protocol_item)
        if id not in self._calls and id not in self._settled:
            self._in_step(at)
            self._begin(id, name, arguments)
        place = self._calls[id] if id in self._calls else self._settled[id]
        part = {key: value for key, value in self._parts[place].items() if key not in ("output", "errorText", "toolMetadata")}
        self._parts[place] = {**part, "toolName": name, "state": "input-available", "input": arguments, "toolMetadata": {"vendorId": id}}
        self._settle(id, output_of(protocol_item, Call(id, id, name)))
        return True

    # ── the rest ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def event(self, method: str, fields: JsonObject) -> None:
        """Add a note for an event that the user should see; ignore other events."""
        chunk: Chunk | None = None
        if method == "turn/plan/updated":
            chunk = data("plan", plan_of(fields), id="plan")
        elif text := noted(method, fields):
            chunk = data("note", {"text": text}, id=f"{_PREFIX}.{method}")
        if chunk is not None:
            self._parts = list(fold_parts(self._parts, (chunk,)))

    def steered(self, part: Part) -> None:
        """Add a user message that arrived while the agent was working."""
        self._parts.append(part)
        if self._steps:
            self._steps[-1].counted = True

    def took(self, usage: JsonObject, *, told: bool, id: str = "", counted: JsonObject | None = None) -> None:
        """Add the tokens of the newest model call. If `told`, they come from the call itself and end its step.

        `counted` is the usage from a line of moot's, in moot's own counts.
        """
        if not self._steps:
            return
        step = self._steps[-1]
        if told or not step.told:
            step.usage, step.told, step.id = counted or usage_of(usage).to_json(), told, id or step.id
        step.counted = True

    def parts(self, *, over: bool) -> tuple[Part, ...]:
        """Return the parts so far. `over` means that nothing more will come."""
        parts: list[Part] = list(self._parts)
        for place in self._calls.values() if over else ():
            parts[place] = {**parts[place], "state": "output-error", "errorText": _NO_OUTPUT}
        if self.error:
            parts.append({"type": "data-note", "data": {"text": self.error}, "id": f"{_PREFIX}.error"})
        return tuple(parts)

    def metadata(self) -> JsonObject:
        """Return the metadata, in the same form as for moot's own runs."""
        reason = "error" if self.error else self.reason or "other"
        facts: JsonObject = {"agent": NAME, "finish_reason": reason, "steps": list(self._step_facts(reason))}
        model = self._steps[-1].model if self._steps else self.model
        return {**facts, "model": model, "provider": API} if model else facts

    def _step_facts(self, reason: str) -> Iterator[Json]:
        for number, step in enumerate(self._steps, 1):
            facts: JsonObject = {"step": number, "model": step.model}
            facts |= {"finish_reason": reason if number == len(self._steps) else "tool-calls", "usage": step.usage, "cost": step.cost}
            if step.until > step.begun > 0:
                facts["ms"] = step.until - step.begun
            if step.id:
                facts["response_id"] = step.id
            if self.turn:
                facts["turn_id"] = self.turn
            yield facts
