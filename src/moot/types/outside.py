"""Calls, answers and sessions exchanged with outside agents, which are programs of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.effect import EFFECTS, Effect
from moot.types.message import Message

OptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

_KINDS: dict[str, OptionKind] = {
    "allow_once": "allow_once",
    "allow_always": "allow_always",
    "reject_once": "reject_once",
    "reject_always": "reject_always",
}


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
        """Accept any object: an unknown kind becomes a rejection."""
        return cls(str(value.get("id", "")), str(value.get("label", "")), _KINDS.get(str(value.get("kind")), "reject_once"))


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call that an outside agent wants to make and asks about."""

    tool_call: str
    """Id of the tool part that shows it."""
    name: str
    """The agent's name of its tool; rules may use it."""
    title: str
    """One line for people, in the agent's own words if available; untrusted."""
    arguments: bytes
    """The arguments to decide on, as JSON."""
    effects: frozenset[Effect]
    """Effects on which modes decide."""
    subject: str
    """The text that rules match: a command, a path, a URL."""
    options: tuple[Option, ...] = ()
    more: tuple[str, ...] = ()
    """Further subjects of the same call; it may run only if all of them are allowed."""
    like: str = ""
    """The equivalent tool of moot, whose rules apply too; empty = none."""
    editable: bool = False
    """True if the agent accepts changed arguments with an approval."""
    questions: list[Json] | None = None
    """Questions for the person, in the shape of `Approval.questions`; None = it asks for permission instead."""

    def option(self, *kinds: OptionKind) -> Option | None:
        """Return the first option of the first kind available."""
        return next((option for kind in kinds for option in self.options if option.kind == kind), None)

    def to_json(self) -> JsonObject:
        """Serialize everything except tool_call, name and arguments, which are stored in columns of their own."""
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
        """Accept any object: missing fields are empty."""
        effects, options, more = value.get("effects"), value.get("options"), value.get("more")
        return cls(
            tool_call,
            name,
            str(value.get("title", "")),
            arguments,
            _effects(effects if isinstance(effects, list) else ()),
            str(value.get("subject", "")),
            tuple(Option.from_json(option) for option in options if isinstance(option, dict)) if isinstance(options, list) else (),
            tuple(str(subject) for subject in more) if isinstance(more, list) else (),
            str(value.get("like", "")),
            value.get("editable") is True,
        )


def _effects(names: Iterable[Json]) -> frozenset[Effect]:
    return frozenset(effect for name in names if (effect := EFFECTS.get(str(name))) is not None)


@dataclass(frozen=True, slots=True)
class OutsideAnswer:
    """The decision on a call of an outside agent."""

    approved: bool
    option: Option | None = None
    """The option to return; None if the agent offered none of that kind."""
    reason: str = ""
    by: str = "policy"
    """policy | user | moot (no one available, or timeout) | another responder."""
    arguments: bytes | None = None
    """Arguments by which the person replaced the call's own, if it is `editable`."""
    value: Json = None
    """The replies to its questions, like `Answer.value`."""


@dataclass(frozen=True, slots=True)
class Session:
    """An outside agent's own session that contains the branch up to one of its messages."""

    id: str
    last: Message
    """The newest message of this branch in the session: an answer produced in it."""
    unseen: tuple[Message, ...] = ()
    """Later messages of the branch, oldest first, without the prompt to answer."""
    moved: bool = False
    """The session has continued elsewhere since, or belongs to the conversation that this one was forked from. Use only a fork of it, made
    at `last` if the agent supports that."""
