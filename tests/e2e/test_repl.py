from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pexpect
import pytest

from e2e.cli_process import MootProcess
from e2e.pty_screen import CLEARS, PtyScreen, wait_until
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.slow

ESCAPE, UP, DOWN, DELETE, ENTER, TAB, SHIFT_TAB, CTRL_X = "\x1b", "\x1b[A", "\x1b[B", "\x1b[3~", "\r", "\t", "\x1b[Z", "\x18"
READY = "scripted@mine · ask"
START = 30
"""Maximum seconds for a start on a busy machine."""


class UnderShell(MootProcess):
    """A shell with job control that resumes moot a second after it was suspended."""

    def terminal(self, *arguments: str, term: str = "xterm-256color") -> pexpect.spawn[bytes]:
        environ: Any = {**self.environ, "TERM": term}
        line = f"{sys.executable} -m moot; echo back in the shell; sleep 1; fg"
        return pexpect.spawn("bash", ["-m", "-c", line], cwd=str(self.work), env=environ, timeout=60, dimensions=(24, 80), echo=False)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="count", text=" ".join(f"word{n}" for n in range(400)), chunk_size=9, delay=0.05, times=0),
        Reply(when="write it", tool_calls=[ToolCall("write_file", {"path": "made.txt", "content": "x"})], times=1),
        Reply(when="look around", tool_calls=[ToolCall("shell", {"command": "sleep 2"})], times=1),
        Reply(when="", text="Hello **you** and `code`.", times=0),
    ]
    with ScriptedProcess(script, models=("scripted", "other")) as server:
        yield server


@pytest.fixture
def screen(moot: MootProcess) -> Iterator[PtyScreen]:
    screen = PtyScreen(moot)
    screen.wait_for(READY, START)
    yield screen
    screen.close()
    assert not CLEARS.search(screen.raw)


def kept(folder: Path, text: bytes) -> bool:
    return any(text in path.read_bytes() for path in folder.glob("*.json"))


def last_prompt(model: ScriptedProcess) -> str:
    """Return the last user message that the model received."""
    messages = json.loads(model.requests()[-1]["body"])["messages"]
    content = [message["content"] for message in messages if message["role"] == "user"][-1]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def stored(moot: MootProcess) -> list[Any]:
    return json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"]


def test_a_prompt_is_echoed_at_once_and_answered_without_clearing_the_screen(screen: PtyScreen, moot: MootProcess) -> None:
    screen.send("hi" + ENTER)
    screen.wait_for("Hello you and code.")
    assert screen.text.count("› hi") == 1
    screen.send("\x0c")  # Ctrl+L, which clears the screen in other programs
    screen.read(0.5)
    assert "Hello you and code." in screen.text
    screen.send("q" + ENTER)
    assert screen.wait_exit() == 0
    assert [message["role"] for message in stored(moot)] == ["user", "assistant"]


def test_a_prompt_during_an_answer_is_queued_and_can_be_edited_and_dropped(screen: PtyScreen, moot: MootProcess) -> None:
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
    screen.wait_for("› later still")  # back in the input line
    screen.send(" please" + ENTER)
    screen.wait_for("Hello you and code.")
    screen.send("\x04")
    assert screen.wait_exit() == 0
    messages = stored(moot)
    assert [part["text"] for message in messages if message["role"] == "user" for part in message["parts"]] == [
        "count",
        "later still please",
    ]
    assert messages[1]["status"] == "cancelled"


def test_a_command_that_does_not_exist_is_never_sent(screen: PtyScreen, moot: MootProcess) -> None:
    screen.send("/modle x" + ENTER)
    screen.wait_for("Did you mean 'mode")
    screen.send("/model other@mine" + ENTER)
    screen.wait_for("Model set to other@mine")
    screen.send("hi" + ENTER)
    screen.wait_for("Hello you and code.")
    assert "other@mine ·" in screen.text
    screen.send("\x03")
    screen.wait_for("Ctrl+C again to exit")
    screen.send("\x03")
    assert screen.wait_exit() == 0
    assert stored(moot)[-1]["metadata"]["model"] == "other"


