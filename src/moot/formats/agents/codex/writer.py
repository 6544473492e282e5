"""Conversion of conversations to sessions that Codex can resume.

Parts that the model's API would reject, such as reasoning without encrypted content, are written to lines and fields that Codex ignores
and that moot reads back.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moot.convert.agents.codex_session import user_parts
from moot.convert.agents.session import EXACTLY
from moot.convert.fold import in_history
from moot.formats.agents.codex.lines import PART, content_of, is_exact, item_of, output_of
from moot.formats.kit.fidelity import steps_of, without_output
from moot.formats.kit.fields import iso_or_epoch, obj, objects
from moot.types.canonical import JsonObject, dumps
from moot.types.format import ExportedConversation
from moot.types.message import Message, Part, is_tool, text_of

_VERSION = "0.169.0"
"""The version of Codex in whose format sessions are written."""
SPACE = uuid.UUID("1b0de4a6-5c1f-5d0e-8a53-64f1a7b3c9d2")
"""UUID namespace for generated ids."""


def lines_of(exported: ExportedConversation, session: str) -> Iterator[bytes]:
    """Yield the lines of a session: metadata, the active branch, and the title."""
    conversation = exported.conversation
    at = conversation.created_at or next((message.created_at for message in exported.messages), 0)
    meta: JsonObject = {"id": session, "timestamp": iso_or_epoch(at), "cwd": conversation.directory or "/", "originator": "moot"}
    yield _line(at, "session_meta", {**meta, "cli_version": _VERSION, "source": "cli", "instructions": None})
    total = dict[str, int]()
    for message in exported.messages:
        yield from _MessageWriter(message, total).lines()
    if conversation.title:
        named: JsonObject = {"type": "thread_name_updated", "thread_id": session, "thread_name": conversation.title}
        yield _line(at, "event_msg", named)


def _line(at: int, kind: str, payload: JsonObject, exactly: JsonObject | None = None) -> bytes:
    recorded: JsonObject = {"timestamp": iso_or_epoch(at), "type": kind, "payload": payload}
    return dumps({**recorded, EXACTLY: exactly} if exactly else recorded) + b"\n"


@dataclass(slots=True)
class _MessageWriter:
    message: Message
    total: dict[str, int]
    """Token counts of the session so far."""

    def lines(self) -> Iterator[bytes]:
        message = self.message
        if message.role == "assistant":
            yield from self._answer()
            return
        content = content_of(message.parts)
        mark: JsonObject = {"message": message.id}
        if user_parts(content) != message.parts:
            mark["parts"] = list(message.parts)
        role = "developer" if message.role == "system" else "user"
        yield self._of("response_item", {"type": "message", "role": role, "content": content}, mark)
        if role == "user":
            yield self._of("event_msg", {"type": "user_message", "message": text_of(message.parts), "images": []}, {})

    def _of(self, kind: str, payload: JsonObject, exactly: JsonObject) -> bytes:
        return _line(self.message.created_at, kind, payload, exactly)

    def _answer(self) -> Iterator[bytes]:
        message, recorded = self.message, steps_of(self.message)
        facts: JsonObject = {"message": message.id, "model": str(message.metadata.get("model") or "")}
        facts |= {"finish_reason": message.metadata["finish_reason"]} if message.metadata.get("finish_reason") else {}
        step = 0
        border: Part = {"type": "step-start"}
        current: list[Part] = []
        for part in (*in_history(message.parts), border):
            kind = part.get("type")
            if kind not in ("step-start", "steering-message"):
                current.append(part)
                continue
            if current:
                step += 1
                yield from self._step(current, {**facts, "step": step}, recorded[step - 1] if step <= len(recorded) else {})
                current = []
            if kind == "steering-message":
                item: JsonObject = {"type": "message", "role": "user", "content": content_of(tuple(objects(part, "parts")))}
                yield self._of("response_item", item, {**facts, "part": part})

    def _step(self, parts: Sequence[Part], facts: JsonObject, recorded: JsonObject) -> Iterator[bytes]:
        if recorded.get("cost") is not None:
            facts = {**facts, "cost": recorded["cost"]}
        for part in parts:
            item = item_of(part)
            if item is None:
                yield self._of(PART, {}, {**facts, "part": part})
                continue
            yield self._of(
                "response_item", item, facts if is_exact(part, item) else {**facts, "part": without_output(part) if is_tool(part) else part}
            )
            if part.get("type") == "text":
                yield self._of("event_msg", {"type": "agent_message", "message": part["text"]}, {})
        for part in parts:
            if is_tool(part):
                item, rest = output_of(part)
                yield self._of("response_item", item, {**facts, "output": rest} if rest else facts)
        if usage := recorded.get("usage"):
            yield self._of("event_msg", self._tokens(obj(usage)), {**facts, "usage": usage})

    def _tokens(self, usage: JsonObject) -> JsonObject:
        names = {"input": "input_tokens", "cache_read": "cached_input_tokens", "cache_write": "cache_write_input_tokens"}
        names |= {"output": "output_tokens", "reasoning": "reasoning_output_tokens"}
        last = {theirs: count for ours, theirs in names.items() if type(count := usage.get(ours)) is int}
        for name, count in last.items():
            self.total[name] = self.total.get(name, 0) + count
        counts: JsonObject = {**dict.fromkeys(names.values(), 0), **last}
        counts["total_tokens"] = last.get("input_tokens", 0) + last.get("output_tokens", 0)
        total: JsonObject = {**dict.fromkeys(names.values(), 0), **self.total, "total_tokens": sum(self.total.values())}
        info: JsonObject = {"total_token_usage": total, "last_token_usage": counts, "model_context_window": None}
        return {"type": "token_count", "info": info, "rate_limits": None}
