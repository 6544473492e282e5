"""Changes to the message tree: siblings, deleted messages, branches, forks. They only append to the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from moot.convert.exchanges import close_open, settle_calls
from moot.convert.fold import Folder
from moot.errors import Busy, NotFound, UsageError
from moot.store import lookup
from moot.store.database.connection import Connection
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.log import messages
from moot.store.log.events import Events
from moot.store.log.messages import check_message
from moot.store.rows import clean, message_of
from moot.store.tree import compactions
from moot.store.tree.branches import branch_rows, nodes, withheld
from moot.store.tree.conversations import new_conversation
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.hooks import WITHHELD
from moot.types.ids import new_id
from moot.types.message import Message, Part, unanswered
from moot.types.tree import Compaction, Continuation, Node, copy_key

_MARK = re.compile(r" \(fork(?: \d+)?\)$")
_ENDED = frozenset({"finished", "failed", "cancelled"})
_COPY = "SELECT id FROM message WHERE conversation = ? AND json_extract(CAST(metadata AS TEXT), '$.source.message') = ? ORDER BY no LIMIT 1"


def fork(id: str, message: str | None, title: str, new: str, events: Events, owner: str | None, transaction: Transaction) -> Conversation:
    """Implement `Tree.fork`."""
    source = lookup.conversation(transaction, id, owner)
    if source.deleted_at is not None:
        raise NotFound(f"The conversation {id!r} is deleted.", fix=f"Restore it with `moot chat restore {id}`.")
    end = message or source.head
    if message is not None:
        check_message(transaction, source.no, message)
    rows: list[Any] = branch_rows(transaction, source.no, end, None) if end is not None else []
    if not rows:
        raise UsageError(f"The conversation {id!r} has no messages to copy.", fix="See `moot chat show ID`.")
    whole = [_whole(transaction, events, row) for row in rows]
    if held := withheld(transaction, source.no, unanswered(whole)):
        whole = [replace(each, metadata={**each.metadata, WITHHELD: True}) if each.id in held else each for each in whole]
    made = new_conversation(
        transaction,
        Conversation(
            id=new or new_id(),
            project=source.project,
            title=title or _title(transaction, source),
            title_source="user" if title or source.title_source == "user" else "model",
            agent=source.agent,
            agent_type=source.agent_type,
            model=source.model,
            last_model=source.last_model,
            forked_from=source.id,
            forked_from_message=rows[-1][0],
            directory=source.directory,
            allowed_uris=source.allowed_uris,
            settings=source.settings,
            owner=source.owner,
            tags=source.tags,
            expires_at=source.expires_at,
        ),
    )
    transaction.add(made.no, (Event("tree", body={"op": "fork", "conversation": id, "message": rows[-1][0]}),))
    compactions.copy_branch(transaction, source.no, made.no, _copy(transaction, made, whole))
    return lookup.conversation(transaction, made.id)


def continuation(id: str, message: str | None, events: Events, owner: str | None, transaction: Transaction) -> Continuation:
    """Implement `Tree.continuation`."""
    source = lookup.conversation(transaction, id, owner)
    if message is not None:
        check_message(transaction, source.no, message)
    end = message or source.head
    if end is None or source.deleted_at is not None or not source.follows:
        return Continuation(source, message)
    last_seq = transaction.row("SELECT last_seq FROM message WHERE id = ?", (end,))[0]
    key = copy_key(source.id, end, last_seq)
    made = lookup.conversation_by(transaction, "key", key, source.owner)
    if made is not None and made.deleted_at is not None:
        transaction.execute("UPDATE conversation SET key = NULL WHERE no = ?", (made.no,))
        made = None
    if made is None:
        made = fork(id, message, "", "", events, owner, transaction)
        transaction.execute("UPDATE conversation SET key = ?, model = ? WHERE no = ?", (key, source.next_model, made.no))
        made = lookup.conversation(transaction, made.id)
    return Continuation(made, _copied(transaction, made.no, message))


def _copied(transaction: Transaction, conversation: int, message: str | None) -> str | None:
    """Return the id of the message's copy. Raise NotFound for a deleted message, which has none."""
    if message is None:
        return None
    row: Any = transaction.row(_COPY, (conversation, message))
    if row is None:
        raise NotFound(
            f"The message {message!r} has been deleted.", fix="Deleted messages are listed by: moot chat tree CONVERSATION --all"
        )
    return row[0]


