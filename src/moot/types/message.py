"""Messages, the entries of a conversation, and the parts they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from moot.types.canonical import JsonObject, empty

Part: TypeAlias = JsonObject
"""Plain JSON with a `type`: text, reasoning, tool-NAME, dynamic-tool, source-url, source-document, file, reasoning-file, custom,
data-NAME, steering-message, step-start. Unknown types and fields are kept."""

TOOL_DONE = frozenset({"output-available", "output-error", "output-denied"})
"""States of a tool part that are final."""


def is_settled(part: Part) -> bool:
    """Return True if a tool part has its final output, not a preliminary one."""
    return part.get("state") in TOOL_DONE and not part.get("preliminary")


def is_tool(part: Part) -> bool:
    """Return True if the part is a tool call, in any state."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind.startswith("tool-") or kind == "dynamic-tool")


def tool_name(part: Part) -> str:
    """Return the name of the tool that a tool part calls."""
    kind = str(part.get("type", ""))
    return str(part.get("toolName", "")) if kind == "dynamic-tool" else kind.removeprefix("tool-")


def note_of(part: Part) -> str:
    """Return the text of a `data-note` part or chunk, which is a notice about this answer."""
    data = part.get("data")
    return str(data.get("text", "")) if isinstance(data, dict) else ""


class Transcript(NamedTuple):
    """The text of a recording, stored with the answer to the prompt that contains the recording."""

    sound: str
    """SHA-256 of the recording."""
    name: str
    text: str


def transcript_of(part: Part) -> Transcript | None:
    """Read a `data-transcript` part or chunk. Return None for any other part."""
    data = part.get("data")
    if part.get("type") != "data-transcript" or not isinstance(data, dict):
        return None
    return Transcript(str(data.get("sound", "")), str(data.get("name", "")), str(data.get("text", "")))


def transcript_line(part: Part) -> str:
    """Return a `data-transcript` part or chunk as text for display."""
    found = transcript_of(part)
    return f"Transcript of {found.name}: {found.text or 'no speech'}" if found is not None else ""


def wait_end(part: Part) -> int:
    """Return the time in ms until which the run waits after a `data-note` part or chunk; 0 if it does not wait."""
    data = part.get("data")
    until = data.get("until") if isinstance(data, dict) else None
    return until if isinstance(until, int) else 0


class PlanEntry(NamedTuple):
    """One item of an agent's plan."""

    content: str
    status: str
    """pending, in_progress or completed."""


def plan_of(part: Part) -> tuple[PlanEntry, ...]:
    """Return the entries of a `data-plan` part or chunk, in order."""
    data = part.get("data")
    entries = data.get("entries") if isinstance(data, dict) else None
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return tuple(PlanEntry(str(entry.get("content", "")), str(entry.get("status", ""))) for entry in found)


def plan_line(plan: Sequence[PlanEntry]) -> str:
    """Summarize the progress of a plan in one line."""
    done = sum(entry.status == "completed" for entry in plan)
    now = next((f": {entry.content}" for entry in plan if entry.status == "in_progress"), "")
    return f"plan {done}/{len(plan)}{now}"


class SubAgentWords(NamedTuple):
    """Text or reasoning of a sub-agent."""

    agent: str
    """Kind or name of the sub-agent."""
    text: str
    thought: bool


def sub_agent_words(part: Part) -> SubAgentWords:
    """Read a `data-subagent` part or chunk."""
    data = part.get("data")
    fields = data if isinstance(data, dict) else {}
    return SubAgentWords(str(fields.get("agent") or "sub-agent"), str(fields.get("text", "")), fields.get("kind") == "reasoning")


def text_part(text: str) -> Part:
    """Return a finished text part."""
    return {"type": "text", "text": text, "state": "done"}


def text_of(parts: list[Part] | tuple[Part, ...]) -> str:
    """Join the text parts, without separators, into the text that a person reads."""
    return "".join(text for part in parts if part.get("type") == "text" and isinstance(text := part.get("text"), str))


def model_ms(metadata: JsonObject) -> int | None:
    """Return the time in ms for which models worked on an answer with this metadata, without waits for people; None = unknown."""
    steps = metadata.get("steps")
    facts = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    times = [ms for step in facts if type(ms := step.get("ms")) is int]
    return sum(times) if times else None


Role: TypeAlias = Literal["system", "user", "assistant"]
MessageStatus: TypeAlias = Literal["streaming", "finished", "failed", "cancelled", "interrupted"]


BY_CLIENT: JsonObject = {"written_by": "client"}
"""Metadata of an assistant message that a client sent as part of its history. The signatures in it are sent to no provider."""


@dataclass(frozen=True, slots=True)
class Message:
    """A row of the `message` table. `parts` is built from the message's events up to `folded_through`."""

    id: str
    role: Role
    parts: tuple[Part, ...] = ()
    metadata: JsonObject = field(default_factory=empty)
    """Contains agent, model, provider, finish_reason, and the usage, cost and times of each step."""
    conversation: str = ""
    parent: str | None = None
    run: str | None = None
    status: MessageStatus = "finished"
    client_id: str | None = None
    """Id assigned by a client; opaque, at most 128 bytes, unique in the conversation."""
    first_seq: int = 0
    """`seq` of its first event; 0 = no events yet."""
    last_seq: int = 0
    folded_through: int = 0
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch."""


def unanswered(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the prompts in a branch that are not directly followed by their answer."""
    after = (*messages[1:], None)
    return [
        message.id
        for message, answer in zip(messages, after, strict=False)
        if message.role == "user" and (answer is None or answer.role != "assistant" or answer.parent != message.id)
    ]
