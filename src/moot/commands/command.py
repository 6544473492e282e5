"""The interface of slash commands: the context they get and the replies they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from moot.engine import Engine
from moot.errors import NotFound, UsageError
from moot.types.agent import Mode
from moot.types.canonical import Json, JsonObject, empty
from moot.types.conversation import Conversation
from moot.types.model import Effort


@dataclass(frozen=True, slots=True)
class Choice:
    """A possible argument of a command."""

    value: str
    """The text to type."""
    label: str = ""
    """The text to show in a list; empty = show `value`."""
    about: str = ""


# ── replies: instructions to the user interface ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Notice:
    """Show a text. The text is untrusted, so control characters must be removed before it is shown."""

    text: str
    style: Literal["", "dim", "yellow", "red"] = ""


@dataclass(frozen=True, slots=True)
class Choose:
    """Let the user choose, then run the command again with the chosen value."""

    title: str
    choices: Sequence[Choice]


@dataclass(frozen=True, slots=True)
class OpenConversation:
    """Switch to another conversation; None starts a new one."""

    conversation: str | None


@dataclass(frozen=True, slots=True)
class Compose:
    """Put a text into the composer for the user to edit and send."""

    text: str
    edits: str | None = None
    """ID of the message that the text replaces, on a new branch."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a text to the clipboard."""

    text: str


@dataclass(frozen=True, slots=True)
class Regenerate:
    """Generate an answer to the last prompt, or resume the run with the id `resume`."""

    resume: str | None = None


@dataclass(frozen=True, slots=True)
class Quit:
    """Leave the conversation."""


Reply: TypeAlias = Notice | Choose | OpenConversation | Compose | Copy | Regenerate | Quit


# ── context ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class RunOverrides:
    """Settings for the next prompts. None means the value of the conversation, the agent or the configuration."""

    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    tools: Sequence[str] | None = None
    """Names of the offered tools; () offers none."""

    def drop(self, names: Iterable[str]) -> None:
        """Remove the overrides with these names. Only `mode`, `effort` and `tools` can be removed."""
        for name in {"mode", "effort", "tools"}.intersection(names):
            setattr(self, name, None)

    def settings(self) -> JsonObject:
        """Return the overrides in the form of `Prompt.settings`."""
        settings: JsonObject = {}
        if self.effort is not None:
            settings["effort"] = self.effort
        if self.tools is not None:
            settings["tools"] = list[Json](self.tools) or False
        return settings


@dataclass(slots=True)
class CommandContext:
    """The context of a command: the engine, the working directory, the conversation and the overrides."""

    engine: Engine
    directory: str
    conversation: str | None = None
    """Id of the conversation; None if no message was sent yet."""
    overrides: RunOverrides = field(default_factory=RunOverrides)
    keys: str = ""
    """Description of the user interface's keyboard shortcuts, for /help."""
    unstored: JsonObject = field(default_factory=empty)
    """Settings chosen before the conversation exists. They are stored with its first prompt."""
    further_folders: list[str] | None = None
    """Folders allowed before the conversation exists, for its first prompt. None if the user interface doesn't support this."""
    stored: Callable[[Conversation], None] = lambda _: None
    """Called with the conversation after its settings have changed."""

    async def folder(self) -> str:
        """Return the working directory of the conversation, or `directory` if it has none."""
        current = await self.current()
        return current.directory or self.directory if current is not None else self.directory

    async def current(self) -> Conversation | None:
        """Return the stored conversation, or None if there is none yet."""
        if self.conversation is None:
            return None
        try:
            return await self.engine.store.conversations.get(self.conversation)
        except NotFound:
            return None

    def take_folders(self) -> tuple[str, ...]:
        """Return the folders allowed before the conversation existed, and forget them."""
        taken = tuple(self.further_folders or ())
        if self.further_folders is not None:
            self.further_folders.clear()
        return taken

    async def store_settings(self, settings: JsonObject) -> None:
        """Store settings in the conversation, now or with its first prompt. None removes a setting. Their overrides are dropped."""
        if (conversation := await self.current()) is None:
            self.unstored |= settings
        elif changes := {**self.unstored, **settings}:
            stored = await self.engine.store.conversations.update(conversation.id, settings=changes)
            self.unstored = {}
            self.overrides.drop(changes)
            self.stored(stored)

    async def require_current(self) -> Conversation:
        """Return the stored conversation. Raise UsageError if nothing was sent yet."""
        conversation = await self.current()
        if conversation is None:
            raise UsageError("The conversation is empty.", fix="Send a message first.")
        return conversation


class Command(Protocol):
    """One slash command."""

    @property
    def help(self) -> str:
        """One line that says what the command does."""
        ...

    @property
    def argument(self) -> str:
        """The argument in a usage line, such as `[NAME]`; empty if there is none."""
        ...

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        """Return possible arguments for completion, or nothing if the argument is free text."""
        ...

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        """Run the command. Raise MootError if it fails."""
        ...


class WithoutChoices:
    """Base class of commands whose argument can't be completed."""

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return ()
