"""Leaving `moot` on a real terminal while an answer is running."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cli_process import MootProcess
from e2e.pty_screen import PtyScreen, is_running, wait_until
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.slow

ESCAPE, DOWN, ENTER = "\x1b", "\x1b[B", "\r"
READY = "scripted@mine · ask"
START = 30


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="count", text=" ".join(f"word{n}" for n in range(400)), chunk_size=9, delay=0.05, times=0),
        Reply(when="tally", text=" ".join(f"word{n}" for n in range(140)), chunk_size=9, delay=0.04, times=0),
        Reply(when="", text="Hello **you** and `code`.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


def stored(moot: MootProcess) -> list[Any]:
    return json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"]


def runs_of(moot: MootProcess) -> list[Any]:
    return json.loads(moot.run("ps", "--json").stdout)["data"]


def test_leaving_during_an_answer_asks_and_the_run_continues_in_the_background(moot: MootProcess) -> None:
    screen = PtyScreen(moot)
    screen.wait_for(READY, START)
    screen.send("tally" + ENTER)
    screen.wait_for("word20")
    screen.send("\x04")
    shown = screen.wait_for("An answer is running. Exit?")
    assert (
        "the answer continues in the background; moot chat attach 01" in shown and "the text so far is kept; moot chat continue 01" in shown
    )
    screen.send(ESCAPE)
    screen.wait_for("word30")
    screen.send("hi" + ENTER)
    screen.wait_for("1 queued")
    screen.send("/bg" + ENTER)
    screen.wait_for("The answer continues in the background. To follow it, run: moot chat attach")
    assert screen.wait_exit() == 0, "the shell has the terminal back"
    screen.close()
    run, queued = runs_of(moot)
    assert (run["status"], queued["status"], run["pid"]) == ("running", "queued", queued["pid"])
    end = time.monotonic() + 60
    while is_running(run["pid"]):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert runs_of(moot) == []
    texts = [one["parts"][-1]["text"] for one in stored(moot) if one["role"] == "assistant"]
    assert texts[0].startswith("word0 ") and texts[0].endswith(" word139") and texts[1] == "Hello **you** and `code`."


def test_an_answer_can_be_stopped_when_leaving(moot: MootProcess) -> None:
    screen = PtyScreen(moot)
    screen.wait_for(READY, START)
    screen.send("count" + ENTER)
    screen.wait_for("word20")
    screen.send("\x04")
    screen.wait_for("An answer is running. Exit?")
    screen.send(DOWN + ENTER)
    assert screen.wait_exit() == 0
    assert [one["status"] for one in stored(moot)] == ["finished", "cancelled"] and runs_of(moot) == []


def test_a_dumb_terminal_asks_before_it_leaves_a_running_answer(moot: MootProcess) -> None:
    screen = PtyScreen(moot, term="dumb", columns=160)
    screen.wait_for(">", START)
    screen.send("tally" + ENTER)
    wait_until(screen, lambda: bool(runs_of(moot)))
    screen.send("exit" + ENTER)
    shown = screen.wait_for("q = close:")
    assert "1  Detach" in shown and "2  Stop" in shown
    screen.send("q" + ENTER)
    screen.send("/bg" + ENTER)
    screen.wait_for("The answer continues in the background. To follow it, run: moot chat attach")
    assert screen.wait_exit() == 0
    [run] = runs_of(moot)
    moot.run("chat", "stop", run["conversation"])
    wait_until(screen, lambda: not is_running(run["pid"]))
