"""Approvals: a person's answer to one request of a tool or an outside agent. It can be used only once."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, Protocol, TypeAlias, get_args

from moot.types.canonical import Json, JsonObject
from moot.types.message import Message

Effect: TypeAlias = Literal["read", "write", "execute", "network", "delegate", "configure"]
"""configure: changes moot's own configuration, which needs approval in every mode."""

EFFECTS: dict[str, Effect] = {name: name for name in get_args(Effect)}

OptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

_KINDS: dict[str, OptionKind] = {name: name for name in get_args(OptionKind)}


@dataclass(frozen=True, slots=True)
class Option:
    """One answer that an outside agent accepts. Select options by `kind`: the ids differ between agents."""

    id: str
    label: str
    """The agent's own text; untrusted."""
    kind: OptionKind

    @property
    def allows(self) -> bool:
        return self.kind in ("allow_once", "allow_always")

    def to_json(self) -> JsonObject:
        return {"id": self.id, "label": self.label, "kind": self.kind}

    @classmethod
    def from_json(cls, value: JsonObject) -> Option:
        """Parse any object; an unknown kind becomes a rejection."""
        return cls(str(value.get("id", "")), str(value.get("label", "")), _KINDS.get(str(value.get("kind")), "reject_once"))


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call that an outside agent wants to make and asks about."""

    tool_call: str
    """Id of the tool part that shows the call."""
    name: str
    """The agent's name for the tool; rules may use this name."""
    title: str
    """One line for people, in the agent's own words if available; untrusted."""
    arguments: bytes
    """The arguments to decide on, as JSON."""
    effects: frozenset[Effect]
    """Effects of the call, on which the permission mode bases its decision."""
    subject: str
    """The text that rules match: a command, a path, a URL."""
    options: tuple[Option, ...] = ()
    more: tuple[str, ...] = ()
    """Further subjects of the same call. The call may run only if all subjects are allowed."""
    like: str = ""
    """Name of the equivalent tool of moot, whose rules apply too; empty = none."""
    editable: bool = False
    """True if the agent accepts changed arguments with an approval."""
    questions: list[Json] | None = None
    """Questions for the person, in the shape of `Approval.questions`; None = the agent asks for permission instead."""

    def option(self, *kinds: OptionKind) -> Option | None:
        """Return the first option of the first of these kinds that is available."""
        return next((option for kind in kinds for option in self.options if option.kind == kind), None)

    def to_json(self) -> JsonObject:
        """Serialize everything except tool_call, name and arguments, which have their own columns."""
        return {
            "title": self.title,
            "effects": list[Json](sorted(self.effects)),
            "subject": self.subject,
            "more": list[Json](self.more),
            "options": list[Json](option.to_json() for option in self.options),
            "like": self.like,
            "editable": self.editable,
        }

    @classmethod
    def from_json(cls, tool_call: str, name: str, arguments: bytes, value: JsonObject) -> OutsideCall:
        """Parse any object; missing fields become empty."""
        effects, options, more = value.get("effects"), value.get("options"), value.get("more")
        return cls(
            tool_call,
            name,
            str(value.get("title", "")),
            arguments,
            frozenset(EFFECTS[name] for name in map(str, effects) if name in EFFECTS) if isinstance(effects, list) else frozenset(),
            str(value.get("subject", "")),
            tuple(Option.from_json(option) for option in options if isinstance(option, dict)) if isinstance(options, list) else (),
            tuple(str(subject) for subject in more) if isinstance(more, list) else (),
            str(value.get("like", "")),
            value.get("editable") is True,
        )


@dataclass(frozen=True, slots=True)
class OutsideAnswer:
    """The decision on a tool call made by an outside agent."""

    approved: bool
    option: Option | None = None
    """The option to return; None if the agent offered no option of that kind."""
    reason: str = ""
    by: str = "policy"
    """Source of the decision: `policy`, `user`, `moot` (no one was available, or a timeout), or another responder."""
    arguments: bytes | None = None
    """Arguments with which the person replaced those of an `editable` call."""
    value: Json = None
    """The replies to the call's questions, like `Answer.value`."""


@dataclass(frozen=True, slots=True)
class Session:
    """An outside agent's own session that contains the branch up to one of its messages."""

    id: str
    last: Message
    """The newest message of this branch that the session contains: an answer produced in this session."""
    unseen: tuple[Message, ...] = ()
    """Later messages of the branch, oldest first, except the prompt to answer."""
    moved: bool = False
    """True if the session has continued elsewhere, or belongs to the conversation that this one was forked from. Use only a fork of the
    session, made at `last` if the agent supports that."""


BY_CLIENT: Json = {"by": "client"}
"""`Approval.questions` of a call to a client's own tool: the answer's `value` is `{"output": …}` or `{"error": "…"}`."""

Action: TypeAlias = Literal["allow", "ask", "deny"]

