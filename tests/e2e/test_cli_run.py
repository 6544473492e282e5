from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

HOSTILE = "a\x1b[2Jb\x1b]0;evil\x07c\x1b]52;c;ZXZpbA==\x1b\\d\x9b31me\x1bPq\x1b\\f\rg\x08h\u202ei [bold]j[/bold] {k}"
SHOWN = "abcde"
STYLES = re.compile(rb"\x1b\[(?:[0-9;]*m|[KJ]|[1-9]A)")
"""Sequences that moot writes itself: colours, and cursor movement within the live region."""
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    """Answer according to the prompt."""
    script = [
        Reply(when="hostile", text=HOSTILE, chunk_size=1, times=0),
        Reply(when="very slowly", text="word " * 200, chunk_size=5, delay=0.2, times=0),
        Reply(when="slowly", text="one two three four five six seven eight", chunk_size=4, delay=0.12, times=0),
        Reply(when="html", raw=b"<!DOCTYPE html><html><body>captive portal</body></html>", content_type="text/html", times=0),
        Reply(when="nothing", raw=b"", times=0),
        Reply(when="half an event", text="some words that are cut", cut_at_byte=150, times=0),
        Reply(when="a billion bytes", raw=b"data: " + b"x" * (17 << 20), times=0),
        Reply(when="refused", status=401, error=f"Incorrect API key provided: {CANARY}", times=0),
        Reply(when="for ever", tool_calls=[ToolCall("list_files", {"path": "."})], times=0),
        Reply(when="json please", text='{"n": 1}', times=0),
        Reply(when="", text="Hello **you** and `code`.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config().replace("scripted-key", CANARY))
    yield process
    process.close()


def nothing_leaked(moot: MootProcess, *outputs: bytes) -> bool:
    files = [path for path in moot.home.rglob("*") if path.is_file() and path.name != "config.yaml"]
    return not any(CANARY.encode() in data for data in (*outputs, *(path.read_bytes() for path in files)))


def test_the_detail_of_attached_images_is_an_option(moot: MootProcess, model: ScriptedProcess) -> None:
    (moot.work / "one.png").write_bytes(PNG)
    assert moot.run("run", "-f", "one.png", "--detail", "low", "what is this").returncode == 0
    assert b'"detail":"low"' in moot.run("chat", "show", "1", "--json").stdout
    refused = moot.run("run", "-f", "one.png", "--detail", "fine", "what is this")
    assert refused.returncode == 2 and b"auto, low, high" in refused.stderr


# ── pipes ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_in_a_pipe_the_answer_streams_as_plain_text(moot: MootProcess) -> None:
    ended = moot.run("run", "--no-tools", "hi")
    assert (ended.returncode, ended.stdout) == (0, b"Hello **you** and `code`.\n")
    assert b"\x1b" not in ended.stderr
    process = moot.start("run", "--no-tools", "slowly")
    assert process.stdout is not None
    assert process.stdout.read(4) == b"one "
    assert process.poll() is None
    out, err = process.communicate(timeout=60)
    assert (process.returncode, b"one " + out) == (0, b"one two three four five six seven eight\n")
    assert nothing_leaked(moot, ended.stdout, ended.stderr, out, err)


def test_a_prompt_has_the_files_that_it_names_and_standard_input_is_literal(moot: MootProcess) -> None:
    (moot.work / "notes.txt").write_text("plums")
    (moot.work.parent / "outside.txt").write_text("secret")
    prompt = "Read @notes.txt and @gone.txt but not `@notes.txt` or me@example.org"
    ended = moot.run("run", prompt, stdin=b"piped @notes.txt @other.txt")
    assert (ended.returncode, ended.stderr) == (0, b"moot: File 'gone.txt' not found; sent as text.\n")
    file, text = json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"][0]["parts"]
    assert (file["filename"], text["text"]) == ("notes.txt", f"{prompt}\n\npiped @notes.txt @other.txt")
    for refused, code in (('Read @"../outside.txt"', 1), ("Read @notes.txt#7-9", 2), ("See @http://10.0.0.1/", 1)):
        ended = moot.run("run", refused)
        assert (ended.returncode, ended.stdout) == (code, b""), ended.stderr
    assert len(json.loads(moot.run("chat", "list", "--json").stdout)["data"]) == 1
    ended = moot.run("run", "--allow", "..", "Read @../outside.txt")
    assert (ended.returncode, ended.stderr) == (0, b"")
    report = json.loads(moot.run("chat", "context", "1", "--prompt", "@notes.txt @gone.txt", "--json", "--request").stdout)
    assert "plums" in str(report["request"]) and report["notes"] == ["File 'gone.txt' not found; sent as text."]


@pytest.mark.parametrize(
    ("prompt", "words"),
    [("html", b""), ("nothing", b""), ("half an event", b""), ("a billion bytes", b""), ("refused", b"\n  Check providers.mine.api_key")],
)
@pytest.mark.slow
def test_a_misbehaving_provider_exits_with_5_and_a_message(moot: MootProcess, prompt: str, words: bytes) -> None:
    ended = moot.run("run", "--no-tools", "--json", prompt)
    assert ended.returncode == 5, ended.stderr
    assert ended.stderr.startswith(b"moot: ") or b"\nmoot: " in ended.stderr
    assert ended.stderr.count(words) == 1 or not words
    assert b"Traceback" not in ended.stderr
    document = json.loads(ended.stdout)
    fix, message = document["error"]["fix"], document["error"]["message"]
    assert not words or (words.decode().strip() in fix and fix not in message)
    assert (document["ok"], document["status"]) == (False, "failed")
    assert document["error"]["message"]
    assert nothing_leaked(moot, ended.stdout, ended.stderr)


def test_the_answer_must_fit_the_schema(moot: MootProcess) -> None:
    (moot.work / "good.json").write_text('{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}')
    (moot.work / "bad.json").write_text('{"type": "object", "required": ["m"]}')
    assert moot.run("run", "--no-tools", "--schema", "good.json", "json please").returncode == 0
    ended = moot.run("run", "--no-tools", "--schema", "bad.json", "json please")
    assert (ended.returncode, b"'m' is a required property" in ended.stderr) == (4, True)


def test_too_much_input_on_stdin_is_rejected_at_once(moot: MootProcess) -> None:
    with (moot.work / "zeros").open("wb+") as file:
        file.truncate(100_000_000)
        ended = moot.run("run", "look", stdin=file)
    assert (ended.returncode, b"stdin is larger than 10 MiB" in ended.stderr, ended.stdout) == (2, True, b"")


def test_moot_works_without_locale_home_and_terminal(moot: MootProcess) -> None:
    moot.more = {"LC_ALL": "C", "LANG": "C", "TERM": "dumb", "HOME": ""}
    ended = moot.run("run", "--no-tools", "caf\u00e9 \U0001f600", "--json")
    assert ended.returncode == 0
    shown = json.loads(moot.run("chat", "show", "1", "--json").stdout)
    assert shown["data"][0]["parts"][0]["text"] == "caf\u00e9 \U0001f600"


def test_a_closed_pipe_prints_no_traceback(moot: MootProcess) -> None:
    process = moot.start("run", "--no-tools", "slowly")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == (b"", 1)


@pytest.mark.slow
def test_closed_streams_print_no_traceback(moot: MootProcess) -> None:
    quoted = " ".join([sys.executable, "-m", "moot", "run", "--no-tools", "hi"])
    for closed, code in (("<&-", 0), ("2>&-", 0), (">&-", 1)):
        ended = subprocess.run(["/bin/sh", "-c", f"{quoted} {closed}"], cwd=moot.work, env=moot.environ, capture_output=True, timeout=60)
        assert (ended.returncode, b"Traceback" in ended.stderr) == (code, False), closed
        assert ended.stdout == (b"" if code else b"Hello **you** and `code`.\n")


def test_a_call_in_a_pipe_is_denied_without_a_question(moot: MootProcess, obedient: ScriptedProcess) -> None:
    (moot.home / "config.yaml").write_text(obedient.config())
    ended = moot.run("run", 'call write_file {"path": "made.txt", "content": "x"}')
    assert ended.returncode == 3, ended.stderr
    assert b"no one is available" in ended.stderr
    assert not (moot.work / "made.txt").exists()


def test_allowed_folders_are_added_to_those_of_the_conversation(moot: MootProcess) -> None:
    for name in ("one", "two"):
        (moot.work / name).mkdir()
    ended = moot.run("run", "--no-tools", "--allow", "one", "hi")
    assert ended.returncode == 0, ended.stderr
    assert moot.run("run", "--no-tools", "-c", "--allow", "two", "hi").returncode == 0
    shown = json.loads(moot.run("chat", "settings", "1", "--json").stdout)
    assert shown["settings"]["allowed_uris"] == [str(moot.work), str(moot.work / "one"), str(moot.work / "two")]
    missing = moot.run("run", "--no-tools", "--allow", "three", "hi")
    assert (missing.returncode, b"is not a folder" in missing.stderr) == (2, True)


def test_limits_end_a_run_with_their_own_exit_codes(moot: MootProcess) -> None:
    ended = moot.run("run", "--no-tools", "--timeout", "1.5", "very slowly")
    assert (ended.returncode, ended.stdout.startswith(b"word"), b"1.5 s" in ended.stderr) == (124, True, True)
    ended = moot.run("run", "--max-steps", "2", "for ever")
    assert (ended.returncode, ended.stderr.count("→ list_files".encode())) == (6, 2), ended.stderr


def test_ctrl_c_stops_the_run_and_keeps_the_partial_answer(moot: MootProcess) -> None:
    process = moot.start("run", "--no-tools", "slowly")
    assert process.stdout is not None
    process.stdout.read(4)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    shown: Any = json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"][-1]
    assert shown["status"] == "cancelled"
    assert any(part.get("text", "").startswith("one ") for part in shown["parts"])


def test_other_processes_see_a_live_run_and_can_stop_it(moot: MootProcess) -> None:
    process = moot.start("run", "--no-tools", "slowly, very slowly")
    assert process.stdout is not None
    process.stdout.read(4)
    (listed,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    assert listed["status"] == "running"
    busy = moot.run("chat", "continue", "1", "--no-tools", "me too")
    assert (busy.returncode, b"or stop it with `moot chat stop`" in busy.stderr) == (7, True)
    assert json.loads(moot.run("chat", "stop", "1", "--json").stdout)["status"] == "cancelled"
    process.communicate(timeout=60)
    assert process.returncode == 130


@pytest.mark.slow
def test_a_killed_run_is_listed_as_interrupted_and_resumed(moot: MootProcess) -> None:
    process = moot.start("run", "--no-tools", "slowly")
    assert process.stdout is not None
    process.stdout.read(8)
    process.kill()
    process.communicate()
    (listed,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    assert listed["status"] == "interrupted"
    ended = moot.run("chat", "resume", "1")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(b"one two ")
    assert ended.stdout.endswith(b"one two three four five six seven eight\n")


# ── a terminal ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_moots_own_styles_reach_the_screen(moot: MootProcess) -> None:
    terminal = moot.terminal("run", "--no-tools", "hostile")
    terminal.expect(pexpect.EOF)
    assert terminal.before is not None
    left = STYLES.sub(b"", terminal.before)
    text = left.decode()
    assert SHOWN in text
    assert "[bold]j[/bold] {k}" in text
    assert not set(text) & {"\x1b", "\x07", "\x08", "\x9b", "\x90", "\u202e"}
    assert "evil" not in text
    assert "ZXZpbA" not in text
    moot.run("run", "--no-tools", f"{HOSTILE} in a title".replace("\r", ""))
    for arguments in (("chat", "show", "1"), ("chat", "list", "--plain"), ("search", "title"), ("run", f"--{HOSTILE}")):
        again = moot.terminal(*arguments)
        again.expect(pexpect.EOF)
        assert again.before is not None
        assert not set(STYLES.sub(b"", again.before).decode()) & {"\x1b", "\x07", "\x08", "\x9b", "\x90", "\u202e"}, arguments


def test_a_dumb_terminal_gets_no_styles(moot: MootProcess) -> None:
    terminal = moot.terminal("run", "--no-tools", "hi", term="dumb")
    terminal.expect(pexpect.EOF)
    assert terminal.before is not None
    assert b"\x1b" not in terminal.before
    assert b"Hello **you** and `code`." in terminal.before


@pytest.mark.parametrize(("typed", "made", "said"), [(("", "y"), True, b"Done."), (("no because it is mine",), False, b"denied")])
@pytest.mark.slow
def test_a_call_is_approved_at_the_terminal(
    moot: MootProcess, obedient: ScriptedProcess, typed: tuple[str, ...], made: bool, said: bytes
) -> None:
    (moot.home / "config.yaml").write_text(obedient.config())
    terminal = moot.terminal("run", 'call write_file {"path": "made.txt", "content": "x\\u001b[2Jy"}', term="dumb")
    terminal.expect(rb"write_file wants to run")
    terminal.expect(rb"Allow\?")
    assert terminal.before is not None
    assert rb"\x1b[2J" in terminal.before  # escaped, not executed
    assert b"\x1b[2J" not in terminal.before
    assert not (moot.work / "made.txt").exists()
    terminal.sendline(typed[0])
    for line in typed[1:]:
        terminal.expect(rb"Allow\?")
        terminal.sendline(line)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert (moot.work / "made.txt").exists() == made
    assert said in terminal.before
    assert terminal.exitstatus == 0


def test_a_question_outlives_its_process(moot: MootProcess, obedient: ScriptedProcess) -> None:
    (moot.home / "config.yaml").write_text(obedient.config())
    terminal = moot.terminal("run", 'call write_file {"path": "made.txt", "content": "x"}', term="dumb")
    terminal.expect(rb"Allow\?")
    terminal.kill(signal.SIGKILL)
    terminal.expect(pexpect.EOF)
    assert json.loads(moot.run("chat", "list", "--json").stdout)["data"][0]["status"] == "waiting"
    assert moot.run("chat", "resume", "1").returncode == 3
    assert not (moot.work / "made.txt").exists()
    again = moot.terminal("chat", "resume", "1", term="dumb")
    again.expect(rb"Allow\?")
    again.sendline("y")
    again.expect(pexpect.EOF)
    again.close()
    assert (again.exitstatus, (moot.work / "made.txt").read_text()) == (0, "x")


# ── the start ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (("version",), {"click", "pydantic", "aiohttp", "rich", "anyio", "ruamel", "asyncio"}),
        (("--help",), {"pydantic", "aiohttp", "ruamel", "moot.engine", "moot.config"}),
        (("chat", "list"), {"aiohttp", "rich", "genai_prices"}),
    ],
)
def test_a_command_imports_only_what_it_uses(moot: MootProcess, arguments: tuple[str, ...], unwanted: set[str]) -> None:
    moot.more = {"PYTHONPROFILEIMPORTTIME": "1"}
    ended = moot.run(*arguments)
    assert ended.returncode == 0
    names = {line.rpartition("|")[2].strip() for line in ended.stderr.decode().splitlines() if line.startswith("import time:")}
    assert "moot.plugins" in names
    assert unwanted & (names | {name.partition(".")[0] for name in names}) == set()
