from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.slow

KEY = "sk-proj-0123456789abcdefghijklmnop"
SILENT = "http://127.0.0.1:9"
NOBODY = f"""\
# mine
providers:
  ollama: {{base_url: "{SILENT}"}}   # no server
  lm-studio: {{base_url: "{SILENT}"}}
  llama-cpp: {{base_url: "{SILENT}"}}
  local: {{enabled: false}}
"""
"""No local server answers, whatever runs on the test machine."""

Start = Callable[..., PtyScreen]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedProcess]:
    script = [Reply(when="pears", text="Two pears.", times=0), Reply(when="ready", text="ready", times=0), Reply(text="Hello.", times=0)]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture(scope="module")
def refusing() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(status=401, error="this key was revoked", times=0)]) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MootProcess]:
    process = make(tmp_path, NOBODY)
    yield process
    process.close()


@pytest.fixture
def start(moot: MootProcess) -> Iterator[Start]:
    screens: list[PtyScreen] = []

    def begin(*arguments: str, more: str = "", term: str = "xterm-256color", columns: int = 80, **variables: str) -> PtyScreen:
        if more:
            file(moot).write_text(NOBODY + more)
        moot.more.update(variables)
        screens.append(PtyScreen(moot, *arguments, rows=40, columns=columns, term=term))
        return screens[-1]

    yield begin
    for screen in screens:
        screen.close()


def file(moot: MootProcess) -> Path:
    return moot.home / "config.yaml"


def openai(server: ScriptedProcess, key: str = "") -> str:
    return f'  openai: {{base_url: "{server.openai_url}", dialect: openai-chat{f", api_key: {key!r}" if key else ""}}}\n'


def asked(screen: PtyScreen) -> None:
    screen.wait_for("No model is configured yet")
    screen.wait_for("\n>")


def test_a_key_in_the_environment_is_found_tested_and_not_copied(moot: MootProcess, start: Start, server: ScriptedProcess) -> None:
    screen = start(more=openai(server, "${OPENAI_API_KEY}"), OPENAI_API_KEY=KEY)
    asked(screen)
    assert re.search(r"^ +1 +openai .*OPENAI_API_KEY", screen.text, re.MULTILINE | re.DOTALL)
    assert "Press Enter for 1 (openai)" in " ".join(screen.text.split())
    before = len(server.requests())
    screen.send("\r")
    screen.wait_for("is your main model")
    screen.wait_for("›")
    assert len(server.requests()) == before + 1
    written = file(moot).read_text()
    assert "# mine" in written
    assert "# no server" in written
    assert re.search(r"main: \S+@openai", written)
    assert KEY not in written
    assert "no model ·" not in screen.text


def test_a_server_of_this_machine_answers_the_prompt_that_was_waiting(moot: MootProcess, start: Start, server: ScriptedProcess) -> None:
    file(moot).write_text(NOBODY.replace(f'ollama: {{base_url: "{SILENT}"}}', f'ollama: {{base_url: "{server.url}"}}'))
    screen = start("run", "--no-tools", "how many pears?")
    asked(screen)
    assert re.search(r"^ +1 +ollama", screen.text, re.MULTILINE)
    screen.send("1\r")
    screen.wait_for("Two pears.")
    assert screen.wait_exit() == 0
    assert "main: scripted@ollama" in file(moot).read_text()
    again = start("run", "--no-tools", "how many pears?")
    assert again.wait_exit() == 0
    assert "No model is configured yet" not in again.text


@pytest.mark.parametrize("keys", ["\x1b", "s\r"])
def test_without_any_model_the_user_can_explore_or_decide_later(moot: MootProcess, start: Start, keys: str) -> None:
    screen = start()
    asked(screen)
    assert re.search(r"^ +1 +demo .*not a real model", screen.text, re.MULTILINE | re.DOTALL)
    screen.send(keys)
    screen.wait_for("moot models choose")
    screen.wait_for("›")
    assert file(moot).read_text() == NOBODY
    again = start()
    again.wait_for("›")
    assert "No model is configured yet" not in again.text


def test_ctrl_c_exits_without_writing_anything(moot: MootProcess, start: Start) -> None:
    screen = start()
    asked(screen)
    screen.send("\x03")
    assert screen.wait_exit() == 130
    assert not list(moot.home.rglob("model-later"))
    assert file(moot).read_text() == NOBODY
    assert "Traceback" not in screen.text
    start().wait_for("No model is configured yet")


