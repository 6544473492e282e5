"""The seam of a channel: where people talk to moot from another program, and the little that a channel may do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import Part
from moot.types.run import OnBusy, Run, Submitted


class ChannelRuntime(Protocol):
    """The port of one channel: it reaches the conversations that it began itself, by a name of its own for each, and nothing else.

    Every method raises NotFound for what is not the channel's.
    """

    async def conversation(self, who: str) -> Conversation | None:
        """The conversation of that person or room; None when nothing was said yet."""
        ...

    async def submit(self, who: str, parts: Sequence[Part], *, on_busy: OnBusy = "queue") -> Submitted:
        """Hands in what was said; finds the conversation or begins it. Agent, model and mode are those of `channels.<name>`."""
        ...

    def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """As `Tail.watch`: every event behind `after`, once and in order; closed with `aclosing`."""
        ...

    async def wait(self, run: str) -> Run:
        """The run once it has ended or waits."""
        ...

    async def message(self, run: str) -> Message:
        """What the run has said, as it stands."""
        ...

    async def approvals(self, run: str) -> list[Approval]:
        """What the run asks, oldest first."""
        ...

    async def answer(self, approval: str, answer: Answer) -> None:
        """A person's answer, and only a person's; the first one wins. Raises Busy when it is answered or has expired."""
        ...

    async def cancel(self, run: str) -> None:
        """Stops the run; nothing happens when it has ended."""
        ...


class Channel(Protocol):
    """Carries what people say to moot, and moot's answers back. Instances are stateless."""

    name: str

    async def serve(self, runtime: ChannelRuntime, settings: JsonObject) -> None:
        """Serves until it is cancelled; `settings` is `channels.<name>` of the configuration.

        Raises ConfigError for settings it can't serve with. What one person does, or a connection that breaks, never ends it.
        """
        ...


class ChannelClient(Protocol):
    """A person at the other end of a channel."""

    async def say(self, text: str) -> None: ...

    async def hear(self) -> str:
        """What the channel says next: an answer, or a question that wants a yes or a no."""
        ...


@runtime_checkable
class Reachable(Protocol):
    """An optional power of a channel: it can be talked to on this machine alone, which is how the conformance suite tries it."""

    def trial(self, folder: Path) -> JsonObject:
        """Settings to be tried with; whatever it needs lies in that folder, which is empty."""
        ...

    def client(self, settings: JsonObject, who: str) -> AbstractAsyncContextManager[ChannelClient]:
        """Somebody of that name who talks to the channel that is served with these settings; waits up to 5 s until it is."""
        ...
