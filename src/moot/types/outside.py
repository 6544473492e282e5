"""What passes between moot and an agent that is a program of its own: a call that it asks about, the answer, its session."""

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
    """One of the answers that an outside agent takes. Chosen by `kind`: ids are each agent's own."""

    id: str
    label: str
    """The agent's own words; untrusted."""
    kind: OptionKind

    @property
    def allows(self) -> bool:
        return self.kind in ("allow_once", "allow_always")

    def to_json(self) -> JsonObject:
        return {"id": self.id, "label": self.label, "kind": self.kind}

    @classmethod
    def from_json(cls, value: JsonObject) -> Option:
        """Total: an unknown kind refuses."""
        return cls(str(value.get("id", "")), str(value.get("label", "")), _KINDS.get(str(value.get("kind")), "reject_once"))


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """What an outside agent wants to do and asks about."""

    tool_call: str
    """Of the part of the message that shows it."""
    name: str
    """The agent's own name of its tool; rules may name it."""
    title: str
    """One line for a person, the agent's own words where it has some; untrusted."""
    arguments: bytes
    """What is decided about, as JSON."""
    effects: frozenset[Effect]
    """What modes go by."""
    subject: str
    """What rules match: a command, a path, an address."""
    options: tuple[Option, ...] = ()
    more: tuple[str, ...] = ()
    """Further subjects of the same call: it may run only when each of them may."""
    like: str = ""
    """The tool of moot that does the same, whose rules hold here too; empty = none."""
    editable: bool = False
    """Whether the agent takes other arguments back with a yes."""
    questions: list[Json] | None = None
    """It asks the person these, in the shape of `Approval.questions`, and nothing is to be allowed; None = it is."""

    def option(self, *kinds: OptionKind) -> Option | None:
        """The first option of the first of these kinds that there is."""
        return next((option for kind in kinds for option in self.options if option.kind == kind), None)

    def to_json(self) -> JsonObject:
        """All but the call's own id, name and arguments, which are stored beside it."""
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
        """Total: what is not there is empty."""
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
    """What becomes of it."""

    approved: bool
    option: Option | None = None
    """To be given back; None when the agent offered none of that kind."""
    reason: str = ""
    by: str = "policy"
    """policy | user | moot (nobody was there, or in time) | whoever else answered."""
    arguments: bytes | None = None
    """What the person put in the place of the call's, where it is `editable`."""
    value: Json = None
    """The replies to its questions, as `Answer.value`."""


@dataclass(frozen=True, slots=True)
class Session:
    """An outside agent's own session that holds the branch up to some message of it."""

    id: str
    last: Message
    """The newest message of this branch that it holds: an answer that was made in it."""
    unseen: tuple[Message, ...] = ()
    """What the branch has after that, oldest first, without the prompt that is to be answered."""
    moved: bool = False
    """It has gone on elsewhere since, or belongs to the conversation that this one was forked from: only a fork of it may be used,
    made at `last` where the agent can."""
