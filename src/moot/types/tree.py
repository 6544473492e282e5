"""The seam of the tree of messages: what people do to a conversation's past. Everything is added, nothing is taken away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from moot.types.conversation import Conversation
from moot.types.message import Message, MessageStatus, Role
from moot.types.part import Part


@dataclass(frozen=True, slots=True)
class Node:
    """A message in its place."""

    no: int
    """Position among the conversation's messages in the order they were stored, from 1; never changes."""
    id: str
    parent: str | None
    role: Role
    status: MessageStatus
    line: str
    """The beginning of what it says, one line; untrusted."""
    at: int
    """ms"""
    run: str | None
    shown: bool
    """On the shown branch."""
    deleted: bool


class Going(NamedTuple):
    """Where a conversation is gone on with."""

    conversation: Conversation
    message: str | None
    """What the message that was named is there."""


def copy_key(conversation: str, message: str, last_seq: int) -> str:
    """The `key` of the copy in which a conversation of another program is gone on with from that message, as it stood then."""
    return f"copy:{conversation}:{message}:{last_seq}"


class Tree(Protocol):
    """Changes are one transaction each and durable on return. They move the shown branch only where they say so."""

    async def nodes(self, conversation: str) -> list[Node]:
        """Every message, deleted ones too, in the order they were stored. Raises NotFound."""
        ...

    async def edit(self, message: str, parts: Sequence[Part]) -> Message:
        """A sibling of that message with these parts; the shown branch ends with it. An edit that is to be answered is a `Prompt`.

        Raises NotFound, and Busy for a message that is still being written.
        """
        ...

    async def graft(self, conversation: str, parent: str | None, messages: Sequence[Message]) -> list[Message]:
        """A new branch behind `parent` (None = a new root), one message after the other; the shown branch ends with the last.

        Ids, roles, parts and metadata are taken from the messages, parents are not. Raises NotFound; Busy for an id that is taken.
        """
        ...

    async def delete(self, conversation: str, messages: Sequence[str], *, restore: bool = False) -> list[str]:
        """Hides the messages from branch, history and search (or shows them again); the ids of those that it changed.

        They keep their place, so what stands behind them stays where it is. Raises NotFound; Busy for what a live run writes or answers.
        """
        ...

    async def fork(self, conversation: str, *, message: str | None = None, title: str = "") -> Conversation:
        """A new conversation with copies of the branch that ends with that message (None = the shown one) under new ids.

        Each copy names its source in `metadata.source`: `{conversation, message, first_seq, last_seq}`. A message that is being written is
        copied as it stands. An empty title = the source's, marked as a fork. Raises NotFound; UsageError when there is nothing to copy.
        """
        ...

    async def going_on(self, conversation: str, *, message: str | None = None) -> Going:
        """Where the branch that ends with that message (None = the shown one) is gone on with: in the conversation itself, or, when it
        follows a source that others write, in its linked copy.

        The copy is a fork with the key `copy_key`: made here where there is none yet, and found again for as long as the source has not
        gone on from there. Raises NotFound.
        """
        ...

    async def switch(self, conversation: str, message: str, *, exactly: bool = False) -> Conversation:
        """Shows the branch through that message, on to the newest message behind it; with `exactly` it ends there. Raises NotFound."""
        ...