def test_files_and_shell_output_are_sent_with_the_prompt(screen: PtyScreen, moot: MootProcess, model: ScriptedProcess) -> None:
    (moot.work / "notes.md").write_text("one\ntwo\nthree\nfour\n")
    (moot.work / "hidden.log").write_text("secret")
    (moot.work / ".gitignore").write_text("*.log\n")
    screen.send("!echo sh\u00f6n; printf '\\033[2Jx'; exit 3" + ENTER)
    screen.wait_for("exit code 3 · sent to the model")
    screen.send("!!echo mine alone" + ENTER)
    screen.wait_for("not sent to the model")
    screen.send("see @h")
    screen.read(1.0)
    assert "hidden.log" not in screen.text
    screen.send('\x7f"/etc/passwd"' + ENTER)
    screen.wait_for('› see @"/etc/passwd"')
    screen.wait_for("outside")
    screen.send("\x03")
    screen.wait_for("Draft set aside")
    screen.send("see @not")
    screen.wait_for("notes.md  19 bytes")
    screen.send(TAB)
    screen.wait_for("› see @notes.md")
    screen.send("#2-3" + ENTER)
    screen.wait_for("Hello you and code.")
    sent = last_prompt(model)
    assert "notes.md, lines 2 to 3:\n\ntwo\nthree" in sent
    assert "four" not in sent
    assert "$ echo sh\u00f6n" in sent
    assert "sh\u00f6n\nx" in sent
    assert "mine alone" not in sent


def test_a_call_is_approved_and_a_steering_message_reaches_the_live_answer(
    screen: PtyScreen, moot: MootProcess, model: ScriptedProcess
) -> None:
    screen.send("write it" + ENTER)
    screen.wait_for("[y] yes, once")
    screen.send("a thought, yes" + ENTER)  # typing is not an answer
    screen.wait_for("not an answer, kept")
    screen.read(1.5)
    assert not (moot.work / "made.txt").exists()
    screen.send("y")
    screen.wait_for("Hello you and code.")
    screen.wait_for("› a thought, yes")
    screen.send("\x03")
    assert (moot.work / "made.txt").read_text() == "x"
    screen.send(SHIFT_TAB)
    screen.wait_for("· edits")
    screen.send(SHIFT_TAB)
    screen.wait_for("· plan")
    screen.send(SHIFT_TAB)
    screen.wait_for("· ask ·")
    screen.send("/mode auto" + ENTER)
    screen.wait_for("· auto")
    screen.send("look around" + ENTER)
    screen.wait_for("sleep 2")
    screen.send("be brief" + CTRL_X + "s")
    wait_until(screen, lambda: "be brief" in last_prompt(model))
    wait_until(screen, lambda: screen.text.count("Hello you and code.") == 2)


def test_enter_runs_the_highlighted_command_also_before_the_menu_appears(screen: PtyScreen) -> None:
    assert "› /help · @file · !command · Esc stops" in screen.text
    screen.send("/mo")
    screen.wait_for("/mode [MODE]")
    assert "Esc stops" not in screen.text
    for keys in (ENTER, "/mo" + ENTER):
        screen.send(keys)
        screen.wait_for("other@mine")  # the list of models
        screen.send(ESCAPE)
        screen.wait_for(READY)
    assert "› /model" in screen.text and "not found" not in screen.text
    screen.send("/searc")
    screen.wait_for("/search WORDS")
    screen.send(ENTER)
    screen.send("herons")
    screen.wait_for("› /search herons")
    screen.send("\x03")
    screen.wait_for("Draft set aside")
    screen.send("/mo")
    screen.wait_for("/mode [MODE]")
    screen.send(DOWN)
    wait_until(screen, lambda: "› /mode" in screen.lines)
    screen.send("\x03")
    screen.wait_for("Draft set aside")
    screen.send("/git comm")
    screen.wait_for("commit what is staged")
    screen.send(TAB + ENTER + "Count the herons")
    screen.wait_for("› /git commit Count the herons")
    screen.send("\x03")
    screen.wait_for("Draft set aside")
    screen.send("/mode ed")
    screen.wait_for("allow file edits here")
    screen.send(TAB)
    screen.wait_for("› /mode edits")
    screen.send(ENTER)
    screen.wait_for("· edits")


def test_esc_twice_rewinds_to_an_earlier_prompt(screen: PtyScreen, moot: MootProcess) -> None:
    for number, prompt in enumerate(("first prompt", "second prompt"), 1):
        screen.send(prompt + ENTER)
        wait_until(screen, lambda number=number: screen.text.count("Hello you") == number and "Esc to stop" not in screen.text)
    screen.send("draft")
    screen.wait_for("› draft")
    screen.send(ESCAPE)
    screen.read(0.4)
    screen.send(ESCAPE)
    screen.read(0.4)
    assert "Rewind to" not in screen.text, "Esc does nothing while something is typed"
    screen.send("\x7f" * 5)
    screen.wait_for("ctx 0%")
    screen.send(ESCAPE)
    screen.read(0.4)
    screen.send(ESCAPE)
    screen.wait_for("Rewind to")
    screen.send(DOWN + ENTER)
    screen.wait_for("Back to “first prompt”: hide 4 messages.")
    wait_until(screen, lambda: screen.text.count("› first prompt") == 2)
    assert stored(moot) == []


