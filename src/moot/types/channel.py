"""The interface of a channel: how people talk to moot from another program, and what a channel may do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message, Part
from moot.types.run import OnBusy, Run, Submitted


class ChannelRuntime(Protocol):
    """The interface of one channel to moot. It accesses only conversations that the channel started,
    each under a name of the channel's choice.

    Every method raises NotFound for anything that does not belong to the channel.
    """

    async def conversation(self, who: str) -> Conversation | None:
        """Return the conversation of a person or room, or None if there is none yet."""
        ...

    async def submit(self, who: str, parts: Sequence[Part], *, on_busy: OnBusy = "queue") -> Submitted:
        """Submit a message, creating the conversation if needed. Agent, model and mode come from `channels.<name>`."""
        ...

    def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """Like `Tail.watch`: yield every event after `after` once and in order; close it with `aclosing`."""
        ...

    async def wait(self, run: str) -> Run:
        """Return the run once it has ended or waits."""
        ...

    async def message(self, run: str) -> Message:
        """Return the run's message in its current state."""
        ...

    async def approvals(self, run: str) -> list[Approval]:
        """Return the run's open approvals, oldest first."""
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


class ChannelClient(Protocol):
    """A simulated person at the other end of a channel."""

    async def say(self, text: str) -> None: ...

    async def hear(self) -> str:
        """Return the channel's next message: an answer, or a yes-or-no question."""
        ...


@runtime_checkable
class HasTrialClient(Protocol):
    """Optional capability of a channel: it can be tested on this machine alone. The conformance suite uses it."""

    def trial(self, folder: Path) -> JsonObject:
        """Return settings for a test; any files it needs go into `folder`, which is empty."""
        ...

    def client(self, settings: JsonObject, who: str) -> AbstractAsyncContextManager[ChannelClient]:
        """Return a client named `who` that talks to the channel served with these settings; wait up to 5 s until it is reachable."""
        ...
