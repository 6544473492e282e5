"""Conversion of conversations to sessions that Claude Code can resume.

Parts that the model's API would reject, such as unsigned reasoning, are written to lines and fields that Claude Code ignores and that moot
reads back.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from moot.convert.agents.claude_session import EXACTLY, user_parts
from moot.convert.fold import in_history
from moot.formats.agents.claude.lines import PART, block_of, content_of, output_of
from moot.formats.kit.fidelity import steps_of, with_descendants, without_output
from moot.formats.kit.fields import iso_or_epoch, obj, objects, text
from moot.types.canonical import JsonObject, dumps
from moot.types.format import ExportedConversation
from moot.types.message import Message, Part, is_tool, tool_name

VERSION = "2.1.330"
"""The version of Claude Code in whose format sessions are written."""
SPACE = uuid.UUID("6f9f1f0e-3a52-5d6c-9d2b-7c1f54a0e9b1")
"""UUID namespace for generated ids."""


def lines_of(exported: ExportedConversation, session: str) -> Iterator[bytes]:
    """Yield the lines of a session file: sub-agents, then the messages with the active branch last, then the title."""
    for one, parent in reversed(list(with_descendants(exported))):
        yield from _SessionWriter(one, session, _named(one.conversation.id) if parent is not None else "").lines()
    if exported.conversation.title:
        title: JsonObject = {"type": "custom-title", "customTitle": exported.conversation.title, "sessionId": session}
        yield dumps(title) + b"\n"


def _named(id: str) -> str:
    return "a" + uuid.uuid5(SPACE, id).hex[:16]


@dataclass(slots=True)
class _SessionWriter:
    exported: ExportedConversation
    session: str
    side: str
    """Name of the sub-agent; empty for the session itself."""
    last: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Message id → id of the last line written for the message."""
    at: int = 0
    line_count: int = 0

    def lines(self) -> Iterator[bytes]:
        shown, end = self.exported.messages[:-1], self.exported.messages[-1:]
        before: str | None = None
        for message in shown:
            yield from self._message(message, before)
            before = message.id
        postponed = list[Message]()
        for message in self.exported.others:  # children of the last message come after it
            if message.parent is None or message.parent in self.last:
                yield from self._message(message, message.parent)
            else:
                postponed.append(message)
        for message in end:
            yield from self._message(message, before)
        for message in postponed:
            yield from self._message(message, message.parent if message.parent in self.last else None)

    def _message(self, message: Message, parent: str | None) -> Iterator[bytes]:
        self.at = message.created_at
        self.last[message.id] = self.last.get(parent or "")
        if message.role == "assistant":
            yield from self._answer(message)
            return
        mark: JsonObject = {"message": message.id}
        if message.role == "system":
            mark["role"] = "system"
        content = content_of(message.parts)
        if user_parts(content) != message.parts:
            mark["parts"] = list(message.parts)
        body: JsonObject = {"message": {"role": "user", "content": content or "…"}, EXACTLY: mark}
        yield self._line("user", message, body, meta=message.role == "system")

    def _line(self, kind: str, message: Message, body: JsonObject, *, meta: bool = False) -> bytes:
        """Return a line whose parent is the previous line of the message or, for the first line, the line before the message."""
        self.line_count += 1
        id = str(uuid.uuid5(SPACE, f"{self.session} {self.side} {message.id} {self.line_count}"))
        line: JsonObject = {"parentUuid": self.last[message.id], "isSidechain": bool(self.side)}
        if self.side:
            line["agentId"] = self.side
        line |= {"userType": "external", "cwd": self.exported.conversation.directory or "/", "sessionId": self.session, "version": VERSION}
        line |= {"type": kind, **body, **({"isMeta": True} if meta else {}), "uuid": id, "timestamp": iso_or_epoch(self.at)}
        self.last[message.id] = id
        return dumps(line) + b"\n"

    # ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, message: Message) -> Iterator[bytes]:
        recorded = steps_of(message)
        mark: JsonObject = {"message": message.id}
        for number, (steering, parts) in enumerate(_steps(in_history(message.parts))):
            for part in steering:
                attachment: JsonObject = {"type": "queued_command", "prompt": content_of(tuple(objects(part, "parts")))}
                attachment["commandMode"] = "prompt"
                yield self._line("attachment", message, {"attachment": attachment, EXACTLY: {**mark, "part": part}})
            step = _Step(
                f"msg_{uuid.uuid5(SPACE, message.id).hex[:20]}{number}",
                str(message.metadata.get("model") or ""),
                recorded[number] if number < len(recorded) else {},
            )
            yield from self._step(message, step, parts, mark)

    def _step(self, message: Message, step: _Step, parts: Sequence[Part], mark: JsonObject) -> Iterator[bytes]:
        pieces = [(part, block_of(part)) for part in parts]
        api_parts = [number for number, (_, block) in enumerate(pieces) if block is not None]
        for number, (part, block) in enumerate(pieces or [({}, None)]):
            if block is None:
                body: JsonObject = {
                    "sessionId": self.session,
                    "isSidechain": bool(self.side),
                    **({"agentId": self.side} if self.side else {}),
                }
                body |= {"type": PART, "parent": self.last[message.id], "message": step.head(last=not api_parts)}
                body |= {"timestamp": iso_or_epoch(self.at), EXACTLY: {**mark, "part": part}}
                if not api_parts and number == len(pieces) - 1 and step.cost is not None:
                    body["costUSD"] = step.cost
                yield dumps(body) + b"\n"
            else:
                last = number == api_parts[-1]
                body: JsonObject = {"message": {**step.head(last=last), "content": [block]}, EXACTLY: {**mark, **_exact(part, block)}}
                if last and step.cost is not None:
                    body["costUSD"] = step.cost
                yield self._line("assistant", message, body)
        for part in parts:
            if is_tool(part):
                block, rest = output_of(part)
                result: JsonObject = {"message": {"role": "user", "content": [block]}}
                if rest:
                    result[EXACTLY] = {str(block["tool_use_id"]): rest}
                children = (one for one in self.exported.children if one.conversation.parent_tool_call == part.get("toolCallId"))
                if (child := next(children, None)) is not None:
                    result["toolUseResult"] = {"agentId": _named(child.conversation.id)}
                elif part.get("state") == "output-denied":
                    result["toolDenialKind"] = "user-rejected"
                yield self._line("user", message, result)


