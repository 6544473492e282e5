from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

SCRIPT = [
    Reply(when="list the files", tool_calls=[ToolCall("list_files", {"path": "."})]),
    Reply(when="refuse it", status=401, error="no", times=0),
    Reply(when="priced", text="Hello there.", usage={"input": 1200, "output": 30}, times=0),
    Reply(text="Hello.", times=0),
]

CONFIG = """
models: {{main: priced@mine}}
providers:
  mine:
    dialect: openai-chat
    base_url: "{url}"
    api_key: none
    models: {{priced: {{context: 9000, price: {{input: 2.0, output: 10.0}}}}, free: {{context: 9000}}}}
agents: {{reviewer: {{description: Reads., instructions: Be brief.}}}}
"""


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    with ScriptedProcess(SCRIPT, models=("priced", "free")) as model:
        process = make(tmp_path, CONFIG.format(url=model.openai_url))
        yield process
        process.close()


def test_usage_is_grouped_by_day_model_agent_and_project(moot: MootProcess) -> None:
    assert moot.run("run", "a priced one").returncode == 0
    assert moot.run("run", "another priced one", "-a", "reviewer").returncode == 0
    assert moot.run("run", "nobody knows the price", "-m", "free@mine").returncode == 0
    told = json.loads(moot.run("stats", "--json").stdout)
    cost = 2 * (1200 * 2_000 + 30 * 10_000)  # nano-dollars, from dollars for a million tokens
    assert (told["total"]["runs"], told["total"]["input"], told["total"]["output"]) == (3, 2412, 67)
    assert (told["total"]["cost"], told["total"]["unpriced_runs"], told["conversations"], told["messages"]) == (cost, 1, 3, 6)
    for name, runs in {"models": [2, 1], "agents": [2, 1], "projects": [3], "days": [3]}.items():
        assert [group["runs"] for group in told[name]] == runs, name
        assert sum(group["cost"] for group in told[name]) == cost, name
    shown = moot.run("stats").stdout.decode()
    assert "$0.0054 + 1 unpriced" in shown and "priced@mine" in shown and "reviewer" in shown and "2,412" in shown
    assert [line.split()[0] for line in moot.run("stats", "--by", "agent").stdout.decode().splitlines()] == [
        "AGENT",
        "default",
        "reviewer",
        "total",
    ]
    assert json.loads(moot.run("stats", "--days", "1", "--json").stdout)["total"]["runs"] == 3
    assert json.loads(moot.run("stats", "-c", "1", "--json").stdout)["total"]["unpriced_runs"] == 1


def test_tools_errors_and_times_are_counted_too(moot: MootProcess) -> None:
    assert moot.run("run", "please list the files", "--yes").returncode == 0
    assert moot.run("run", "refuse it").returncode != 0
    told = json.loads(moot.run("stats", "--json").stdout)
    (tool,) = told["tools"]
    assert (tool["name"], tool["calls"], tool["failed"], tool["timed"]) == ("list_files", 1, 0, 1)
    assert told["errors"] == [{"name": "auth", "runs": 1}] and told["uncounted"] == 0
    assert told["total"]["first"] is not None and told["total"]["steps"] == 2
    shown = moot.run("stats", "--by", "tool").stdout.decode()
    assert shown.splitlines()[0].split() == ["TOOL", "CALLS", "FAILED", "DENIED", "TIME"] and "list_files" in shown
    assert "auth" in moot.run("stats", "--by", "error").stdout.decode()
    assert json.loads(moot.run("stats", "-c", "2", "--json").stdout)["contexts"][0]["tokens"] == 12


def test_empty_statistics_are_reported_and_invalid_groupings_exit_with_2(moot: MootProcess) -> None:
    empty = moot.run("stats")
    assert (empty.returncode, empty.stdout) == (0, b"") and b"no answers" in empty.stderr
    assert json.loads(moot.run("stats", "--json").stdout)["total"]["runs"] == 0
    assert moot.run("stats", "--by", "colour").returncode == 2
    assert moot.run("stats", "--days", "0").returncode == 2
