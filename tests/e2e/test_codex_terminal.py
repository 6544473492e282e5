"""Approving a call of Codex at a terminal, with a double of its program."""

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

pytestmark = pytest.mark.slow

QUIET = 0.6
"""Longer than the time in which keys are ignored."""
DOUBLE = [sys.executable, "-S", "-E", str(Path(testing.__file__).with_name("codex_program.py"))]


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    options = json.dumps({"command": [*DOUBLE, "ask"]})
    process = make(tmp_path, f"agents: {{codex: {{agent_type: codex, options: {options}}}}}\n")
    yield process
    process.close()


def test_the_agents_options_are_offered_and_a_waiting_run_is_not_abandoned(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "run", "-a", "codex", "go")
    try:
        shown = screen.wait_for("Esc decide later")
        assert "commandExecution wants to run" in shown and "ls -1" in shown
        assert "[s] Yes, and don't ask again for commands that begin with 'ls -1'" in shown and "[1] No, and stop" in shown
        time.sleep(QUIET)
        screen.send("\x1b")
        screen.wait_for("so this cannot wait")
        time.sleep(QUIET)
        screen.send("s")
        screen.wait_for("acceptWithExecpolicyAmendment")
        assert screen.wait_exit() == 0
    finally:
        screen.close()
