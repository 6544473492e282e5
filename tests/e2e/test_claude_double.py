from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot import testing

QUIET = 0.6
"""Longer than the time in which keys are ignored."""
DOUBLE = [sys.executable, "-S", "-E", str(Path(testing.__file__).with_name("claude_program.py"))]


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    options = json.dumps({"command": [*DOUBLE, "ask"]})
    process = make(tmp_path, f"agents: {{claude: {{agent_type: claude-code, options: {options}}}}}\n")
    yield process
    process.close()


def test_a_question_at_the_terminal_is_answered_and_the_run_continues(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "run", "-a", "claude", "go")
    try:
        shown = screen.wait_for("Esc decide later")
        assert "Bash wants to run" in shown and "ls" in shown
        time.sleep(QUIET)
        screen.send("y")
        screen.wait_for("So be it.")
        assert screen.wait_exit() == 0
    finally:
        screen.close()


def test_in_a_pipe_calls_are_denied_and_the_exit_code_reports_it(moot: MootProcess) -> None:
    ended = moot.run("run", "-a", "claude", "--max-cost", "1", "go")
    assert (ended.returncode, ended.stdout) == (3, b"So be it.\n")
    assert b"moot: claude makes its own model calls, so --max-cost doesn't limit them" in ended.stderr
    ended = moot.run("run", "-a", "claude", "--mode", "auto", "go")
    assert (ended.returncode, ended.stdout) == (0, b"So be it.\n")


def test_the_model_that_an_agent_chose_is_shown_in_the_list_and_the_status(moot: MootProcess) -> None:
    assert moot.run("run", "-a", "claude", "--mode", "auto", "go").returncode == 0
    screen = PtyScreen(moot, "chat", "list", columns=140)
    try:
        screen.wait_for("double-1", seconds=20)
        screen.send("double-1\r")
        screen.wait_for("So be it.", seconds=20)
        screen.send("/status\r")
        screen.wait_for("model         double-1")
        screen.send("\x04")
        assert screen.wait_exit() == 0
    finally:
        screen.close()


def test_a_purge_names_the_session_file_that_the_agent_keeps(moot: MootProcess) -> None:
    for there in (True, False):
        assert moot.run("run", "-a", "claude", "--mode", "auto", "go").returncode == 0
        session = moot.home.parent / ".claude" / "projects" / "-work" / "5e550000-0000-4000-8000-000000000000.jsonl"
        session.parent.mkdir(parents=True, exist_ok=True)
        session.unlink(missing_ok=True)
        if there:
            session.write_text("{}\n")
            session.with_name("5e550000-0000-4000-8000-000000000001.jsonl").write_text("{}\n")
        why = "claude keeps its own copy; moot doesn't delete it"
        for arguments in (("--dry-run",), ("--yes",)):
            receipt = json.loads(moot.run("purge", "go", "--json", *arguments).stdout)
            kept = [file for file in receipt["files"] if file["what"] == "left"]
            assert kept == ([{"path": str(session), "what": "left", "why": why}] if there else [])
        assert session.exists() == there
