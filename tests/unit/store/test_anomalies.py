"""Every system call may fail, one after the other: nothing acknowledged is lost, and the next start is sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Settings
from moot.errors import MootError
from moot.store import SqliteStore, open_store
from moot.store.database import connection
from moot.types.conversation import Conversation
from moot.types.event import Event

pytestmark = pytest.mark.skipif(connection.NAME != "pysqlite3", reason="wraps the system calls of pysqlite3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "how", "begin", "stride"),
    [
        ("fsync", "once", "made", 1),
        ("fsync", "ever", "new", 1),
        ("pwrite", "once", "made", 1),
        ("pwrite", "ever", "made", 4),
        ("pwrite", "once", "new", 20),
        ("pread", "once", "made", 5),
        ("ftruncate", "once", "new", 1),
        ("fcntl", "once", "made", 3),
        ("open", "once", "made", 1),
        ("open", "ever", "new", 1),
        ("mmap", "once", "made", 1),
    ],
)
def test_the_nth_call_may_fail_for_every_n(spawn: Any, tmp_path: Path, call: str, how: str, begin: str, stride: int) -> None:
    out, err = spawn("anomalies", tmp_path, call, how, begin, stride).communicate(timeout=60)
    assert err == b""
    calls, errors = map(int, out.split())
    assert calls > 1
    assert errors > 0


@pytest.mark.slow
def test_a_power_loss_keeps_everything_fsynced(spawn: Any, tmp_path: Path) -> None:
    out, err = spawn("powerloss", tmp_path, 80).communicate(timeout=60)
    assert err == b""
    assert out.split()[0] == b"80"


async def made(settings: Settings) -> list[Event]:
    store = await open_store(settings)
    await store.conversations.create(Conversation("a"))
    await store.log.append("a", [Event("meta", body="x" * 2000) for _ in range(30)])
    events = await store.log.read("a")
    await store.close()
    return events


@pytest.mark.anyio
async def test_trailing_null_bytes_are_harmless(settings: Settings) -> None:
    events = await made(settings)
    with settings.database.open("ab") as file:
        file.write(bytes(40_960))
    store = await open_store(settings)
    assert await store.log.read("a") == events
    assert len(await store.log.append("a", [Event("meta", body=1)])) == 1
    await store.close()


@pytest.mark.anyio
async def test_a_deleted_log_loses_only_its_contents(settings: Settings, store: SqliteStore, tmp_path: Path) -> None:
    await store.conversations.create(Conversation("a"))
    await store.log.append("a", [Event("meta", body=number) for number in range(30)])
    copy = Settings(home=tmp_path / "copy")
    copy.database.parent.mkdir(parents=True)
    copy.database.write_bytes(settings.database.read_bytes())  # without its -wal, like a careless copy
    other = await open_store(copy)
    try:
        found = [event.body for event in await other.log.read("a")]
        assert found == list(range(len(found)))
    except MootError as error:  # the conversation itself was in the log
        assert error.message
    finally:
        await other.close()
