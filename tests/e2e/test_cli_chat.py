"""Several real processes with one conversation: one runs, others watch or send prompts during the answer."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pexpect
import pytest

from e2e.cli_process import MootProcess
from e2e.pty_screen import PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.slow

STYLES = re.compile(rb"\x1b\[[0-9]{1,2}m")
WORDS = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="for ever", text="word " * 400, chunk_size=5, delay=0.2, times=0),
        Reply(when="slowly", text=WORDS, chunk_size=4, hang_at=4, times=0),
        Reply(when="", text="Quick.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


def until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def ps(moot: MootProcess) -> list[dict[str, Any]]:
    return json.loads(moot.run("ps", "--json").stdout)["data"]


def begun(moot: MootProcess, prompt: str) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """A run in its own process that has produced text, and its entry in `ps`."""
    process = moot.start("run", "--no-tools", prompt)
    assert process.stdout is not None
    assert process.stdout.read(4)
    (line,) = ps(moot)
    return process, line


def texts(moot: MootProcess, id: str) -> list[tuple[str, str]]:
    data = json.loads(moot.run("chat", "show", id, "--json").stdout)["data"]
    return [(message["role"], "".join(part.get("text", "") for part in message["parts"])) for message in data]


def test_ps_names_the_live_runs_of_all_processes(moot: MootProcess) -> None:
    process, line = begun(moot, "slowly please")
    assert (line["status"], line["title"], line["agent"], line["pid"]) == ("running", "slowly please", "default", process.pid)
    assert line["host"] and line["since"] > 0 and line["waits_for"] is None
    told = moot.run("ps").stdout.decode()
    assert str(process.pid) in told and "slowly please" in told and line["conversation"][:13] in told
    process.kill()
    process.wait()
    (dead,) = ps(moot)
    assert (dead["status"], dead["pid"]) == ("interrupted", None) and "moot chat resume" in dead["waits_for"]
    ended = moot.run("chat", "attach", line["conversation"])
    assert (ended.returncode, b"moot chat resume" in ended.stderr) == (2, True)


def test_attach_follows_a_run_of_another_process_completely(moot: MootProcess, model: ScriptedProcess) -> None:
    process, line = begun(moot, "slowly please")
    attached = moot.start("chat", "attach", line["conversation"])
    events = moot.start("chat", "attach", line["conversation"], "--jsonl")
    assert attached.stdout is not None and events.stdout is not None
    start, first = attached.stdout.read(4), events.stdout.readline()
    model.release()
    out, _ = attached.communicate(timeout=60)
    assert (attached.returncode, (start + out).decode()) == (0, WORDS + "\n")
    lines = [json.loads(each) for each in (first + events.communicate(timeout=60)[0]).splitlines()]
    assert lines[-1]["kind"] == "result" and lines[-1]["text"] == WORDS
    assert lines[0]["chunks"][0]["type"] == "start"
    assert process.wait(60) == 0


def test_ps_follow_prints_changes_until_interrupted(moot: MootProcess) -> None:
    watching = moot.start("ps", "--watch", "--json")
    assert watching.stdout is not None and json.loads(watching.stdout.readline())["data"] == []
    process = moot.start("run", "--no-tools", "for ever")
    (line,) = json.loads(watching.stdout.readline())["data"]
    assert line["status"] in ("running", "queued")
    assert moot.run("chat", "stop", line["conversation"]).returncode == 0
    assert process.wait(60) == 130
    while json.loads(watching.stdout.readline())["data"]:
        pass
    watching.send_signal(signal.SIGINT)
    assert watching.wait(60) == 130


def test_detaching_does_not_stop_the_run(moot: MootProcess) -> None:
    process, line = begun(moot, "for ever")
    attached = moot.start("chat", "attach", line["conversation"])
    assert attached.stdout is not None and attached.stdout.read(4)
    attached.send_signal(signal.SIGINT)
    _, err = attached.communicate(timeout=60)
    assert (attached.returncode, b"the run continues" in err) == (130, True)
    screen = PtyScreen(moot, "chat", "attach", line["conversation"], rows=8)
    screen.wait_for("word word")
    screen.send(b"\x03")
    assert screen.wait_exit() == 130
    *said, left = screen.text.rstrip().splitlines()
    assert left == f"moot: detached; the run continues; follow with: moot chat attach {line['conversation'][:13]}" and "word" in said[-1]
    assert [each["status"] for each in ps(moot)] == ["running"] and process.poll() is None
    assert moot.run("chat", "stop", line["conversation"]).returncode == 0
    assert process.wait(60) == 130


def test_a_busy_conversation_explains_the_on_busy_option(moot: MootProcess, model: ScriptedProcess) -> None:
    process, line = begun(moot, "slowly please")
    ended = moot.run("run", "-c", line["conversation"], "more")
    assert (ended.returncode, b"--on-busy" in ended.stderr) == (7, True)
    queued = moot.start("chat", "continue", line["conversation"], "--no-tools", "--on-busy", "queue", "quickly")
    until(lambda: "queued" in [each["status"] for each in ps(moot)])
    model.release()
    assert (queued.communicate(timeout=60)[0], queued.returncode) == (b"Quick.\n", 0)
    assert process.wait(60) == 0
    assert texts(moot, line["conversation"]) == [
        ("user", "slowly please"),
        ("assistant", WORDS),
        ("user", "quickly"),
        ("assistant", "Quick."),
    ]


def test_a_prompt_interrupts_another_processes_answer(moot: MootProcess) -> None:
    process, line = begun(moot, "for ever")
    ended = moot.run("run", "-c", line["conversation"], "--no-tools", "--on-busy", "interrupt", "quickly")
    assert (ended.returncode, ended.stdout) == (0, b"Quick.\n")
    assert process.wait(60) == 130
    assert texts(moot, line["conversation"])[-1] == ("assistant", "Quick.")


def test_a_prompt_steers_a_run_of_another_process_and_follows_it(moot: MootProcess, model: ScriptedProcess) -> None:
    process, line = begun(moot, "slowly please")
    steering = moot.start("run", "-c", line["conversation"], "--no-tools", "--on-busy", "steer", "quickly")
    assert steering.stderr is not None
    while b"added to the running answer" not in (said := steering.stderr.readline()):
        assert said
    model.release()
    out, _ = steering.communicate(timeout=60)
    assert steering.returncode == 0 and out.endswith(b"Quick.\n")
    assert process.wait(60) == 0
    assert [role for role, _ in texts(moot, line["conversation"])] == ["user", "assistant"]
    assert b"\n> quickly\n" in moot.run("chat", "show", line["conversation"]).stdout
    ended = moot.run("chat", "show", line["conversation"][:3])
    assert (ended.returncode, b"needs at least 4 characters" in ended.stderr) == (2, True)
    assert moot.run("logs", "--run", "01a").returncode == 2


def test_a_cost_limit_warns_of_each_model_whose_price_is_unknown(moot: MootProcess, model: ScriptedProcess) -> None:
    warning = "moot: the price of {} is unknown, so --max-cost stops the run after a call to it"
    limited = moot.run("run", "--no-tools", "--max-cost", "1", "hi there").stderr.decode().splitlines()
    assert warning.format("scripted@mine") in limited
    assert b"the price" not in moot.run("run", "--no-tools", "hi there").stderr
    priced = {"context": 9000, "price": {"input": 1, "output": 1}}
    entry = {"dialect": "openai-chat", "base_url": model.openai_url, "api_key": "k", "models": {"scripted": priced}}
    models = {"main": "scripted@mine", "fallback": ["other@mine"]}
    (moot.home / "config.yaml").write_text(json.dumps({"models": models, "providers": {"mine": entry}}))
    limited = moot.run("run", "--no-tools", "--max-cost", "1", "hi there").stderr.decode().splitlines()
    assert [line for line in limited if "price" in line] == [warning.format("other@mine")]


def test_pending_questions_are_shown_and_answered_while_attached(moot: MootProcess, obedient: ScriptedProcess) -> None:
    (moot.home / "config.yaml").write_text(obedient.config())
    asked = moot.terminal("run", 'call write_file {"path": "made.txt", "content": "x"}')
    asked.expect(rb"write_file")
    waiting = until(lambda: [line for line in ps(moot) if line["status"] == "waiting"])
    assert waiting[0]["waits_for"].startswith("approval of write_file")
    piped = moot.start("chat", "attach", waiting[0]["conversation"], "--jsonl")
    assert piped.stdout is not None and json.loads(piped.stdout.readline())["kind"] == "chunks"
    attached = moot.terminal("chat", "attach", waiting[0]["conversation"], term="dumb")
    attached.expect(rb"Allow\?")
    attached.send("y\n")
    attached.expect(rb"Done\.")
    assert (moot.work / "made.txt").exists()
    out, _ = piped.communicate(timeout=60)
    assert (piped.returncode, json.loads(out.splitlines()[-1])["status"]) == (0, "finished")
    asked.close(force=True)
    attached.close(force=True)


def test_one_command_sets_a_title_with_the_small_model(moot: MootProcess, model: ScriptedProcess) -> None:
    (moot.home / "config.yaml").write_text(model.config().replace('"scripted@mine"}', '"scripted@mine", small: "scripted@mine"}', 1))
    assert moot.run("run", "--no-tools", "hi there").stdout == b"Quick.\n"
    assert json.loads(moot.run("chat", "list", "--json").stdout)["data"][0]["title"] == "Quick"


def test_titles_and_lines_of_messages_cannot_act_on_a_screen(moot: MootProcess) -> None:
    hostile = "a\x1b[2Jb\x1b]0;evil\x07c\x1b]52;c;ZXZpbA==\x1b\\d\x9b31me\x1bPq\x1b\\f\rg\x08h\u202ei"
    id = json.loads(moot.run("run", "--no-tools", "--json", hostile).stdout)["conversation"]
    process = moot.start("run", "-c", id, "--no-tools", "for ever")
    assert process.stdout is not None and process.stdout.read(4)
    for arguments in (
        ("chat", "rename", id, f"{hostile} x"),
        ("chat", "tree", id),
        ("ps", "--once"),
        ("chat", "delete", id, "--message", hostile),
    ):
        terminal = moot.terminal(*arguments)
        terminal.expect(pexpect.EOF)
        assert terminal.before
        shown = STYLES.sub(b"", terminal.before).decode()
        assert not set(shown) & {"\x1b", "\x07", "\x08", "\x9b", "\x90", "\u202e"}, arguments


def test_on_a_terminal_the_conversation_stays_open_after_the_prompt(moot: MootProcess) -> None:
    terminal = moot.terminal("chat", "new", "hi", "there")
    terminal.expect(rb"Quick\.")
    until(lambda: not ps(moot))
    assert terminal.isalive()
    terminal.send("\x04")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    (said,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    assert texts(moot, said["id"]) == [("user", "hi there"), ("assistant", "Quick.")]
