"""Sessions of other machines: finding copies of a session on several machines, and remembering purged ones.

Sessions with the same id on two machines are usually different, so the stored id contains the machine's name. They are copies of one
session if their first message has the same bytes and the same time, as after copying a home folder. If the message has no time, the id must
be a UUID, which can't be the same by chance. Copies belong to one conversation: that of this machine, or else that of the machine from
which it was imported first.
"""

from __future__ import annotations

import re
from typing import Any

from moot.convert.imports import digest_of, key_at_host
from moot.store.database.connection import Queries
from moot.store.database.transaction import Transaction
from moot.store.imports.batches import Place, place_of
from moot.store.rows import parse_stored_object
from moot.types.canonical import JsonObject
from moot.types.imports import FirstMessage, IncomingConversation

_HOSTS = (  # one index lookup for each name
    "WITH RECURSIVE known(host) AS (SELECT min(host) FROM conversation WHERE host <> ''"
    " UNION ALL SELECT (SELECT min(c.host) FROM conversation AS c WHERE c.host <> '' AND c.host > known.host) FROM known"
    " WHERE known.host IS NOT NULL) SELECT host FROM known WHERE host IS NOT NULL"
)
_FIRST = (
    "SELECT 1 FROM import_message AS i JOIN message AS m ON m.id = i.message"
    " WHERE i.conversation = ?1 AND i.key = ?2 AND i.digest = ?3 AND (?4 = 0 OR m.created_at = ?4)"
)

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def stored_id(arriving: IncomingConversation, source_id: str | None) -> str | None:
    """Return the stored form of an id from the arriving conversation's source."""
    return None if source_id is None else key_at_host(arriving.host, source_id)


def copy_of(queries: Queries, arriving: IncomingConversation, owner: str) -> tuple[str, Place] | None:
    """Return the machine and the conversation of which the arriving session is a copy, or None."""
    if arriving.first is None or not (arriving.first.created_at or _UUID.search(arriving.source_id)):
        return None
    hosts = ["", *(host for (host,) in queries.execute(_HOSTS).fetchall())]
    for host in hosts:
        place = place_of(queries, owner, arriving.format, key_at_host(host, arriving.source_id)) if host != arriving.host else None
        if place is not None and _begins_with(queries, place.no, arriving.first):
            return host, place
    return None


def _begins_with(queries: Queries, conversation: int, first: FirstMessage) -> bool:
    return queries.execute(_FIRST, (conversation, *first)).fetchone() is not None


def add_alias(transaction: Transaction, owner: str, format: str, source_id: str, conversation: int, origin: JsonObject | None) -> None:
    """Record that a session is a copy of one from another machine. `origin` names the file that contains it."""
    transaction.execute(
        "INSERT INTO import_alias (owner_id, format, source_id, conversation, path) VALUES (?, ?, ?, ?, ?)",
        (owner, format, source_id, conversation, str((origin or {}).get("path") or "")),
    )


def move_here(transaction: Transaction, arriving: IncomingConversation, owner: str, place: Place) -> None:
    """Assign a conversation from another machine to this machine, because its session has just been found here too."""
    row: Any = transaction.row(
        "SELECT i.source_id, c.origin FROM import_conversation AS i JOIN conversation AS c ON c.no = i.conversation"
        " WHERE i.conversation = ?",
        (place.no,),
    )
    transaction.execute(  # version 0, so that the folder and the project are set
        "UPDATE import_conversation SET source_id = ?, parent = ?, parent_call = ?, copied_from = ?, rank = ?, started_at = ?, version = 0"
        " WHERE conversation = ?",
        (
            *(arriving.source_id, arriving.parent, arriving.parent_call, arriving.copied_from, arriving.rank, arriving.started_at),
            place.no,
        ),
    )
    transaction.execute("UPDATE conversation SET host = '' WHERE no = ?", (place.no,))
    add_alias(transaction, owner, arriving.format, row[0], place.no, parse_stored_object(row[1]))


def is_purged(queries: Queries, arriving: IncomingConversation, owner: str) -> bool:
    """Return True if the session belongs to another machine and its conversation was purged."""
    if not arriving.host:
        return False
    digest = _digest(owner, arriving.format, key_at_host(arriving.host, arriving.source_id))
    return queries.execute("SELECT 1 FROM import_purged WHERE digest = ?", (digest,)).fetchone() is not None


def remember_purged(transaction: Transaction, conversation: int) -> None:
    """Record the sessions from other machines that belong to a conversation before the conversation is purged."""
    rows: Any = transaction.execute(
        "SELECT i.owner_id, i.format, i.source_id FROM import_conversation AS i JOIN conversation AS c ON c.no = i.conversation"
        " WHERE i.conversation = ?1 AND c.host <> ''"
        " UNION SELECT owner_id, format, source_id FROM import_alias WHERE conversation = ?1",
        (conversation,),
    ).fetchall()
    transaction.many("INSERT OR IGNORE INTO import_purged (digest) VALUES (?)", [(_digest(*row),) for row in rows])


def _digest(owner: str, format: str, source_id: str) -> bytes:
    return digest_of("\0".join((owner, format, source_id)).encode())
