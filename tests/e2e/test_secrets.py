"""Keys in every place that can have one, echoed by a hostile endpoint: they are in their places and nowhere else."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from e2e.cli_process import COMMAND, MootProcess, make
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
SHAPES = [
    f"sk-ant-api03-{LETTERS}",
    f"sk-proj-{LETTERS}",
    f"sk-or-v1-{LETTERS}",
    f"gsk_{LETTERS}",
    f"xai-{LETTERS}{LETTERS}",
    f"AIza{LETTERS}",
    f"ghp_{LETTERS}",
    f"github_pat_{LETTERS}",
    f"glpat-{LETTERS}",
    f"hf_{LETTERS}",
    f"npm_{LETTERS}",
    f"pypi-{LETTERS}",
    f"tvly-{LETTERS}",
    "AKIAIOSFODNN7EXAMPLE",
    f"xoxb-123456789012-{LETTERS}",
    f"SG.{LETTERS}.{LETTERS}",
    "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
    f"eyJhbGciOiJIUzI1NiJ9.{LETTERS}.{LETTERS}",
    "correct-horse-battery-staple",
    "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
]
IN_FILE, IN_VARIABLE, *IN_HEADERS = SHAPES


def config(url: str, dialect: str = "openai-chat") -> str:
    headers = ", ".join(f"X-Api-Key-{number}: {json.dumps(value)}" for number, value in enumerate(IN_HEADERS))
    return (
        "models: {main: scripted@mine}\npermissions: {mode: auto}\nproviders:\n"
        f"  mine: {{dialect: {dialect}, base_url: {json.dumps(url)}, api_key: '${{MINE_KEY}}', headers: {{{headers}}},"
        " models: {scripted: {context: 100000}}}\n"
        f"  other: {{base_url: 'http://127.0.0.1:9/v1', api_key: {json.dumps(IN_FILE)}, models: {{big: {{}}}}}}\n"
    )


def echo(recorded: Recorded) -> str:
    """Everything in the received headers, as one text."""
    return "; ".join(f"{name}: {value}" for name, value in recorded.headers.items())


def leaks(moot: MootProcess, *outputs: bytes) -> Iterator[str]:
    """Secrets in an output or in any file of the home except its configuration."""
    files = [path for path in moot.home.rglob("*") if path.is_file() and path.name != "config.yaml"]
    assert any(path.suffix == ".db" for path in files)
    places = {**{str(path): path.read_bytes() for path in files}, **{f"output {number}": data for number, data in enumerate(outputs)}}
    for name, data in places.items():
        for secret in SHAPES:
            spelled = (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode().rstrip("="))
            yield from (f"{secret} in {name}" for spelling in spelled if spelling.encode() in data)


async def run(moot: MootProcess, *arguments: str) -> tuple[int, bytes, bytes]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=moot.work,
        env=moot.environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out, err


@pytest.fixture
def moot(tmp_path: Path) -> MootProcess:
    made = make(tmp_path)
    made.more = {"MINE_KEY": IN_VARIABLE, "OPENAI_API_KEY": SHAPES[1], "MOOT_DEBUG": "1"}
    return made


REFUSALS: dict[str, Any] = {
    "status 401": lambda recorded: Reply(status=401, error=f"Incorrect key: {echo(recorded)}"),
    "a page": lambda recorded: Reply(raw=f"<html>{echo(recorded)}</html>".encode(), content_type="text/html"),
    "status 500 in html": lambda recorded: Reply(status=500, raw=f"<html>{echo(recorded)}</html>".encode(), content_type="text/html"),
    "in the stream": lambda recorded: Reply(raw=b"data: " + json.dumps({"error": {"message": echo(recorded)}}).encode() + b"\n\n"),
    "in the answer": lambda recorded: Reply(text=echo(recorded), chunk_size=10_000),
}


@pytest.mark.parametrize("how", REFUSALS)
async def test_keys_that_an_endpoint_echoes_are_nowhere(moot: MootProcess, how: str) -> None:
    heard: list[Recorded] = []

    def script(recorded: Recorded) -> Reply:
        heard.append(recorded)
        return REFUSALS[how](recorded)

    async with ScriptedServer(script) as server:
        (moot.home / "config.yaml").write_text(config(server.openai_url))
        code, out, err = await run(moot, "run", "--no-tools", "--json", "hi")
    assert code == (0 if how == "in the answer" else 5), err
    assert heard[0].headers["authorization"] == f"Bearer {IN_VARIABLE}"
    assert heard[0].headers["x-api-key-3"] == IN_HEADERS[3]
    assert list(leaks(moot, out, err)) == []
    assert b"*" * 20 in b"".join((out, err, *(path.read_bytes() for path in moot.home.rglob("*") if path.is_file())))


async def test_no_command_or_child_process_exposes_a_key(moot: MootProcess) -> None:
    def script(recorded: Recorded) -> Reply:
        if "'role': 'tool'" in str(recorded.json["messages"]):
            return Reply(text="Seen.")
        look = "env; tr '\\0' '\\n' </proc/self/environ; cat /proc/self/cmdline /proc/$PPID/cmdline; ps -ef 2>/dev/null || true"
        return Reply(tool_calls=[ToolCall("shell", {"command": look})])

    async with ScriptedServer(script) as server:
        (moot.home / "config.yaml").write_text(config(server.openai_url))
        outputs: list[bytes] = []
        for arguments in (
            ("run", "what do you see?"),
            ("config", "show", "--origin"),
            ("providers", "test", "mine", "--json"),
            ("doctor",),
            ("run", "-m", f"x@{IN_VARIABLE}", "hi"),
        ):
            _, out, err = await run(moot, *arguments)
            outputs += [out, err]
        bodies = [recorded.body for recorded in server.requests]
        assert any(b"PATH=" in body for body in bodies)
    assert list(leaks(moot, *outputs, *bodies)) == []
