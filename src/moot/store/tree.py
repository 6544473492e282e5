"""Changes to the message tree: siblings, deleted messages, branches, forks. All of them only add to the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from moot.errors import Busy
from moot.store import lookup, messages
from moot.store.connect import Connection
from moot.store.events import Events
from moot.store.forks import fork, going_on
from moot.store.messages import check_message
from moot.store.nodes import nodes
from moot.store.reader import Reader
from moot.store.rows import clean, message_of
from moot.store.transaction import Transaction
from moot.store.writer import Writer
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.part import Part
from moot.types.tree import Going, Node

__all__ = ["MessageTree"]

T = TypeVar("T")

_LIVE = "('queued', 'running', 'waiting', 'interrupted')"
_KEPT = ("agent", "model", "provider")
"""Metadata of an edited message that the edit keeps: who wrote it. Usage belongs to the original."""


class MessageTree:
    """`Tree` on SQLite."""

    def __init__(self, writer: Writer, reader: Reader, events: Events, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._events = events
        self._owner = owner
        self._written = Events()
        """Used only on the writer's thread."""

    async def nodes(self, conversation: str) -> list[Node]:
        def work(connection: Connection) -> list[Node]:
            return nodes(connection, lookup.conversation(connection, conversation, self._owner), self._events)

        return await self._reader.read(work)

    async def edit(self, message: str, parts: Sequence[Part]) -> Message:
        def work(connection: Connection) -> str:
            return lookup.message_row(connection, message, self._owner)[4]

        return await self._write(partial(_edit, message, tuple(parts)), await self._reader.read(work))

    async def graft(self, conversation: str, parent: str | None, messages: Sequence[Message]) -> list[Message]:
        return await self._write(partial(_graft, conversation, parent, tuple(messages)), conversation)

    async def delete(self, conversation: str, messages: Sequence[str], *, restore: bool = False) -> list[str]:
        return await self._write(partial(_delete, conversation, tuple(messages), restore), conversation)

    async def fork(self, conversation: str, *, message: str | None = None, title: str = "") -> Conversation:
        return await self._write(partial(fork, conversation, message, clean(title), self._written, self._owner), conversation)

    async def continuation(self, conversation: str, *, message: str | None = None) -> Going:
        return await self._write(partial(going_on, conversation, message, self._written, self._owner), conversation)

    async def switch(self, conversation: str, message: str, *, exactly: bool = False) -> Conversation:
        return await self._write(partial(_switch, conversation, message, exactly), conversation)

    async def _write(self, work: Callable[[Transaction], T], conversation: str) -> T:
        def theirs(transaction: Transaction) -> T:
            lookup.number(transaction, conversation, self._owner)
            return work(transaction)

        return await self._writer.write(theirs, conversation, sync=True)


def _edit(id: str, parts: tuple[Part, ...], transaction: Transaction) -> Message:
    row = lookup.message_row(transaction, id)
    edited = message_of(row)
    if transaction.row(f"SELECT 1 FROM run WHERE message = ? AND status IN {_LIVE}", (id,)):
        raise Busy(f"The message {id!r} is still being written.", fix="Wait until it ends, or stop it with `moot chat stop`.")
    metadata: JsonObject = {name: edited.metadata[name] for name in _KEPT if name in edited.metadata}
    edit = Message(
        new_id(), edited.role, parts, metadata, edited.conversation, edited.parent, client_id=None, created_at=transaction.now_ms
    )
    (stored,) = _store(transaction, row[13], [edit], {"edits": id})
    return stored


def _graft(conversation: str, parent: str | None, new: tuple[Message, ...], transaction: Transaction) -> list[Message]:
    no = transaction.conversation_no(conversation)
    if parent is not None:
        check_message(transaction, no, parent)
    found: list[Message] = []
    for message in new:
        at = message.created_at or transaction.now_ms
        found.append(replace(message, conversation=conversation, parent=parent, run=None, status="finished", created_at=at))
        parent = message.id
    return _store(transaction, no, found, {})


def _store(transaction: Transaction, conversation: int, new: Sequence[Message], body: JsonObject) -> list[Message]:
    """Store a chain of complete messages; the shown branch ends with the last one."""
    if not new:
        return []
    seqs = transaction.add(conversation, [messages.message_event(message, body=body) for message in new])
    stored = [messages.placed(message, seq) for message, seq in zip(new, seqs, strict=True)]
    for message in stored:
        messages.insert(transaction, conversation, message)
    messages.count(transaction, conversation, len(stored), transaction.now_ms, stored[-1].id)
    return stored


def _delete(conversation: str, ids: tuple[str, ...], restore: bool, transaction: Transaction) -> list[str]:
    no = transaction.conversation_no(conversation)
    changed: list[str] = []
    for id in dict.fromkeys(ids):
        check_message(transaction, no, id)
        is_deleted = transaction.row("SELECT deleted_at FROM message WHERE id = ?", (id,))[0] is not None
        if is_deleted == restore:
            changed.append(id)
            if not restore:
                _refuse_live(transaction, no, id)
    if changed:
        transaction.add(no, (Event("tree", body={"op": "restore" if restore else "delete", "messages": list[Json](changed)}),))
        at = None if restore else transaction.now_ms
        for id in changed:
            transaction.execute("UPDATE message SET deleted_at = ? WHERE id = ?", (at, id))
        count = len(changed) if restore else -len(changed)
        transaction.execute("UPDATE conversation SET message_count = message_count + ? WHERE no = ?", (count, no))
    return changed


def _refuse_live(transaction: Transaction, conversation: int, id: str) -> None:
    row = transaction.row(
        "SELECT r.message FROM run AS r JOIN message AS m ON m.id = r.message"
        f" WHERE r.conversation = ? AND r.status IN {_LIVE} AND (r.message = ? OR m.parent_id = ?)",
        (conversation, id, id),
    )
    if row is not None:
        state = "is still being written" if row[0] == id else "is being answered"
        raise Busy(f"The message {id!r} {state}.", fix="Wait until the run ends, or stop it with `moot chat stop`, then delete.")


def _switch(conversation: str, message: str, exactly: bool, transaction: Transaction) -> Conversation:
    found = lookup.conversation(transaction, conversation)
    check_message(transaction, found.no, message)
    head = message if exactly else _newest_behind(transaction, found.no, message)
    if head != found.head:
        transaction.add(found.no, (Event("tree", body={"op": "head", "message": head}),))
        transaction.execute("UPDATE conversation SET head_id = ? WHERE no = ?", (head, found.no))
    return lookup.conversation(transaction, conversation)


def _newest_behind(transaction: Transaction, conversation: int, message: str) -> str:
    """Return the newest descendant of a message, or the message itself; prefer one that is not deleted."""
    row = transaction.row(
        "WITH RECURSIVE behind (id, no) AS (SELECT id, no FROM message WHERE id = ?1 AND conversation = ?2"
        " UNION ALL SELECT m.id, m.no FROM behind JOIN message AS m ON m.parent_id = behind.id AND m.conversation = ?2)"
        " SELECT b.id FROM behind AS b JOIN message AS m ON m.id = b.id ORDER BY m.deleted_at IS NULL DESC, b.no DESC LIMIT 1",
        (message, conversation),
    )
    return message if row is None else row[0]
