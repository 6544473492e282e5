"""Reader for Claude Code's session files: one message per prompt, with the same parts that the stream translator produces.

A model call spans several lines, one per block. Each line contains the message's id and usage. A tool's output is a user line.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

from moot.convert.agents.claude_calls import NAME, Call, note_of, output_of, plan_of
from moot.convert.agents.session import EXACTLY, PREFIX, SessionMessage, SessionStep
from moot.convert.dialects.anthropic_stream import METADATA, REASONS, State, take, usage_of
from moot.convert.vendor import as_list, as_object, as_text, count
from moot.convert.writer import Parts, free_id
from moot.types.canonical import Json, JsonObject
from moot.types.message import Part, text_part

_REFUSED = "The user doesn't want to "
"""Beginning of the output of a call that the user denied, to recognize denials in lines that have no field for them."""
_SYNTHETIC = "<synthetic>"
"""The model name in lines that the program writes itself."""
_MADE_BY: JsonObject = {METADATA: {"provider": NAME}}


def user_parts(content: Json) -> tuple[Part, ...]:
    """Return the user's parts from the content of a user line, without tool outputs."""
    if isinstance(content, str):
        return (text_part(content),) if content else ()
    return tuple(part for block in as_list(content) if (part := part_of(as_object(block))) is not None)


def part_of(block: JsonObject) -> Part | None:
    """Return the part for a block of a user line, or None."""
    kind = as_text(block.get("type"))
    if kind == "text":
        return text_part(as_text(block.get("text")))
    if kind in ("image", "document"):
        source = as_object(block.get("source"))
        media_type = as_text(source.get("media_type")) or ("image/png" if kind == "image" else "application/pdf")
        title: JsonObject = {"filename": block["title"]} if isinstance(block.get("title"), str) else {}
        if encoded := as_text(source.get("data")):
            if source.get("type") == "text":
                encoded = base64.b64encode(encoded.encode("utf-8", "replace")).decode()
            return {"type": "file", "mediaType": media_type, "url": f"data:{media_type};base64,{encoded}", **title}
        if url := as_text(source.get("url")):
            return {"type": "file", "mediaType": media_type, "url": url, **title}
    if not kind or kind == "tool_result":
        return None
    return {"type": "custom", "kind": f"{METADATA}.{kind}", "providerMetadata": {METADATA: {"block": block}}}


@dataclass(slots=True)
class _Step(SessionStep):
    reason: str = ""
    at: str = ""
    """The UUID of the step's newest line, from which the agent can continue the session."""


