"""Faults of the machine: full and read-only disks, broken databases, too few file descriptors, signals, no network, unusual terminals."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pexpect
import pytest

from e2e.cli_process import COMMAND, MootProcess, make
from e2e.orphans import is_locked
from moot.config.settings import Settings
from moot.convert.fold import in_history
from moot.engine import open_engine
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply
from moot.types.message import text_of

pytestmark = pytest.mark.slow

LONG = "word " * 12_000


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="long", text=LONG, chunk_size=200, times=0),
        Reply(when="dripping", text=LONG, chunk_size=40, delay=0.002, times=0),
        Reply(when="slowly", text="one two three four five six", chunk_size=4, delay=0.2, times=0),
        Reply(when="", text="Hello.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, model: ScriptedProcess) -> Path:
    """The data folder of a home with one answered prompt."""
    moot = make(tmp_path_factory.mktemp("lived"), model.config())
    assert moot.run("run", "--no-tools", "before").stdout == b"Hello.\n"
    return moot.home / "data"


@pytest.fixture
def fresh(tmp_path: Path, model: ScriptedProcess) -> MootProcess:
    return make(tmp_path, model.config())


@pytest.fixture
def moot(fresh: MootProcess, lived: Path) -> MootProcess:
    shutil.copytree(lived, fresh.home / "data")
    return fresh


def run(
    moot: MootProcess, *arguments: str, before: Callable[[], None] | None = None, behind: tuple[str, ...] = (), **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Like `MootProcess.run`, in a process that `before` has modified, or as the last part of another command line."""
    command = [*behind, *COMMAND, *arguments]
    options = {"stdin": subprocess.DEVNULL, **options}
    return subprocess.run(command, cwd=moot.work, env=moot.environ, capture_output=True, timeout=25, preexec_fn=before, **options)


def kept(moot: MootProcess) -> list[tuple[str, str, str]]:
    """Return title, status and answer of each stored run, newest first, after all work has ended."""

    async def read() -> list[tuple[str, str, str]]:
        async with open_engine(Settings(moot.home)) as engine:
            rows: list[tuple[str, str, str]] = []
            for run in await engine.store.records.runs():
                conversation = await engine.store.conversations.get(run.conversation)
                message = await engine.store.conversations.message(run.message)
                rows.append((conversation.title, run.status, text_of(in_history(message.parts))))
            assert (await engine.store.health())["integrity"] == "ok"  # type: ignore[attr-defined]
            return rows

    return asyncio.run(read())


# ── disks ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def largest_file(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize(("prompt", "size"), [("long", 0), ("long", 100_000), ("dripping", 300_000)])
def test_a_full_disk_is_reported_and_the_shown_text_is_kept(moot: MootProcess, prompt: str, size: int) -> None:
    ended = run(moot, "run", "--no-tools", prompt, before=largest_file(size))
    assert ended.returncode == 1
    assert b"No space left to write" in ended.stderr or b"File too large" in ended.stderr
    assert b"Traceback" not in ended.stderr
    shown = ended.stdout.decode().rstrip("\n")
    title, status, text = kept(moot)[0]
    assert title in (prompt, "before")
    if prompt == "dripping":  # there was no room even for the end of the run
        assert (title, status) == (prompt, "interrupted")
    if title == "before":
        assert shown == ""
    else:
        assert status in ("interrupted", "failed")
        assert text.startswith(shown)
    if status == "interrupted":
        (moot.home / "config.yaml").write_text((moot.home / "config.yaml").read_text().replace("scripted@mine", "demo@demo"))
        assert moot.run("chat", "resume", "1").returncode == 0
        assert kept(moot)[0][1] == "finished"
    else:
        assert moot.run("run", "--no-tools", "after").stdout == b"Hello.\n"


UNSHARED = shutil.which("unshare") and subprocess.run(["unshare", "-rmn", "true"], capture_output=True, check=False).returncode == 0
unshared = pytest.mark.skipif(not UNSHARED, reason="no namespaces here")


@unshared
def test_a_disk_without_room_works_again_once_there_is_some(moot: MootProcess, lived: Path) -> None:
    data = moot.home / "data"
    script = (
        f'mount -t tmpfs -o size=2m none "$0" && cp -r {lived}/. "$0" && ! dd if=/dev/zero of="$0/ballast" bs=1k 2>/dev/null'
        ' && truncate -s -32K "$0/ballast"'
        ' && { "$@" run --no-tools long; echo "exit $?" >&2; rm "$0/ballast"; echo; "$@" chat list --json; "$@" run --no-tools after; }'
    )
    ended = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, str(data), *COMMAND], cwd=moot.work, env=moot.environ, capture_output=True, timeout=60
    )
    assert b"exit 1\n" in ended.stderr, ended.stderr
    assert b"No space left to write" in ended.stderr
    assert b"Traceback" not in ended.stderr
    *_, rows, last = ended.stdout.splitlines()
    assert [row["title"] for row in json.loads(rows)["data"]][-1] == "before"
    assert last == b"Hello."


