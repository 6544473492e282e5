"""Compaction of a conversation's history: the summary that a step sends instead of the older messages."""

from __future__ import annotations

from dataclasses import dataclass

from moot.types.canonical import JsonObject
from moot.types.message import Message, Part

OPERATION = "compact"
"""`op` of the `tree` events that record, change and withdraw summaries."""

PART = "data-compaction"
"""Type of the part that shows a summary."""
TITLE = "Summary of the messages above"


def summaries_of(message: Message) -> tuple[Part, ...]:
    """Return the message's parts that show a summary."""
    return tuple(part for part in message.parts if part.get("type") == PART)


def summary_lines(part: Part) -> list[str]:
    """Return the summary in a part, together with its plan, as Markdown lines."""
    data = part.get("data")
    texts = [str(data.get(name) or "") for name in ("summary", "plan")] if isinstance(data, dict) else []
    return "\n\n".join(filter(None, texts)).split("\n")


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary of a branch up to a message. It applies to every branch that contains this message. The last one in a branch is used."""

    through: str
    """Id of the last summarized message."""
    summary: str
    """Text of the summary. If it is empty in an event, the summary is withdrawn."""
    plan: str = ""
    """The latest plan and to-do list in the summarized messages, unchanged; empty = none."""
    exchange: str | None = None
    """Id of the model call that wrote the summary; None = a person wrote it."""
    seq: int = 0
    """`seq` of the event that recorded the summary; 0 = not stored yet."""
    at: int = 0
    """Time of the summary, in milliseconds since the epoch."""

    def to_body(self) -> JsonObject:
        """Return the body of the event that records the compaction."""
        plan: JsonObject = {"plan": self.plan} if self.plan else {}
        return {"op": OPERATION, "through": self.through, "summary": self.summary, **plan, "exchange": self.exchange}

    def to_json(self) -> JsonObject:
        return {
            "through": self.through,
            "summary": self.summary,
            "plan": self.plan,
            "exchange": self.exchange,
            "seq": self.seq,
            "at": self.at,
        }

    def to_part(self) -> Part:
        """Return the part that shows the summary at the end of its message. The part is never stored."""
        return {"type": PART, "id": f"compaction-{self.seq}", "data": self.to_json()}

    @staticmethod
    def of_body(body: JsonObject, seq: int = 0, at: int = 0) -> Compaction | None:
        """Return the compaction in the body of a `tree` event; None for other operations."""
        if body.get("op") != OPERATION or not isinstance(body.get("through"), str):
            return None
        exchange = body.get("exchange")
        texts = str(body.get("through")), str(body.get("summary") or ""), str(body.get("plan") or "")
        return Compaction(*texts, exchange if isinstance(exchange, str) else None, seq, at)