class ClaudeMessage(SessionMessage):
    """An assistant's message, built line by line."""

    __slots__ = ("_steps", "_used")

    def __init__(self, at: int = 0) -> None:
        super().__init__(at)
        self._used = set[str]()
        self._steps: list[_Step] = []

    def begins_step(self, line: JsonObject) -> bool:
        """Return True if the line starts a new model call."""
        id = as_text(as_object(line.get("message")).get("id"))
        return not self._steps or self._steps[-1].id != id

    def said(self, line: JsonObject, at: int = 0) -> tuple[str, ...]:
        """Add a line from the model. Return the vendor's ids of the calls in this line."""
        message = as_object(line.get("message"))
        if line.get("isApiErrorMessage") is True or line.get("is_api_error_message") is True:
            self.error = "\n".join(as_text(as_object(block).get("text")) for block in as_list(message.get("content")))
            self.last_at = at or self.last_at
            return ()
        if message.get("model") == _SYNTHETIC:
            return ()
        self.error = ""
        if message:
            self._step(message, line, at)
        content = message.get("content")
        whole: JsonObject = {"type": "text", "text": content}
        blocks = [whole] if isinstance(content, str) else as_list(content)
        started = len(self._parts)
        calls = tuple(id for block in blocks if (id := self._block(as_object(block))))
        if (part := as_object(as_object(line.get(EXACTLY)).get("part"))) and len(self._parts) <= started + 1:
            self._parts[started:] = [part]
        return calls

    def _step(self, message: JsonObject, line: JsonObject, at: int) -> None:
        id = as_text(message.get("id"))
        step = next((step for step in reversed(self._steps) if step.id == id), None)
        if step is None:
            request, uuid = as_text(line.get("requestId")), as_text(line.get("uuid"))
            step = _Step(id, begun=self.last_at, identity=":".join(filter(None, ("claude", id, request))) if id or request else uuid)
            self._steps.append(step)
            self._parts.append({"type": "step-start"})
        step.model = as_text(message.get("model")) or step.model
        usage = as_object(message.get("usage"))  # every line has the usage, but only the one with the most output tokens is complete
        if (count(usage.get("output_tokens")) or 0) >= (count(step.usage.get("output_tokens")) or 0):
            step.usage = usage or step.usage
        tier = "fast" if usage.get("speed") == "fast" else as_text(usage.get("service_tier"))
        step.service_tier = step.service_tier if tier in ("", "standard") else tier
        step.reason = as_text(message.get("stop_reason")) or step.reason
        step.until = self.last_at = at or self.last_at
        step.at = as_text(line.get("uuid")) or step.at
        cost = line.get("costUSD")
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e9:
            step.cost = (step.cost or 0) + round(cost * 1e9)

    def _block(self, block: JsonObject) -> str:
        """Add a block. Return the vendor's id if the block is a call, otherwise an empty string."""
        kind = block.get("type")
        if kind == "text" and not block.get("citations"):
            if text := as_text(block.get("text")):
                self._parts.append(text_part(text))
                self._next_id += 1
        elif kind == "thinking":
            signature = as_text(block.get("signature"))
            made_by: JsonObject = {METADATA: {"signature": signature, "provider": NAME}} if signature else _MADE_BY
            part: Part = {"type": "reasoning", "id": f"{PREFIX}.{self._next_id}", "text": as_text(block.get("thinking")), "state": "done"}
            self._parts.append({**part, "providerMetadata": made_by})
            self._next_id += 1
        elif kind == "tool_use":
            return self._call(block)
        elif kind:
            self._other(block)
        return ""

    def _call(self, block: JsonObject) -> str:
        vendor_id, name = as_text(block.get("id")), as_text(block.get("name")) or "unknown"
        number = len(self._used)
        id = free_id(vendor_id or f"call_{PREFIX}_{number}", self._used, f"{vendor_id}#{len(self._steps)}", number)
        self._used.add(id)
        arguments = block.get("input")
        self._begin_call(vendor_id, id, name, {} if arguments is None else arguments)
        if name == "TodoWrite" and (plan := plan_of(arguments)) is not None:
            self._show_plan(plan)
        return vendor_id

    def _other(self, block: JsonObject) -> None:
        """Add a block of another kind, using the translator of the Messages API's stream."""
        state = State(Parts(PREFIX, len(self._steps), tuple(self._used), self._next_id), NAME)
        state, started = take(state, {"type": "content_block_start", "index": 0, "content_block": block})
        state, ended = take(state, {"type": "content_block_stop", "index": 0})
        self._fold(*started, *ended)
        self._used.update(state.parts.used)
        self._next_id = state.parts.next

    def output(self, block: JsonObject, line: JsonObject, at: int = 0) -> bool:
        """Add the output of a call. Return False if no call is waiting for it."""
        place = self._calls.pop(as_text(block.get("tool_use_id")), None)
        if place is None:
            return False
        call = Call(as_text(self._parts[place]["toolCallId"]), as_text(block.get("tool_use_id")))
        beside: JsonObject = {"tool_use_result": line.get("toolUseResult", line.get("tool_use_result"))}
        if _refused(block, line):
            beside["tool_result_meta"] = [{"id": call.vendor_id, "non_execution_kind": "user-rejected"}]
        self._apply_output(place, output_of(call, block, beside))
        self._parts[place] |= as_object(as_object(line.get(EXACTLY)).get(call.vendor_id))
        self.last_at = at or self.last_at
        return True

    def steered(self, id: str, parts: tuple[Part, ...]) -> None:
        """Add a user message that arrived while the agent was working."""
        self._parts.append({"type": "steering-message", "id": id, "parts": list(parts)})

    def note(self, line: JsonObject) -> None:
        """Add a note for an event that the user should see; ignore other events."""
        self._show_note(note_of(line), f"{line.get('subtype')}")

    def cost(self, amount: int) -> None:
        """Add a cost in nano-dollars to the newest model call."""
        if self._steps:
            self._steps[-1].cost = (self._steps[-1].cost or 0) + amount

    def identities(self) -> tuple[str, ...]:
        """Return the identity of each model call."""
        return tuple([step.identity for step in self._steps])

    def metadata(self) -> JsonObject:
        """Return the metadata, in the same format as for moot's own runs."""
        last = self._steps[-1] if self._steps else _Step("")
        facts: JsonObject = {"agent": NAME}
        if last.model:
            facts |= {"model": last.model, "provider": METADATA}
        facts["finish_reason"] = "error" if self.error else REASONS.get(last.reason, "other") if last.reason else "other"
        facts["steps"] = list(self._step_facts())
        return facts

    def _step_facts(self) -> Iterator[Json]:
        for number, step in enumerate(self._steps, 1):
            reason = REASONS.get(step.reason, "other") if step.reason else "other"
            facts = step.facts(number, reason, usage_of(step.usage).to_json(), self.began)
            yield {**facts, "session_at": step.at} if step.at else facts


def _refused(block: JsonObject, line: JsonObject) -> bool:
    if as_object(line.get("permissionDecision")).get("source") == "user_reject" or line.get("toolDenialKind") == "user-rejected":
        return True
    text = block.get("content")
    return block.get("is_error") is True and isinstance(text, str) and text.startswith(_REFUSED) and "rejected" in text[:160]
