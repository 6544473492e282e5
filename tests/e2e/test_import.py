"""`moot import` as users run it: all histories of a machine, repeatedly, killed, broken, watched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from moot.store.database.locks import FileLock

SESSION = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    (tmp_path / "user").mkdir()
    process = make(tmp_path / "user", "models: {}\n")
    yield process
    process.close()


def session(moot: MootProcess) -> Path:
    """The file of a Claude Code session, in its place below HOME."""
    file = Path(moot.environ["HOME"]) / ".claude" / "projects" / "-home-user-project" / f"{SESSION}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def record(number: int, text: str, role: str = "user", **more: Any) -> bytes:
    message: dict[str, Any] = {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]}
    if role == "assistant":
        message |= {"id": f"msg_{number}", "type": "message", "model": "claude-sonnet-4-5", "stop_reason": "end_turn"}
        message["usage"] = {"input_tokens": 100, "output_tokens": 10}
    value = {
        "parentUuid": uuid(number - 1) if number else None,
        "isSidechain": False,
        "type": role,
        "sessionId": SESSION,
        "cwd": "/home/user/project",
        "version": "2.1.330",
        "uuid": uuid(number),
        "timestamp": f"2026-11-20T10:{number // 60 % 60:02}:{number % 60:02}.000Z",
        "message": message,
        **more,
    }
    return json.dumps(value).encode() + b"\n"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def talk(first: int, last: int, size: int = 10) -> bytes:
    return b"".join(record(at, f"word{at} " * size, "assistant" if at % 2 else "user") for at in range(first, last))


def asked(moot: MootProcess, *arguments: str) -> Any:
    ended = moot.run(*arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def said(moot: MootProcess) -> list[str]:
    return ["".join(part.get("text", "") for part in message["parts"]) for message in asked(moot, "chat", "show", "1")["data"]]


def test_an_import_ends_when_the_index_that_another_process_holds_is_complete(moot: MootProcess) -> None:
    session(moot).write_bytes(talk(0, 4))
    (moot.home / "state").mkdir(parents=True, exist_ok=True)
    lock = FileLock(moot.home / "state" / "indexer.lock")
    assert lock.take(wait=False)
    importing = moot.start("import", "--all", "--format", "claude", "--json")
    assert importing.stderr is not None and importing.stdout is not None
    while b"indexing 0%" not in importing.stderr.readline():
        assert importing.poll() is None
    lock.release()
    assert json.loads(importing.communicate(timeout=60)[0])["index"] == {"done": 4, "total": 4}


def test_every_program_is_found_and_imported_once(moot: MootProcess) -> None:
    file = session(moot)
    file.write_bytes(talk(0, 4))
    before = hashlib.sha256(file.read_bytes()).digest(), file.stat().st_mtime_ns, sorted(file.parent.iterdir())
    report = asked(moot, "import", "--all", "--format", "claude")
    assert (report["added"], report["conversations"], report["problems"]) == (4, {"added": 1}, 0)
    assert report["index"] == {"done": 4, "total": 4}
    assert report["seconds"]["stored"] > 0 and report["seconds"]["indexed"] > 0
    listed = moot.run("chat", "list").stdout.decode().splitlines()
    assert "FROM" in listed[0] and "claude" in listed[1]
    (one,) = report["data"]
    assert one["fidelity"]["kept"]["messages"] == 4
    assert one["conversation"]["cost"] > 0
    assert len(asked(moot, "search", "word3")["data"]) == 1
    shown = asked(moot, "chat", "show", "1")
    assert shown["conversation"]["origin"]["source_id"] == SESSION
    assert shown["data"][1]["metadata"]["steps"][0]["cost_estimated"] is True
    again = asked(moot, "import", "--all", "--format", "claude")
    assert (again["sources"]["unchanged"], again["added"]) == (1, 0)
    assert (hashlib.sha256(file.read_bytes()).digest(), file.stat().st_mtime_ns, sorted(file.parent.iterdir())) == before
    assert asked(moot, "verify")["damages"] == []


def test_a_killed_import_is_completed_by_the_next_one(moot: MootProcess) -> None:
    session(moot).write_bytes(talk(0, 600, 200))
    for nth in ("3", "5"):
        moot.more = {"MOOT_TESTING": "1", "MOOT_CRASH_AT": f"store.after-commit:{nth}"}
        assert moot.run("import", "--all", "-f", "claude").returncode == -signal.SIGKILL
    moot.more = {}
    asked(moot, "import", "--all", "-f", "claude")
    assert said(moot) == [f"word{at} " * 200 for at in range(600)]
    assert asked(moot, "chat", "list")["data"][0]["message_count"] == 600
    assert asked(moot, "verify")["damages"] == []


def test_the_sources_are_listed_before_the_import(moot: MootProcess) -> None:
    session(moot).write_bytes(talk(0, 2))
    ended = moot.run("import", "--all", "-f", "claude", "--dry-run")
    assert ended.returncode == 0
    assert b"would add word0" in ended.stderr
    assert asked(moot, "chat", "list")["data"] == []
    unread = Path(moot.environ["HOME"]) / ".codeium" / "windsurf" / "cascade"
    unread.mkdir(parents=True)
    (unread / "a.pb").write_bytes(bytes(3_100_000))
    facts = {"program": "windsurf", "path": str(unread), "bytes": 3_100_000, "is_whole": True}
    assert asked(moot, "import", "--all", "--dry-run")["unread"] == [{**facts, "reason": "the program encrypts its conversations"}]
    ended = moot.run("import", "--all", "--dry-run")
    assert f"  windsurf: {unread}, 3.1 MB: the program encrypts its conversations\n" in ended.stderr.decode()
    assert asked(moot, "import", "--all", "-f", "claude", "--dry-run")["unread"] == []
    assert asked(moot, "import", "--all", "-f", "claude", "--since", "2026-11-21")["sources"]["older"] == 1
    assert moot.run("import", "--all", "--since", "yesterday").returncode == 2


def test_broken_sources_are_reported_and_do_not_affect_others(moot: MootProcess) -> None:
    file = session(moot)
    file.write_bytes(talk(0, 2) + b'{"torn\n' + b"\0" * 64 + b"\n" + record(2, "behind it"))
    (file.parent / "link.jsonl").symlink_to(file)
    os.mkfifo(file.parent / "pipe.jsonl")
    (file.parent / "loop").symlink_to(file.parent)
    (file.parent / "other.jsonl").write_bytes(b"\xff\xfe nothing of anybody's\n")
    ended = moot.run("import", "--all", "-f", "claude", "--json")
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["added"], report["problems"] >= 2) == (1, 3, True)
    assert said(moot)[-1] == "behind it"
    notes = [note for one in report["data"] for note in one["notes"]]
    assert any("NUL" in note for note in notes)
    assert asked(moot, "verify")["damages"] == []


def test_moots_own_data_and_special_files_are_rejected(moot: MootProcess) -> None:
    assert moot.run("chat", "list").returncode == 0
    own = moot.run("import", str(moot.home / "data"))
    assert (own.returncode, b"own data folder" in own.stderr) == (2, True)
    gone = moot.run("import", "nowhere.jsonl")
    assert (gone.returncode, b"does not exist" in gone.stderr) == (2, True)
    os.mkfifo(moot.work / "pipe")
    assert moot.run("import", "pipe").returncode == 2
    assert moot.run("import").returncode == 2


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_sources_are_imported_while_an_agent_writes_them(moot: MootProcess, ending: signal.Signals) -> None:
    file = session(moot)
    file.write_bytes(talk(0, 2))
    watching = moot.start("import", "--all", "-f", "claude", "--watch", "--json")
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["outcome"] == "added"
    with file.open("ab") as writing:
        writing.write(record(2, "live words"))
    told = json.loads(watching.stdout.readline())
    assert (told["outcome"], told["counts"]["added"]) == ("grown", 1)
    assert said(moot)[-1] == "live words"
    shutil.rmtree(file.parent.parent)
    file.parent.mkdir(parents=True)
    file.write_bytes(talk(0, 2) + record(2, "live words") + record(3, "and on", "assistant"))
    assert json.loads(watching.stdout.readline())["counts"]["added"] == 1
    watching.send_signal(ending)
    _, heard = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert heard.decode().endswith("moot: stopped; imported 4 new messages\n")
