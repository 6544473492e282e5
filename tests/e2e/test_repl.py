from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import CLEARS, PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.timeout(90)

ESCAPE, UP, DELETE, ENTER = "\x1b", "\x1b[A", "\x1b[3~", "\r"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pycache")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="count", text=" ".join(f"word{n}" for n in range(400)), chunk_size=9, delay=0.05, times=0),
        Reply(when="", text="Hello **you** and `code`.", times=0),
    ]
    with ScriptedProcess(script, models=("scripted", "other")) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, cache: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, cache, model.config())
    yield process
    process.close()


@pytest.fixture
def screen(moot: MootProcess) -> Iterator[PtyScreen]:
    screen = PtyScreen(moot)
    screen.wait_for("scripted@mine · ask", 30)
    yield screen
    screen.close()
    assert not CLEARS.search(screen.raw)


def stored(moot: MootProcess) -> list[Any]:
    return json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"]


def test_a_prompt_is_echoed_at_once_and_answered_and_nothing_is_cleared(screen: PtyScreen, moot: MootProcess) -> None:
    screen.send("hi" + ENTER)
    screen.wait_for("Hello you and code.")
    assert "› hi" in screen.lines
    screen.send("q" + ENTER)
    assert screen.wait_exit() == 0
    assert [message["role"] for message in stored(moot)] == ["user", "assistant"]


def test_a_prompt_waits_behind_the_answer_and_can_be_edited_and_dropped(screen: PtyScreen, moot: MootProcess) -> None:
    screen.send("count" + ENTER)
    screen.wait_for("word9")
    screen.send("later" + ENTER)
    screen.wait_for("1 queued · Up to edit, Del to drop")
    screen.send(UP)
    screen.wait_for("› later")
    assert "queued" not in screen.text
    screen.send(" still" + ENTER)
    screen.wait_for("1 queued")
    screen.send("and more" + ENTER)
    screen.wait_for("2 queued")
    screen.send(DELETE)
    screen.wait_for("1 queued")
    screen.send(ESCAPE)
    screen.wait_for("stopped")
    screen.wait_for("Hello you and code.")
    assert "› later still" in screen.lines
    screen.send("\x04")
    assert screen.wait_exit() == 0
    messages = stored(moot)
    assert [part["text"] for message in messages if message["role"] == "user" for part in message["parts"]] == ["count", "later still"]
    assert messages[1]["status"] == "cancelled"


def test_a_command_that_does_not_exist_is_never_sent(screen: PtyScreen, moot: MootProcess) -> None:
    screen.send("/modle x" + ENTER)
    screen.wait_for("did you mean 'mode")
    screen.send("/model other@mine" + ENTER)
    screen.wait_for("other@mine from the next prompt on")
    screen.send("hi" + ENTER)
    screen.wait_for("Hello you and code.")
    assert "other@mine ·" in screen.text
    screen.send("\x03")
    screen.wait_for("Ctrl+C again leaves")
    screen.send("\x03")
    assert screen.wait_exit() == 0
    assert stored(moot)[-1]["metadata"]["model"] == "other"
