"""An entry of a conversation with a role, placed in a tree by its parent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.types.canonical import JsonObject, empty
from moot.types.part import Part

Role: TypeAlias = Literal["system", "user", "assistant"]
MessageStatus: TypeAlias = Literal["streaming", "finished", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True, slots=True)
class Message:
    """The row of `message`. `parts` is the fold of the message's events up to `folded_through`."""

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
    """The id that a client gave it; opaque, at most 128 bytes, unique in the conversation."""
    first_seq: int = 0
    """0 = nothing in the log yet."""
    last_seq: int = 0
    folded_through: int = 0
    created_at: int = 0
    """ms since the epoch."""
