"""Sources that are broken, hostile, or changed while they are read: nothing hangs, and nothing else is lost."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.formats import source as place_sample
from format_samples import samples_of
from import_stage import source, stored
from moot.formats.agents.claude.format import ClaudeFormat
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import Source, local_sources, sources_at
from moot.plugins import FORMATS
from moot.types.format import Entry, ImportedConversation
from moot.types.store import Store

SESSION = "11111111-2222-4333-8444-55555555555"


def session(number: int = 0) -> str:
    return f"{SESSION}{number}"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def said(number: int, text: str = "", parent: int | None = -1, **more: Any) -> bytes:
    role = "assistant" if number % 2 else "user"
    message: dict[str, Any] = {"role": role, "content": text or f"word{number}"}
    if role == "assistant":
        message |= {"id": f"msg_{number}", "type": "message", "content": [{"type": "text", "text": text or f"word{number}"}]}
    above = number - 1 if parent == -1 else parent
    value = {"parentUuid": None if above is None or above < 0 else uuid(above), "isSidechain": False, "type": role, "sessionId": session()}
    value |= {"uuid": uuid(number), "timestamp": f"2026-11-20T10:00:{number % 60:02}.000Z", "message": message, **more}
    return json.dumps(value).encode() + b"\n"


def talk(first: int, last: int) -> bytes:
    return b"".join(said(at) for at in range(first, last))


def projects(home: Path) -> Path:
    folder = home / ".claude" / "projects" / "-home-user"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def old(path: Path) -> Path:
    """Mark the file as no longer being written."""
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


async def take(store: Store, sources: Iterator[Source] | list[Source]) -> Report:
    report = Report()
    await import_sources(store, sources, ImportOptions(), report)
    return report


async def words(store: Store) -> list[str]:
    (found,) = (await store.conversations.list()).items
    branch = await store.conversations.branch(found.id, limit=100)
    return ["".join(str(part.get("text", "")) for part in message.parts) for message in branch]


@contextmanager
def soon(*pipes: Path, seconds: int = 3) -> Generator[None]:
    """Unblock readers of the pipes after a timeout, and fail if there were any."""
    waited: list[Path] = []

    def late(*_: object) -> None:
        for pipe in pipes:
            with suppress(OSError):  # no process has opened it
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                waited.append(pipe)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert waited == []


# ── content of a file ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


BROKEN: dict[str, tuple[bytes, int, list[str], str]] = {
    "cut off": (talk(0, 3) + said(3)[:40], 1, ["word0", "word1", "word2"], "the last line, line 4, is truncated"),
    "NUL bytes": (talk(0, 2) + b"\0" * 512 + b"\n" + said(2), 1, ["word0", "word1", "word2"], "line 3 contains NUL bytes"),
    "a tail of NUL bytes": (talk(0, 2) + b"\0" * 4096, 1, ["word0", "word1"], "line 3 contains NUL bytes"),
    "one bad line of many": (talk(0, 40) + b"{]\n" + talk(40, 60), 1, [f"word{at}" for at in range(60)], "line 41 is not a JSON object"),
    "parents in a circle": (said(0, parent=2) + said(1) + said(2), 0, ["word0", "word1", "word2"], ""),
    "its own parent": (said(0, parent=0) + said(1), 0, ["word0", "word1"], ""),
    "one id twice": (talk(0, 2) + said(1, "other") + said(2), 0, ["word0", "word1", "word2"], ""),
    "clocks that go backwards": (
        said(0, timestamp="2026-11-20T10:00:00Z") + said(1, timestamp="1999-01-01T00:00:00Z") + said(2, timestamp="no time"),
        0,
        ["word0", "word1", "word2"],
        "",
    ),
    "nested without a bottom": (
        talk(0, 2) + b"[" * 100_000 + b"\n" + said(2),
        1,
        ["word0", "word1", "word2"],
        "line 3 is not a JSON",
    ),
    "no UTF-8": (talk(0, 2) + b'{"type":"user\xff\xfe"}\n' + said(2), 1, ["word0", "word1", "word2"], "line 3 is not a JSON"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", BROKEN)
async def test_a_problem_in_a_file_is_reported_with_its_place_and_affects_nothing_else(tmp_path: Path, case: str) -> None:
    data, problems, expected, note = BROKEN[case]
    file = tmp_path / f"{session()}.jsonl"
    file.write_bytes(data)
    old(file)
    async with stored(tmp_path / "home") as store:
        report = await take(store, sources_at(file, "", tmp_path / "home" / "data"))
        assert (report.problems, report.failed) == (problems, [])
        assert await words(store) == expected
        assert all(one.startswith(note) for one in report.brought[0].notes)
        again = await take(store, sources_at(file, "", tmp_path / "home" / "data"))
        assert (again.unchanged, again.counts.added) == (1, 0)


GIANT = """
import resource, sys, anyio
from pathlib import Path
from moot.config.settings import Settings
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import sources_at
from moot.store import open_store

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

