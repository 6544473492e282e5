"""The interface of a channel: how people talk to moot from another program, and the rights of a channel."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject, empty
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message, Part
from moot.types.run import OnBusy, Run, Submitted
from moot.types.webhook import WebhookStore


@dataclass(frozen=True, slots=True)
class ChannelAnswer:
    """A run's answer in a channel."""

    run: str
    conversation: str
    who: str
    prompt: str = ""
    """The `id` of the message that started the run."""
    after: int = 0
    """Last position in the log before the run's events."""
    shown: JsonObject = field(default_factory=empty)
    """The channel's own record of what it has shown, such as the ids of its messages."""
    finished: bool = False
    """True if the channel has shown the whole answer."""


class ChannelAnswers(Protocol):
    """Records of the answers that channels have shown."""

    async def current(self, prefix: str) -> list[ChannelAnswer]:
        """Return the answers that are not completely shown yet, and the newest answer of each conversation, oldest first.

        Only conversations whose keys start with `prefix` are included.
        """
        ...

    async def record(self, run: str, conversation: str, shown: JsonObject, *, finished: bool) -> None:
        """Store the channel's record of what it has shown of an answer."""
        ...

    async def release(self, conversation: str) -> None:
        """Change the key of a conversation, so that the next message starts a new conversation."""
        ...


class ChannelRuntime(Protocol):
    """One channel's interface to moot, which gives access only to conversations that the channel has started.

    Each of them belongs to a person or room, under a name (`who`) that the channel chooses.
    Every method raises NotFound for anything that does not belong to the channel.
    """

    async def conversation(self, who: str) -> Conversation | None:
        """Return the conversation of a person or room, or None if there is none yet."""
        ...

    async def submit(self, who: str, parts: Sequence[Part], *, on_busy: OnBusy = "queue", id: str = "") -> Submitted:
        """Submit a message, creating the conversation if needed. Agent, model and mode come from `channels.<name>`.

        If a message with this `id` was submitted before, return the run of that message.
        """
        ...

    async def command(self, who: str, name: str, argument: str = "") -> str:
        """Run a slash command for a person or room and return its reply. Raise UsageError for an unknown command."""
        ...

    async def answers(self) -> list[ChannelAnswer]:
        """Return the answers that the channel has not recorded as finished, and the newest answer of each conversation, oldest first."""
        ...

    async def record(self, answer: ChannelAnswer, *, finished: bool = False) -> None:
        """Store `answer.shown`, the channel's record of what it has shown."""
        ...

    async def content(self, part: Part) -> bytes | None:
        """Return the bytes of a file part, or None if its URL belongs to another server."""
        ...

    def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """Like `Tail.watch`: yield every event after `after` once and in order; close it with `aclosing`."""
        ...

    async def wait(self, run: str) -> Run:
        """Return the run once it has ended or is waiting."""
        ...

    async def message(self, run: str) -> Message:
        """Return the run's message in its current state."""
        ...

    async def approvals(self, run: str) -> list[Approval]:
        """Return the open approvals of the run and its sub-agents, oldest first."""
        ...

    async def answer(self, approval: str, answer: Answer) -> None:
        """Store a person's answer; the first one wins. Raise Busy if the approval is already answered or has expired."""
        ...

    async def cancel(self, run: str) -> None:
        """Stop the run; do nothing if it has ended."""
        ...


class Channel(Protocol):
    """A connection between people and moot. Instances are stateless."""

    name: str

    async def serve(self, runtime: ChannelRuntime, settings: JsonObject) -> None:
        """Serve until cancelled; `settings` is `channels.<name>` of the configuration.

        Raise ConfigError for unusable settings. Neither a single user's input nor a broken connection ends it.
        """
        ...


@runtime_checkable
class HasCheck(Protocol):
    """Optional capability of a channel: its settings can be tested without serving it."""

    async def check(self, settings: JsonObject) -> str:
        """Connect and return a short description of the account. Raise ConfigError for unusable settings, MootError if connecting fails."""
        ...


@runtime_checkable
class HasPost(Protocol):
    """Optional capability of a channel: it can send a message, such as a cron job's answer, without being served."""

    async def post(self, settings: JsonObject, place: str, text: str, *, id: str) -> None:
        """Send a text to a person or room, named as in `who`. A text with the `id` of an earlier text is another attempt to send that text.

        Raise ConfigError for unusable settings, UsageError if the channel may not write to that place, MootError if sending fails.
        """
        ...


class ChannelClient(Protocol):
    """A simulated person at the other end of a channel."""

    async def say(self, text: str) -> None: ...

    async def hear(self) -> str:
        """Return the channel's next message: an answer, or a yes-or-no question."""
        ...


@runtime_checkable
class HasTrialClient(Protocol):
    """Optional capability of a channel: it can be tested using only this machine. The conformance suite uses it."""

    def trial(self, folder: Path) -> JsonObject:
        """Return settings for a test; any files it needs go into `folder`, which is empty."""
        ...

    def client(self, settings: JsonObject, who: str) -> AbstractAsyncContextManager[ChannelClient]:
        """Return a client named `who` that talks to the channel served with these settings.

        Wait up to 5 s until the channel is reachable.
        """
        ...


class Outlets(Protocol):
    """The parts of a store that record what other programs have received."""

    @property
    def webhooks(self) -> WebhookStore: ...
    @property
    def answers(self) -> ChannelAnswers: ...
