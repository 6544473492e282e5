"""`moot` on a real terminal: keys that open something, and notifications while the terminal is not focused."""

from __future__ import annotations

import base64
import json
import signal
import time
from collections.abc import Iterator

import pytest

from e2e.cli_process import MootProcess
from e2e.pty_screen import CLEARS, PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.slow

AWAY, BACK = "\x1b[O", "\x1b[I"
CTRL_O, CTRL_R, ENTER, F2 = "\x0f", "\x12", "\r", "\x1bOQ"
DONE, WAITING = b"\x1b]9;moot: the answer is ready", b"\x1b]9;moot: approval needed"
START = 30


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="count lines", tool_calls=[ToolCall("shell", {"command": "seq 1 60"})], times=1),
        Reply(
            when="flood",
            text="".join(f"- line {n} of many, many words\n" for n in range(6000)) + "the end of it",
            chunk_size=2000,
            times=0,
        ),
        Reply(when="", text="Hello you.", times=0),
    ]
    with ScriptedProcess(script, models=("scripted", "other")) as server:
        yield server


@pytest.fixture
def screen(moot: MootProcess) -> Iterator[PtyScreen]:
    screen = PtyScreen(moot)
    screen.wait_for("scripted@mine · ask", START)
    yield screen
    screen.close()
    assert not CLEARS.search(screen.raw)


def answered(screen: PtyScreen, prompt: str, times: int) -> None:
    screen.send(prompt + ENTER)
    for _ in range(200):
        screen.read(0.1)
        if screen.text.count("Hello you.") == times and "Esc to stop" not in screen.text:
            return
    raise AssertionError(screen.text)


def test_notifications_are_sent_only_while_the_terminal_is_not_focused(screen: PtyScreen) -> None:
    answered(screen, "hi", 1)
    assert b"\x1b]9;" not in screen.raw and b"\a" not in screen.raw
    screen.send(BACK)
    answered(screen, "hi", 2)
    assert b"\x1b]9;" not in screen.raw and b"\a" not in screen.raw
    screen.send(AWAY)
    answered(screen, "hi", 3)
    assert DONE in screen.raw and b"\a" in screen.raw.replace(DONE, b"")
    assert WAITING not in screen.raw
    screen.send("count lines" + ENTER)
    screen.wait_for("[y] yes, once", START)
    assert WAITING in screen.raw
    screen.read(0.6)
    screen.send("y")
    screen.wait_for("more lines · Ctrl+O", START)
    assert "\n  30\n" not in screen.text
    screen.send(CTRL_O)
    screen.wait_for("\n  30\n")
    screen.send("/copy" + ENTER)
    screen.wait_for("Copied 10 characters, using the terminal")
    assert b"\x1b]52;c;SGVsbG8geW91Lg==\x07" in screen.raw
    screen.send("?" + ENTER)
    screen.wait_for("Print folded output in full")


def test_ctrl_r_searches_the_history_and_f2_switches_to_the_previous_model(screen: PtyScreen) -> None:
    answered(screen, "the first words", 1)
    screen.send("/model other@mine" + ENTER)
    screen.wait_for("other@mine ·")
    answered(screen, "and others", 2)
    screen.send(F2)
    screen.wait_for("Model set to scripted@mine")
    screen.send(CTRL_R)
    screen.wait_for("History")
    screen.send("first")
    screen.read(0.5)
    screen.send(ENTER)
    screen.wait_for("› the first words")
    screen.read(0.3)
    screen.send(ENTER)
    for _ in range(100):
        if screen.text.count("Hello you.") == 3:
            break
        screen.read(0.1)
    assert screen.text.count("› the first words") == 2


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_shell_output_survives_a_kill_and_is_sent_with_the_next_prompt(moot: MootProcess, model: ScriptedProcess, term: str) -> None:
    screen = PtyScreen(moot, term=term)
    screen.wait_for(">" if term == "dumb" else "scripted@mine · ask", START)
    screen.send("!echo said before the end" + ENTER)
    screen.wait_for("sent to the model with your next prompt")
    assert screen.kill(signal.SIGKILL) == -signal.SIGKILL
    again = PtyScreen(moot, term=term)
    again.wait_for("The output of a shell command will be sent with your next prompt.", START)
    again.send("what was it?" + ENTER)
    again.wait_for("Hello you.", START)
    assert "said before the end" in json.dumps(json.loads(model.requests()[-1]["body"])["messages"][-1])
    again.send("!!true" + ENTER)
    again.wait_for("not sent to the model")
    assert not list((moot.home / "state" / "drafts").glob("*.json"))
    again.close()


