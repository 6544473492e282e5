"""The one reader over sealed segments and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as some

from moot.errors import StoreCorrupt, StoreError
from moot.store import SqliteStore
from moot.store.rows import EVENT
from moot.store.segments import HEADER, _packed, rewrite
from moot.store.transaction import SEQ_BITS, Transaction, checksum
from moot.store.verify.rows import log_rows
from moot.store.zstd import unpack
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.event import Event


def pack(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """A frame as the sealer will write it."""
    frame = b""
    for id, at, run, *fields, check in rows:
        coded = [field.encode() if isinstance(field, str) else field for field in fields]
        lengths = [-1 if field is None else len(field) for field in coded]
        frame += HEADER.pack(id & 0xFFFFFFFF, at, -1 if run is None else run, *lengths, check) + b"".join(field or b"" for field in coded)
    return frame


def seal(through: int, per_frame: int, transaction: Transaction) -> None:
    """Puts the first events of conversation 1 into one segment."""
    base = 1 << SEQ_BITS
    rows = transaction.execute(f"SELECT {EVENT} FROM event WHERE id > ? AND id <= ? ORDER BY id", (base, base + through)).fetchall()
    data, index = b"", []
    for start in range(0, len(rows), per_frame):
        part = rows[start : start + per_frame]
        frame = zstandard.ZstdCompressor().compress(pack(part))
        index.append([part[0][0] - base, part[-1][0] - base, len(data), len(frame)])
        data += frame
    transaction.execute("INSERT INTO segment VALUES (1, 1, ?, 'zstd', NULL, ?, ?)", (through, dumps(index), data))
    transaction.execute("DELETE FROM event WHERE id > ? AND id <= ?", (base, base + through))
    transaction.execute("UPDATE log_head SET sealed_through = ? WHERE conversation = 1", (through,))


@pytest.mark.anyio
@pytest.mark.parametrize(("through", "per_frame"), [(12, 5), (20, 20), (7, 1)])
async def test_a_sealed_log_reads_as_before(store: SqliteStore, make: Any, through: int, per_frame: int) -> None:
    accepted = await store.records.submit(make.submission())
    id, run = accepted.conversation.id, accepted.run.id
    for number in range(6):
        events = [make.frame(accepted, str(number)), Event("journal", run=run, phase="start", key=f"k{number}", body={"n": None})]
        await store.log.append(id, [*events, Event("meta", (), b"")], fence=accepted.fence)
    whole, of_run = await store.log.read(id), await store.log.read(id, run=run)
    message = await store.conversations.message(accepted.run.message)
    await store._writer.write(lambda transaction: seal(through, per_frame, transaction))
    assert await store.log.read(id) == whole
    assert await store.log.read(id, run=run) == of_run
    assert await store.conversations.message(accepted.run.message) == message
    for after in range(len(whole) + 1):
        for limit in (1, 4, 100):
            assert await store.log.read(id, after=after, limit=limit) == whole[after : after + limit]
    seqs = await store.log.append(id, [make.frame(accepted, "more")], fence=accepted.fence)
    assert seqs[0] == len(whole) + 1


@pytest.mark.anyio
async def test_broken_frames_are_named(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    await store.log.append("a", [Event("meta", body=number) for number in range(4)])
    await store._writer.write(lambda transaction: seal(3, 3, transaction))
    await store._writer.write(lambda transaction: transaction.row("UPDATE segment SET data = zeroblob(50) RETURNING 1"))
    with pytest.raises(StoreCorrupt, match="unpack"):
        await store.log.read("a")
    assert [event.body for event in await store.log.read("a", after=3)] == [3]
    for column, value in (("dictionary", "future-1"), ("codec", "future")):
        await store._writer.write(lambda tx, c=column, v=value: tx.row(f"UPDATE segment SET {c} = ? RETURNING 1", (v,)))
        with pytest.raises((StoreError, Exception), match="future"):
            await store.log.read("a")


@pytest.mark.anyio
async def test_replaced_events_are_others_wherever_they_lie(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    await store.log.append("a", [Event("meta", body=f"word {number}") for number in range(9)])
    await store._writer.write(lambda transaction: seal(6, 2, transaction))
    before = await store.log.read("a")

    def forget(transaction: Transaction) -> None:
        found = {row.seq: row for row in log_rows(transaction, 1, 0)}
        rewrite(transaction, 1, {seq: found[seq]._replace(kind="tombstone", body=b'{"why":"asked"}') for seq in (2, 5, 8)})

    await store._writer.write(forget)
    after = await store.log.read("a")
    assert [event.seq for event in after] == list(range(1, 10))
    assert [event.seq for event in after if event.kind == "tombstone" and event.body == {"why": "asked"}] == [2, 5, 8]
    assert [event for event in after if event.kind != "tombstone"] == [event for event in before if event.seq not in (2, 5, 8)]


fields = some.one_of(some.none(), some.binary(max_size=20))
texts = some.one_of(some.none(), some.text(max_size=9))
packed_rows = some.tuples(
    some.integers(1, 2**32 - 1).map(lambda seq: 7 << SEQ_BITS | seq), some.integers(0, 2**62),
    some.one_of(some.none(), some.integers(1, 2**60)),
    texts, some.text(max_size=9), some.binary(max_size=20), fields, texts, texts, fields, some.binary(min_size=8, max_size=8),
)  # fmt: skip


@given(some.lists(packed_rows, max_size=4))
def test_packed_rows_come_back(rows: list[tuple[Any, ...]]) -> None:
    assert list(_packed(unpack(zstandard.ZstdCompressor().compress(pack(rows)), None), 7 << SEQ_BITS)) == rows


event_fields = some.tuples(some.integers(1, 2**32 - 1), some.text(), some.binary(), fields, texts, texts, fields)


@given(event_fields, event_fields)
def test_no_two_events_share_a_check(one: Any, other: Any) -> None:
    seq, kind, chunks, raw, phase, key, body = one
    assert len(checksum(seq, kind, chunks, raw, phase, key, body)) == 8
    empty_is_null = (one[4] or None) != (other[4] or None) or one[:4] + one[5:] != other[:4] + other[5:]
    assert (checksum(*one) == checksum(*other)) is (not empty_is_null)
