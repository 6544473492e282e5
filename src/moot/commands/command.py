"""The interface of slash commands: the context that they receive and the replies that they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, TypeAlias

from moot.engine import Engine
from moot.errors import NotFound, UsageError
from moot.types.agent import Mode
from moot.types.canonical import Json, JsonObject, empty
from moot.types.command import BUILT_IN, CommandFacts, CommandParameter, CommandType, Requirement
from moot.types.conversation import Conversation
from moot.types.message import Part, text_part
from moot.types.model import Detail, Effort
from moot.types.run import Prompt
from moot.types.store import OwnerStore
from moot.types.token import LOCAL_USER


@dataclass(frozen=True, slots=True)
class Choice:
    """A possible argument of a command."""

    value: str
    """The text to type."""
    label: str = ""
    """The text to show in a list; if empty, `value` is shown."""
    about: str = ""
    needs_more: bool = False
    """True if more words must follow, so that the command can't run yet."""


# ── replies: instructions to the user interface ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Notice:
    """Show a text. The text is untrusted, so control characters must be removed before it is shown."""

    text: str
    style: Literal["", "dim", "yellow", "red"] = ""


@dataclass(frozen=True, slots=True)
class Choose:
    """Let the user choose, then run a command with the chosen value."""

    title: str
    choices: Sequence[Choice]
    command: str = ""
    """The command to run; empty = the command that returned this reply."""


@dataclass(frozen=True, slots=True)
class OpenConversation:
    """Switch to another conversation. If the id is None, start a new conversation."""

    conversation: str | None


@dataclass(frozen=True, slots=True)
class Compose:
    """Insert a text into the composer, so that the user can edit and send it."""

    text: str
    edits: str | None = None
    """Id of the message that is replaced by the text on a new branch."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a prompt. For empty fields, the settings of the conversation or of `RunOverrides` are used."""

    text: str
    parts: tuple[Part, ...] = ()
    """Additional parts, such as files, to send before the text."""
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    settings: JsonObject = field(default_factory=empty)
    """Additional settings of the run; see `Prompt.settings`."""

    def message(self) -> tuple[Part, ...]:
        """Return all parts of the user's message."""
        return (*self.parts, text_part(self.text)) if self.text else self.parts


@dataclass(frozen=True, slots=True)
class Save:
    """Save a conversation to a file, in a format of `moot export`."""

    conversation: str
    format: str


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a text to the clipboard."""

    text: str


@dataclass(frozen=True, slots=True)
class Regenerate:
    """Generate a new answer to the last prompt, or resume the run with the id `resume`."""

    resume: str | None = None


@dataclass(frozen=True, slots=True)
class Quit:
    """Leave the conversation. With `detaches`, its run continues in the background."""

    detaches: bool = False


Reply: TypeAlias = Notice | Choose | OpenConversation | Compose | Send | Save | Copy | Regenerate | Quit


# ── context ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class RunOverrides:
    """Settings for the next prompts. None means to use the value from the conversation, the agent or the configuration."""

    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    detail: Detail | None = None
    tools: Sequence[str] | None = None
    """Names of the tools to offer; () offers none."""
    web_search: bool | None = None

    def drop(self, names: Iterable[str]) -> None:
        """Remove the overrides with these names. Agent and model can't be removed."""
        for name in {"mode", "effort", "detail", "tools", "web_search"}.intersection(names):
            setattr(self, name, None)

    def settings(self) -> JsonObject:
        """Return the overrides in the format of `Prompt.settings`."""
        settings: JsonObject = {}
        if self.effort is not None:
            settings["effort"] = self.effort
        if self.detail is not None:
            settings["detail"] = self.detail
        if self.tools is not None:
            settings["tools"] = list[Json](self.tools) or False
        if self.web_search is not None:
            settings["web_search"] = self.web_search
        return settings


