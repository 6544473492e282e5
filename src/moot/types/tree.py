"""The interface of the message tree: how people change a conversation's history, and the summaries that requests send instead of it.

Changes only append to the log; nothing is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.message import Message, MessageStatus, Part, Role


@dataclass(frozen=True, slots=True)
class Node:
    """A message with its position in the tree."""

    no: int
    """Number of the message in storage order, from 1; never changes."""
    id: str
    parent: str | None
    role: Role
    status: MessageStatus
    line: str
    """Beginning of the message's text as a single line; untrusted."""
    at: int
    """Time of creation, in milliseconds since the epoch."""
    run: str | None
    shown: bool
    """True if the message is on the branch that is shown."""
    deleted: bool


class Continuation(NamedTuple):
    """The conversation in which a branch is continued."""

    conversation: Conversation
    message: str | None
    """The id of the requested message in that conversation."""


def copy_key(conversation: str, message: str, last_seq: int) -> str:
    """Return the `key` of the copy in which an imported conversation continues after this message, whose last event is `last_seq`."""
    return f"copy:{conversation}:{message}:{last_seq}"


class Tree(Protocol):
    """The message tree. Each change is one durable transaction. Methods change the current branch only if their docs say so."""

    async def nodes(self, conversation: str) -> list[Node]:
        """Return all messages, including deleted ones, in storage order. Raise NotFound if there is no such conversation."""
        ...

    async def edit(self, message: str, parts: Sequence[Part]) -> Message:
        """Add a sibling with these parts next to the message, and show the sibling's branch. To edit and answer, submit a `Prompt`.

        Raise NotFound, or Busy if the message is still being written.
        """
        ...

    async def graft(self, conversation: str, parent: str | None, messages: Sequence[Message]) -> list[Message]:
        """Add a chain of messages after `parent` (None = as a new root) and show the branch.

        Ids, roles, parts and metadata come from the messages; their parents are ignored. Raise NotFound, or Busy if an id already exists.
        """
        ...

    async def delete(self, conversation: str, messages: Sequence[str], *, restore: bool = False) -> list[str]:
        """Hide messages from the branch, the history and search, or restore them. Return the ids that changed.

        Their position is kept, so their descendants stay where they are. Deleting also withdraws the summaries of branches that contain
        them. Raise NotFound, or Busy if a live run is writing or answering one of them.
        """
        ...

    async def fork(self, conversation: str, *, message: str | None = None, title: str = "", id: str = "") -> Conversation:
        """Create a conversation with copies, under new ids, of the branch that ends with `message` (None = the current branch).

        Each copied message names its source in `metadata.source`: `{conversation, message, first_seq, last_seq}`. A message still being
        written is copied in its current state. An empty title = the source's title, marked as a fork; an empty id = a new one. Raise
        NotFound, or UsageError if there is nothing to copy.
        """
        ...

    async def continuation(self, conversation: str, *, message: str | None = None) -> Continuation:
        """Return where to continue the branch that ends with `message` (None = the current branch): in the conversation itself, or, if it
        follows a source that other programs write, in a linked copy.

        The copy is a fork with the key `copy_key`. The copy is created if needed, and reused as long as the source has not continued from
        there. Raise NotFound if there is no such message.
        """
        ...

    async def switch(self, conversation: str, message: str, *, exactly: bool = False) -> Conversation:
        """Show the branch through the message, up to its newest descendant; if `exactly` is set, end at the message.

        Raise NotFound if there is no such message.
        """
        ...

    async def rewind(self, conversation: str, head: str | None, *, expect: str | None) -> Conversation:
        """End the current branch at `head`; None = show no messages. Raise NotFound, or Busy if the branch doesn't end with `expect`, or if
        a run of the conversation has not ended.
        """
        ...

    async def compact(
        self, conversation: str, compaction: Compaction, *, replaces: tuple[Sequence[str], bytes] | None = None
    ) -> Compaction:
        """Record a summary that replaces the messages up to `through` in requests to models; an empty summary withdraws the current one.

        The messages don't change. `replaces` holds the ids of the summarized messages and their `digest`; raise Busy if the digest has
        changed. Raise NotFound, or UsageError if the message is still being written.
        """
        ...

    async def digest(self, conversation: str, messages: Sequence[str]) -> bytes:
        """Return a hash of the messages' parts and of the conversation's summaries, to detect that one of them has changed."""
        ...

    async def compactions(self, conversation: str, *, among: Sequence[str] | None = None) -> list[Compaction]:
        """Return the current summaries of all branches, oldest first; if `among` is set, only those that end with one of these messages."""
        ...

    async def withheld(self, conversation: str, messages: Sequence[str]) -> set[str]:
        """Return the messages that must not be sent to a model: prompts that hooks blocked, skipped or left undecided, with their answers.

        A prompt whose answer was deleted is included. A prompt that was blocked first and allowed after a retry is not included.
        """
        ...


COMPACT_OPERATION = "compact"
"""`op` of the `tree` events that record, change and withdraw summaries."""

COMPACTION_PART = "data-compaction"
"""Type of the part that shows a summary."""
SUMMARY_TITLE = "Summary of the messages above"


def summaries_of(message: Message) -> tuple[Part, ...]:
    """Return the message's parts that show a summary."""
    return tuple(part for part in message.parts if part.get("type") == COMPACTION_PART)


def summary_lines(part: Part) -> list[str]:
    """Return the summary in a part, together with its plan, as Markdown lines."""
    data = part.get("data")
    texts = [str(data.get(name) or "") for name in ("summary", "plan")] if isinstance(data, dict) else []
    return "\n\n".join(filter(None, texts)).split("\n")


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary of a branch up to a message. It applies to every branch that contains this message. The last one in a branch is used."""

    through: str
    """Id of the last summarized message."""
    summary: str
    """Text of the summary. If it is empty in an event, the summary is withdrawn."""
    plan: str = ""
    """The latest plan and to-do list in the summarized messages, unchanged; empty = none."""
    exchange: str | None = None
    """Id of the model call that wrote the summary; None = a person wrote it."""
    seq: int = 0
    """`seq` of the event that recorded the summary; 0 = not stored yet."""
    at: int = 0
    """Time of the summary, in milliseconds since the epoch."""

    def to_body(self) -> JsonObject:
        """Return the body of the event that records the compaction."""
        plan: JsonObject = {"plan": self.plan} if self.plan else {}
        return {"op": COMPACT_OPERATION, "through": self.through, "summary": self.summary, **plan, "exchange": self.exchange}

    def to_json(self) -> JsonObject:
        return {
            "through": self.through,
            "summary": self.summary,
            "plan": self.plan,
            "exchange": self.exchange,
            "seq": self.seq,
            "at": self.at,
        }

    def to_part(self) -> Part:
        """Return the part that shows the summary at the end of its message. The part is never stored."""
        return {"type": COMPACTION_PART, "id": f"compaction-{self.seq}", "data": self.to_json()}

    @staticmethod
    def of_body(body: JsonObject, seq: int = 0, at: int = 0) -> Compaction | None:
        """Return the compaction in the body of a `tree` event; None for other operations."""
        if body.get("op") != COMPACT_OPERATION or not isinstance(body.get("through"), str):
            return None
        exchange = body.get("exchange")
        texts = str(body.get("through")), str(body.get("summary") or ""), str(body.get("plan") or "")
        return Compaction(*texts, exchange if isinstance(exchange, str) else None, seq, at)
