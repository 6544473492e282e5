"""The interactive `moot ps` on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import anyio
import pexpect
import pytest

from e2e.cli_process import MootProcess
from e2e.pty_screen import CLEARS, PtyScreen
from moot.config.loader import load
from moot.engine import open_engine
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.message import text_part
from moot.types.run import Prompt, Run

pytestmark = pytest.mark.slow

DOWN, ENTER, ESCAPE = "\x1b[B", "\r", "\x1b"
COMMAND = "touch made\u202e # \x1b[2K" + " and much more" * 12
Screens = Callable[..., PtyScreen]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        *(Reply(when=word, tool_calls=[ToolCall("shell", {"command": COMMAND})], times=1) for word in ("make", "build", "paint", "carve")),
        Reply(when="forget", tool_calls=[ToolCall("shell", {"command": "touch forgotten"})], times=1),
        Reply(when="count", text=" ".join(f"word{n}" for n in range(4000)), chunk_size=9, delay=0.05, times=0),
        Reply(when="", text="All done.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


def prompted(moot: MootProcess, text: str) -> Run:
    """Submit a prompt in a process that ends when the run waits or has ended."""

    async def submit() -> Run:
        async with open_engine(load(home=moot.home, environ={}, directory=moot.work).settings) as engine:
            submitted = await engine.runs.submit(Prompt((text_part(text),), directory=str(moot.work)))
            return await engine.runs.wait(submitted.run.id)

    return anyio.run(submit)


def status_of(moot: MootProcess) -> dict[str, Any]:
    return {line["title"]: line["status"] for line in json.loads(moot.run("ps", "--json").stdout)["data"]}


def order(screen: PtyScreen, *texts: str) -> bool:
    """Return True if the texts are on the screen in this order."""
    rest = "\n".join(screen.lines)
    for text in texts:
        _, found, rest = rest.partition(text)
        if not found:
            return False
    return True


def until(screen: PtyScreen, holds: Callable[[], object]) -> None:
    for _ in range(1200):
        if holds():
            return
        screen.read(0.05)
    raise AssertionError(f"it did not happen:\n{screen.text}")


def test_runs_are_grouped_and_appear_and_end_while_the_list_is_open(moot: MootProcess, open_screen: Screens) -> None:
    assert prompted(moot, "make it").status == "waiting"
    assert prompted(moot, "hello there").status == "finished"
    screen = open_screen("ps", columns=100)
    screen.wait_for("q close")
    until(screen, partial(order, screen, "Needs you", "make it", "approval of shell", "Done", "hello there", "finished"))
    assert "Running" not in screen.text
    other = moot.start("run", "--no-tools", "count please")
    until(screen, partial(order, screen, "Needs you", "make it", "Running", "count please", "running", "Done", "hello there"))
    until(screen, lambda: "❯" in next(line for line in screen.lines if "make it" in line))  # the selection stays where it was
    screen.send("j")
    until(screen, lambda: "❯" in next(line for line in screen.lines if "count please" in line))
    screen.send("s")
    screen.wait_for("Stop default in 'count please'? The output so far is kept. [y/n]")
    assert status_of(moot)["count please"] == "running"
    screen.send("y" + ENTER)
    screen.wait_for("moot: cancelled")
    until(screen, partial(order, screen, "Needs you", "make it", "Done", "count please", "cancelled", "hello there", "q close"))
    assert other.wait(60) == 130
    screen.send("q")
    assert screen.wait_exit() == 0
    assert "q close" not in screen.text and not CLEARS.search(screen.raw)


def test_an_approval_is_answered_after_its_content_was_shown(moot: MootProcess, open_screen: Screens) -> None:
    assert prompted(moot, "build it").status == "waiting"
    screen = open_screen("ps", rows=30)
    screen.wait_for("y/n answer")
    screen.send("yy")  # the second key comes too early to be an answer
    screen.wait_for("[y] yes, once")
    assert "touch made<U+202E> # \\x1b[2K" in screen.text and screen.text.replace("\n  ", "").count("much more") == 12
    screen.read(1.0)
    screen.send(ESCAPE)
    until(screen, lambda: order(screen, "Needs you", "build it", "q close"))
    assert not (moot.work / "made\u202e").exists() and status_of(moot) == {"build it": "waiting"}
    screen.send("y")
    screen.wait_for("[y] yes, once")
    screen.read(1.0)
    screen.send("y")
    screen.wait_for("shell: allowed once")
    until(screen, lambda: order(screen, "Needs you", "build it", "answered"))
    screen.send(ENTER)  # continues it in this terminal
    screen.wait_for("All done.")
    assert (moot.work / "made\u202e").exists()
    until(screen, lambda: not status_of(moot))
    screen.send("q" + ENTER)
    assert screen.wait_exit() == 0


def test_an_approval_is_denied_and_nothing_runs(moot: MootProcess, open_screen: Screens) -> None:
    prompted(moot, "forget it")
    screen = open_screen("ps")
    screen.wait_for("y/n answer")
    screen.send("n")
    screen.wait_for("[n] no")
    screen.read(1.0)
    screen.send("n")
    screen.wait_for("shell: denied")
    until(screen, lambda: order(screen, "Needs you", "forget it", "answered"))
    screen.send("q")
    assert screen.wait_exit() == 0
    assert not (moot.work / "forgotten").exists()


def test_a_narrow_list_filters_wide_titles_and_survives_a_resize(moot: MootProcess, open_screen: Screens) -> None:
    for title in ("漢字 apples and a very long title 漢字漢字漢字漢字", "pears"):
        prompted(moot, title)
    screen = open_screen("ps", columns=40, rows=16)
    screen.wait_for("q close")
    until(screen, lambda: order(screen, "Done", "pears", "漢字"))
    screen.send("/")
    screen.wait_for("clear filter")
    screen.send("jq")  # letters are typed into the filter
    screen.wait_for("No matches")
    screen.send("\x7f\x7fpears")
    until(screen, lambda: "漢字" not in "\n".join(screen.lines) and order(screen, "> pears", "Done", "pears"))
    screen.send(ENTER)
    screen.wait_for("Enter open")
    screen.send("j" + ESCAPE)
    until(screen, lambda: order(screen, "Press / to filter", "Done", "pears", "漢字"))
    screen.resize(20, 90)
    until(screen, lambda: any("pears" in line and "finished" in line and "scripted" in line for line in screen.lines))
    screen.resize(9, 40)
    until(screen, lambda: "Done" not in screen.lines and any("pears" in line for line in screen.lines))
    assert max(len(line) for line in screen.lines) <= 40
    screen.send("\x03")
    assert screen.wait_exit() == 0


class UnderShell(MootProcess):
    """A shell with job control that resumes moot a second after it was suspended."""

    def terminal(self, *arguments: str, term: str = "xterm-256color") -> pexpect.spawn[bytes]:
        line = f"{sys.executable} -m moot {' '.join(arguments)}; echo back in the shell; sleep 1; fg"
        environ: Any = {**self.environ, "TERM": term}
        return pexpect.spawn("bash", ["-m", "-c", line], cwd=str(self.work), env=environ, timeout=60, dimensions=(24, 80), echo=False)


def test_ctrl_z_suspends_the_list_and_resuming_shows_it_again(moot: MootProcess) -> None:
    prompted(moot, "pears")
    screen = PtyScreen(UnderShell(moot.home, moot.work, moot.more), "ps")
    try:
        screen.wait_for("q close")
        screen.send("\x1a")
        screen.wait_for("back in the shell")
        assert "q close" not in screen.lines
        until(screen, lambda: order(screen, "back in the shell", "Done", "pears", "q close"))
        screen.send("q")
        assert screen.wait_exit() == 0
    finally:
        screen.close()


@pytest.mark.parametrize(("prompt", "arguments", "term"), [("paint it", ("ps", "--once"), "xterm-256color"), ("carve it", ("ps",), "dumb")])
def test_once_and_a_dumb_terminal_print_the_list(
    moot: MootProcess, open_screen: Screens, prompt: str, arguments: tuple[str, ...], term: str
) -> None:
    prompted(moot, prompt)
    screen = open_screen(*arguments, columns=100, term=term)
    assert screen.wait_exit() == 0
    assert prompt in screen.text and "waiting" in screen.text and "filter" not in screen.text