def test_a_blocked_terminal_delays_no_answer_and_gets_all_of_it_later(screen: PtyScreen, moot: MootProcess) -> None:
    screen.send("flood" + ENTER)
    until = time.monotonic() + 60
    while not _all_answered(moot):
        assert time.monotonic() < until, "the run waits for a terminal that nobody reads"
        time.sleep(0.2)
    assert b"the end of it" not in screen.raw
    screen.wait_for("the end of it")
    assert screen.raw.count(b"line 5999 of many") == 1
    answered(screen, "hi", 1)


def _all_answered(moot: MootProcess) -> bool:
    """True if a conversation exists, its answer is stored, and no run is active."""
    conversations = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    answered = any(conversation["message_count"] >= 2 for conversation in conversations)
    return answered and not json.loads(moot.run("ps", "--json").stdout)["data"]


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_ctrl_v_attaches_the_picture_in_the_clipboard_and_dropped_files_become_references(
    moot: MootProcess, model: ScriptedProcess
) -> None:
    config = moot.home / "config.yaml"
    config.write_text(config.read_text().replace("{context: 100000}", "{context: 100000, modalities: [text, image]}", 1))
    programs = moot.home / "bin"
    programs.mkdir()
    reader = programs / "wl-paste"
    reader.write_text(f'#!/bin/sh\n[ "$3" = image/png ] && cat {moot.home}/clipboard\n')
    reader.chmod(0o755)
    (moot.work / "two words.txt").write_text("dropped content")
    moot.more = {"PATH": f"{programs}:{moot.environ['PATH']}", "WAYLAND_DISPLAY": "wayland-0"}
    screen = PtyScreen(moot)
    try:
        screen.wait_for("scripted@mine · ask", START)
        screen.send("\x16")
        screen.wait_for("The clipboard contains no image.")
        (moot.home / "clipboard").write_bytes(base64.b64decode(PICTURE))
        screen.send("look at\x16")
        screen.wait_for("› look at [image 1]")
        screen.send(f"\x1b[200~{moot.work}/two\\ words.txt \x1b[201~")
        screen.wait_for('› look at [image 1] @"two words.txt"')
        answered(screen, "", 1)
        parts = [part for message in json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"][:1] for part in message["parts"]]
        files = {part["filename"]: part["mediaType"] for part in parts if part["type"] == "file"}
        assert files == {"image-1.png": "image/png", "two words.txt": "text/plain"}
        sent = model.requests()[-1]["body"]
        assert PICTURE in str(sent) and "dropped content" in str(sent)
    finally:
        screen.close()


def test_vi_keys_edit_the_prompt_and_the_next_prompt_starts_in_insert_mode(moot: MootProcess, model: ScriptedProcess) -> None:
    config = moot.home / "config.yaml"
    config.write_text(f"{config.read_text()}ui:\n  vi: true\n")
    screen = PtyScreen(moot)
    try:
        screen.wait_for("scripted@mine · ask", START)
        screen.send("one two three\x1b")
        screen.read(0.5)  # Esc alone, not the start of a key sequence
        screen.send("bdw0x$aX\x1b")
        screen.wait_for("› ne two X")
        screen.read(0.5)
        screen.send("\r")  # sent in Vi's normal mode
        screen.wait_for("Hello you.")
        screen.send("daily words")  # in normal mode, these letters would be commands
        screen.wait_for("› daily words")
        answered(screen, "", 2)
        assert "daily words" in str(model.requests()[-1]["body"])
    finally:
        screen.close()
