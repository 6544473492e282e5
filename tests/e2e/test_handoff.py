"""One conversation, several agents: the history is passed on, and nothing of it changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import plugin_site
from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.slow

TELLER = '''
from moot.agents.outside.prompts import with_history
from moot.types.event import Event
from moot.types.run import RunOutcome


class Teller:
    """An agent of another program: it says what it was told."""

    async def run(self, request, context):
        messages = list(await context.history(1 << 30))
        prompt = messages.pop()
        text = "TOLD<<" + with_history(messages, prompt.parts[0]["text"]) + ">>"
        chunks = ({"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": text}, {"type": "text-end", "id": "t"})
        await context.append(Event("chunks", chunks), fold=True)
        return RunOutcome("finished")
'''
PROJECT = """
[project]
name = "teller-agent"
version = "1.0"
[project.entry-points."moot.agents"]
teller = "teller_agent:Teller"
"""


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    long = "The quick brown fox jumps over the lazy dog. " * 900
    script = [
        Reply(when="Write the summary", text="SUMMED UP", times=0),
        Reply(when="at length", text=long, times=0),
        Reply(text="Sure.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    project = tmp_path / "project"
    (project / "src" / "teller_agent").mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "src" / "teller_agent" / "__init__.py").write_text(TELLER)
    site = plugin_site.install(tmp_path / "site", project)
    process = make(tmp_path, model.config() + "\nagents: {other: {agent_type: teller}}\n")
    process.more["PYTHONPATH"] = str(site)
    yield process
    process.close()


def branch(moot: MootProcess) -> list[Any]:
    return json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"]


def texts(message: Any) -> str:
    return "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")


def test_a_new_agent_gets_the_history_and_the_first_one_gets_the_reply(moot: MootProcess) -> None:
    assert moot.run("run", "--no-tools", "my name is Mara").returncode == 0
    before = branch(moot)
    assert moot.run("chat", "continue", "1", "--agent", "other", "who am I?").returncode == 0
    after = branch(moot)
    assert after[:2] == before
    told = texts(after[-1])
    assert "my name is Mara" in told and "Sure." in told and told.rstrip(">").endswith("who am I?")
    assert [message["metadata"].get("agent") for message in after if message["role"] == "assistant"] == ["default", "other"]
    assert moot.run("chat", "continue", "1", "--agent", "default", "--no-tools", "and now?").stdout == b"Sure.\n"
    recording = moot.run("export", "1").stdout.decode()
    assert any('"role\\":\\"assistant' in line and "TOLD<<" in line for line in recording.splitlines() if line.startswith('{"content"'))
    assert moot.run("verify", "1").returncode == 0


def test_a_long_history_is_summarized_if_a_model_is_configured(moot: MootProcess) -> None:
    assert moot.run("config", "set", "models.small", "scripted@mine").returncode == 0
    for at in range(2):
        assert moot.run("run", "--no-tools", *(["-c"] if at else []), "tell me at length").returncode == 0
    assert moot.run("chat", "continue", "1", "--agent", "other", "go on").returncode == 0
    last = branch(moot)[-1]
    assert "SUMMED UP" in texts(last) and "made by" in texts(last)
    assert "go on" in texts(last)[-20:]
    (note,) = [part for part in last["parts"] if part["type"] == "data-note"]
    assert "so scripted@mine summarized the first 4 messages" in note["data"]["text"]
    assert moot.run("verify", "1").returncode == 0


def test_without_a_summary_model_the_newest_messages_are_sent_and_the_rest_is_counted(moot: MootProcess) -> None:
    for at in range(2):
        assert moot.run("run", "--no-tools", *(["-c"] if at else []), "tell me at length").returncode == 0
    assert moot.run("chat", "continue", "1", "--agent", "other", "go on").returncode == 0
    (note,) = [part for part in branch(moot)[-1]["parts"] if part["type"] == "data-note"]
    assert "were omitted: the history is too long, and models.compaction is not set" in note["data"]["text"]