def _title(transaction: Transaction, source: Conversation) -> str:
    """Return a title that is unique per owner, so that it can be used as a reference."""
    base = _MARK.sub("", source.title) or "untitled"
    sql = "SELECT 1 FROM conversation WHERE title = ? AND owner_id = ?"
    number = 1
    while transaction.row(sql, (title := f"{base} (fork)" if number == 1 else f"{base} (fork {number})", source.owner)):
        number += 1
    return title


def _whole(transaction: Transaction, events: Events, row: Any) -> Message:
    """Return the message in its current state; if it is still being written, its open parts are closed."""
    message = events.folded(transaction, message_of(row), row[13])
    if message.status in _ENDED:
        return message
    folder = Folder(message.parts, message.metadata)
    why = "Not copied: the conversation was forked while this call was running."
    for chunk in (*close_open(message.parts), *settle_calls(message.parts, why)):
        folder.feed(chunk)
    return replace(message, parts=folder.parts(), metadata=folder.metadata(), status="cancelled")


def _copy(transaction: Transaction, made: Conversation, whole: Sequence[Message]) -> dict[str, str]:
    """Store copies of the messages, and return the ids of the copies by the ids of the messages."""
    parent: str | None = None
    copies: list[Message] = []
    for message in whole:
        origin: JsonObject = {
            "conversation": message.conversation,
            "message": message.id,
            "first_seq": message.first_seq,
            "last_seq": message.last_seq,
        }
        metadata: JsonObject = {**message.metadata, "source": origin}
        place = (new_id(), message.role, message.parts, metadata, made.id, parent)
        copy = Message(*place, status=message.status, created_at=message.created_at)
        parent = copy.id
        copies.append(copy)
    seqs = transaction.add(made.no, [messages.message_event(copy, body={"status": copy.status}) for copy in copies])
    for copy, seq in zip(copies, seqs, strict=True):
        messages.insert(transaction, made.no, messages.placed(copy, seq))
    messages.count(transaction, made.no, len(copies), transaction.now_ms, parent)
    return {message.id: copy.id for message, copy in zip(whole, copies, strict=True)}


T = TypeVar("T")

_LIVE = "('queued', 'running', 'waiting', 'interrupted')"
_KEPT = ("agent", "model", "provider")  # metadata that an edit copies from the original: who wrote it. Usage stays with the original.