def without_rights_of_root() -> None:
    """Root may write everywhere, so drop that capability; a started program can't get it back."""
    drop, override, read_search, owner = 24, 1, 2, 3
    for capability in (override, read_search, owner):
        ctypes.CDLL(None).prctl(drop, capability, 0, 0, 0)


READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"'
FULL = 'mount -t tmpfs -o size=2m none "$0" && cp -r "$1/." "$0" && ! dd if=/dev/zero "of=$0/ballast" bs=1k'
READS = ("chat list --json", "chat show 1", "search before", "export 1 -f md -o made.md", "stats --json", "verify --json")


def disk(moot: MootProcess, mount: str) -> tuple[str, ...]:
    """The beginning of a command line that runs the rest with this home on that disk."""
    copy = moot.home.parent / "copy"
    shutil.copytree(moot.home, copy)
    return "unshare", "-rm", "sh", "-c", f'{mount} && shift && exec "$@"', str(moot.home), str(copy)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("mount", "killed"), [("full", False), ("read-only", True), ("without permission", False)])
def test_everything_can_be_read_where_nothing_can_be_written(moot: MootProcess, mount: str, killed: bool) -> None:
    if mount != "without permission" and not UNSHARED:
        pytest.skip("no namespaces here")
    if killed:  # which leaves its log next to the database
        process = moot.start("run", "--no-tools", "slowly")
        assert process.stdout is not None
        process.stdout.read(4)
        process.kill()
        process.communicate()
    files = {path: path.read_bytes() for path in moot.home.rglob("*") if path.is_file()}
    behind = () if mount == "without permission" else disk(moot, {"full": FULL, "read-only": READ_ONLY}[mount])
    before = without_rights_of_root if mount == "without permission" else None
    try:
        for path in [*files, *{path.parent for path in files}]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = {words: run(moot, *words.split(), before=before, behind=behind) for words in READS}
        refused = run(moot, "run", "--no-tools", "hi", before=before, behind=behind)
    finally:
        for path in [*{path.parent for path in files}, *files]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    for words, ended in done.items():
        assert ended.returncode == 0, (words, ended.stderr)
        assert b"Traceback" not in ended.stderr
    rows = json.loads(done["chat list --json"].stdout)["data"]
    assert [(row["title"], row["status"]) for row in rows][-1] == ("before", "standby")
    assert [(row["title"], row["status"]) for row in rows][:-1] == ([("slowly", "interrupted")] if killed else [])
    assert (b"one" if killed else b"Hello.") in done["chat show 1"].stdout
    assert b"before" in done["search before"].stdout
    assert ("one" if killed else "Hello.") in (moot.work / "made.md").read_text()
    assert b"could not be recorded" in done["export 1 -f md -o made.md"].stderr
    assert json.loads(done["stats --json"].stdout)["conversations"] == len(rows)
    assert json.loads(done["verify --json"].stdout)["damaged"] == 0
    assert refused.returncode == 1 and str(moot.home).encode() in refused.stderr
    assert {path: path.read_bytes() for path in moot.home.rglob("*") if path.is_file()} == files


