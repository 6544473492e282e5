from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
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


def session(home: Path, *minutes: int) -> str:
    """Write a session file of Claude Code with a call at each of these times (minutes ago), and return the session's id."""
    id, now = "430e533d-c3e9-4176-8a22-59b2d9489a72", time.time()
    shared = {"sessionId": id, "cwd": "/w", "version": "2.1.330", "isSidechain": False, "userType": "external"}
    lines: list[dict[str, object]] = []
    for number, ago in enumerate(minutes):
        moment = datetime.fromtimestamp(now - 60 * ago, UTC).isoformat().replace("+00:00", "Z")
        parent = f"a{number - 1}" if number else None
        prompt = {"role": "user", "content": f"prompt {number}"}
        lines.append({**shared, "type": "user", "uuid": f"u{number}", "parentUuid": parent, "timestamp": moment, "message": prompt})
        usage = {"input_tokens": 100_000, "output_tokens": 0}
        edit = {"type": "tool_use", "id": f"t{number}", "name": "Write", "input": {"file_path": f"/w/{number}.py", "content": "x\ny\n"}}
        answer = {"id": f"m{number}", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": [edit], "usage": usage}
        lines.append(
            {
                **shared,
                "type": "assistant",
                "uuid": f"a{number}",
                "parentUuid": f"u{number}",
                "timestamp": moment,
                "requestId": f"r{number}",
                "message": answer,
            }
        )
    path = home / ".claude" / "projects" / "-w" / f"{id}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return id


def test_blocks_and_the_status_line_show_the_current_usage(moot: MootProcess) -> None:
    session(moot.home.parent, 12 * 60, 2, 0)
    assert moot.run("stats", "--statusline").stdout == b"no usage yet\n", "nothing is created"
    assert moot.run("import", "--all").returncode == 0
    found = json.loads(moot.run("stats", "--by", "window", "--json").stdout)
    block, week = found["windows"]
    assert (block["minutes"], block["runs"], block["cost"], block["resets"]) == (300, 2, 6 * 10**8, True)
    assert (week["minutes"], week["runs"], week["cost"]) == (10_080, 3, 9 * 10**8)
    assert [one["runs"] for one in found["blocks"]] == [2, 1] and block["projected_cost"] > block["cost"]
    shown = moot.run("stats", "--by", "window").stdout.decode()
    assert "claude-code 5 h" in shown and "claude-code 7 d" in shown and shown.count("$0.6000") == 2
    state = {"model": {"display_name": "Opus"}, "cost": {"total_cost_usd": 1.5}, "context_window": {"used_percentage": 34}}
    state["rate_limits"] = {"seven_day": {"used_percentage": 41.2, "resets_at": time.time() + 90_000}}
    line = moot.run("stats", "--statusline", stdin=json.dumps(state).encode()).stdout.decode()
    assert line.startswith("Opus · $1.50 session · ") and " today · $0.60 block (" in line and line.count("\n") == 1
    assert line.endswith((" · 7 d 41%, 1d 0h left · context 34%\n", " · 7 d 41%, 1d 1h left · context 34%\n"))


def test_the_status_line_knows_the_cost_of_a_session_and_ignores_other_input(moot: MootProcess) -> None:
    id = session(moot.home.parent, 0)
    assert moot.run("import", "--all").returncode == 0
    line = moot.run("stats", "--statusline", stdin=json.dumps({"session_id": id}).encode()).stdout.decode()
    assert line.startswith("$0.30 session · ")
    for written in (b"", b"no json", b"[1]", b'{"model": 7, "cost": [], "rate_limits": {"five_hour": {"used_percentage": "x"}}}'):
        other = moot.run("stats", "--statusline", stdin=written)
        assert (other.returncode, other.stderr) == (0, b"") and "$0.30 block (" in other.stdout.decode() and b"session" not in other.stdout


def test_the_status_line_is_one_line_without_control_characters(moot: MootProcess) -> None:
    state = {"model": {"display_name": "a\x1b[2Jb\nc"}, "cost": {"total_cost_usd": 1e300}}
    state["rate_limits"] = {"five_hour": {"used_percentage": 7, "resets_at": 1e300}}
    assert moot.run("stats", "--statusline", stdin=json.dumps(state).encode()).stdout == b"ab c \xc2\xb7 5 h 7%\n"


def test_bad_options_of_statistics_exit_with_2(moot: MootProcess) -> None:
    zone = moot.run("stats", "--tz", "Nowhere/Else")
    assert zone.returncode == 2 and b"Unknown time zone 'Nowhere/Else'" in zone.stderr
    for options in (("-c", "1"), ("--sub-agents",)):
        windows = moot.run("stats", "--by", "window", *options)
        assert windows.returncode == 2 and b"--by window covers all conversations" in windows.stderr
    long = moot.run("stats", "--days", "999999999999")
    assert long.returncode == 2 and b"the maximum is 36500" in long.stderr
    both = moot.run("stats", "--statusline", "--json")
    assert both.returncode == 2 and b"cannot be combined" in both.stderr
