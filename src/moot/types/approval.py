"""A person's yes or no, bound to the exact bytes it was asked about, used once (DESIGN section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from moot.types.canonical import Json


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said to an approval or to a tool's questions."""

    approved: bool
    option: str = "once"
    """once | conversation | always | an outside agent's own option id."""
    reason: str = ""
    answered_by: str = "user"
    value: Json = None
    """The replies, when a tool asked questions."""


@dataclass(frozen=True, slots=True)
class Approval:
    """The row of `approval`."""

    id: str
    """Derived: `<run>/<tool key>`, and `#<n>` when it had to be asked again."""
    run: str
    tool_call: str
    tool: str
    arguments: bytes
    """The exact bytes that will be run."""
    digest: bytes
    """`bind(…)` of all that the decision is about."""
    asked_at: int
    """ms"""
    expires_at: int | None = None
    answer: Answer | None = None
    used_at: int | None = None
    """Set in the transaction that holds the call's `start`."""
    questions: Json = None
    """What a tool asks a person, as JSON; null for a plain yes or no."""


def bind(run: str, directory: str, tool: str, definition: bytes, arguments: bytes) -> bytes:
    """32 bytes over exactly what a decision is about; any difference asks again."""
    digest = blake2b(digest_size=32)
    for piece in (run.encode(), directory.encode("utf-8", "surrogateescape"), tool.encode(), definition, arguments):
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.digest()
