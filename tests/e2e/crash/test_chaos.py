"""kill -9 at any moment of a command or of the server, on a good, a full and a slow disk: nothing that was shown or stored is lost.

Unlike the other tests here, a kill comes after a random time instead of at a named point; one that comes after the end counts too.
`MOOT_CHAOS_KILLS` sets the number of kills, and a failing test names its seed.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from checker import everything

from e2e.cli_process import MootProcess, Process, make
from lanes import missing
from moot.config.settings import Settings
from moot.store import open_store
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply
from moot.types.event import Event

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KILLS = int(os.environ.get("MOOT_CHAOS_KILLS", "50"))
CHUNK = 10
"""Kills of one home."""
DISKS = ("good", "full", "good", "slow", "good")
ACTIONS = ("run", "import", "serve", "seal", "purge", "backup")
SECONDS = {"run": 0.7, "import": 0.5, "serve": 1.5, "seal": 0.4, "purge": 0.8, "backup": 0.5}
"""The longest time until the kill: a little more than the action takes on a quiet machine."""
FILES = 4
"""Conversations of one import."""
TOKEN = "chaos-admin-secret-0123456789"

Ended = tuple[int, bytes, bytes]
"""Exit code, stdout and stderr."""


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(text="one two three four five six seven eight " * 3, chunk_size=6, delay=0.004, times=0)]) as server:
        yield server


@dataclass
class Home:
    """One home, and its processes, which are killed or run to their end."""

    moot: MootProcess
    chance: random.Random
    disk: str
    folders: list[Path] = field(default_factory=list[Path])

    @contextmanager
    def killing(self, action: str, *arguments: str) -> Iterator[Process]:
        """Start a command, and kill it at a random time during the block, or at the end of the block if it is still running."""
        process = self.moot.start(*arguments)
        delay = self.chance.uniform(0, SECONDS[action]) * (2 if self.disk == "slow" else 1)
        timers: list[threading.Timer] = []
        slow: subprocess.Popen[bytes] | None = None
        # the descriptor stands for this process even after its end, when the id may belong to another one
        descriptor = pidfd_of(process.pid)
        if descriptor is not None:
            timers.append(threading.Timer(delay, shoot, (descriptor,)))
            if self.disk == "full":
                timers.append(threading.Timer(self.chance.uniform(0, delay), fill, (process.pid, self.room())))
            elif self.disk == "slow":
                slow = delayed(process.pid)
        for timer in timers:
            timer.start()
        try:
            yield process
        finally:
            for timer in timers:
                timer.join()
            sys.stdout.write(f"  exit code {process.wait(60)}\n")
            if slow is not None:
                slow.communicate(timeout=60)
            if descriptor is not None:
                os.close(descriptor)

    def room(self) -> int:
        """Return the maximum file size, which is about the size of the database."""
        return (self.moot.home / "data" / "moot.db").stat().st_size + self.chance.randrange(-50_000, 100_000)

    def kill(self, action: str, *arguments: str) -> Ended:
        with self.killing(action, *arguments) as process:
            output, errors = process.communicate(timeout=60)
        code = process.wait()
        assert code in ((0, 1, -signal.SIGKILL) if self.disk == "full" else (0, -signal.SIGKILL)), (action, code, errors)
        assert b"Traceback" not in errors, errors
        return code, output, errors

    def work(self, *arguments: str) -> Any:
        """Run a command to its end on a good disk."""
        ended = self.moot.run(*arguments, "--json")
        assert ended.returncode == 0, (arguments, ended.stdout, ended.stderr)
        return json.loads(ended.stdout)

    def stored(self) -> dict[str, list[Event]]:
        async def read() -> dict[str, list[Event]]:
            store = await open_store(Settings(self.moot.home))
            try:
                found = (await store.conversations.list(limit=200)).items
                return {conversation.id: await everything(store, conversation.id) for conversation in found}
            finally:
                await store.close()

        return asyncio.run(read())

    def listed(self) -> list[tuple[str, str]]:
        """Id and title of each conversation."""
        return [(row["id"], row["title"]) for row in self.work("chat", "list", "--limit", "200")["data"]]

    def titles(self) -> list[str]:
        return [title for _, title in self.listed()]

    def folder(self, number: int) -> Path:
        """A folder with conversations that an import adds."""
        folder = self.moot.home.parent / f"import-{number}"
        folder.mkdir()
        for one in range(FILES):
            said = [("user", f"imported {number}-{one}"), ("assistant", "An answer. " * 200)]
            messages = [{"id": f"{number}-{one}-{role}", "role": role, "parts": [{"type": "text", "text": text}]} for role, text in said]
            (folder / f"{one}.json").write_text(json.dumps(messages))
        self.folders.append(folder)
        return folder


@dataclass
class Chaos(Home):
    """Actions that are killed, and what has to be in the home afterwards."""

    kept: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    """Events of each conversation after the last kill."""
    shown: list[dict[str, Any]] = field(default_factory=list[Any])
    """Events that the killed process printed or sent."""
    accepted: dict[str, int] = field(default_factory=dict[str, int])
    """Conversations that the killed server confirmed → the number of their events that it confirmed."""
    purged: set[str] = field(default_factory=set[str])

    # ── actions ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, number: int) -> None:
        _, output, _ = self.kill("run", "run", "--no-tools", "--jsonl", f"prompt {number}")
        for line in output.splitlines(keepends=True):
            if line.endswith(b"\n") and "seq" in (event := json.loads(line)):
                self.shown.append(event)

    def import_(self, number: int) -> None:
        folder = self.folder(number)
        code, _, _ = self.kill("import", "import", str(folder), "--json")
        if code == 0:
            titles = self.titles()
            assert all(titles.count(title) == 1 for title in titles_of(folder))

    def serve(self, number: int) -> None:
        with self.killing("serve", "serve", "--json", "--port", "0") as process:
            assert process.stdout is not None
            if line := process.stdout.readline():  # else it was killed before it was ready
                port = int(json.loads(line)["url"].rpartition(":")[2])
                with suppress(ConnectionError, http.client.HTTPException):
                    self.talk(port, number)
            _, errors = process.communicate(timeout=60)
        assert process.wait() in (-signal.SIGKILL, 1 if self.disk == "full" else -signal.SIGKILL), errors

    def talk(self, port: int, number: int) -> None:
        """Send prompts and follow them until the server is gone or its disk is full."""
        made = request(port, "POST", "/api/conversations", {"directory": str(self.moot.work), "title": f"served {number}"})
        if made is None:
            return
        id = str(made["id"])
        self.accepted[id] = 0
        while said := request(port, "POST", f"/api/conversations/{id}/messages", {"text": "go on"}):
            self.accepted[id] = int(said["seq"])
            for event in follow(port, id, said["seq"]):
                self.shown.append(event)
                if event["run"] == said["run"]["id"] and event.get("key") == "run" and event.get("phase") == "end":
                    break

    def seal(self, number: int) -> None:
        self.kill("seal", "store", "compact", "--json")

    def purge(self, number: int) -> None:
        id, title = self.chance.choice(self.listed())
        code, _, _ = self.kill("purge", "purge", id, "--yes", "--json")
        self.work("purge", "--finish")
        there = id in self.stored()
        assert not (there and code == 0), f"{id} was purged and is still there"
        if not there:  # else all of it is, as for every other conversation
            del self.kept[id]
            self.purged.add(title)

    def backup(self, number: int) -> None:
        path = self.moot.home.parent / f"{number}.backup"
        code, _, _ = self.kill("backup", "backup", str(path), "--json")
        assert path.exists() or code != 0
        if path.exists():
            self.work("backup", "--check", str(path))

    # ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        """Check that the next process finds nothing wrong, that all data is still there, and that everything shown is stored unchanged."""
        assert self.work("verify")["damaged"] == 0
        now = self.stored()
        for id, events in self.kept.items():
            assert now.get(id, [])[: len(events)] == events, f"events of {id} are lost or changed"
        for id, events in now.items():
            assert [event.seq for event in events] == list(range(1, len(events) + 1)), id
        for id, seq in self.accepted.items():
            assert len(now.get(id, [])) >= seq and id in now, f"{id} was confirmed and is not stored"
        by_place = {(event.run, event.seq): event for events in now.values() for event in events if event.run}
        for event in self.shown:
            stored = by_place.get((event["run"], event["seq"]))
            assert stored is not None, f"{event} was shown and is not stored"
            seen = (event["at"], event["kind"], event["chunks"], event.get("exchange"), event.get("phase"), event.get("key"))
            assert seen == (stored.at, stored.kind, list(stored.chunks), stored.exchange, stored.phase, stored.key)
        self.kept = now
        self.shown.clear()
        self.accepted.clear()

    def check_service(self) -> None:
        """Check that everything works after the last kill, and that interrupted work is completed exactly once."""
        self.work("purge", "--finish")
        for folder in self.folders:
            self.work("import", str(folder))
        titles = self.titles()
        for title in [title for folder in self.folders for title in titles_of(folder) if title not in self.purged]:
            assert titles.count(title) == 1, title
        self.work("store", "compact")
        self.work("backup", str(self.moot.home.parent / "last.backup"))
        for path in self.moot.home.parent.glob("*.backup"):
            self.work("backup", "--check", str(path))
        assert self.work("run", "--no-tools", "the last prompt")["status"] == "finished"
        self.check()


# ── processes and disks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def pidfd_of(pid: int) -> int | None:
    """A descriptor of the process, or None if it has ended."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def shoot(descriptor: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)


