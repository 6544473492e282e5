"""Full, read-only or broken disks: a clear error, nothing lost, and service again after they recover."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Settings
from moot.errors import MootError, StoreCorrupt, StoreError
from moot.store import SqliteStore, open_store
from moot.store.database.connection import connect, sqlite
from moot.store.database.errors import translate_error
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message, text_part
from moot.types.store import End, Fold

pytestmark = pytest.mark.anyio


def output(process: subprocess.Popen[bytes]) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    return out.decode().splitlines()


async def test_the_store_recovers_from_a_full_disk_without_losses(settings: Settings, spawn: Any) -> None:
    said = output(spawn("full", settings.home))
    assert said[0] == "StoreFull Free space", said
    acknowledged, recovered = int(said[1]), int(said[2])
    assert acknowledged > 0 and recovered == acknowledged + 1
    store = await open_store(settings)
    events = await store.log.read("a", limit=10_000)
    assert [event.seq for event in events] == list(range(1, recovered + 1))
    assert (await store.health())["integrity"] == "ok"
    await store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become somebody else")
async def test_a_read_only_home_is_reported(settings: Settings, spawn: Any, tmp_path: Path) -> None:
    store = await open_store(settings)
    await store.conversations.create(Conversation("a"))
    await store.close()
    for folder in [*tmp_path.parents, tmp_path]:
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    for path in settings.home.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    settings.home.chmod(0o755)
    (said,) = output(spawn("forbidden", settings.home))
    assert said.startswith("StoreError") and str(settings.home) in said


async def test_a_broken_page_is_reported_and_other_conversations_stay_readable(settings: Settings) -> None:
    store = await open_store(settings)
    for name in ("a", "b"):
        await store.conversations.create(Conversation(name))
        await store.log.append(name, [Event("meta", body="x" * 3000) for _ in range(40)])
    await store.close()
    connection = sqlite.connect(str(settings.database))
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    page = _pages_with(settings.database, size, b"x" * 2000)[-1]
    data = bytearray(settings.database.read_bytes())
    data[(page - 1) * size : page * size] = bytes(size)
    settings.database.write_bytes(data)
    store = await open_store(settings)
    assert len(await store.log.read("a")) == 40
    with pytest.raises(StoreCorrupt, match=r"moot\.db"):
        await store.log.read("b")
    assert (await store.health())["integrity"] != "ok"
    await store.close()


def _pages_with(path: Path, size: int, content: bytes) -> list[int]:
    data = path.read_bytes()
    return [number + 1 for number in range(len(data) // size) if content in data[number * size : (number + 1) * size]]


async def test_a_flipped_byte_damages_only_its_event(settings: Settings) -> None:
    store = await open_store(settings)
    await store.conversations.create(Conversation("a"))
    chunk = {"type": "text-delta", "id": "0", "delta": "needle-in-chunks"}
    await store.log.append("a", [Event("meta", body=1), Event("chunks", (chunk,), b"raw"), Event("meta", body=3)])  # type: ignore[arg-type]
    await store.close()
    data = settings.database.read_bytes()
    assert data.count(b"needle-in-chunks") == 1
    settings.database.write_bytes(data.replace(b"needle-in-chunks", b"needle!in-chunks"))
    store = await open_store(settings)
    good, bad, fine = await store.log.read("a")
    assert (good.body, fine.body) == (1, 3)
    assert (bad.seq, bad.kind, bad.chunks, bad.raw, bad.body) == (2, "meta", (), b"raw", {"damaged": True, "kind": "chunks"})
    await store.close()


async def test_a_message_whose_row_is_damaged_is_read_from_the_log(settings: Settings, make: Any) -> None:
    store = await open_store(settings)
    accepted = await store.records.submit(make.submission(text="my-question"))
    seqs = await store.log.append(accepted.conversation.id, [make.frame(accepted, "my-answer")], fence=accepted.fence)
    parts = (await store.conversations.message(accepted.run.message)).parts
    await store.log.append(accepted.conversation.id, [], fence=accepted.fence, changes=[Fold(parts, {"n": 1}), End("finished")])
    right = await store.conversations.branch(accepted.conversation.id)
    for message in right:
        await store._writer.write(lambda tx, id=message.id: tx.execute("UPDATE message SET parts = x'5b7b' WHERE id = ?", (id,)) and None)
    found = await store.conversations.branch(accepted.conversation.id)
    assert [message.parts for message in found] == [message.parts for message in right] and seqs
    await store._writer.write(lambda tx: tx.execute("UPDATE event SET body = x'5b' WHERE kind = 'message'") and None)
    broken, _ = await store.conversations.branch(accepted.conversation.id)
    assert [part["type"] for part in broken.parts] == ["data-damaged"]
    await store.close()


async def test_random_flips_never_give_wrong_events(settings: Settings) -> None:
    store = await open_store(settings)
    await store.conversations.create(Conversation("a"))
    await store.conversations.add_message(Message("m", "user", (text_part("needle"),), conversation="a"))
    await store.log.append("a", [Event("chunks", ({"type": "data-x", "data": number},), b"r" * 50) for number in range(50)])
    # the event's checksum covers its content, not its time
    right = [event._replace(at=0) for event in await store.log.read("a")]
    await store.close()
    whole = settings.database.read_bytes()
    chance = random.Random(7)
    found = 0
    for _ in range(60):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        for ending in ("-wal", "-shm"):
            settings.database.with_name(f"moot.db{ending}").unlink(missing_ok=True)
        settings.database.write_bytes(data)
        try:
            store = await open_store(settings)
        except StoreError:
            found += 1
            continue
        try:
            for event in await store.log.read("a"):
                assert event.body == {"damaged": True, "kind": "chunks"} or event._replace(at=0) in right or event.kind == "meta"
        except MootError:
            found += 1
        finally:
            await store.close()
    assert found < 60


async def test_sqlite_errors_are_always_translated(store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="syntax"):
        await store._writer.write(lambda transaction: transaction.execute("SELEC"))
    with pytest.raises(StoreError, match="syntax"):
        await store._reader.read(lambda connection: connection.execute("SELEC"))
    with pytest.raises(StoreError, match="readonly"):
        await store._reader.read(lambda connection: connection.execute("DELETE FROM event"))


def test_a_permanent_lock_is_reported(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.touch()
    first, second = connect(path, writing=True), connect(path, writing=True, wait=0.01)
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite.OperationalError) as caught:
        second.execute("BEGIN IMMEDIATE")
    said = translate_error(caught.value, path)
    assert isinstance(said, StoreError) and "locked" in said.message and said.fix
    first.close()
    second.close()


async def test_nothing_is_acknowledged_if_the_file_was_moved(store: SqliteStore, settings: Settings) -> None:
    file = settings.database
    await store.conversations.create(Conversation("a"))
    aside = file.with_suffix(".aside")
    file.rename(aside)
    with pytest.raises(StoreError, match="was removed while it was open"):
        await store.log.append("a", [Event("meta")])
    file.write_bytes(b"")
    with pytest.raises(StoreError, match="was replaced by another file while it was open"):
        await store.log.append("a", [Event("meta")])
    aside.rename(file)
    assert await store.log.append("a", [Event("meta")]) == range(1, 2)
