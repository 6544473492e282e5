"""Many processes with one file."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.store.database.connection import connect
from moot.store.database.locks import FileLock
from moot.store.database.schema import prepare, version_of
from moot.store.migrations import released
from moot.types.conversation import Conversation
from moot.types.event import Event

pytestmark = pytest.mark.anyio


def numbers(process: subprocess.Popen[bytes]) -> list[list[int]]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    return [[int(word) for word in line.split()] for line in out.decode().splitlines()]


def lines(file: Path) -> list[str]:
    """The complete lines of a file that may still be written to."""
    text = file.read_text() if file.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


class Many:
    """The process that quickly starts others."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def start(self, out: Path, name: str, *arguments: object) -> int:
        return int(self._ask(" ".join(map(str, (out, name, *arguments)))))

    def wait(self) -> list[int]:
        return [int(status) for status in self._ask("wait").split()]

    def _ask(self, line: str) -> bytes:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        return self._process.stdout.readline()


@pytest.mark.slow
async def test_three_writers_and_two_watchers_share_a_conversation(store: SqliteStore, settings: Settings, spawn: Any) -> None:
    made = await store.conversations.create(Conversation("shared"))
    watchers = [spawn("watcher", settings.home, made.id, 900) for _ in range(2)]
    for watcher in watchers:
        assert watcher.stderr.readline() == b"ready\n"
    writers = [spawn("writer", settings.home, made.id, name, 300, 3, "normal") for name in "abc"]
    acknowledged = {name: numbers(writer) for name, writer in zip("abc", writers, strict=True)}
    events = []
    while page := await store.log.read(made.id, after=len(events)):
        events += page
    assert [event.seq for event in events] == list(range(1, 901))
    for name, acks in acknowledged.items():
        of_writer = {event.seq: event.body[1] for event in events if event.body[0] == name}  # type: ignore[index]
        assert list(of_writer.values()) == list(range(300))
        assert all(of_writer[seq] == number for seq, number in acks)
    for watcher in watchers:
        assert numbers(watcher) == [list(range(1, 901))]


@pytest.mark.slow
def test_fifty_processes_create_one_database(settings: Settings, spawn: Any, tmp_path: Path) -> None:
    many = Many(spawn("many"))
    for number in range(50):
        many.start(tmp_path / str(number), "starter", settings.home)
    assert many.wait() == [0] * 50, "\n".join((tmp_path / str(number)).read_text() for number in range(50))
    assert sorted(path.name for path in settings.database.parent.iterdir()) == ["moot.db"]


@pytest.mark.slow
def test_fifty_processes_upgrade_one_database(settings: Settings, spawn: Any, tmp_path: Path) -> None:
    prepare(settings.database, FileLock(settings.home / "state" / "migrate.lock"), released()[:1])
    many = Many(spawn("many"))
    for number in range(50):
        many.start(tmp_path / str(number), "starter", settings.home)
    assert many.wait() == [0] * 50, "\n".join((tmp_path / str(number)).read_text() for number in range(50))
    assert sorted(path.name for path in settings.database.parent.iterdir()) == ["backups", "moot.db"]
    (backup,) = (settings.database.parent / "backups").iterdir()
    assert backup.name.startswith("moot-schema1-") and backup.suffix == ".db"
    connection = connect(settings.database)
    assert version_of(connection) == len(released())
    connection.close()


@pytest.mark.slow
async def test_a_light_writer_is_served_while_a_bulk_import_runs(store: SqliteStore, settings: Settings, spawn: Any) -> None:
    for name in ("bulk", "light"):
        await store.conversations.create(Conversation(name))
    bulk = spawn("bulk", settings.home, "bulk")
    assert bulk.stdout.readline() == b"begun\n"
    for _ in range(300):
        await store.log.append("light", [_event()])
    assert bulk.poll() is None
    out, err = bulk.communicate(timeout=60)
    assert bulk.returncode == 0, err.decode()
    assert int(out) > 0


def _event() -> Event:

    return Event("meta", body="light")


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_when_writers_are_killed(settings: Settings, spawn: Any, tmp_path: Path) -> None:
    store = await open_store(settings)
    made = await store.conversations.create(Conversation("shared"))
    await store.close()
    many = Many(spawn("many"))
    for turn in range(12):
        names = [f"{turn}{name}" for name in "abc"]
        pids = [many.start(tmp_path / name, "writer", settings.home, made.id, name, 10**6, 3, "normal") for name in names]
        while min(len(lines(tmp_path / name)) for name in names) <= turn % 5:
            time.sleep(0.005)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert many.wait() == [-signal.SIGKILL] * 3
    acknowledged: dict[int, list[object]] = {}
    for file in tmp_path.glob("*[abc]"):
        for line in lines(file):
            seq, number = line.split()
            acknowledged[int(seq)] = [file.name, int(number)]
    assert len(acknowledged) > 90
    store = await open_store(settings)
    stored: dict[int, object] = {}
    while page := await store.log.read(made.id, after=len(stored), limit=5000):
        stored |= {event.seq: event.body for event in page}
    assert list(stored) == list(range(1, len(stored) + 1))
    assert {seq: stored.get(seq) for seq in acknowledged} == acknowledged
    assert (await store.health())["integrity"] == "ok"
    await store.close()