def test_a_model_that_refuses_is_not_written_and_the_choice_is_there_again(
    moot: MootProcess, start: Start, refusing: ScriptedProcess
) -> None:
    screen = start(more=openai(refusing, KEY))
    asked(screen)
    screen.send("1\r")
    screen.wait_for("Check providers.openai.api_key")
    assert "status 401: this key was revoked" in " ".join(screen.text.split())
    screen.wait_for("Type another number or key")
    assert "main" not in file(moot).read_text()
    screen.send("17\r")
    screen.wait_for("17 is not on the list.")
    screen.send("2\r")
    screen.wait_for("demo@demo answered")
    screen.wait_for("›")
    assert "main: demo@demo" in file(moot).read_text()


def test_a_pasted_key_is_hidden_tested_and_stored_privately(moot: MootProcess, start: Start, server: ScriptedProcess) -> None:
    screen = start(more=openai(server))
    asked(screen)
    screen.send(KEY)
    screen.wait_for("> " + "*" * 24)
    screen.send("\r")
    screen.wait_for("only you can read")
    screen.wait_for("›")
    assert KEY.encode() not in screen.raw
    assert server.requests()[-1]["headers"].get("Authorization", server.requests()[-1]["headers"].get("authorization")) == f"Bearer {KEY}"
    assert KEY in file(moot).read_text()
    assert stat.S_IMODE(file(moot).stat().st_mode) == 0o600
    assert not any(KEY.encode() in path.read_bytes() for path in moot.home.rglob("*") if path.is_file() and path != file(moot))


def test_an_ambiguous_key_asks_for_its_provider(moot: MootProcess, start: Start, server: ScriptedProcess) -> None:
    screen = start(more=openai(server))
    asked(screen)
    screen.send("neither\r")
    screen.wait_for("neither a number on the list nor an API key")
    screen.send("abcdefghijklmnop-0123456789\r")
    screen.wait_for("Number or name>")
    screen.send("openai\r")
    screen.wait_for("is your main model")
    assert "abcdefghijklmnop-0123456789" in file(moot).read_text()


def test_the_yes_option_uses_the_first_model_without_questions(moot: MootProcess, start: Start, server: ScriptedProcess) -> None:
    file(moot).write_text(NOBODY + openai(server, KEY))
    ended = moot.run("run", "--yes", "--no-tools", "how many pears?")
    assert (ended.returncode, ended.stdout) == (0, b"Two pears.\n")
    assert b"is your main model" in ended.stderr
    assert re.search(r"main: \S+@openai", file(moot).read_text())
    file(moot).write_text(NOBODY + openai(server, KEY))
    screen = start("--yes")
    screen.wait_for("›")
    assert "No model is configured yet" not in screen.text


def test_yes_ends_with_the_reason_when_the_first_refuses(moot: MootProcess, refusing: ScriptedProcess) -> None:
    file(moot).write_text(NOBODY + openai(refusing, KEY))
    ended = moot.run("run", "--yes", "hi")
    assert (ended.returncode, ended.stdout) == (5, b"")
    assert b"this key was revoked" in ended.stderr
    assert "main" not in file(moot).read_text()


def test_without_a_terminal_no_question_is_asked(moot: MootProcess, server: ScriptedProcess) -> None:
    file(moot).write_text(NOBODY + openai(server, KEY))
    ended = moot.run("run", "--no-tools", "how many pears?", stdin=b"")
    assert (ended.returncode, ended.stdout) == (0, b"Two pears.\n")
    assert b"Available models" not in ended.stderr
    assert "main" not in file(moot).read_text()
    assert moot.run("models", "choose").returncode == 2
    assert moot.run(stdin=b"").returncode == 2


def test_a_model_named_by_the_user_needs_no_question(moot: MootProcess, start: Start, server: ScriptedProcess) -> None:
    screen = start("run", "--no-tools", "-m", "demo", "how many pears?", more=openai(server, KEY))
    assert screen.wait_exit() == 0
    assert "Available models" not in screen.text
    assert "main" not in file(moot).read_text()


def test_the_choice_can_be_made_again(moot: MootProcess, start: Start) -> None:
    file(moot).write_text(NOBODY + "models: {main: nothing@mine}\n")
    screen = start("models", "choose", term="dumb")
    screen.wait_for("\n>")
    screen.send("12\x7f\r")
    screen.wait_for("demo@demo answered")
    assert screen.wait_exit() == 0
    assert "main: demo@demo" in file(moot).read_text()
    assert b"\x1b" not in screen.raw


def test_an_accepted_download_asks_no_further_questions(moot: MootProcess, start: Start, server: ScriptedProcess) -> None:
    screen = start("run", "--no-tools", "--yes-download", "how many pears?", more=openai(server, KEY))
    screen.wait_for("Two pears.")
    assert screen.wait_exit() == 0
    assert "main" not in file(moot).read_text()
