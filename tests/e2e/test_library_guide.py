"""The library guide: every example runs and passes a strict type checker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from style.test_guides import blocks

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "library.md"
EXAMPLES = blocks(GUIDE, "python")


def script(recorded: Recorded) -> Reply:
    """Replies of a model that reads a file, runs the tests, and names a city."""
    said, prompt = "'role': 'tool'" in str(recorded.json["messages"]), recorded.user_text
    if "response_format" in recorded.json:
        return Reply(text='{"name": "Oslo", "people": 700000}')
    if "tests" in prompt and not said:
        return Reply(tool_calls=[ToolCall("shell", {"command": "make test"})])
    if "notes.txt" in prompt and not said:
        return Reply(tool_calls=[ToolCall("read_file", {"path": "notes.txt"})])
    return Reply(text="The cat is called Miso.")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A home with a scripted model in another process, so that an example can run its own event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    scripted = ScriptedServer(script)
    asyncio.run_coroutine_threadsafe(scripted.__aenter__(), loop).result()
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (home / "config.yaml").write_text(f"models: {{main: scripted@mine}}\nproviders: {{mine: {{base_url: {scripted.openai_url}}}}}\n")
    (work / "notes.txt").write_text("the cat is Miso")
    monkeypatch.setenv("MOOT_HOME", str(home))
    monkeypatch.chdir(work)
    yield scripted
    asyncio.run_coroutine_threadsafe(scripted.__aexit__(None, None, None), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_the_guide_has_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_runs(server: ScriptedServer, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert server.requests and ("Miso" in printed or "Oslo" in printed)


WRONG = """
import moot


async def main() -> None:
    async with moot.open() as m:
        await m.run("hello", modle="x")
        await m.run(5)
        text: int = (await m.run("hello")).text
        m.nothing()
        moot.Nothing()
"""


@pytest.mark.slow
def test_a_strict_type_checker_accepts_the_examples_and_reports_errors(tmp_path: Path) -> None:
    for number, example in enumerate(EXAMPLES):
        (tmp_path / f"example_{number}.py").write_text(example)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "pyrightconfig.json").write_text('{"strict": ["."], "pythonVersion": "3.11"}')
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    errors = [line for line in said.splitlines() if " - error" in line]
    assert {line.strip().partition(".py:")[0].rpartition("/")[2] for line in errors} == {"wrong"}, said
    assert len({line.partition(".py:")[2].partition(":")[0] for line in errors}) == 5, said
