"""Imported conversations are stored small: their events are sealed at once, and the parts of messages are compressed."""

from __future__ import annotations

from typing import Any

import pytest

from moot.config.settings import Settings
from moot.imports.arrivals import encode_arrival
from moot.store import SqliteStore, open_store
from moot.store.database.connection import connect
from moot.types.format import ImportedMessage
from moot.types.imports import ImportTarget, IncomingConversation
from moot.types.maintenance import REDACTION_MARK, Secret
from moot.types.message import text_of, text_part
from verification import verify

pytestmark = pytest.mark.anyio

LONG = " ".join(f"word{number}" for number in range(2000))


def message(number: int, text: str, parent: int | None = None) -> ImportedMessage:
    raw = f'{{"n":{number},"text":"{text}"}}\n'.encode()
    return ImportedMessage("user", (text_part(text),), f"m{number}", raw, parent=None if parent is None else f"m{parent}")


async def received(store: SqliteStore, make: Any, *messages: ImportedMessage) -> ImportTarget:
    conversation = make.conversation(origin={"format": "demo", "source_id": "one"})
    target = await store.imports.receive(IncomingConversation("demo", 1, "one", conversation))
    await store.imports.take(target, [encode_arrival(each) for each in messages])
    return target


async def one(store: SqliteStore, sql: str) -> Any:
    return await store._reader.read(lambda connection: connection.execute(sql).fetchone()[0])


async def test_an_imported_conversation_is_sealed_in_the_transaction_that_stores_it(
    store: SqliteStore, make: Any, settings: Settings
) -> None:
    target = await received(store, make, message(1, "short"), message(2, LONG, 1))
    assert await one(store, "SELECT count(*) FROM event") == 0
    assert await one(store, "SELECT sealed_through FROM log_head") == 2
    events = await store.log.read(target.id)
    assert [(event.seq, event.kind, event.raw) for event in events] == [
        (1, "message", message(1, "short").raw),
        (2, "message", message(2, LONG).raw),
    ]
    later = ImportTarget(target.id)
    await store.imports.take(later, [encode_arrival(message(3, "more", 2))])  # too little for a segment of its own
    assert await one(store, "SELECT count(*) FROM event") == 1
    await store.imports.take(later, [encode_arrival(message(4, LONG * 8, 3))])  # after a row that is not sealed
    assert await one(store, "SELECT count(*) FROM segment") == 1
    assert [event.seq for event in await store.log.read(target.id)] == [1, 2, 3, 4]
    assert [done async for done in store.upkeep.seal()][-1].events == 2
    await store.imports.take(later, [encode_arrival(message(5, LONG * 8, 4))])
    assert await one(store, "SELECT count(*) FROM event") == 0
    await store.close()
    assert (await verify(settings.home)).damages == []


async def test_parts_of_imported_messages_are_compressed_at_once_and_others_when_they_are_indexed(store: SqliteStore, make: Any) -> None:
    await received(store, make, message(1, LONG))
    size = "SELECT max(length(parts)) FROM message WHERE conversation = (SELECT max(no) FROM conversation)"
    assert await one(store, size) < len(LONG) / 2
    accepted = await store.records.submit(make.submission(text=LONG))
    assert accepted.run is not None
    assert await one(store, size) > len(LONG)
    await store.search.index()
    assert await one(store, size) < len(LONG) / 2
    [stored] = [each for each in await store.conversations.branch(accepted.conversation.id) if each.role == "user"]
    assert text_of(stored.parts) == LONG


async def test_short_parts_stay_as_they_are(store: SqliteStore, make: Any) -> None:
    await received(store, make, message(1, "short"))
    assert bytes(await one(store, "SELECT parts FROM message"))[:1] == b"["


async def test_damaged_compressed_parts_are_rebuilt_from_the_log(store: SqliteStore, make: Any, settings: Settings) -> None:
    target = await received(store, make, message(1, LONG))
    await store.close()
    connection = connect(settings.database, writing=True)
    (parts,) = connection.execute("SELECT parts FROM message").fetchone()
    connection.execute("UPDATE message SET parts = ?", (bytes(parts[:100]) + bytes(len(parts) - 100),))
    connection.close()
    assert [one.kind for one in (await verify(settings.home)).damages] == ["unreadable"]
    again = await open_store(settings)
    [rebuilt] = await again.conversations.branch(target.id)
    await again.close()
    assert text_of(rebuilt.parts) == LONG


async def test_a_text_in_compressed_parts_is_redacted(store: SqliteStore, make: Any, settings: Settings) -> None:
    target = await received(store, make, message(1, f"{LONG} hunter2hunter2 end"))
    await store.search.index()
    await store.erasure.redact(Secret(("hunter2hunter2",)))
    [stored] = await store.conversations.branch(target.id)
    assert text_of(stored.parts) == f"{LONG} {REDACTION_MARK} end"
    assert not (await store.search.search("hunter2hunter2")).hits
    await store.close()
    assert (await verify(settings.home)).damages == []
