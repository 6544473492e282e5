"""Messages: the entries of a conversation, each with a role and a parent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.types.canonical import JsonObject, empty
from moot.types.part import Part

Role: TypeAlias = Literal["system", "user", "assistant"]
MessageStatus: TypeAlias = Literal["streaming", "finished", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True, slots=True)
class Message:
    """A row of the `message` table. `parts` is the fold of the message's events up to `folded_through`."""

    id: str
    role: Role
    parts: tuple[Part, ...] = ()
    metadata: JsonObject = field(default_factory=empty)
    """agent, model, provider, usage and cost per step, finish_reason, timings."""
    conversation: str = ""
    parent: str | None = None
    run: str | None = None
    status: MessageStatus = "finished"
    client_id: str | None = None
    """Id assigned by a client; opaque, at most 128 bytes, unique in the conversation."""
    first_seq: int = 0
    """0 = no events yet."""
    last_seq: int = 0
    folded_through: int = 0
    created_at: int = 0
    """ms since the epoch."""