@dataclass(slots=True)
class CommandContext:
    """The context of a command: the engine, the working directory, the conversation and the overrides."""

    engine: Engine
    directory: str
    conversation: str | None = None
    """Id of the conversation; None if no message has been sent yet."""
    overrides: RunOverrides = field(default_factory=RunOverrides)
    keys: str = ""
    """Description of the user interface's keyboard shortcuts, for /help."""
    unstored: JsonObject = field(default_factory=empty)
    """Settings that were chosen before the conversation exists. They are stored with the first prompt."""
    project: str = ""
    """Id of the project of a new conversation; empty = the project of `directory`."""
    owner: str = LOCAL_USER
    """The user who runs the command."""
    file: str = ""
    """Path of the file that is open in the user interface; empty = none."""
    words: tuple[str, ...] | None = None
    """The words of the argument if the caller has already split it, as a shell does.
    If None, the command splits the argument itself if it needs to.
    """
    options_win: bool = False
    """True if the agent and model in `overrides` were chosen for this command. Then they replace those specified by a custom command."""
    without_conversation: str = "Send a message first."
    """Advice to show to the user if a command needs a conversation and there is none."""
    further_folders: list[str] | None = None
    """Folders that were allowed before the conversation exists, to be sent with the first prompt.
    None if the user interface doesn't support this.
    """
    temporary: bool = False
    """True to make new conversations temporary."""
    started: list[str] = field(default_factory=list[str])
    """Ids of the temporary conversations that were started here."""
    attended: bool = True
    """False in a channel, where people may not read files or fetch pages by mentioning them in a command."""
    stored: Callable[[Conversation], None] = lambda _: None
    """Called with the conversation after its settings were changed."""

    @property
    def store(self) -> OwnerStore:
        """The user's own part of the store."""
        return self.engine.store.of(self.owner)

    async def folder(self) -> str:
        """Return the working directory of the conversation, or `directory` if it has none."""
        current = await self.current()
        return current.directory or self.directory if current is not None else self.directory

    async def current(self) -> Conversation | None:
        """Return the stored conversation, or None if there is none yet."""
        if self.conversation is None:
            return None
        try:
            return await self.store.conversations.get(self.conversation)
        except NotFound:
            return None

    def take_folders(self) -> tuple[str, ...]:
        """Return the folders that were allowed before the conversation existed, and reset the list."""
        taken = tuple(self.further_folders or ())
        if self.further_folders is not None:
            self.further_folders.clear()
        return taken

    async def store_settings(self, settings: JsonObject) -> None:
        """Store settings in the conversation, either now or with its first prompt.
        None removes a setting. The overrides of these settings are dropped.
        """
        if (conversation := await self.current()) is None:
            self.unstored |= settings
        elif changes := {**self.unstored, **settings}:
            stored = await self.store.conversations.update(conversation.id, settings=changes)
            self.unstored = {}
            self.overrides.drop(changes)
            self.stored(stored)

    async def require_current(self) -> Conversation:
        """Return the stored conversation. Raise UsageError if no message has been sent yet."""
        conversation = await self.current()
        if conversation is None:
            raise UsageError("There is no conversation yet.", fix=self.without_conversation)
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


class BaseCommand:
    """Base class of commands, with default values for metadata that most commands don't set. For its meaning, see `CommandFacts`."""

    help = ""
    argument = ""
    category = "conversation"
    type: CommandType = "action"
    aliases: tuple[str, ...] = ()
    parameters: tuple[CommandParameter, ...] = ()
    requires: tuple[Requirement, ...] = ()
    agent = ""
    examples: tuple[str, ...] = ()
    origin = BUILT_IN

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        """Return possible arguments for completion, or nothing if the argument is free text."""
        return ()


def facts_of(name: str, command: Command) -> CommandFacts:
    """Return the metadata of a command, with defaults for everything that a package's command doesn't define."""
    values: dict[str, Any] = {"category": BaseCommand.category, "type": BaseCommand.type}
    values |= {one.name: getattr(command, one.name) for one in fields(CommandFacts) if one.name != "name" and hasattr(command, one.name)}
    return CommandFacts(name, **values)


def prompt_of(context: CommandContext, send: Send, prompt: Prompt) -> Prompt:
    """Return the prompt for the context's conversation, or for a new one. The agent and model in `send` apply only to this prompt."""
    overrides = context.overrides
    return replace(
        prompt,
        conversation=context.conversation,
        directory=context.directory,
        project=context.project,
        agent=send.agent or overrides.agent,
        model=send.model or (overrides.model if send.agent is None else None),
        mode=send.mode or overrides.mode,
        once=send.agent is not None or send.model is not None,
        settings={**overrides.settings(), **send.settings},
        user=None if context.owner == LOCAL_USER else context.owner,
    )
