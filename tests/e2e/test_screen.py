from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import CLEARS, PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.slow

WORDS = [f"word{number}" for number in range(160)]
LONG = "# Head\n\n" + " ".join(WORDS) + "\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end."
OURS = re.compile(rb"\x1b\[(?:[0-9;]*m|[KJ]|[1-9]A)")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="slowly", text=LONG, chunk_size=12, delay=0.01, times=0),
        Reply(when="very long", text="one two three " * 400, chunk_size=10, delay=0.05, times=0),
        Reply(when="count", tool_calls=[ToolCall("shell", {"command": "seq 60"})], times=1),
        Reply(when="", text="Hello **you** and `code`, cafés.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config())
    yield process
    process.close()


def in_order(text: str) -> bool:
    return re.findall(r"word\d+", text) == WORDS


def test_finished_text_is_in_the_scrollback_once_and_nothing_is_cleared(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "run", "--no-tools", "slowly", rows=12, columns=44)
    screen.wait_for("word3 ")
    assert screen.wait_exit() == 0
    assert in_order(screen.text)
    assert screen.text.count("The end.") == screen.text.count("Head") == screen.text.count("x = 1") == 1
    assert CLEARS.search(screen.raw) is None
    assert b"\x1b" not in OURS.sub(b"", screen.raw)


def test_resizing_a_narrow_terminal_during_a_stream_loses_nothing(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "run", "--no-tools", "slowly", rows=12, columns=20)
    for columns in (60, 20, 100, 33):
        screen.read(0.3)
        screen.resize(12, columns)
        screen.child.kill(signal.SIGWINCH)
    assert screen.wait_exit() == 0
    assert list(dict.fromkeys(re.findall(rb"word\d+", screen.raw)))[-1] == b"word159"
    assert CLEARS.search(screen.raw) is None


def test_without_motion_text_is_only_appended(moot: MootProcess) -> None:
    with (moot.home / "config.yaml").open("a") as file:
        file.write("\nui: {animations: false}\n")
    screen = PtyScreen(moot, "run", "--no-tools", "slowly", rows=12, columns=44)
    assert screen.wait_exit() == 0
    assert in_order(screen.text)
    assert re.search(rb"\x1b\[[KJA0-9]*[KJA]|\x08|\r(?!\n)", screen.raw) is None


@pytest.mark.parametrize(
    ("more", "term", "shown"),
    [
        ({"NO_COLOR": "1"}, "xterm", "Hello **you** and `code`, cafés."),
        ({}, "dumb", "Hello **you** and `code`, cafés."),
        ({"LC_ALL": "C"}, "xterm", "Hello you and code, caf\\xe9s."),
        ({}, "linux", "Hello you and code, cafés."),
        ({"FORCE_COLOR": "1"}, "dumb", "Hello you and code, cafés."),
    ],
)
def test_every_terminal_gets_output_it_can_display(moot: MootProcess, more: dict[str, str], term: str, shown: str) -> None:
    moot.more = {"LC_ALL": "C.UTF-8", **more}
    screen = PtyScreen(moot, "run", "--no-tools", "hi", term=term)
    assert screen.wait_exit() == 0
    assert shown in screen.lines
    if "NO_COLOR" in more or (term == "dumb" and not more):
        assert re.search(rb"\x1b\[[0-9;]*m", screen.raw) is None


def test_a_suspended_run_continues_below_the_shell_prompt(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "run", "--no-tools", "slowly", rows=12, columns=44)
    screen.wait_for("word2 ")
    screen.child.kill(signal.SIGTSTP)  # the key itself makes the pty discard unread input
    end = time.monotonic() + 60
    while Path(f"/proc/{screen.child.pid}/stat").read_text().split()[2] != "T" and time.monotonic() < end:
        screen.read(0.05)
    screen.child.kill(signal.SIGCONT)
    assert screen.wait_exit() == 0
    assert in_order(screen.text)


def test_stopping_keeps_unfinished_text(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "run", "--no-tools", "very long", rows=12, columns=60)
    screen.wait_for("one two three")
    screen.send(b"\x03")
    assert screen.wait_exit() == 130
    assert "one two" in screen.text
    assert "stopping" in screen.text


def test_a_folded_output_can_be_expanded(moot: MootProcess) -> None:
    with (moot.home / "config.yaml").open("a") as file:
        file.write("\npermissions: {mode: auto}\n")
    screen = PtyScreen(moot, "run", "count", columns=100)
    assert screen.wait_exit() == 0
    assert "✓ $ seq 60" in screen.text
    hint = re.search(r"… 50 more lines · moot chat show (\S+) --call (\d+)", screen.text)
    assert hint is not None, screen.text
    whole = PtyScreen(moot, "chat", "show", hint[1], "--call", hint[2], rows=100)
    assert whole.wait_exit() == 0
    assert [line.strip() for line in whole.lines[1:61]] == [str(number) for number in range(1, 61)]
    bare = moot.run("chat", "show", hint[1], "--call", hint[2])
    assert bare.stdout.decode().split("\n")[1:61] == [str(number) for number in range(1, 61)]
    shown = PtyScreen(moot, "chat", "show", "1", rows=60, columns=100)
    assert shown.wait_exit() == 0
    assert hint[0] in shown.text
    wrong = moot.run("chat", "show", "1", "--call", "7")
    assert (wrong.returncode, b"There is no tool call number 7" in wrong.stderr) == (2, True)
