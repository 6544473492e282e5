"""Temporary conversations: not listed or searched, and purged when their command ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

WORD = "axolotl"


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    with ScriptedProcess([Reply(text="Certainly.", times=0)]) as model:
        process = make(tmp_path, model.config())
        yield process
        process.close()


def listed(moot: MootProcess) -> list[str]:
    return [one["title"] for one in json.loads(moot.run("chat", "list", "--json").stdout)["data"]]


def test_a_temporary_run_leaves_nothing_behind_but_its_usage(moot: MootProcess) -> None:
    ended = moot.run("run", "--temporary", f"about the {WORD}")
    assert ended.returncode == 0 and b"Certainly." in ended.stdout, ended.stderr
    assert b"the temporary conversation was deleted" in ended.stderr
    assert listed(moot) == []
    assert json.loads(moot.run("stats", "--json").stdout)["total"]["runs"] == 1
    left = [file for file in moot.home.rglob("*") if file.is_file() and WORD.encode() in file.read_bytes()]
    assert left == []


def test_only_new_conversations_can_be_temporary(moot: MootProcess) -> None:
    assert moot.run("run", "one").returncode == 0
    for arguments in (("run", "-c", "--temporary", "two"), ("chat", "continue", "1", "--temporary", "two")):
        ended = moot.run(*arguments)
        assert (ended.returncode, b"--temporary applies only to new conversations" in ended.stderr) == (2, True)
    assert listed(moot) == ["one"]


def test_a_command_keeps_a_temporary_conversation_that_it_did_not_start(moot: MootProcess) -> None:
    assert moot.run("run", "one").returncode == 0
    id = json.loads(moot.run("chat", "list", "--json").stdout)["data"][0]["id"]
    with closing(sqlite3.connect(moot.home / "data" / "moot.db")) as stored, stored:
        stored.execute("UPDATE conversation SET expires_at = ?", (4_000_000_000_000,))
    ended = moot.run("run", f"--continue={id}", "two")
    assert ended.returncode == 0 and b"deleted" not in ended.stderr, ended.stderr
    assert b"two" in moot.run("chat", "show", id).stdout


@pytest.mark.slow
def test_a_temporary_conversation_in_the_terminal_ends_with_it(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "chat", "new", "--temporary", f"about the {WORD}", columns=100)
    screen.wait_for("Certainly.")
    assert listed(moot) == []
    screen.send("\x04")  # Ctrl+D
    screen.wait_for("the temporary conversation was deleted")
    assert screen.wait_exit() == 0
    assert moot.run("search", WORD, "--json").stdout.count(b'"message"') == 0