class MessageTree:
    """The SQLite implementation of `Tree`."""

    def __init__(self, writer: Writer, reader: Reader, events: Events, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._events = events
        self._owner = owner
        self._written = Events()
        """A reader of events for the writer's thread only."""

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

    async def fork(self, conversation: str, *, message: str | None = None, title: str = "", id: str = "") -> Conversation:
        return await self._write(partial(fork, conversation, message, clean(title), id, self._written, self._owner), conversation)

    async def continuation(self, conversation: str, *, message: str | None = None) -> Continuation:
        return await self._write(partial(continuation, conversation, message, self._written, self._owner), conversation)

    async def switch(self, conversation: str, message: str, *, exactly: bool = False) -> Conversation:
        return await self._write(partial(_switch, conversation, message, exactly), conversation)

    async def rewind(self, conversation: str, head: str | None, *, expect: str | None) -> Conversation:
        return await self._write(partial(_rewind, conversation, head, expect), conversation)

    async def compact(
        self, conversation: str, compaction: Compaction, *, replaces: tuple[Sequence[str], bytes] | None = None
    ) -> Compaction:
        def work(transaction: Transaction) -> Compaction:
            no = transaction.conversation_no(conversation)
            if replaces is not None and compactions.digest(transaction, no, replaces[0]) != replaces[1]:
                raise Busy("The messages changed while they were being summarized, so the summary was discarded.", fix="Try again.")
            return compactions.record(transaction, no, compaction)

        return await self._write(work, conversation)

    async def digest(self, conversation: str, messages: Sequence[str]) -> bytes:
        def work(connection: Connection) -> bytes:
            return compactions.digest(connection, lookup.number(connection, conversation, self._owner), messages)

        return await self._reader.read(work)

    async def compactions(self, conversation: str, *, among: Sequence[str] | None = None) -> list[Compaction]:
        def work(connection: Connection) -> list[Compaction]:
            return compactions.compactions(connection, lookup.number(connection, conversation, self._owner), among)

        return await self._reader.read(work)

    async def withheld(self, conversation: str, messages: Sequence[str]) -> set[str]:
        def work(connection: Connection) -> set[str]:
            return withheld(connection, lookup.number(connection, conversation, self._owner), messages)

        return await self._reader.read(work)

    async def _write(self, work: Callable[[Transaction], T], conversation: str) -> T:
        def theirs(transaction: Transaction) -> T:
            lookup.number(transaction, conversation, self._owner)
            return work(transaction)

        return await self._writer.write(theirs, conversation, sync=True)


def _edit(id: str, parts: tuple[Part, ...], transaction: Transaction) -> Message:
    row = lookup.message_row(transaction, id)
    edited = message_of(row)
    if transaction.row(f"SELECT 1 FROM run WHERE message = ? AND status IN {_LIVE}", (id,)):
        raise Busy(f"The message {id!r} is still being written.", fix="Wait until it is complete, or stop the run with `moot chat stop`.")
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
                row = transaction.row(
                    "SELECT r.message FROM run AS r JOIN message AS m ON m.id = r.message"
                    f" WHERE r.conversation = ? AND r.status IN {_LIVE} AND (r.message = ? OR m.parent_id = ?)",
                    (no, id, id),
                )
                if row is not None:
                    state = "is still being written" if row[0] == id else "is being answered"
                    raise Busy(
                        f"The message {id!r} {state}.",
                        fix="Wait until the run ends, or stop it with `moot chat stop`. Then delete the message.",
                    )
    if changed:
        transaction.add(no, (Event("tree", body={"op": "restore" if restore else "delete", "messages": list[Json](changed)}),))
        at = None if restore else transaction.now_ms
        for id in changed:
            transaction.execute("UPDATE message SET deleted_at = ? WHERE id = ?", (at, id))
        if not restore:
            compactions.withdraw_covering(transaction, no, changed)
        count = len(changed) if restore else -len(changed)
        transaction.execute("UPDATE conversation SET message_count = message_count + ? WHERE no = ?", (count, no))
    return changed


def _switch(conversation: str, message: str, exactly: bool, transaction: Transaction) -> Conversation:
    found = lookup.conversation(transaction, conversation)
    check_message(transaction, found.no, message)
    head = message if exactly else _newest_behind(transaction, found.no, message)
    return _show(transaction, found, head)


def _rewind(conversation: str, head: str | None, expect: str | None, transaction: Transaction) -> Conversation:
    found = lookup.conversation(transaction, conversation)
    if head is not None:
        check_message(transaction, found.no, head)
    if transaction.row(f"SELECT 1 FROM run WHERE conversation = ? AND status IN {_LIVE}", (found.no,)):
        raise Busy("The conversation has an unfinished run.", fix=f"Wait until it ends, or stop it: moot chat stop {found.id[:13]}")
    if found.head != expect:
        raise Busy("The conversation has changed in the meantime.", fix="Try again.")
    return _show(transaction, found, head)


def _show(transaction: Transaction, found: Conversation, head: str | None) -> Conversation:
    if head != found.head:
        transaction.add(found.no, (Event("tree", body={"op": "head", "message": head}),))
        transaction.execute("UPDATE conversation SET head_id = ? WHERE no = ?", (head, found.no))
    return lookup.conversation(transaction, found.id)


def _newest_behind(transaction: Transaction, conversation: int, message: str) -> str:
    """Return the newest descendant of a message, or the message itself; prefer one that is not deleted."""
    row = transaction.row(
        "WITH RECURSIVE behind (id, no) AS (SELECT id, no FROM message WHERE id = ?1 AND conversation = ?2"
        " UNION ALL SELECT m.id, m.no FROM behind JOIN message AS m ON m.parent_id = behind.id AND m.conversation = ?2)"
        " SELECT b.id FROM behind AS b JOIN message AS m ON m.id = b.id ORDER BY m.deleted_at IS NULL DESC, b.no DESC LIMIT 1",
        (message, conversation),
    )
    return message if row is None else row[0]
