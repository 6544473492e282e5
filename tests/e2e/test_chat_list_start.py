from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pexpect
import pytest

from e2e.cli_process import COMMAND, MootProcess, make
from e2e.pty_screen import CLEARS, PtyScreen
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import Submission

pytestmark = pytest.mark.slow

GATE = """
import os, sys, time

GATED = set(os.environ["GATED"].split())

class Gate:
    # whoever imports one of these waits until somebody makes the file
    def find_spec(self, name, path=None, target=None):
        if name in GATED:
            while not os.path.exists(os.environ["GATE"]):
                time.sleep(0.02)
        return None

sys.meta_path.insert(0, Gate())
"""
HEAVY = "asyncio anyio prompt_toolkit moot.engine"
SHOWN = "kiwi"


class Shelled(MootProcess):
    """A shell with job control, so that moot can be suspended; the shell prints the terminal's settings after each stop and end."""

    def terminal(self, *arguments: str, term: str = "xterm-256color") -> pexpect.spawn[bytes]:
        environ: Any = {**self.environ, "TERM": term}
        state = "stty -a | tr ';' '\\n' | tr ' ' '\\n' | grep -xE -- '-?(echo|icanon|isig|icrnl|iexten|ixon)' | tr '\\n' ' '; echo"
        script = f"set -m; {state}; {shlex.join([*COMMAND, *arguments])}; echo CODE $?; {state}; fg; echo LAST $?; {state}"
        return pexpect.spawn("bash", ["-c", script], cwd=str(self.work), env=environ, timeout=60, dimensions=(24, 80), echo=True)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


@pytest.fixture
def moot(tmp_path: Path, gate: Path) -> Iterator[MootProcess]:
    """A few conversations; heavy imports wait until the gate is open."""
    made = make(tmp_path)
    process = Shelled(made.home, made.work)
    anyio.run(seed, process.home)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(GATE)
    process.more = {"PYTHONPATH": str(tmp_path / "site"), "GATE": str(gate), "GATED": HEAVY}
    yield process
    process.close()


async def seed(home: Path) -> None:
    async with open_engine(Settings(home)) as engine:
        for title in ("apples", "pears", "漢字 plums", SHOWN):
            await engine.store.conversations.create(Conversation(new_id(), title=title, title_source="user", model="scripted@mine"))


def modes(screen: PtyScreen) -> list[str]:
    """The terminal settings that the shell printed."""
    return [line for line in screen.text.split("\n") if "icanon" in line]


def test_the_list_appears_before_heavy_imports_and_is_taken_over_unchanged(moot: MootProcess, gate: Path) -> None:
    screen = PtyScreen(moot, "chat", "list", columns=100)
    screen.wait_for(SHOWN)
    screen.wait_for("Esc close")
    screen.read(0.2)
    before, written = screen.lines, len(screen.raw)
    gate.touch()
    screen.send("\x1b[C")  # the menu, once keys are read
    screen.wait_for("p use for --reply")
    assert b"apples" not in screen.raw[written:]  # only changed lines were drawn
    screen.send("\x1b[D")
    screen.wait_for("Esc close")
    assert screen.lines == before
    screen.send("\x03")
    screen.wait_for("LAST")
    assert not CLEARS.search(screen.raw)
    assert SHOWN not in screen.text


def test_early_keys_reach_the_list_and_are_not_echoed(moot: MootProcess, gate: Path) -> None:
    screen = PtyScreen(moot, "chat", "list", columns=100)
    screen.wait_for("Esc close")
    before = screen.lines
    screen.send("pearsx\x7f")
    screen.read(0.3)
    assert screen.lines == before
    gate.touch()
    screen.wait_for("> pears")
    screen.wait_for("1 of 4")
    screen.send("\x1b\x1b")
    screen.wait_for("CODE 0")


def test_an_early_ctrl_c_restores_the_terminal(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "chat", "list", columns=100)
    screen.wait_for("Esc close")
    screen.send("\x03")
    screen.wait_for("CODE 130")
    screen.wait_for("LAST")
    screen.read(0.3)
    assert SHOWN not in screen.text
    assert len(set(modes(screen))) == 1
    assert screen.raw.endswith(b"\n")
    assert screen.raw.count(b"\x1b[?2004h") == screen.raw.count(b"\x1b[?2004l")


def test_an_early_ctrl_z_suspends_and_the_list_reappears(moot: MootProcess, gate: Path) -> None:
    screen = PtyScreen(moot, "chat", "list", columns=100)
    screen.wait_for("Esc close")
    screen.send("\x1a")
    screen.wait_for("CODE 148")  # 128 and SIGTSTP
    screen.wait_for(SHOWN)  # fg
    assert len(set(modes(screen))) == 1
    screen.send("apples")
    screen.read(0.3)
    assert "apples" not in screen.lines[-1]
    gate.touch()
    screen.wait_for("1 of 4")
    screen.send("\x03")
    screen.wait_for("LAST 0")
    screen.read(0.3)
    assert len(set(modes(screen))) == 1


def test_an_early_failure_clears_the_list_and_is_reported(moot: MootProcess, gate: Path) -> None:
    moot.more["GATED"] = "prompt_toolkit"
    screen = PtyScreen(moot, "chat", "list", columns=100)
    screen.wait_for("Esc close")
    (moot.home / "data" / "moot.db").unlink()
    gate.touch()
    screen.send("\t")
    screen.wait_for("Open the list again")
    screen.wait_for("LAST")
    screen.read(0.3)
    assert len(set(modes(screen))) == 1
    assert SHOWN not in screen.text


def test_listing_does_not_open_the_engine(moot: MootProcess, gate: Path) -> None:
    moot.more["GATED"] = "moot.engine"
    screen = PtyScreen(moot, "chat", "list", columns=100)
    screen.wait_for("Esc close")
    screen.send("\tplums")
    screen.wait_for("No matches")
    screen.send("\x15\t\t\t")  # Ctrl+U
    screen.wait_for("all directories · 4")
    screen.send("plums")
    screen.wait_for("1 of 4")
    screen.send("\x12")  # Ctrl+R
    screen.read(0.3)
    assert "New title" not in screen.text
    gate.touch()
    screen.wait_for("New title")
    screen.send("\x03")
    screen.wait_for("LAST")


def test_a_run_of_a_dead_process_is_not_shown_as_running(moot: MootProcess, gate: Path) -> None:
    gate.touch()
    anyio.run(leave_running, moot.home)
    screen = PtyScreen(moot, "chat", "list", columns=100)
    screen.wait_for("interrupted")
    assert "running" not in screen.text
    screen.send("\x03")
    screen.wait_for("LAST")


async def leave_running(home: Path) -> None:
    """A run whose process has died, as `kill -9` leaves it."""
    async with open_engine(Settings(home)) as engine:
        conversation, user = Conversation(new_id(), title="lost"), Message(new_id(), "user", (text_part("hello"),))
        run = Run(new_id(), conversation.id, new_id(), on_crash="ask")
        await engine.store.records.submit(Submission(run, conversation, user, owner="gone"))


def test_an_explicit_limit_prints_the_list(moot: MootProcess) -> None:
    moot.more["GATED"] = "prompt_toolkit"
    screen = PtyScreen(moot, "chat", "list", "--limit", "50", columns=100)
    screen.wait_for("NO  ID")
    screen.wait_for("CODE 0")