def fill(pid: int, size: int) -> None:
    """Let no file of the process grow beyond the size, as on a full disk."""
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (max(size, 0), resource.RLIM_INFINITY))


def delayed(pid: int) -> subprocess.Popen[bytes]:
    """Make each flush of the process take 30 ms longer, and each write 1 ms, from here on."""
    calls = "fsync,fdatasync:delay_enter=30000", "pwrite64:delay_enter=1000"
    command = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,pwrite64", "-e", "signal=none"]
    command += [word for call in calls for word in ("-e", f"inject={call}")]
    return subprocess.Popen(
        [*command, "-o", "/dev/null", "-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def needs_strace() -> None:
    if shutil.which("strace") is None:
        missing("strace", "strace is not installed: apt-get install strace")
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        tracer = subprocess.Popen(["strace", "-p", str(sleeper.pid)], stderr=subprocess.PIPE)
        assert tracer.stderr is not None
        answer = tracer.stderr.readline()
        sleeper.kill()
        tracer.communicate(timeout=60)
    if b"attached" not in answer:
        missing("strace", "the kernel does not allow this process to trace others")


def request(port: int, method: str, path: str, body: object) -> dict[str, Any] | None:
    """Return the answer, or None if the server could not store it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, json.dumps(body), {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"})
        answer = connection.getresponse()
        read = answer.read()
        assert answer.status in (201, 202, 503, 507), read
        return json.loads(read) if answer.status < 300 else None
    finally:
        connection.close()


def follow(port: int, conversation: str, after: int) -> Iterator[dict[str, Any]]:
    """Events that were received completely, until the connection ends."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/api/conversations/{conversation}/events?after={after}", headers={"authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        assert answer.status == 200
        while (line := answer.readline()).endswith(b"\n"):
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])
    finally:
        connection.close()


def titles_of(folder: Path) -> list[str]:
    return [f"imported {folder.name.removeprefix('import-')}-{one}" for one in range(FILES)]


@pytest.mark.parametrize("seed", range((KILLS + CHUNK - 1) // CHUNK))
def test_kills_at_random_moments_lose_nothing(seed: int, tmp_path: Path, model: ScriptedProcess) -> None:
    disk = DISKS[seed % len(DISKS)]
    if disk == "slow":
        needs_strace()
    chaos = Chaos(make(tmp_path, model.config()), random.Random(seed), disk)
    chaos.moot.more["MOOT_TOKEN"] = TOKEN
    actions: dict[str, Callable[[int], None]] = {
        "run": chaos.run,
        "import": chaos.import_,
        "serve": chaos.serve,
        "seal": chaos.seal,
        "purge": chaos.purge,
        "backup": chaos.backup,
    }
    try:
        chaos.work("import", str(chaos.folder(-1)))
        chaos.check()
        order = [*ACTIONS, *chaos.chance.choices(ACTIONS, k=CHUNK)][: min(CHUNK, KILLS - seed * CHUNK)]
        chaos.chance.shuffle(order)
        for number, action in enumerate(order):
            sys.stdout.write(f"seed {seed}, a {disk} disk, kill {number}: {action}\n")
            actions[action](number)
            chaos.check()
        chaos.check_service()
    finally:
        chaos.moot.close()


@pytest.mark.damaged
def test_a_lost_event_is_noticed(tmp_path: Path, model: ScriptedProcess) -> None:
    chaos = Chaos(make(tmp_path, model.config()), random.Random(0), "good")
    chaos.work("import", str(chaos.folder(0)))
    chaos.check()
    chaos.shown.append({"run": "r", "seq": 1})
    with pytest.raises(AssertionError, match="was shown and is not stored"):
        chaos.check()
    chaos.shown.clear()
    chaos.accepted["c"] = 1
    with pytest.raises(AssertionError, match="was confirmed and is not stored"):
        chaos.check()
    chaos.accepted.clear()
    chaos.kept["c"] = [Event("meta", seq=1)]
    with pytest.raises(AssertionError, match="events of c are lost"):
        chaos.check()
    del chaos.kept["c"]
    chaos.check()
    connection = sqlite3.connect(chaos.moot.home / "data" / "moot.db")
    connection.execute("DELETE FROM message WHERE rowid = (SELECT max(rowid) FROM message)")
    connection.commit()
    connection.close()
    with pytest.raises(AssertionError, match="verify"):
        chaos.check()
