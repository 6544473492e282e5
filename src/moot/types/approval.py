"""A person's yes or no, bound to the exact bytes it was asked about, used once (DESIGN section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, Protocol, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.outside import Option, OutsideCall

BY_CLIENT: Json = {"by": "client"}
"""`Approval.questions` where a client's own tool is to be run: the answer's `value` is `{"output": …}` or `{"error": "…"}`."""

Action: TypeAlias = Literal["allow", "ask", "deny"]

_ACTIONS: dict[str, Action] = {"allow": "allow", "ask": "ask", "deny": "deny"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said to an approval or to a tool's questions."""

    approved: bool
    option: str = "once"
    """once | conversation | always | an outside agent's own option id. The latter two of ours also allow the like from then on."""
    reason: str = ""
    answered_by: str = "user"
    value: Json = None
    """The replies, when a tool asked questions."""
    patterns: tuple[str, ...] = ()
    """What `conversation` and `always` allow from then on; empty = the narrowest that was offered for each part."""
    arguments: bytes | None = None
    """The arguments that the person put in the place of the model's; the call runs with exactly these bytes."""
    digest: bytes = b""
    """`bind(…)` with those arguments; the runtime sets it."""


@dataclass(frozen=True, slots=True)
class AskedPart:
    """One thing that an approval is about, decided by itself: a command of a shell line, a path, an address."""

    text: str
    """Untrusted: faces spell out its control characters."""
    action: Action
    why: str
    """The rule or mode that decided it, or what no rule can cover."""
    patterns: tuple[str, ...] = ()
    """What could be allowed from now on that covers it, narrowest first; empty = only this once."""
    always: bool = False
    """Whether that may be offered for ever."""
    within: bool = False
    """It is run by the part before it."""

    def to_json(self) -> JsonObject:
        return {
            "text": self.text,
            "action": self.action,
            "why": self.why,
            "patterns": list[Json](self.patterns),
            "always": self.always,
            "within": self.within,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> AskedPart:
        """Total: what is not there is empty, and an unknown action asks."""
        patterns = value.get("patterns")
        return cls(
            str(value.get("text", "")),
            _ACTIONS.get(str(value.get("action")), "ask"),
            str(value.get("why", "")),
            tuple(str(pattern) for pattern in patterns) if isinstance(patterns, list) else (),
            value.get("always") is True,
            value.get("within") is True,
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person allowed for as long as a conversation lasts."""

    tool: str
    match: str
    at: int = 0
    """ms"""
    by: str = "user"

    def to_json(self) -> JsonObject:
        return {"tool": self.tool, "match": self.match, "at": self.at, "by": self.by}


def grants_of(settings: JsonObject) -> tuple[Grant, ...]:
    """What a conversation's settings allow; what can't be read allows nothing."""
    found: list[Grant] = []
    kept = settings.get("grants")
    for item in kept if isinstance(kept, list) else []:
        if isinstance(item, dict) and isinstance(tool := item.get("tool"), str) and isinstance(match := item.get("match"), str):
            at, by = item.get("at"), item.get("by")
            found.append(Grant(tool, match, at if isinstance(at, int) else 0, str(by or "user")))
    return tuple(found)


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
    parts: tuple[AskedPart, ...] = ()
    """What is decided about, piece by piece; empty for questions, and for what an older moot asked."""
    outside: OutsideCall | None = None
    """What an outside agent asks about, whose process waits for the answer; None for a call of moot's own loop."""

    @property
    def options(self) -> tuple[Option, ...]:
        """The answers that an outside agent takes, as it offers them."""
        return self.outside.options if self.outside is not None else ()

    @property
    def by_client(self) -> bool:
        """Whether it waits for the output of a tool that the run's client brought: a program answers it, and no person."""
        return self.questions == BY_CLIENT

    @property
    def lasting(self) -> tuple[str, ...]:
        """The narrowest patterns that together cover it; empty = it can be allowed only once."""
        asking = [part for part in self.parts if part.action == "ask"]
        return tuple(part.patterns[0] for part in asking) if all(part.patterns for part in asking) else ()

    @property
    def always(self) -> bool:
        """Whether those may be offered for ever."""
        return bool(self.lasting) and all(part.always for part in self.parts if part.action == "ask")


class Grants(Protocol):
    """What a person allowed for as long as a conversation lasts: `grants_of(conversation.settings)`; given by answers."""

    async def revoke(self, conversation: str, *, tool: str, match: str) -> bool:
        """Takes it back, fsynced; False when it was not there. Raises NotFound."""
        ...


def bind(run: str, directory: str, tool: str, definition: bytes, arguments: bytes) -> bytes:
    """32 bytes over exactly what a decision is about; any difference asks again."""
    digest = blake2b(digest_size=32)
    for piece in (run.encode(), directory.encode("utf-8", "surrogateescape"), tool.encode(), definition, arguments):
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.digest()