async def main():
    store = await open_store(Settings(Path(sys.argv[1])))
    small, large = Report(), Report()
    await import_sources(store, sources_at(Path(sys.argv[2]), "", Path(sys.argv[1]) / "data"), ImportOptions(), small)
    before = peak()
    await import_sources(store, sources_at(Path(sys.argv[3]), "", Path(sys.argv[1]) / "data"), ImportOptions(), large)
    await store.close()
    print(peak() - before, large.counts.added, large.problems, large.brought[0].notes[0], sep="|")

anyio.run(main)
"""


def test_a_line_of_256_megabytes_is_skipped_without_using_memory(tmp_path: Path) -> None:
    small, large = tmp_path / f"{session(1)}.jsonl", tmp_path / f"{session(2)}.jsonl"
    small.write_bytes(talk(0, 4))
    with large.open("wb") as file:
        file.write(talk(0, 2) + b'{"type":"user","message":"')
        file.seek(256 << 20, os.SEEK_CUR)
        file.write(b'"}\n' + said(2))
    ended = subprocess.run([sys.executable, "-c", GIANT, tmp_path / "home", small, large], capture_output=True, text=True, check=True)
    grown, added, problems, note = ended.stdout.strip().split("|")
    assert (added, problems, note) == ("3", "1", "line 3 is longer than 64 MiB")
    assert int(grown) < 100, f"{grown} MiB more"


# ── content of a folder ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.anyio
async def test_links_pipes_sockets_and_devices_among_sources_are_never_opened(tmp_path: Path) -> None:
    home, folder = tmp_path / "user", projects(tmp_path / "user")
    (folder / f"{session()}.jsonl").write_bytes(talk(0, 2))
    os.mkfifo(pipe := folder / f"{session(1)}.jsonl")
    (folder / f"{session(2)}.jsonl").symlink_to("/dev/zero")
    (folder / f"{session(3)}.jsonl").symlink_to(folder / f"{session()}.jsonl")
    (folder / f"{session(4)}.jsonl").mkdir()
    (folder / "loop").symlink_to(folder.parent)
    (folder / f"{session(5)}.jsonl").symlink_to(f"{session(5)}.jsonl")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # a socket's path must be short
        try:
            listening.bind(f"{session(6)}.jsonl")
        finally:
            os.chdir(here)
        async with stored(tmp_path / "home") as store:
            with soon(pipe):
                report = await take(store, local_sources(home, {}, tmp_path / "home" / "data", "claude"))
            assert ((report.sources, report.conversations["added"]), report.failed) == ((1, 1), [])
            with soon(pipe):
                report = await take(store, sources_at(home, "", tmp_path / "home" / "data"))
            assert (report.sources, report.counts.added, report.failed) == (1, 0, [])


PIPES = {
    "gemini": (".gemini/tmp/abc/chats/session-1.jsonl", ".gemini/tmp/abc/.project_root"),
    "gptme": (".local/share/gptme/logs/one/conversation.jsonl", ".local/share/gptme/logs/one/config.toml"),
    "codex": (
        ".codex/sessions/2026/11/20/rollout-2026-11-20T10-00-00-b.jsonl",
        ".codex/sessions/2026/11/20/rollout-2026-11-20T09-00-00-parent.jsonl",
    ),
    "claude": (f".claude/projects/-p/{session()}/subagents/agent-1.jsonl", f".claude/projects/-p/{session()}.jsonl"),
}
SAID = {
    "gemini": b'{"sessionId":"s","projectHash":"abc","startTime":"2026-11-20T10:00:00Z","kind":"main"}\n'
    b'{"id":"m1","timestamp":"2026-11-20T10:00:00Z","type":"user","content":"hello"}\n',
    "gptme": b'{"role":"user","content":"hello","timestamp":"2026-11-20T10:00:00"}\n',
    "codex": b'{"timestamp":"2026-11-20T10:00:00Z","type":"session_meta","payload":{"id":"b","cwd":"/","originator":"x","cli_version":"1",'
    b'"source":{"subagent":{"thread_spawn":{"parent_thread_id":"parent","depth":1}}}}}\n'
    b'{"timestamp":"2026-11-20T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user",'
    b'"content":[{"type":"input_text","text":"hello"}]}}\n'
    b'{"timestamp":"2026-11-20T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"hello"}}\n',
    "claude": said(0, agentId="1", isSidechain=True),
}


@pytest.mark.anyio
@pytest.mark.parametrize("format", PIPES)
async def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path, format: str) -> None:
    source, pipe = (tmp_path / "user" / name for name in PIPES[format])
    source.parent.mkdir(parents=True)
    source.write_bytes(SAID[format])
    os.mkfifo(pipe)
    async with stored(tmp_path / "home") as store:
        with soon(pipe):
            report = await take(store, local_sources(tmp_path / "user", {}, tmp_path / "home" / "data", format))
        assert (report.sources, report.counts.added, report.failed) == (1, 1, [])


# ── changes during reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def deleted(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def rotated(path: Path) -> None:
    path.rename(path.with_name("old"))
    path.write_bytes(talk(0, 4))


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(said(60))


@pytest.mark.anyio
@pytest.mark.parametrize("change", [deleted, emptied, rotated, grown])
async def test_a_source_that_changes_during_reading_is_read_again(tmp_path: Path, change: Any) -> None:
    class Changing(ClaudeFormat):
        """The same, with another program writing to the file after ten messages."""

        def read(self, path: Path) -> Iterator[ImportedConversation]:
            for conversation in super().read(path):
                yield replace(conversation, entries=self._entries(path, conversation))

        def _entries(self, path: Path, conversation: ImportedConversation) -> Iterator[Entry]:
            for number, entry in enumerate(conversation.entries):
                if number == 10:
                    change(path)
                yield entry

    file = tmp_path / f"{session()}.jsonl"
    file.write_bytes(talk(0, 60))
    async with stored(tmp_path / "home") as store:
        report = await take(store, [source(file, Changing())])
        assert report.counts.added >= 10
        assert await store.imports.mark("claude", str(file)) is None, "it does not stand as it was read"
        file.write_bytes(talk(0, 62))
        await take(store, sources_at(file, "", tmp_path / "home" / "data"))
        assert await words(store) == [f"word{at}" for at in range(62)]


# ── never written ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

WRITTEN = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""inotify: modified, attributes, closed after writing, moved, created, deleted."""


