"""A finished piece of a message, in the shape of the AI SDK's `UIMessage.parts` (reference: AI SDK UI, UIMessage)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from moot.types.canonical import JsonObject

Part: TypeAlias = JsonObject
"""Plain JSON with a `type`: text, reasoning, tool-NAME, dynamic-tool, source-url, source-document, file, reasoning-file, custom,
data-NAME, steering-message, step-start. Unknown types and fields are kept."""

TOOL_DONE = frozenset({"output-available", "output-error", "output-denied"})
"""Tool part states after which nothing more is expected."""


def is_settled(part: Part) -> bool:
    """Whether a tool part has its one output. What a call has shown on its way there is none."""
    return part.get("state") in TOOL_DONE and not part.get("preliminary")


def is_tool(part: Part) -> bool:
    """Whether the part is a tool call with whatever became of it."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind.startswith("tool-") or kind == "dynamic-tool")


def tool_name(part: Part) -> str:
    """The name of the tool that a tool part calls."""
    kind = str(part.get("type", ""))
    return str(part.get("toolName", "")) if kind == "dynamic-tool" else kind.removeprefix("tool-")


def note_of(part: Part) -> str:
    """What a `data-note` part or chunk tells a person: something about this answer that no other part says."""
    data = part.get("data")
    return str(data.get("text", "")) if isinstance(data, dict) else ""


class PlanEntry(NamedTuple):
    """Something that an agent means to do."""

    content: str
    status: str
    """pending, in_progress or completed."""


def plan_of(part: Part) -> tuple[PlanEntry, ...]:
    """What a `data-plan` part or chunk says that is to be done, whole and in order."""
    data = part.get("data")
    entries = data.get("entries") if isinstance(data, dict) else None
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return tuple(PlanEntry(str(entry.get("content", "")), str(entry.get("status", ""))) for entry in found)


def plan_line(plan: Sequence[PlanEntry]) -> str:
    """How far a plan is, in a line."""
    done = sum(entry.status == "completed" for entry in plan)
    now = next((f": {entry.content}" for entry in plan if entry.status == "in_progress"), "")
    return f"plan {done}/{len(plan)}{now}"


class SubAgentWords(NamedTuple):
    """What an agent's own agent said or thought."""

    agent: str
    """Its kind or name."""
    text: str
    thought: bool


def sub_agent_words(part: Part) -> SubAgentWords:
    """What a `data-subagent` part or chunk holds."""
    data = part.get("data")
    told = data if isinstance(data, dict) else {}
    return SubAgentWords(str(told.get("agent") or "sub-agent"), str(told.get("text", "")), told.get("kind") == "reasoning")


def text_part(text: str) -> Part:
    """A finished text part."""
    return {"type": "text", "text": text, "state": "done"}


def text_of(parts: list[Part] | tuple[Part, ...]) -> str:
    """The text parts, joined by nothing: what a person reads as the message."""
    return "".join(text for part in parts if part.get("type") == "text" and isinstance(text := part.get("text"), str))