def test_pasting_never_sends_and_invalid_bytes_are_harmless(screen: PtyScreen, moot: MootProcess) -> None:
    screen.send("\x1b[200~one\r\ntwo\n\x1b[201~")
    screen.wait_for("  two")
    screen.send("\x03")
    screen.wait_for("Draft set aside. Press Up to restore it")
    screen.send(b"\xff\xfe caf\xe9 ")
    screen.wait_for("\ufffd\ufffd caf\ufffd")
    screen.child.delaybeforesend = None
    screen.send("\x1b[200~")
    for _ in range(64):
        screen.send("0123456789abcde\n" * 1024)
        screen.read(0.001)
    screen.send("\x1b[201~")
    screen.wait_for("[pasted 65,537 lines]")
    screen.send("\x7f")
    screen.wait_for("Pasted text removed. Press Ctrl+_ to restore it.")
    screen.send("\x1f")
    wait_until(screen, lambda: "[pasted 65,537 lines]" in screen.text and "Pasted text removed" not in screen.text)
    screen.send(ENTER)
    screen.wait_for("Hello you and code.")
    (said, _) = stored(moot)
    text = said["parts"][0]["text"]
    assert (len(text), text[:9]) == (len("\ufffd\ufffd caf\ufffd ") + (1 << 20), "\ufffd\ufffd caf\ufffd 0")


def test_the_editor_opens_the_draft_and_suspending_returns_to_it(moot: MootProcess) -> None:
    editor = moot.work / "editor.py"
    editor.write_text("import sys, pathlib\np = pathlib.Path(sys.argv[1])\np.write_text(p.read_text().strip() + ' world')\n")
    moot.more = {"EDITOR": f"{sys.executable} {editor}"}
    screen = PtyScreen(UnderShell(**vars(moot)))
    screen.wait_for(READY, START)
    screen.send("hello\x07")
    screen.wait_for("› hello world")
    screen.send("\x1a")
    screen.wait_for("back in the shell")
    screen.send("!")
    screen.wait_for("› hello world!")
    screen.send(ENTER)
    screen.wait_for("Hello you and code.")
    screen.close()


def test_a_narrow_screen_can_be_resized_during_an_answer(moot: MootProcess) -> None:
    screen = PtyScreen(moot, rows=12, columns=20)
    screen.wait_for("scripted@mine", START)
    screen.send("count" + ENTER)
    for columns in (60, 20, 33, 100, 20):
        screen.read(0.5)
        screen.resize(12, columns)
    screen.wait_for("word60")
    screen.send(ESCAPE)
    screen.wait_for("stopped")
    assert screen.text.count("word11 ") <= 2
    screen.send("\x04")
    assert screen.wait_exit() == 0
    assert not CLEARS.search(screen.raw)


def test_a_print_only_terminal_gets_lines(moot: MootProcess) -> None:
    screen = PtyScreen(moot, term="dumb", columns=160)
    screen.wait_for(">", START)
    screen.send("hi\n")
    screen.wait_for("Hello **you** and `code`.")
    screen.send("/mode plan\n")
    screen.wait_for("read only")
    screen.send("!echo out\n")
    screen.wait_for("sent to the model")
    screen.send("count\n")
    screen.wait_for("word11 ")
    screen.send("\x03")
    screen.wait_for("stopped")
    screen.send("q\n")
    assert screen.wait_exit() == 0
    assert b"\x1b" not in screen.raw
    moot.more = {"LC_ALL": "C"}
    screen = PtyScreen(moot)
    screen.wait_for(">", START)
    screen.send("!false\n")
    screen.wait_for("exit code 1 - sent to the model")
    screen.close()
    assert screen.raw.isascii()


def test_a_draft_and_half_an_answer_survive_a_kill_and_a_hang_up(moot: MootProcess) -> None:
    drafts = moot.home / "state" / "drafts"
    for end, thought in ((signal.SIGKILL, "half a thought"), (signal.SIGHUP, "another one")):
        screen = PtyScreen(moot, "chat", "new", "count")
        screen.wait_for("word9 ", START)
        screen.send("what stood in line" + ENTER)
        screen.wait_for("1 queued")
        screen.send(thought)
        wait_until(screen, partial(kept, drafts, thought.encode()))
        assert screen.kill(end) in (-signal.SIGKILL, 128 + signal.SIGHUP)
        answer = stored(moot)[1]
        assert (answer["status"], "word5 " in answer["parts"][-1]["text"]) == ("interrupted", True)
    again = PtyScreen(moot, "chat", "continue", "1")
    again.wait_for("› another one", START)
    again.wait_for("/retry resumes")
    assert "word5 " in again.text
    again.send("\x03")
    again.wait_for("Draft set aside")
    again.send("/retry" + ENTER)
    again.wait_for("word20 ")
    assert "1 queued" in again.text
    again.send(ESCAPE)
    again.wait_for("stopped")
    again.wait_for("› what stood in line")
    again.send(ENTER)
    again.wait_for("Hello you and code.")
    again.send("\x03\x03")
    again.wait_exit()