@contextmanager
def told(root: Path) -> Generator[list[str]]:
    """Return the write events that the system reported below a folder during the block."""
    libc, names, heard = ctypes.CDLL(None, use_errno=True), dict[int, Path](), list[str]()
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert descriptor >= 0
    try:
        for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
            watch = libc.inotify_add_watch(descriptor, os.fsencode(folder), WRITTEN)
            assert watch >= 0
            names[watch] = folder
        yield heard
        with suppress(BlockingIOError):
            while data := os.read(descriptor, 1 << 16):
                at = 0
                while at < len(data):
                    watch, mask, _, size = struct.unpack_from("iIII", data, at)
                    heard.append(f"{mask:#x} {names.get(watch)}/{os.fsdecode(data[at + 16 : at + 16 + size].rstrip(bytes(1)))}")
                    at += 16 + size
    finally:
        os.close(descriptor)


def standing(root: Path) -> dict[str, tuple[int, int, str]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in (root, *root.rglob("*"))
    }


@pytest.mark.anyio
async def test_nothing_is_ever_written_into_a_source(tmp_path: Path) -> None:
    root = tmp_path / "sources"
    shutil.copytree(Path(__file__).parents[2] / "recorded" / "formats", root)
    for name in FORMATS.names():
        format = FORMATS.make(name)
        for number, sample in enumerate(samples_of(format).values()):
            (root / f"sample-{name}-{number}").mkdir()
            place_sample(format, root / f"sample-{name}-{number}", sample)
    owner = sqlite3.connect(root / "logs.db")
    owner.execute("PRAGMA journal_mode = WAL")
    owner.executescript("CREATE TABLE other (id); INSERT INTO other VALUES (1)")  # its log is next to it, and it is in use
    before = standing(root)
    with told(root) as heard:
        async with stored(tmp_path / "home") as store:
            data = tmp_path / "home" / "data"
            report = await take(
                store, (one for folder in sorted(root.iterdir()) if folder.is_dir() for one in sources_at(folder, "", data))
            )
    assert len({one.format for one in report.brought}) >= 12, "the tree is too small to show anything"
    assert heard == []
    assert standing(root) == before
    owner.close()
    with told(root) as heard:
        (root / "logs.db").touch()
    assert heard, "what is written would have been told of"
