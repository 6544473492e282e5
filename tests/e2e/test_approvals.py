"""Approvals on a real terminal: every kind of answer, and input that must never count as one."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import plugin_site
from e2e.cli_process import MootProcess
from e2e.pty_screen import PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.slow

READY = "Esc decide later"
QUIET = 0.45
"""Longer than the time in which keys are ignored."""


def shell(command: str) -> ToolCall:
    return ToolCall("shell", {"command": command})


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    """Answer according to the prompt."""
    questions = [
        {"question": "Which language?", "header": "Language", "options": [{"label": "Python"}, {"label": "Go"}]},
        {"question": "What else?", "options": [{"label": "tests"}, {"label": "docs"}], "multiple": True},
        {"question": "Why?"},
    ]
    hostile = "echo \x1b[2Jhidden \u202e" + " ".join(f"word{number}" for number in range(400)) + " last-word"
    script = [
        Reply(when="Tool: shell", text="It makes a file.", times=0),
        *(Reply(when=f"make {name}", tool_calls=[shell(f"touch {name}")]) for name in ("once", "no", "burst", "paste", "explain", "late")),
        *(Reply(when=f"make {name}", tool_calls=[shell(f"touch {name}")]) for name in ("elsewhere", "expired", "stop", "dumb", "narrow")),
        Reply(when="make edited", tool_calls=[shell("touch model")]),
        Reply(when="twice", tool_calls=[shell("git init -q")]),
        Reply(when="twice", tool_calls=[shell("git init -q")]),
        Reply(when="thrice", tool_calls=[shell("git init -q")]),
        Reply(when="for ever", tool_calls=[shell("git init -q .")]),
        Reply(when="from now on", tool_calls=[shell("git init -q sub")]),
        Reply(when="hostile", tool_calls=[shell(hostile)]),
        Reply(when="write", tool_calls=[ToolCall("write_file", {"path": "kept.txt", "content": "new\nsame\n"})]),
        Reply(when="five miles", tool_calls=[ToolCall("convert_units", {"value": 5, "unit": "mile", "into": "km"})]),
        Reply(when="questions", tool_calls=[ToolCall("ask_user", {"questions": questions})]),
        Reply(when="", text="All done.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


def settle(screen: PtyScreen, seconds: float = QUIET) -> None:
    screen.read(seconds)


def asked(screen: PtyScreen) -> PtyScreen:
    screen.wait_for(READY)
    settle(screen)
    return screen


def said(moot: MootProcess) -> str:
    """The last conversation as sent to the model, in JSON."""
    return moot.run("chat", "show", "1", "--json").stdout.decode()


def test_pressing_y_runs_the_call_once(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = asked(open_screen("run", "make once", columns=100))
    text = screen.text
    assert (
        "shell wants to run" in text
        and "touch once" in text
        and "needs approval: mode ask" in text
        and "requested by: default · step 1" in text
    )
    screen.send("y")
    assert screen.wait_exit() == 0
    assert (moot.work / "once").exists()
    assert "shell: allowed once" in screen.text
    assert READY not in "\n".join(screen.lines)


def test_a_denial_and_its_reason_reach_the_model(moot: MootProcess, model: ScriptedProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = asked(open_screen("run", "make no"))
    screen.send("b")
    screen.wait_for("No, because:")
    settle(screen)
    screen.send("wrong folder")
    settle(screen, 0.3)
    screen.send("\r")
    assert screen.wait_exit() == 0
    assert not (moot.work / "no").exists()
    assert "The user denied this call: wrong folder" in json.dumps(model.requests()[-1]["body"])


def test_typing_before_or_during_the_question_is_not_an_answer(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = open_screen("run", "make burst")
    screen.send("y\ry\r")
    asked(screen)
    for keys in ("yes", "\r", "\x1b[200~ok\ny\n\x1b[201~", "ny", "x\ry"):
        screen.send(keys)
        settle(screen)
    assert READY in screen.text
    assert "not an answer, kept for the composer:" in screen.text
    assert not (moot.work / "burst").exists()
    screen.send("n")
    assert screen.wait_exit() == 0
    assert not (moot.work / "burst").exists()


def test_explaining_leaves_the_call_pending_and_is_recorded(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = asked(open_screen("run", "make explain"))
    screen.send("?")
    screen.wait_for("It makes a file.")
    assert not (moot.work / "explain").exists()
    settle(screen)
    screen.send("n")
    assert screen.wait_exit() == 0
    with closing(sqlite3.connect(moot.home / "data" / "moot.db")) as stored:
        ((id, run),) = stored.execute("SELECT id, run FROM exchange WHERE purpose = 'explain'").fetchall()
        events = stored.execute("SELECT run, raw FROM event WHERE exchange IN (?, '=' || ?)", (id, id)).fetchall()
    assert run == "" and events and {of for of, _ in events} == {None}
    assert any(raw is not None for _, raw in events)


def test_edited_arguments_run_exactly_and_the_model_is_informed(
    moot: MootProcess, model: ScriptedProcess, open_screen: Callable[..., PtyScreen]
) -> None:
    screen = asked(open_screen("run", "make edited"))
    screen.send("e")
    screen.wait_for("Run instead: touch model")
    settle(screen)
    screen.send("\x15touch mine")
    settle(screen, 0.3)
    screen.send("\r")
    screen.wait_for("run with changes")
    settle(screen)
    screen.send("y")
    assert screen.wait_exit() == 0
    assert (moot.work / "mine").exists() and not (moot.work / "model").exists()
    assert "touch mine · edited by you" in screen.text and "instead of $ touch model" in screen.text
    later = PtyScreen(moot, "chat", "show", "1")
    assert later.wait_exit() == 0
    assert "touch mine · edited by you" in later.text and "instead of $ touch model" in later.text
    (call,) = [part for part in json.loads(said(moot))["data"][-1]["parts"] if "approval" in part]
    assert (call["input"], call["approval"]["input"]) == ({"command": "touch model"}, {"command": "touch mine"})
    told = json.dumps(model.requests()[-1]["body"])
    assert "The user changed the arguments" in told and "touch model" in told and "touch mine" in told


def test_invalid_arguments_from_the_editor_leave_the_call_pending(
    moot: MootProcess, open_screen: Callable[..., PtyScreen], tmp_path: Path
) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text("import sys, pathlib\npathlib.Path(sys.argv[1]).write_text('{\"path\": 1}')\n")
    moot.more["EDITOR"] = f"{sys.executable} {editor}"
    (moot.work / "kept.txt").write_text("old\nsame\n")
    screen = asked(open_screen("run", "write it", columns=100))
    text = screen.text
    assert "-old" in text and "+new" in text and " same" in text and "replaces 2 lines" in text
    screen.send("e")
    screen.wait_for("Field required")
    settle(screen)
    screen.send("n")
    assert screen.wait_exit() == 0
    assert (moot.work / "kept.txt").read_text() == "old\nsame\n"


def test_a_grant_for_the_conversation_is_not_requested_again(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = asked(open_screen("run", "do it twice"))
    screen.send("s")
    assert screen.wait_exit() == 0
    assert screen.text.count("allowed in this conversation") == 1
    grants = json.loads(said(moot))["conversation"]["grants"]
    assert [(grant["tool"], grant["match"]) for grant in grants] == [("shell", "git init -q")]
    ended = moot.run("chat", "continue", "1", "and thrice")  # there is no approver
    assert (ended.returncode, ended.stdout) == (0, b"All done.\n"), ended.stderr


def test_always_writes_the_shown_rule_and_keeps_comments(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    config = moot.home / "config.yaml"
    config.write_text(f"# mine\n{config.read_text()}# the end\n")
    screen = asked(open_screen("run", "allow it for ever", columns=110))
    assert '[a] always: shell "git init -q ." (edit)' in screen.text
    screen.send("a")
    screen.wait_for("Always allow shell: git init -q .")
    settle(screen)
    screen.send("\x7f*")
    settle(screen, 0.3)
    screen.send("\r")
    assert screen.wait_exit() == 0
    text = config.read_text()
    assert "# mine" in text and "# the end" in text and "match: git init -q *" in text
    ended = moot.run("run", "and from now on")
    assert (ended.returncode, ended.stdout) == (0, b"All done.\n"), ended.stderr


def test_the_question_shows_everything_that_will_run(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = asked(open_screen("run", "be hostile", rows=16, columns=40))
    seen = screen.text
    assert "\\x1b[2Jhidden" in seen.replace("\n", "") and "<U+202E>" in seen.replace("\n", "")
    assert "PgDn" in seen and "last-word" not in "\n".join(screen.lines)
    screen.send("\x1b[F")
    settle(screen)
    assert "last-word" in "".join(screen.lines).replace(" ", "")
    assert "[y] yes, once" in "\n".join(screen.lines)
    screen.send("\x03")
    assert screen.wait_exit() == 130


def test_escape_leaves_the_call_pending_and_resuming_asks_again(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = asked(open_screen("run", "make late"))
    screen.send("\x1b")
    assert screen.wait_exit() == 3
    assert "waiting for approval; moot chat resume" in screen.text
    again = asked(open_screen("chat", "resume", "1"))
    again.send("y")
    assert again.wait_exit() == 0
    assert (moot.work / "late").exists()


def test_an_approval_is_bound_to_the_tool_definition(moot: MootProcess, open_screen: Callable[..., PtyScreen], tmp_path: Path) -> None:
    project = tmp_path / "plugin"
    shutil.copytree(plugin_site.EXAMPLE, project)
    source = project / "src" / "moot_example" / "convert_units.py"
    asking = source.read_text().replace("effects: frozenset[Effect] = frozenset()", 'effects: frozenset[Effect] = frozenset({"write"})')
    source.write_text(asking)
    moot.more["PYTHONPATH"] = str(plugin_site.install(tmp_path / "site", project))
    screen = asked(open_screen("run", "five miles"))
    screen.send("\x1b")
    assert screen.wait_exit() == 3
    source.write_text(asking.replace("Convert a length", "Wipe a disk, convert a length"))
    again = asked(open_screen("chat", "resume", "1"))
    again.send("y")
    assert again.wait_exit() == 0
    told = said(moot)
    assert "The approval was given for other arguments" in told and "8.04672 km" not in told


def test_an_answer_from_another_client_closes_the_prompt(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    first = asked(open_screen("run", "make elsewhere"))
    second = asked(open_screen("chat", "resume", "1"))
    second.send("y")
    assert second.wait_exit() == 0
    first.wait_for("answered elsewhere")
    assert first.wait_exit() == 0
    assert (moot.work / "elsewhere").exists()


def test_an_expired_question_is_denied(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    config = moot.home / "config.yaml"
    config.write_text(config.read_text() + "permissions: {timeout: 3s}\n")
    screen = open_screen("run", "make expired")
    screen.wait_for("expires in 0:0")
    screen.wait_for("expired, so it was denied")
    assert screen.wait_exit() == 0
    assert not (moot.work / "expired").exists()


def test_ctrl_c_stops_the_run(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = asked(open_screen("run", "make stop"))
    screen.send("\x03")
    assert screen.wait_exit() == 130
    assert not (moot.work / "stop").exists()


def test_twenty_columns_show_everything(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = asked(open_screen("run", "make narrow", rows=24, columns=20))
    joined = "".join(line.strip() for line in screen.lines).replace(" ", "")
    for words in ("touchnarrow", "needsapproval:modeask", "[y]yes,once", "[n]no", "[e]edit", "Escdecidelater"):
        assert words in joined, screen.text
    screen.send("n")
    assert screen.wait_exit() == 0


def test_a_dumb_terminal_gets_lines_with_the_same_guards(moot: MootProcess, open_screen: Callable[..., PtyScreen]) -> None:
    screen = open_screen("run", "make dumb", term="dumb")
    screen.send("y\n")
    screen.wait_for("Allow?")
    settle(screen, 1.0)
    assert not (moot.work / "dumb").exists() and b"\x1b" not in screen.raw
    screen.send("no because later\n")
    assert screen.wait_exit() == 0
    assert not (moot.work / "dumb").exists()


def test_questions_accept_numbers_multiple_choices_and_free_text(
    moot: MootProcess, model: ScriptedProcess, open_screen: Callable[..., PtyScreen]
) -> None:
    screen = open_screen("run", "the questions")
    screen.wait_for("Which language?")
    settle(screen)
    screen.send("2")
    screen.wait_for("What else?")
    for key in ("1", "2", "d"):
        settle(screen)
        screen.send(key)
    screen.wait_for("Why?")
    settle(screen)
    screen.send("w")
    screen.wait_for("Your answer:")
    settle(screen)
    screen.send("because y")
    settle(screen, 0.3)
    screen.send("\r")
    assert screen.wait_exit() == 0
    told = json.dumps(model.requests()[-1]["body"])
    assert "Go" in told and "tests, docs" in told and "because y" in told
