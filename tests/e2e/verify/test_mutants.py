"""Stores with real runs verify as sound, and every mutation of their log and derived data is found."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.verify.homes import LARGE, PIECE, Store
from moot.store.database.transaction import SEQ_BITS
from moot.types.verify import SHOWN
from verification import verify

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

fixing = pytest.mark.parametrize("fixed", [False, True], ids=["check-left", "check-fixed"])
damaged = pytest.mark.damaged


async def test_a_used_store_verifies_and_everything_is_counted(stored: Store, dialect: str) -> None:
    rows = stored.events()
    counted = {
        name: stored.database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("run", "exchange", "message", "blob")
    }
    receipt = await stored.verified()
    assert receipt.damages == []
    assert (receipt.conversations, receipt.events, receipt.live) == (1, len(rows), 0)
    assert (receipt.runs, receipt.exchanges, receipt.messages, receipt.blobs) == tuple(counted.values())
    assert receipt.rebuilt == receipt.exchanges == receipt.requests and not receipt.not_rebuilt
    raws = [row["raw"] for row in rows if row["kind"] == "raw"]
    assert (receipt.raw_events, receipt.raw_bytes) == (len(raws), sum(map(len, raws)))
    assert receipt.chunks == sum(len(json.loads(row["chunks"])) for row in rows)
    assert receipt.to_json()["ok"] is True


@fixing
@damaged
async def test_one_byte_of_raw_is_found(stored: Store, fixed: bool) -> None:
    row = stored.streamed()
    raw = bytearray(row["raw"])
    raw[raw.index(PIECE)] ^= 0x20
    stored.change(row, fixed=fixed, raw=bytes(raw))
    receipt = await stored.verified()
    assert {damage.kind for damage in receipt.damages} == ({"chunks"} if fixed else {"changed", "chunks"})
    assert {damage.seq for damage in receipt.damages} == {row["id"] & (1 << SEQ_BITS) - 1}
    assert all(damage.conversation for damage in receipt.damages)


@fixing
@damaged
async def test_one_field_of_a_chunk_is_found(stored: Store, fixed: bool) -> None:
    row = stored.streamed()
    chunks = json.loads(row["chunks"])
    chunks[-1]["delta"] = chunks[-1]["delta"].swapcase()
    stored.change(row, fixed=fixed, chunks=json.dumps(chunks).encode())
    assert await stored.kinds() == {"chunks", "message", *(() if fixed else ("changed",))}


@damaged
async def test_a_changed_chunk_of_moot_is_found_even_with_a_valid_checksum(stored: Store) -> None:
    row = next(row for row in stored.events("key LIKE 'tool:%' AND phase = 'end'"))
    stored.change(row, fixed=True, chunks=row["chunks"].replace(b"tool-output-available", b"tool-output-preliminary"))
    assert await stored.kinds() == {"message"}


@damaged
async def test_a_dropped_event_is_found_at_any_position(stored: Store) -> None:
    rows = stored.events()
    for row in (rows[0], stored.streamed(), rows[len(rows) // 2], rows[-1]):
        stored.run("DELETE FROM event WHERE id = ?", row["id"])
        receipt = await verify(stored.home)
        assert any(damage.kind == "missing" and damage.seq == row["id"] & (1 << SEQ_BITS) - 1 for damage in receipt.damages)
        stored.database.execute(
            "INSERT INTO event (id, at, kind, chunks, raw, phase, key, body, \"check\") VALUES (?, 0, ?, ?, ?, ?, NULL, ?, x'')",
            (row["id"], row["kind"], row["chunks"], row["raw"], row["phase"], row["body"]),
        )


@damaged
async def test_a_dropped_piece_is_found_even_if_seqs_were_renumbered(stored: Store) -> None:
    gone = stored.streamed()["id"]
    stored.run("DELETE FROM event WHERE id = ?", gone)
    for row in stored.events(f"id > {gone}"):
        stored.change(row, fixed=False, id=row["id"] - 1)
        stored.fix({**row, "id": row["id"] - 1})
    stored.run("UPDATE log_head SET next_seq = next_seq - 1")
    assert "message" in await stored.kinds()


@fixing
@damaged
async def test_a_swapped_pair_is_found(stored: Store, fixed: bool) -> None:
    first = stored.streamed()
    second = next(row for row in stored.events(f"id > {first['id']}") if row["kind"] == "raw")
    for here, there in ((first, second), (second, first)):
        stored.change(here, fixed=fixed, **{name: there[name] for name in ("chunks", "raw")})
    assert await stored.kinds() == ({"message"} if fixed else {"changed", "message"})


@damaged
async def test_one_byte_of_a_blob_is_found_in_the_database_and_in_a_file(stored: Store) -> None:
    name, data = stored.database.execute("SELECT sha256, data FROM blob WHERE data IS NOT NULL LIMIT 1").fetchone()
    stored.run("UPDATE blob SET data = ? WHERE sha256 = ?", bytes([data[0] ^ 1]) + data[1:], name)
    (file,) = [path for path in (stored.home / "data" / "blobs").rglob("*") if path.is_file()]
    file.write_bytes(LARGE[:-1] + b"?")
    receipt = await stored.verified()
    assert {(damage.kind, damage.where) for damage in receipt.damages} == {("blob", f"blob {name}"), ("blob", f"blob {file.name}")}
    file.unlink()
    assert "missing" in {damage.kind for damage in (await verify(stored.home)).damages}


@damaged
@pytest.mark.parametrize("role", ["user", "assistant"])
async def test_one_part_of_a_message_is_found(stored: Store, role: str) -> None:
    no, parts = stored.database.execute("SELECT no, parts FROM message WHERE role = ? ORDER BY no DESC LIMIT 1", (role,)).fetchone()
    value = json.loads(parts)
    next(part for part in value if part["type"] == "text")["text"] += "!"
    stored.run("UPDATE message SET parts = ? WHERE no = ?", json.dumps(value).encode(), no)
    receipt = await stored.verified()
    assert [damage.kind for damage in receipt.damages] == ["message"]
    assert "text" in receipt.damages[0].expected and "!" in receipt.damages[0].found


@damaged
@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ('UPDATE message SET metadata = CAST(\'{"agent":"another"}\' AS BLOB) WHERE no = 2', "message"),
        ("UPDATE message SET metadata = CAST('{' AS BLOB) WHERE no = 2", "unreadable"),
        ("UPDATE message SET parent_id = NULL WHERE no = 2", "record"),
        ("UPDATE message SET status = 'failed' WHERE no = 2", "record"),
        ("UPDATE message SET role = 'system' WHERE no = 1", "record"),
        ("DELETE FROM message WHERE no = 1", "missing"),
        ("UPDATE run SET status = 'failed' WHERE no = 1", "record"),
        ("UPDATE run SET usage = CAST('{\"input\":1}' AS BLOB) WHERE no = 1", "record"),
        ("UPDATE run SET cost = 7 WHERE no = 1", "record"),
        ("UPDATE exchange SET ended = 'cut' WHERE rowid = 1", "record"),
        ('UPDATE exchange SET options = CAST(\'{"prefix":"9.9"}\' AS BLOB) WHERE rowid = 1', "chunks"),
        ("UPDATE exchange SET options = CAST('{' AS BLOB) WHERE rowid = 1", "unreadable"),
        ('UPDATE exchange SET request = CAST(\'{"pieces":["00"]}\' AS BLOB) WHERE rowid = 1', "missing"),
        ("UPDATE exchange SET converter = 'another/1' WHERE rowid = 1", "record"),
        ("UPDATE exchange SET request = (SELECT request FROM exchange WHERE rowid = 2) WHERE rowid = 1", "record"),
        ("DELETE FROM exchange WHERE rowid = 1", "record"),
        ("UPDATE log_head SET next_seq = next_seq + 2", "missing"),
        ("UPDATE log_head SET next_seq = next_seq - 1", "record"),
        ("DELETE FROM log_head", "missing"),
        ("UPDATE event SET run = 99 WHERE id & 4294967295 = 12", "record"),
        ("UPDATE event SET exchange = ':9.9' WHERE id & 4294967295 = 12", "record"),
    ],
)
async def test_a_row_that_differs_from_the_log_is_found(homes: dict[str, Path], tmp_path: Path, sql: str, kind: str) -> None:
    stored = Store(shutil.copytree(homes["openai-chat"], tmp_path / "copied"))
    stored.run(sql)
    assert kind in await stored.kinds()


@damaged
async def test_a_changed_ending_is_found(stored: Store) -> None:
    row = next(row for row in stored.events("kind = 'exchange' AND phase = 'end'"))
    body = json.loads(row["body"])
    stored.change(row, fixed=True, body=json.dumps({**body, "usage": {"input": 1}}).encode())
    assert "ending" in await stored.kinds()


@damaged
@settings(max_examples=40)
@given(st.data())
def test_any_changed_byte_of_an_event_is_found(
    homes: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    stored = Store(shutil.copytree(homes["anthropic"], tmp_path_factory.mktemp("flipped") / "home"))
    row = data.draw(st.sampled_from(stored.events()))
    name = data.draw(st.sampled_from([name for name in ("chunks", "raw", "body") if row[name]]))
    at = data.draw(st.integers(0, len(row[name]) - 1))
    changed = bytearray(row[name])
    changed[at] ^= data.draw(st.integers(1, 255))
    stored.change(row, fixed=False, **{name: bytes(changed)})
    receipt = asyncio.run(stored.verified())
    assert ("changed", row["id"] & (1 << SEQ_BITS) - 1) in {(damage.kind, damage.seq) for damage in receipt.damages}


@damaged
async def test_unlisted_damages_are_counted(stored: Store) -> None:
    for row in stored.events("kind = 'raw'"):
        stored.change(row, fixed=False, raw=row["raw"] + b" ")
    for _ in range(SHOWN):
        stored.database.execute("INSERT INTO blob VALUES (hex(randomblob(32)), 1, 'text/plain', 0, x'00')")
    receipt = await stored.verified()
    assert len(receipt.damages) == SHOWN < receipt.damaged
