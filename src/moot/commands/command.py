"""What a slash command is: a name, a line of help, what may stand behind it, and what a face shows when it was run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from moot.engine import Engine
from moot.errors import NotFound, UsageError
from moot.types.agent import Mode
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.model import Effort

__all__ = ["Answer", "Choice", "Choose", "Command", "Compose", "Copy", "Go", "Leave", "Reply", "Say", "Situation", "Wishes", "begun"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that may stand behind a command."""

    value: str
    """What is typed."""
    label: str = ""
    """What a list shows instead; empty = the value."""
    about: str = ""


# ── what a face does when a command was run ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Say:
    """Words to show. Untrusted: the face cleans them."""

    text: str
    style: Literal["", "dim", "yellow", "red"] = ""


@dataclass(frozen=True, slots=True)
class Choose:
    """Something is to be chosen first; the command is run again with the value of what was."""

    title: str
    choices: Sequence[Choice]


@dataclass(frozen=True, slots=True)
class Go:
    """Another conversation from here on; None = a new one."""

    conversation: str | None


@dataclass(frozen=True, slots=True)
class Compose:
    """Text for the person to edit and send."""

    text: str
    edits: str | None = None
    """The message that it takes the place of, on a branch of its own."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Text for the person's clipboard."""

    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The last prompt is to be answered, again or for the first time; `resume` is an interrupted run to take up instead."""

    resume: str | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """The person goes."""


Reply: TypeAlias = Say | Choose | Go | Compose | Copy | Answer | Leave


# ── what a command is given ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Wishes:
    """What the next prompts are to be run with; None = as the conversation, the agent or the configuration has it."""

    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    tools: Sequence[str] | None = None
    """() = none at all."""

    def settings(self) -> JsonObject:
        """As `Prompt.settings`."""
        settings: JsonObject = {}
        if self.effort is not None:
            settings["effort"] = self.effort
        if self.tools is not None:
            settings["tools"] = list[Json](self.tools) or False
        return settings


@dataclass(slots=True)
class Situation:
    """Where a command is run: the engine, the folder, the conversation (None = not begun yet) and what is wished for."""

    engine: Engine
    directory: str
    conversation: str | None = None
    wishes: Wishes = field(default_factory=Wishes)
    keys: str = ""
    """What the face says of its keys, for /help."""

    async def current(self) -> Conversation | None:
        """The conversation as it stands."""
        if self.conversation is None:
            return None
        try:
            return await self.engine.store.conversations.get(self.conversation)
        except NotFound:
            return None


async def begun(situation: Situation) -> Conversation:
    """The conversation. Raises UsageError when nothing was said in it yet."""
    conversation = await situation.current()
    if conversation is None:
        raise UsageError("the conversation has not begun yet", fix="say something first")
    return conversation


class Command(Protocol):
    """One slash command; a class without arguments, in a file of its own."""

    @property
    def help(self) -> str:
        """One line."""
        ...

    @property
    def argument(self) -> str:
        """What may stand behind the name, such as `[NAME]`; empty = nothing."""
        ...

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        """What can be completed behind the name; empty when that is free text."""
        ...

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        """Does it. Raises MootError for what can't be."""
        ...
