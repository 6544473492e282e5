"""The commands of `moot mcp`, from adding a server to removing it."""

from __future__ import annotations

import base64
import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess
from e2e.mcp_server import PICTURE
from moot.testing.process import ScriptedProcess

pytestmark = pytest.mark.slow

PROGRAM = str(Path(__file__).with_name("mcp_server.py"))


@dataclass
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess() as server:
        yield server


def mcp(moot: MootProcess, *arguments: str) -> Ended:
    done = moot.run("mcp", *arguments)
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "server"
    made.mkdir()
    return made


def test_a_server_is_added_tested_called_disabled_and_removed(moot: MootProcess, folder: Path) -> None:
    added = mcp(moot, "add", "demo", "--", sys.executable, PROGRAM, "stdio", str(folder))
    assert added.code == 0 and "add" in added.out and "Add two numbers." in added.out, added
    (listed,) = json.loads(mcp(moot, "list", "--json").out)["data"]
    assert (listed["name"], listed["status"]) == ("demo", "not started")
    assert "add" in [tool["name"] for tool in listed["tools"]]
    (connected,) = json.loads(mcp(moot, "list", "--connect", "--json").out)["data"]
    assert connected["status"] == "connected"
    tested = json.loads(mcp(moot, "test", "demo", "--json").out)
    assert "look" in [tool["name"] for tool in tested["tools"]]
    called = mcp(moot, "call", "demo", "add", '{"a": 2, "b": 3}')
    assert (called.code, called.out) == (0, "2 + 3 = 5\n")
    failed = mcp(moot, "call", "demo", "fail")
    assert failed.code == 1 and "Error executing tool fail" in failed.out
    listed = json.loads(mcp(moot, "resources", "demo", "--json").out)["data"]
    assert ("note://person/{name}", True) in [(one["uri"], one["template"]) for one in listed]
    assert "What" not in mcp(moot, "resources", "demo").out and "pic://dot" in mcp(moot, "resources", "demo").out
    assert mcp(moot, "read", "demo", "note://today").out == "# Today\n\nWater the plants.\n"
    assert moot.run("mcp", "read", "demo", "pic://dot").stdout == PICTURE
    (content,) = json.loads(mcp(moot, "read", "demo", "pic://dot", "--json").out)["data"]
    assert (content["mediaType"], base64.b64decode(content["base64"])) == ("image/png", PICTURE)
    unknown = mcp(moot, "read", "demo", "note://nothing")
    assert unknown.code != 0 and "reports an error" in unknown.err and "Traceback" not in unknown.err
    assert mcp(moot, "disable", "demo").code == 0
    assert json.loads(mcp(moot, "list", "--json").out)["data"][0]["status"] == "disabled"
    assert mcp(moot, "enable", "demo").code == 0
    assert mcp(moot, "remove", "demo").code == 0
    assert json.loads(mcp(moot, "list", "--json").out)["data"] == []


def test_changed_tools_are_shown_and_accepted(moot: MootProcess, folder: Path) -> None:
    mcp(moot, "add", "demo", "--", sys.executable, PROGRAM, "stdio", str(folder))
    (folder / "description").write_text("Add two numbers and send them home.")
    tested = mcp(moot, "test", "demo")
    assert tested.code == 0 and "moot mcp accept demo" in tested.err
    refused = mcp(moot, "accept", "demo")
    assert refused.code != 0 and "description now: Add two numbers and send them home." in refused.out
    assert mcp(moot, "call", "demo", "add", '{"a": 1, "b": 1}').code == 2
    accepted = json.loads(mcp(moot, "accept", "demo", "--yes", "--json").out)
    assert accepted["accepted"] == ["add"]
    assert mcp(moot, "call", "demo", "add", '{"a": 1, "b": 1}').out == "1 + 1 = 2\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("add demo", "Specify either a command or a URL."),
        ("add demo --url ftp://example.org", "mcp.demo.url"),
        ("add a__b -- true", "Invalid server name"),
        ("add demo --env NOTHING -- true", "Expected KEY=VALUE"),
        ("show nothing", "MCP server 'nothing' not found."),
        ("call nothing tool not-json", "not valid JSON"),
        ("call nothing tool '[1]'", "not a JSON object"),
        ("login nothing", "MCP server 'nothing' not found."),
        ("login nothing --port 65536", "the maximum is 65535"),
        ("logout nothing", "MCP server 'nothing' not found."),
        ("read nothing a://b", "MCP server 'nothing' not found."),
        ("add gone -- no-such-program", "'no-such-program' is not installed"),
    ],
)
def test_bad_input_is_named(moot: MootProcess, line: str, message: str) -> None:
    ended = mcp(moot, *shlex.split(line))
    assert ended.code != 0 and message in ended.err and "Traceback" not in ended.err


def test_secrets_of_a_server_are_not_printed(moot: MootProcess, folder: Path) -> None:
    secret = "s3cr3t-canary-value"
    added = mcp(moot, "add", "demo", "--env", f"DEMO_KEY={secret}", "--", sys.executable, PROGRAM, "stdio", str(folder))
    shown = [mcp(moot, *words) for words in (("show", "demo"), ("list", "--connect", "--json"), ("test", "demo"))]
    assert all(secret not in ended.out + ended.err for ended in (added, *shown))