@dataclass(frozen=True, slots=True)
class _Step:
    id: str
    model: str
    recorded: JsonObject

    def head(self, *, last: bool) -> JsonObject:
        """Return the API message without its content. `last` marks the last line of the message."""
        counts = obj(self.recorded, "usage")
        read, written = _count(counts, "cache_read"), _count(counts, "cache_write")
        recorded: JsonObject = {"output_tokens": counts["output"]} if "output" in counts else {}
        if "input" in counts:
            recorded["input_tokens"] = max(_count(counts, "input") - read - written, 0)
        recorded |= {"cache_read_input_tokens": read} if "cache_read" in counts else {}
        recorded |= {"cache_creation_input_tokens": written} if "cache_write" in counts else {}
        if hour := _count(counts, "cache_write_1h"):
            recorded["cache_creation"] = {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour}
        if searches := _count(counts, "web_searches"):
            recorded["server_tool_use"] = {"web_search_requests": searches}
        if tier := text(self.recorded, "service_tier"):
            recorded["service_tier"] = tier
        if "reasoning" in counts:
            recorded["output_tokens_details"] = {"thinking_tokens": counts["reasoning"]}
        reason = ("tool_use" if self.recorded.get("finish_reason") == "tool-calls" else "end_turn") if last else None
        head: JsonObject = {"id": self.id, "type": "message", "role": "assistant", "model": self.model}
        return {**head, "stop_reason": reason, "stop_sequence": None, "usage": recorded}

    @property
    def cost(self) -> float | None:
        """Cost of the model call in dollars, if it is known."""
        cost = self.recorded.get("cost")
        return cost / 1e9 if isinstance(cost, int) and not isinstance(cost, bool) else None


def _count(counts: JsonObject, name: str) -> int:
    count = counts.get(name)
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _exact(part: Part, block: JsonObject) -> JsonObject:
    """Return the fields of a part for which the block that represents it has no place."""
    if not is_tool(part):
        return {} if part.keys() <= {"type", "text", "state"} else {"part": part}
    if (block["name"], block["id"], block["input"]) == (tool_name(part), part.get("toolCallId"), part.get("input")):
        return {}
    return {"part": without_output(part)}


def _steps(parts: Sequence[Part]) -> Iterator[tuple[list[Part], list[Part]]]:
    """Yield each model call together with the steering messages before it."""
    steering, current = list[Part](), list[Part]()
    started = False
    for part in parts:
        kind = part.get("type")
        if kind == "step-start" or (kind == "steering-message" and current):
            if current or started:
                yield steering, current
                steering, current = [], []
            started = kind == "step-start"
        if kind == "steering-message":
            steering.append(part)
        elif kind != "step-start":
            current.append(part)
    if steering or current or started:
        yield steering, current