@pytest.mark.damaged
@unshared
@pytest.mark.slow
@pytest.mark.parametrize(("mount", "status"), [(FULL, 507), (READ_ONLY, 503)], ids=["full", "read-only"])
def test_a_server_starts_and_shows_everything_where_nothing_can_be_written(moot: MootProcess, mount: str, status: int) -> None:
    command = [*disk(moot, mount), *COMMAND, "serve", "--port", "0"]
    token = "a-token-that-is-long-enough"
    with subprocess.Popen(command, cwd=moot.work, env={**moot.environ, "MOOT_TOKEN": token}, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines = [next(process.stderr)]
            while "serving at" not in lines[-1]:
                lines.append(next(process.stderr))
            url = lines[-1].partition("serving at ")[2].partition(";")[0]
            headers = {"authorization": f"Bearer {token}"}
            for path in ("conversations", "runs", "stats", "search?q=before", "projects"):
                with urlopen(Request(f"{url}/api/{path}", headers=headers)) as answer:
                    assert b"before" in answer.read() or path in ("runs", "stats", "projects")
            for path, method, expected in (("/readyz", "GET", 503), ("/api/projects", "POST", status)):
                with pytest.raises(HTTPError) as refused:
                    urlopen(
                        Request(
                            url + path, b'{"name": "new"}' if method == "POST" else None, {**headers, "content-type": "application/json"}
                        )
                    )
                assert refused.value.code == expected, refused.value.read()
                refused.value.close()
        finally:
            process.terminate()
        assert "Traceback" not in "".join(lines) + process.stderr.read()


@pytest.mark.damaged
def test_a_home_of_an_older_version_is_upgraded_only_if_it_can_be_written(moot: MootProcess) -> None:
    with sqlite3.connect(moot.home / "data" / "moot.db") as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    (moot.home / "data").chmod(0o555)
    try:
        ended = run(moot, "chat", "show", "1", before=without_rights_of_root)
    finally:
        (moot.home / "data").chmod(0o755)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert (
        b"older version of moot (schema 1)" in ended.stderr and b"read-only" in ended.stderr and b"Make MOOT_HOME writable" in ended.stderr
    )


@pytest.mark.parametrize("empty", [True, False])
def test_a_home_that_can_only_be_read_is_named_and_untouched(moot: MootProcess, empty: bool) -> None:
    if empty:
        shutil.rmtree(moot.home / "data")
    files = sorted(path for path in moot.home.rglob("*"))
    try:
        for path in [*files, moot.home]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        ended = run(moot, "run", "--no-tools", "hi", before=without_rights_of_root)
        assert (ended.returncode, ended.stdout) == (1, b"")
        assert str(moot.home).encode() in ended.stderr
        assert b"Permission denied" in ended.stderr
        assert b"MOOT_HOME" in ended.stderr
        assert b"Traceback" not in ended.stderr
        assert sorted(moot.home.rglob("*")) == files
    finally:
        for path in [moot.home, *files]:
            path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.damaged
def test_a_broken_or_newer_database_is_reported_and_left_unchanged(moot: MootProcess) -> None:
    database = moot.home / "data" / "moot.db"
    sound = database.read_bytes()
    for damaged in (b"rubbish" * 1000, sound[:5000]):
        database.write_bytes(damaged)
        ended = moot.run("run", "--no-tools", "hi")
        assert (ended.returncode, ended.stdout) == (1, b"")
        assert b"not a valid moot database" in ended.stderr
        assert b"backups" in ended.stderr
        assert b"Traceback" not in ended.stderr
        assert database.read_bytes() == damaged
    database.write_bytes(sound)
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version = 9999")
    connection.close()
    newer = database.read_bytes()
    ended = moot.run("run", "--no-tools", "hi")
    assert (ended.returncode, b"newer version of moot" in ended.stderr, b"Upgrade moot" in ended.stderr) == (2, True, True)
    assert database.read_bytes() == newer


# ── files and processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def open_files(soft: int, hard: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_removed_working_folder_prints_no_traceback(moot: MootProcess) -> None:
    process = moot.start("run", "--no-tools", "slowly")
    assert process.stdout is not None
    process.stdout.read(4)
    shutil.rmtree(moot.home / "data")
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, b"was removed while it was open" in errors, b"Traceback" in errors) == (1, True, False)
    assert not out.endswith(b"six\n")  # nothing is shown that is not stored
    assert not (moot.home / "data").exists()
    assert moot.run("run", "--no-tools", "hi").stdout == b"Hello.\n"


def test_too_few_file_descriptors_are_reported_at_start(fresh: MootProcess) -> None:
    moot = fresh
    ended = run(moot, "run", "--no-tools", "hi", before=open_files(16, 16))
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert (
        ended.stderr == b"moot: The open-file limit is 16; moot needs at least 64.\n  Raise the limit, for example with 'ulimit -n 1024'.\n"
    )
    assert not (moot.home / "data").exists()
    assert run(moot, "run", "--no-tools", "hi", before=open_files(16, 256)).stdout == b"Hello.\n"