_ACTIONS: dict[str, Action] = {name: name for name in get_args(Action)}


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to an approval request or to a tool's questions."""

    approved: bool
    option: str = "once"
    """`once`, `conversation`, `edits`, `always`, or the id of an outside agent's option.

    `conversation` and `always` also allow similar calls later. `edits` sets the conversation's mode, which then allows all file edits.
    """
    reason: str = ""
    answered_by: str = "user"
    value: Json = None
    """The replies to a tool's questions."""
    patterns: tuple[str, ...] = ()
    """The patterns that `conversation` and `always` allow; empty = the narrowest pattern offered for each part."""
    arguments: bytes | None = None
    """Arguments that replace the model's; the call runs with exactly these bytes."""
    digest: bytes = b""
    """`bind(…)` with the replaced arguments; set by the runtime."""


@dataclass(frozen=True, slots=True)
class ApprovalPart:
    """One separately decided part of an approval: a command of a shell line, a path, a URL."""

    text: str
    """Text of the part. It is untrusted: escape control characters before you show it."""
    action: Action
    why: str
    """The rule or mode that decided, or the reason why no rule can cover the part."""
    patterns: tuple[str, ...] = ()
    """Patterns that would cover the part in the future, narrowest first; empty = it can be allowed only once."""
    always: bool = False
    """True if the patterns may also be offered as a permanent rule."""
    within: bool = False
    """True if the previous part is a command that runs this one."""
    edits: bool = False
    """True if the mode `edits` would allow the part."""

    def to_json(self) -> JsonObject:
        return {
            "text": self.text,
            "action": self.action,
            "why": self.why,
            "patterns": list[Json](self.patterns),
            "always": self.always,
            "within": self.within,
            "edits": self.edits,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> ApprovalPart:
        """Parse any object; missing fields become empty, and an unknown action becomes `ask`."""
        patterns = value.get("patterns")
        return cls(
            str(value.get("text", "")),
            _ACTIONS.get(str(value.get("action")), "ask"),
            str(value.get("why", "")),
            tuple(str(pattern) for pattern in patterns) if isinstance(patterns, list) else (),
            value.get("always") is True,
            value.get("within") is True,
            value.get("edits") is True,
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission for the rest of one conversation."""

    tool: str
    match: str
    at: int = 0
    """Time of the grant, in milliseconds since the epoch."""
    by: str = "user"

    def to_json(self) -> JsonObject:
        return {"tool": self.tool, "match": self.match, "at": self.at, "by": self.by}


@dataclass(frozen=True, slots=True)
class Approval:
    """A row of the `approval` table."""

    id: str
    """`<run>/<tool key>`, followed by `#<n>` if the same call was asked about again."""
    run: str
    tool_call: str
    tool: str
    arguments: bytes
    """The exact bytes that will run."""
    digest: bytes
    """`bind(…)` of everything the decision depends on."""
    asked_at: int
    """Time of the request, in milliseconds since the epoch."""
    expires_at: int | None = None
    """Time at which the request expires, in milliseconds since the epoch; None = never."""
    answer: Answer | None = None
    used_at: int | None = None
    """Set in the transaction that stores the call's `start`."""
    questions: Json = None
    """Questions of a tool for a person, as JSON; null if only yes or no is asked."""
    parts: tuple[ApprovalPart, ...] = ()
    """The parts to decide; empty for questions and for approvals stored by old versions."""
    outside: OutsideCall | None = None
    """The call of an outside agent whose process waits for the answer; None for a call of moot's own loop."""

    @property
    def options(self) -> tuple[Option, ...]:
        """The answers that an outside agent accepts."""
        return self.outside.options if self.outside is not None else ()

    @property
    def by_client(self) -> bool:
        """True if the client that provided the tool must answer with the tool's output; people can't answer it."""
        return self.questions == BY_CLIENT

    @property
    def lasting(self) -> tuple[str, ...]:
        """The narrowest patterns that together cover the approval; empty = the call can be allowed only once."""
        asking = [part for part in self.parts if part.action == "ask"]
        return tuple(dict.fromkeys(part.patterns[0] for part in asking)) if all(part.patterns for part in asking) else ()

    @property
    def always(self) -> bool:
        """True if the `lasting` patterns may also be offered as permanent rules."""
        return bool(self.lasting) and all(part.always for part in self.parts if part.action == "ask")

    @property
    def edits(self) -> bool:
        """True if the answer `edits`, which allows all file edits in this conversation, may be offered."""
        asking = [part for part in self.parts if part.action == "ask"]
        return bool(asking) and all(part.edits for part in asking)


class Grants(Protocol):
    """Permissions that last as long as a conversation. Answers to approvals create them; `Conversation.grants` lists them."""

    async def revoke(self, conversation: str, *, tool: str, match: str) -> bool:
        """Remove a grant durably and return True, or False if there is no such grant. Raise NotFound if the conversation is unknown."""
        ...


def bind(run: str, directory: str, tool: str, definition: bytes, arguments: bytes) -> bytes:
    """Return a 32-byte digest of everything that a decision depends on. If the digest differs, a new approval is required."""
    digest = blake2b(digest_size=32)
    for piece in (run.encode(), directory.encode("utf-8", "surrogateescape"), tool.encode(), definition, arguments):
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.digest()
