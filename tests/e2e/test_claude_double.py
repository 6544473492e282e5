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
def moot(tmp_path: Path, cache: Path) -> Iterator[MootProcess]:
    options = json.dumps({"command": [*DOUBLE, "ask"]})
    process = make(tmp_path, cache, f"agents: {{claude: {{agent_type: claude-code, options: {options}}}}}\n")
    yield process
    process.close()


def test_a_question_at_the_terminal_is_answered_and_the_run_continues(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "run", "-a", "claude", "go")
    try:
        shown = screen.wait_for("expires", seconds=20)
        assert "Bash wants to run" in shown and "ls" in shown
        time.sleep(QUIET)
        screen.send("y")
        screen.wait_for("So be it.", seconds=20)
        assert screen.wait_exit() == 0
    finally:
        screen.close()


def test_in_a_pipe_calls_are_denied_and_the_exit_code_reports_it(moot: MootProcess) -> None:
    ended = moot.run("run", "-a", "claude", "go")
    assert (ended.returncode, ended.stdout) == (3, b"So be it.\n")
    ended = moot.run("run", "-a", "claude", "--mode", "auto", "go")
    assert (ended.returncode, ended.stdout) == (0, b"So be it.\n")
