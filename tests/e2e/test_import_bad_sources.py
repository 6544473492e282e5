"""`moot import` of a folder in which almost everything is broken or hostile: one process, one report, and nothing else is lost."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_machine import opencode_database
from e2e.cli_process import COMMAND, MootProcess, make
from e2e.test_import import record, uuid

GONE = (1_700_000_000, 1_700_000_000)
"""Make a file look old."""
EXPORTED = {"mapping": {}, "current_node": "x", "create_time": 1.0, "title": "bomb", "conversation_id": "bomb"}


def session(number: int) -> str:
    return f"11111111-2222-4333-8444-{number:012}"


def line(name: str, at: int, parent: int | None = -1, **more: Any) -> bytes:
    above = {} if parent == -1 else {"parentUuid": None if parent is None else uuid(parent)}
    return record(at, f"{name} {at}", "assistant" if at % 2 else "user", **above, **more)


def talk(name: str, first: int, last: int) -> bytes:
    return b"".join(line(name, at) for at in range(first, last))


def said(name: str, *numbers: int) -> list[str]:
    return [f"{name} {at}" for at in numbers]


@dataclass(frozen=True)
class Case:
    """A Claude Code session with a defect."""

    data: bytes
    texts: list[str]
    """Texts that are imported anyway."""
    notes: tuple[str, ...] = ()
    """Prefixes of the notes about them."""


CASES: dict[str, Case] = {
    "whole": Case(talk("whole", 0, 4), said("whole", 0, 1, 2, 3)),
    "cut off": Case(talk("cut", 0, 2) + line("cut", 2)[:50], said("cut", 0, 1), ("the last line, line 3, is truncated",)),
    "NULs": Case(talk("nul", 0, 2) + bytes(4096) + b"\n" + line("nul", 2), said("nul", 0, 1, 2), ("line 3 contains NUL bytes",)),
    "ends in NULs": Case(talk("tail", 0, 2) + bytes(100_000), said("tail", 0, 1), ("line 3 contains NUL bytes",)),
    "one bad line of many": Case(
        talk("many", 0, 300) + b'{"type": "user", ]\n' + talk("many", 300, 600),
        said("many", *range(600)),
        ("line 301 is not a JSON",),
    ),
    "a circle of parents": Case(line("circle", 0, parent=2) + line("circle", 1) + line("circle", 2), said("circle", 0, 1, 2)),
    "one id twice": Case(talk("twice", 0, 2) + line("twice", 1) + line("twice", 2), said("twice", 0, 1, 2)),
    "clocks that go backwards": Case(
        line("clock", 0, timestamp="2026-11-20T10:00:00Z")
        + line("clock", 1, timestamp="1970-01-01T00:00:00Z")
        + line("clock", 2, timestamp="9999-12-31T23:59:59Z")
        + line("clock", 3, timestamp="yesterday"),
        said("clock", 0, 1, 2, 3),
    ),
    "no bottom": Case(
        talk("deep", 0, 2) + b'{"a":' * 100_000 + b"\n" + line("deep", 2), said("deep", 0, 1, 2), ("line 3 is not a JSON object",)
    ),
    "no UTF-8": Case(
        talk("byte", 0, 2) + b'{"type": "user\xff"}\n' + line("byte", 2), said("byte", 0, 1, 2), ("line 3 is not a JSON object",)
    ),
}
HUGE = "11111111-2222-4333-8444-999999999999"


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, GONE)
    return path


def sessions(folder: Path) -> None:
    for number, case in enumerate(CASES.values()):
        mine = case.data.replace(b"11111111-2222-4333-8444-555555555555", session(number).encode())
        put(folder / f"{session(number)}.jsonl", mine)
    with (folder / f"{HUGE}.jsonl").open("wb") as file:
        file.write(talk("huge", 0, 2) + b'{"type":"user","message":"')
        file.seek(70 << 20, os.SEEK_CUR)
        file.write(b'"}\n' + line("huge", 2))
    os.utime(folder / f"{HUGE}.jsonl", GONE)


def no_files(folder: Path) -> None:
    """Files that have the name of a session and must not be opened."""
    os.mkfifo(folder / f"{session(100)}.jsonl")
    (folder / f"{session(101)}.jsonl").symlink_to("/dev/zero")
    (folder / f"{session(102)}.jsonl").symlink_to(folder / f"{session(0)}.jsonl")
    (folder / "loop").symlink_to(folder.parent)
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # a socket's path must be short
        try:
            listening.bind(f"{session(103)}.jsonl")
        finally:
            os.chdir(here)


def zipped(path: Path, *members: tuple[str, bytes]) -> Path:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return put(path, held.getvalue())


def archives(folder: Path) -> None:
    bomb = json.dumps([{**EXPORTED, "padding": "x" * (40 << 20)}]).encode()
    zipped(folder / "bomb.zip", ("conversations.json", bomb))
    zipped(folder / "climbing.zip", ("../../../conversations.json", json.dumps([EXPORTED]).encode()), ("/etc/conversations.json", b"[]"))
    put(folder / "cut.zip", (folder / "bomb.zip").read_bytes()[:20_000])


def databases(folder: Path) -> sqlite3.Connection:
    """One database that its owner keeps locked, one of a newer version of SQLite, one truncated, each in OpenCode's place."""
    locked = folder / "one" / ".local/share/opencode/opencode.db"
    locked.parent.mkdir(parents=True)
    opencode_database(locked)
    newer = put(folder / "two" / ".local/share/opencode/opencode.db", locked.read_bytes()[:18] + b"\x09\x09" + locked.read_bytes()[20:])
    put(folder / "three" / ".local/share/opencode/opencode.db", locked.read_bytes()[: newer.stat().st_size // 2])
    owner = sqlite3.connect(locked, isolation_level=None)
    owner.execute("BEGIN EXCLUSIVE")
    owner.execute("UPDATE session SET title = 'not yet said'")
    return owner


@dataclass(frozen=True)
class Stage:
    moot: MootProcess
    report: dict[str, Any]
    code: int
    folder: Path

    def texts(self, conversation: str) -> list[str]:
        shown = json.loads(self.moot.run("chat", "show", conversation, "--json").stdout)["data"]
        return ["".join(part.get("text", "") for part in message["parts"]) for message in shown]

    def of(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.report["data"] if name in one["path"]]

    def failed(self, name: str) -> str:
        (problem,) = [one["problem"] for one in self.report["failed"] if name in one["path"]]
        return problem


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    root = tmp_path_factory.mktemp("bad")
    folder = root / "sources"
    project = folder / ".claude/projects/-srv-work"
    project.mkdir(parents=True)
    sessions(project)
    no_files(project)
    archives(folder / "Downloads")
    put(folder / "notes/newer.mtm", b'{"formatVersion": 99, "metadata": {"uuid": "x", "allowed_uris": []}, "context": []}')
    put(folder / "nobody's.bin", bytes(range(256)))
    (root / "user").mkdir()
    moot = make(root / "user", "models: {}\n")
    with closing(databases(folder)):
        ended = moot.run(
            "import", *(str(path) for path in (folder, *(folder / name for name in ("one", "two", "three")))), "--json", timeout=90
        )
    yield Stage(moot, json.loads(ended.stdout), ended.returncode, folder)
    moot.close()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_a_problem_in_a_session_affects_nothing_else(stage: Stage, name: str) -> None:
    (brought,) = stage.of(session(list(CASES).index(name)))
    assert stage.texts(brought["conversation"]["id"]) == CASES[name].texts
    assert [note.startswith(begin) for note, begin in zip(brought["notes"], CASES[name].notes, strict=True)] == [True] * brought["problems"]


def test_a_line_of_70_megabytes_is_skipped(stage: Stage) -> None:
    (brought,) = stage.of(HUGE)
    assert (brought["notes"], stage.texts(brought["conversation"]["id"])) == (["line 3 is longer than 64 MiB"], said("huge", 0, 1, 2))


def test_only_regular_files_are_opened(stage: Stage) -> None:
    assert not [
        one for one in (*stage.report["data"], *stage.report["failed"]) if any(session(at) in one["path"] for at in range(100, 104))
    ]


FAILED = {
    "bomb.zip": "expands to more than 200 times its size",
    "newer.mtm": "has the unsupported notebook version 99. Supported: 1",
    "two/.local": "as a database: ",
    "three/.local": "as a database: ",
}


@pytest.mark.parametrize("name", FAILED)
def test_unreadable_sources_are_reported_with_their_problem(stage: Stage, name: str) -> None:
    assert FAILED[name] in stage.failed(name)


def test_a_locked_database_is_read_in_its_last_committed_state(stage: Stage) -> None:
    brought = stage.of("one/.local")
    assert len(brought) == 2 and not any(one["problems"] for one in brought)
    assert "not yet said" not in {one["title"] for one in brought}


def test_unrecognized_files_are_reported_and_names_cannot_escape_the_archive(stage: Stage) -> None:
    strangers = {Path(path).name for path in stage.report["unclaimed"]["some"]}
    assert {"nobody's.bin", "climbing.zip", "cut.zip"} <= strangers
    assert not list(stage.folder.parent.glob("conversations.json")) and stage.code == 1


def test_a_second_import_adds_nothing_and_the_store_verifies(stage: Stage) -> None:
    again = stage.moot.run("import", str(stage.folder), "--json", timeout=90)
    report = json.loads(again.stdout)
    assert (again.returncode, report["added"], report["grown"], report["records"]) == (1, 0, 0, 0)
    assert json.loads(stage.moot.run("verify", "--json").stdout)["damages"] == []


# ── tests with their own stage ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    (tmp_path / "user").mkdir()
    process = make(tmp_path / "user", "models: {}\n")
    yield process
    process.close()


def without_rights() -> list[str]:
    """A command prefix that drops root's extra rights to files."""
    if os.geteuid() != 0:
        return []
    program = shutil.which("setpriv")
    assert program is not None, "root needs setpriv (util-linux) to give its rights away"
    rights = "-dac_override,-dac_read_search"
    return [program, f"--bounding-set={rights}", f"--inh-caps={rights}"]


def test_unreadable_files_and_folders_are_reported_and_do_not_affect_others(moot: MootProcess, tmp_path: Path) -> None:
    home = Path(moot.environ["HOME"])
    projects = home / ".claude/projects"
    put(projects / "-a" / f"{session(0)}.jsonl", talk("mine", 0, 2).replace(b"555555555555", b"000000000000"))
    closed = put(projects / "-a" / f"{session(1)}.jsonl", talk("closed", 0, 2))
    folder = put(projects / "-b" / f"{session(2)}.jsonl", talk("folder", 0, 2)).parent
    away = put(tmp_path / "away" / "letter.md", b"# Hello\n")
    for path in (closed, folder, away):
        path.chmod(0)
    try:
        for arguments in (["--all", "-f", "claude"], [str(projects), str(away.parent)]):
            command = [*without_rights(), *COMMAND, "import", *arguments, "--json"]
            ended = subprocess.run(command, cwd=moot.work, env=moot.environ, capture_output=True, timeout=60)
            report = json.loads(ended.stdout)
            assert "failed" in report, (arguments, report)
            failed = {one["path"]: one["problem"] for one in report["failed"]}
            assert ended.returncode == 1 and all("Permission denied" in problem for problem in failed.values()), ended.stderr
            assert {str(closed), str(folder)} <= failed.keys()
            assert ("-f" in arguments) or str(away) in failed
            assert report["sources"]["total"] - len(failed) <= 1 and (report["added"] == 2 or report["sources"]["unchanged"] == 1)
    finally:
        for path in (closed, folder, away):
            path.chmod(0o700)


def swapping(file: Path, versions: list[bytes], over: threading.Event) -> Callable[[], None]:
    def work() -> None:
        number = 0
        while not over.is_set():
            number += 1
            other = file.with_name("new")
            other.write_bytes(versions[number % len(versions)])
            other.replace(file)
            time.sleep(0.001)

    return work


def test_a_file_replaced_during_reading_ends_in_its_last_state(moot: MootProcess) -> None:
    file = moot.work / f"{session(0)}.jsonl"
    whole = talk("swapped", 0, 400).replace(b"555555555555", b"000000000000")
    file.write_bytes(whole)
    over = threading.Event()
    swapper = threading.Thread(target=swapping(file, [whole, whole[: len(whole) // 2], whole[:1000], b""], over))
    swapper.start()
    try:
        ended = moot.run("import", file.name, "-f", "claude", "--json")
        assert ended.returncode in (0, 1, 2), ended.stderr
        assert b"Traceback" not in ended.stderr
    finally:
        over.set()
        swapper.join()
    file.write_bytes(whole)
    os.utime(file, GONE)
    assert moot.run("import", file.name, "-f", "claude").returncode == 0
    shown = json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"]
    assert ["".join(part.get("text", "") for part in message["parts"]) for message in shown] == said("swapped", *range(400))