def test_user_programs_receive_untrusted_text_as_arguments(moot: MootProcess) -> None:
    told = moot.work / "told"
    script = f"import sys, pathlib; pathlib.Path({str(told)!r}).write_text(sys.argv[-1])"
    line = "import sys, json; print('\\x1b[2Jmine', json.load(sys.stdin)['mode'])"
    ui = {"notify": [sys.executable, "-c", script], "statusline": [sys.executable, "-c", line]}
    with (moot.home / "config.yaml").open("a") as file:
        file.write(f"ui: {json.dumps(ui)}\n")
    screen = PtyScreen(moot)
    screen.wait_for("mine ask", START)
    screen.send("\x1b[O" + "hi $(touch pwned) `touch pwned`; \x1b[200~touch pwned\x1b[201~" + ENTER)
    screen.wait_for("Hello you and code.")
    wait_until(screen, lambda: told.exists() and told.read_text())
    assert "$(touch pwned)" in told.read_text()
    assert not (moot.work / "pwned").exists()
    screen.close()
    assert not CLEARS.search(screen.raw)


def test_a_valid_configuration_change_applies_to_the_next_prompt(screen: PtyScreen, moot: MootProcess) -> None:
    config = moot.home / "config.yaml"
    good = config.read_text()
    config.write_text(good + "permissions: {mode: nonsense}\n")
    screen.send("hi" + ENTER)
    screen.wait_for("The previous configuration stays active")
    screen.wait_for("Hello you and code.")
    config.write_text(good + "permissions: {mode: plan}\n")
    screen.send("hi again" + ENTER)
    screen.wait_for("Configuration reloaded")
    screen.wait_for("· plan ·")


def test_messages_of_another_process_appear(screen: PtyScreen, moot: MootProcess) -> None:
    screen.send("hi" + ENTER)
    screen.wait_for("Hello you and code.")
    other = moot.run("chat", "continue", "1", "--no-tools", "from elsewhere")
    assert other.returncode == 0
    screen.wait_for("› from elsewhere")
    wait_until(screen, lambda: screen.text.count("Hello you and code.") == 2)


def test_without_a_terminal_the_error_suggests_moot_run(moot: MootProcess) -> None:
    ended = moot.run()
    assert (ended.returncode, ended.stdout, b"moot run" in ended.stderr) == (2, b"", True)


def test_words_without_a_command_start_continue_or_open_a_conversation(moot: MootProcess) -> None:
    def leave(screen: PtyScreen) -> None:
        screen.send("\x04")
        assert screen.wait_exit() == 0
        screen.close()

    first = PtyScreen(moot, "greet", "me")
    first.wait_for("1 unpriced · ask", START)  # the run has ended
    assert "Hello you and code." in first.text
    leave(first)
    latest = PtyScreen(moot, "-c", "once more")
    latest.wait_for("2 unpriced · ask", START)
    assert latest.text.count("Hello you and code.") == 2
    leave(latest)
    assert [message["role"] for message in stored(moot)] == ["user", "assistant"] * 2
    listed = PtyScreen(moot, "-r")
    listed.wait_for("greet me", START)
    listed.send(ENTER)
    listed.wait_for("2 unpriced · ask", START)
    leave(listed)
    printed = moot.run("--print", "greet", "me")
    assert (printed.returncode, printed.stdout.decode().strip()) == (0, "Hello **you** and `code`.")
    piped = moot.run("greet me", "-c")
    assert (piped.returncode, piped.stdout.decode().strip()) == (0, "Hello **you** and `code`.")
    conversations = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    assert sorted(one["message_count"] for one in conversations) == [4, 4]
    for options in ((), ("--mode", "plan")):
        alone = moot.run("-r", *options)
        assert (alone.returncode, b"Specify the conversation: -r ID" in alone.stderr) == (2, True)
    assert moot.run(stdin=b"greet me").stdout.decode().strip() == "Hello **you** and `code`."