@pytest.mark.parametrize("left", [6, 11, 16])
def test_running_out_of_file_descriptors_is_reported_without_loss(moot: MootProcess, left: int) -> None:
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(64 - 3 - left)]
    try:
        ended = run(moot, "run", "--no-tools", "hi", before=open_files(64, 64), pass_fds=held)
    finally:
        for file in held:
            os.close(file)
    assert ended.returncode in (0, 1, 2, 5)
    assert b"Traceback" not in ended.stderr
    assert b"bug in moot" not in ended.stderr
    if ended.returncode:
        assert b"oo many" in ended.stderr, ended.stderr
    else:
        assert ended.stdout == b"Hello.\n"
    assert kept(moot)[-1] == ("before", "finished", "Hello.")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_terminated_process_leaves_a_resumable_run_and_no_commands(
    moot: MootProcess, obedient: ScriptedProcess, number: signal.Signals
) -> None:
    (moot.home / "config.yaml").write_text(obedient.config() + "permissions: {mode: auto}\n")
    process = moot.start("run", 'call shell {"command": "exec 9> held; flock 9; echo > locked; sleep 40 & wait"}')
    while not (moot.work / "locked").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in errors
    deadline = time.monotonic() + 60
    while is_locked(moot.work / "held") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_locked(moot.work / "held")
    assert kept(moot)[0][1] == "interrupted"
    assert moot.run("chat", "resume", "1").stdout == b"Done.\n"


def test_a_hang_up_that_is_ignored_stays_ignored(moot: MootProcess) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "--no-tools", "slowly"],
        cwd=moot.work,
        env=moot.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),  # like nohup
    )
    assert process.stdout is not None
    process.stdout.read(4)
    process.send_signal(signal.SIGHUP)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"two three four five six\n")


def test_a_process_without_a_terminal_works_without_questions(moot: MootProcess, obedient: ScriptedProcess) -> None:
    moot.more = {"TERM": "xterm-256color", "COLUMNS": "80"}
    none = run(moot, before=os.setsid, behind=("/bin/sh", "-c", 'exec 3</dev/tty || exit 77; exec "$@"', "sh"))
    assert none.returncode != 0 and b"/dev/tty" in none.stderr  # it really has none
    ended = run(moot, "run", "--no-tools", "hi", before=os.setsid)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"Hello.\n", b"")
    (moot.home / "config.yaml").write_text(obedient.config())
    ended = run(moot, "run", 'call write_file {"path": "made.txt", "content": "x"}', before=os.setsid)
    assert (ended.returncode, b"no one is available" in ended.stderr, b"\x1b" in ended.stderr) == (3, True, False)
    ended = run(moot, before=os.setsid)
    assert (ended.returncode, b"No prompt given." in ended.stderr) == (2, True)


def test_a_suspended_run_continues_where_it_stopped(moot: MootProcess) -> None:
    process = moot.start("run", "--no-tools", "slowly")
    assert process.stdout is not None
    process.stdout.read(4)
    process.send_signal(signal.SIGSTOP)  # Ctrl+Z sends SIGTSTP, which is ignored by a process group without a terminal, as in CI
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.02)
    assert kept(moot)[0][1] == "running"  # stopped, not dead: no process takes over its run
    process.send_signal(signal.SIGCONT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (0, b"two three four five six\n", b"")


def test_a_tiny_screen_that_changes_all_the_time_is_fine(moot: MootProcess) -> None:
    terminal = moot.terminal("run", "--no-tools", "slowly")
    for number in range(20):
        terminal.setwinsize(5 + number % 3, 20 - number % 7)
        time.sleep(0.02)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert terminal.before is not None
    assert b"six" in terminal.before
    assert b"Traceback" not in terminal.before


# ── no network ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

WITNESS = """
import sys, os
def hear(event, arguments):
    if event == "socket.connect" and arguments[1][0] == "127.0.0.1":
        return
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        with open(os.environ["HEARD"], "a") as file:
            file.write(f"{event} {arguments[1:] if event == 'socket.connect' else arguments}\\n")
sys.addaudithook(hear)
"""


@unshared
def test_without_a_network_everything_local_works_and_nothing_connects(moot: MootProcess, tmp_path: Path) -> None:
    (tmp_path / "witness").mkdir()
    (tmp_path / "witness" / "sitecustomize.py").write_text(WITNESS)
    heard = tmp_path / "heard"
    moot.more = {"PYTHONPATH": f"{tmp_path / 'witness'}:{os.environ.get('PYTHONPATH', '')}", "HEARD": str(heard)}
    alone = ("unshare", "-rn")
    for arguments in (
        ("run", "-m", "demo", "what is in this folder?"),
        ("search", "folder"),
    ):
        ended = run(moot, *arguments, behind=alone)
        assert ended.returncode == 0, (arguments, ended.stderr)
    assert not heard.exists(), heard.read_text()
    ended = run(moot, "run", "--no-tools", "hi", behind=alone)
    assert (ended.returncode, ended.stdout, b"could not be reached" in ended.stderr) == (5, b"", True)
