"""One reader over sealed segments and rows, and sealing."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Settings
from moot.convert.exchanges import translator_of
from moot.errors import NotFound, StoreError
from moot.store import SqliteStore, open_store
from moot.store.database.connection import Connection
from moot.store.database.transaction import Transaction
from moot.store.log import segments
from moot.store.log.segments import FrameCache, log_rows, pack_segment, rewrite
from moot.store.maintenance.upkeep import conversations_to_seal, plan_segment, replace_rows
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.maintenance import Sealed
from moot.types.store import End, Fold

pytestmark = pytest.mark.anyio

NOW = 1 << 62
SCHEMAS = Path(__file__).parents[2] / "recorded" / "schemas"


async def seal(store: SqliteStore, **how: Any) -> Sealed:
    """Seal everything possible. Return the last sealed seq."""
    return [Sealed(), *[done async for done in store.upkeep.seal(**how)]][-1]


async def ended(store: SqliteStore, make: Any, events: int, accepted: Any = None) -> Any:
    """A finished run with so many frames and others between them."""
    accepted = accepted or await store.records.submit(make.submission())
    id, run = accepted.conversation.id, accepted.run.id
    for number in range(events):
        more = [Event("journal", run=run, phase="start", key=f"k{number}", body={"n": None}), Event("meta", (), b"", body=number)]
        await store.log.append(id, [make.frame(accepted, str(number)), *(more if number % 5 == 0 else ())], fence=accepted.fence)
    last = Event("chunks", ({"type": "finish"},), run=run, phase="end", key="run", body={"status": "finished"})
    parts = ({"type": "text", "text": "".join(map(str, range(events))), "state": "done"},)
    await store.log.append(id, [last], fence=accepted.fence, changes=[Fold(parts, {}, "finished"), End("finished")])
    return accepted


async def tables(store: SqliteStore) -> tuple[int, int, int]:
    """Rows of the log, segments, and the last sealed seq of the first conversation."""

    def look(connection: Connection) -> tuple[int, int, int]:
        asked = ("count(*) FROM event", "count(*) FROM segment", "max(sealed_through) FROM log_head")
        events, sealed, through = (int(connection.execute(f"SELECT {what}").fetchone()[0]) for what in asked)
        return events, sealed, through

    return await store._reader.read(look)


async def test_a_sealed_log_reads_as_before(store: SqliteStore, make: Any) -> None:
    accepted = await ended(store, make, 700)
    id, run = accepted.conversation.id, accepted.run.id
    whole, of_run = await store.log.read(id, limit=9999), await store.log.read(id, run=run, limit=9999)
    message = await store.conversations.message(accepted.run.message)
    done = await seal(store)
    assert (done.conversations, done.events) == (1, len(whole))
    assert done.after < done.before / 5
    assert await tables(store) == (0, 1, len(whole))
    assert await store.log.read(id, limit=9999) == whole
    assert await store.log.read(id, run=run, limit=9999) == of_run
    assert await store.conversations.message(accepted.run.message) == message
    for after in (0, 1, 510, 511, 512, 513, 600, len(whole) - 1, len(whole)):
        for limit in (1, 4, 600):
            assert await store.log.read(id, after=after, limit=limit) == whole[after : after + limit]
    assert await store.log.last_seq(id) == len(whole)


async def test_a_conversation_continues_after_sealed_events(store: SqliteStore, make: Any) -> None:
    first = await ended(store, make, 40)
    await seal(store)
    sealed = await store.log.last_seq(first.conversation.id)
    second = await store.records.submit(make.submission(first.conversation, "and then?"))
    seqs = await store.log.append(second.conversation.id, [make.frame(second, "more")], fence=second.fence)
    assert seqs[0] == sealed + 3
    whole = await store.log.read(first.conversation.id, limit=9999)
    assert [event.seq for event in whole] == list(range(1, sealed + 4))
    for after in range(sealed - 2, sealed + 2):
        assert await store.log.read(first.conversation.id, after=after, limit=2) == whole[after : after + 2]
    assert (await seal(store)).events == 2  # the prompt: its run continues
    assert await seal(store) == Sealed()
    await ended(store, make, 6, second)
    whole = await store.log.read(first.conversation.id, limit=9999)
    await seal(store)
    assert await tables(store) == (0, 1, len(whole))  # small segments are merged
    assert await store.log.read(first.conversation.id, limit=9999) == whole
    fork = await store.tree.fork(first.conversation.id)
    assert len(await store.conversations.branch(fork.id)) == len(await store.conversations.branch(first.conversation.id))


async def test_a_waiting_run_and_later_events_are_not_sealed(store: SqliteStore, make: Any) -> None:
    first = await ended(store, make, 9)
    waits = await store.records.submit(make.submission(first.conversation, "wait"))
    through = waits.run.first_seq - 1
    await store.log.append(first.conversation.id, [make.frame(waits, "x")], fence=waits.fence)
    await seal(store)
    assert (await tables(store))[2] == through
    assert len(await store.log.read(first.conversation.id, run=waits.run.id)) == 1


async def test_only_quiet_conversations_are_sealed_and_a_dry_run_changes_nothing(store: SqliteStore, make: Any) -> None:
    await ended(store, make, 9)
    before = await tables(store)
    assert await seal(store, quiet=600.0) == Sealed()
    assert (await seal(store, dry=True)).events == before[0]
    assert await tables(store) == before
    other = await ended(store, make, 3)
    await seal(store, conversation=other.conversation.id)
    assert (await tables(store))[0] == before[0]
    with pytest.raises(NotFound):
        await seal(store, conversation="nobody")


async def test_two_processes_do_not_seal_at_once(store: SqliteStore, settings: Settings, make: Any) -> None:
    await ended(store, make, 9)
    other = await open_store(settings)
    assert other._sealer.take(wait=False)
    assert await seal(store) == Sealed()
    other._sealer.release()
    assert (await seal(store)).events > 0
    await other.close()


async def test_concurrent_changes_are_not_lost_by_sealing(store: SqliteStore, make: Any) -> None:
    accepted = await ended(store, make, 9)
    (what,) = await store._reader.read(lambda connection: conversations_to_seal(connection, NOW))
    made = await store._reader.read(lambda connection: plan_segment(connection, what))
    assert made is not None
    await store._writer.write(lambda transaction: rewrite(transaction, 1, {3: made.rows[2]._replace(body=b'"gone"')}))
    assert not await store._writer.write(lambda transaction: replace_rows(made, pack_segment(made.rows), transaction))
    again = await store._reader.read(lambda connection: plan_segment(connection, what))
    assert again is not None
    assert await store._writer.write(lambda transaction: replace_rows(again, pack_segment(again.rows), transaction))
    assert not await store._writer.write(lambda transaction: replace_rows(again, pack_segment(again.rows), transaction))
    assert (await store.log.read(accepted.conversation.id, after=2, limit=1))[0].body == "gone"


async def test_rewriting_replaces_rows_and_sealed_events(store: SqliteStore, make: Any) -> None:
    accepted = await ended(store, make, 600)
    id = accepted.conversation.id
    await seal(store)
    await store.log.append(id, [Event("meta", body="behind")])
    before = await store.log.read(id, limit=9999)
    asked = (2, 600, before[-1].seq)

    def forget(transaction: Transaction) -> None:
        found = {row.seq: row for row in log_rows(transaction, 1, 0)}
        rewrite(
            transaction, 1, {seq: found[seq]._replace(kind="tombstone", raw=None, chunks=b"[]", body=b'{"why":"asked"}') for seq in asked}
        )

    await store._writer.write(forget)
    after = await store.log.read(id, limit=9999)
    assert [event.seq for event in after] == [event.seq for event in before]
    assert [event.seq for event in after if event.kind == "tombstone" and event.body == {"why": "asked"}] == list(asked)
    assert [event for event in after if event.kind != "tombstone"] == [event for event in before if event.seq not in asked]


async def damage(store: SqliteStore, sql: str) -> None:
    await store._writer.write(lambda transaction: transaction.row(f"UPDATE segment SET {sql} RETURNING 1"))


async def found_by_verify(store: SqliteStore) -> list[tuple[str, str]]:
    receipt = [receipt async for receipt in store.verifier.verify(translator_of)][-1]
    return [(damage.kind, damage.where) for damage in receipt.damages]


FRAME = "json_extract(CAST(frames AS TEXT), '$[1][2]')"
OTHER = f"CASE hex(substr(data, {FRAME} + 40, 1)) WHEN '00' THEN x'01' ELSE x'00' END"
FLIPPED = f"data = CAST(substr(data, 1, {FRAME} + 39) || {OTHER} || substr(data, {FRAME} + 41) AS BLOB)"
UNLIKE = "frames = CAST(json_set(CAST(frames AS TEXT), '$[1][4]', '0123456789abcdef') AS BLOB)"


@pytest.mark.parametrize("sql", [FLIPPED, UNLIKE], ids=["another byte", "another hash"])
async def test_a_flipped_byte_damages_only_its_frame_and_is_detected(store: SqliteStore, make: Any, sql: str) -> None:
    id = (await store.conversations.create(Conversation("a"))).id
    await store.log.append(id, [Event("meta", body=f"event {number}") for number in range(1100)])
    before = await store.log.read(id, limit=9999)
    await seal(store)
    await damage(store, f"{sql} WHERE first_seq = 1")
    after = await store.log.read(id, limit=9999)
    assert [event.seq for event in after] == [event.seq for event in before]
    assert after[:512] == before[:512]
    assert after[1024:] == before[1024:]
    assert all(event.kind == "meta" and event.body == {"damaged": True, "kind": "meta"} for event in after[512:1024])
    assert await found_by_verify(store) == [("changed", "events 513 to 1024")]


@pytest.mark.parametrize("sql", ["data = zeroblob(50)", "data = zeroblob(0)", "frames = x'00'", "frames = '[]'", "frames = '[[1,2,3]]'"])
async def test_a_broken_segment_leaves_the_conversation_readable(store: SqliteStore, make: Any, sql: str) -> None:
    accepted = await ended(store, make, 20)
    id = accepted.conversation.id
    await seal(store)
    await store.log.append(id, [Event("meta", body="behind")])
    last = await store.log.last_seq(id)
    await damage(store, sql if "frames" not in sql else f"{sql.replace('= ', '= CAST(')} AS BLOB)")
    events = await store.log.read(id, limit=9999)
    assert [event.seq for event in events] == list(range(1, last + 1))
    assert events[-1].body == "behind"
    assert ("changed", f"events 1 to {last - 1}") in await found_by_verify(store)
    await seal(store)  # broken segments are not packed again
    assert await tables(store) == (0, 2, last)


async def test_segments_of_a_newer_moot_are_reported(store: SqliteStore, make: Any) -> None:
    accepted = await ended(store, make, 3)
    await seal(store)
    for column, value in (("dictionary", "future-1"), ("dictionary", "../zstd"), ("codec", "future")):
        await damage(store, f"{column} = '{value}'")
        with pytest.raises((StoreError, Exception), match=r"future|zstd"):
            await store.log.read(accepted.conversation.id)


async def test_one_event_is_read_without_unpacking_the_run(store: SqliteStore, make: Any) -> None:
    await ended(store, make, 1500)
    await seal(store)
    cache = FrameCache()

    def look(connection: Connection) -> tuple[int, int]:
        found = [list(segments.rows(connection, 1, 700, 701, cache)) for _ in range(3)]
        assert found[0] == found[1] == found[2]
        return len(found[0]), len(cache._frames)

    assert await store._reader.read(look) == (1, 1)


def test_the_frame_cache_is_bounded() -> None:
    cache = FrameCache(3000)
    row = (1, 0, None, None, "raw", b"x" * 800, None, None, None, None, None)
    for number in range(9):
        cache.put((bytes([number]), None, 0), [row])
    assert [cache.get((bytes([number]), None, 0)) for number in range(9)] == [None] * 6 + [[row]] * 3
    cache.put((b"large", None, 0), [row] * 9)
    assert cache.get((b"large", None, 0)) is None
    assert cache._size == 3000


async def test_free_pages_are_returned(store: SqliteStore, settings: Settings, make: Any) -> None:
    await store.conversations.create(Conversation("a"))
    for _ in range(40):
        await store.log.append("a", [Event("meta", (), b"all alike " * 10_000)])
    before = (await store.upkeep.sizes()).database
    await seal(store)
    sizes = await store.upkeep.sizes()
    assert sizes.gives_back
    assert sizes.free > before / 2
    assert (sizes.rows.events, sizes.sealed.events, sizes.segments) == (0, 40, 1)
    assert [one.id for one in sizes.largest] == ["a"]
    left = [left async for left in store.upkeep.give_back()]
    assert left == sorted(left, reverse=True)
    assert (await store.upkeep.sizes()).free == 0
    assert (await store.upkeep.sizes()).database < before / 4
    await store.close()
    assert settings.database.stat().st_size < before / 4


async def test_a_rewritten_database_has_no_free_pages(store: SqliteStore, settings: Settings, make: Any) -> None:
    await store.conversations.create(Conversation("a"))
    await store.log.append("a", [Event("meta", (), b"a word that was said" * 100)])
    await seal(store)
    await store._writer.write(lambda tx: rewrite(tx, 1, {1: next(log_rows(tx, 1, 0))._replace(raw=None)}))
    assert [event.raw for event in await store.log.read("a")] == [None]
    await store.upkeep.rewrite(lambda _: None)
    await store.close()
    for path in Path(settings.database.parent).glob("moot.db*"):
        assert b"a word that was said" not in path.read_bytes()


async def test_an_old_database_returns_pages_after_a_rewrite(settings: Settings) -> None:
    settings.database.parent.mkdir(parents=True)
    settings.database.write_bytes(gzip.decompress((SCHEMAS / "6.db.gz").read_bytes()))
    store = await open_store(settings)
    assert not (await store.upkeep.sizes()).gives_back
    assert [left async for left in store.upkeep.give_back()] == []
    await seal(store)
    await store.upkeep.rewrite(lambda _: None)
    assert (await store.upkeep.sizes()).gives_back
    assert (await store.upkeep.sizes()).free == 0
    assert await found_by_verify(store) == []
    await store.close()
