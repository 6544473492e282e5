"""Real MCP servers: those of the protocol's authors, in JavaScript and Python."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest

from agents.programs import MODULES, node
from lanes import missing
from moot.mcp.servers import McpServers
from moot.types.agent import McpServer
from moot.types.canonical import JsonObject

pytestmark = pytest.mark.anyio


def published(name: str, *args: str) -> McpServer:
    """A server of the npm organization `modelcontextprotocol`."""
    program = MODULES / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    if not program.is_file():
        missing("agents", f"the MCP server {name} is not there; run `npm ci --ignore-scripts` in tests/agents")
    return McpServer(name, command=node(), args=(str(program), *args))


def installed(module: str, *args: str) -> McpServer:
    if find_spec(module) is None:
        missing("agents", f"the Python package {module} is not there; it is in moot's extra dev")
    return McpServer(module, command=sys.executable, args=("-m", module, *args))


@asynccontextmanager
async def connections(home: Path) -> AsyncGenerator[McpServers, None]:
    async with anyio.create_task_group() as group:
        yield McpServers(home, group)
        group.cancel_scope.cancel()


async def test_the_reference_server_with_every_feature(tmp_path: Path) -> None:
    lines: list[str] = []

    async def report(line: str) -> None:
        lines.append(line)

    server = published("everything")
    async with connections(tmp_path) as servers:
        tools = {tool.name: tool for _, tool in await servers.offered([server], str(tmp_path))}

        async def call(name: str, **arguments: object) -> str:
            result = await servers.call(server, tools[name], arguments, str(tmp_path), report)  # type: ignore[arg-type]
            assert not result.error, result
            assert name != "get-tiny-image" or [file.media_type for file in result.files] == ["image/png"]
            return result.text

        assert await call("echo", message="Grüße") == "Echo: Grüße"
        assert "5" in await call("get-sum", a=2, b=3)
        assert "image" in await call("get-tiny-image")
        assert "temperature" in await call("get-structured-content", location="New York")
        assert tmp_path.as_uri() in await call("get-roots-list")
        assert "[resource: " in await call("get-resource-links", count=2)
        await call("trigger-long-running-operation", duration=1, steps=2)
        assert lines == ["1 of 2", "2 of 2"]


async def test_files_are_written_and_read_in_the_folders_of_the_server(tmp_path: Path) -> None:
    async def report(_: str) -> None: ...

    folder = tmp_path / "notes"
    folder.mkdir()
    server = published("filesystem", str(folder))
    async with connections(tmp_path / "home") as servers:
        tools = {tool.name: tool for _, tool in await servers.offered([server], str(folder))}

        async def call(name: str, **arguments: str) -> tuple[str, bool]:
            given: JsonObject = {**arguments}
            result = await servers.call(server, tools[name], given, str(folder), report)
            return result.text, result.error

        assert (await call("write_file", path=str(folder / "a.txt"), content="tea"))[1] is False
        assert (folder / "a.txt").read_text() == "tea"
        assert await call("read_text_file", path=str(folder / "a.txt")) == ("tea", False)
        text, is_error = await call("read_text_file", path="/etc/passwd")
        assert is_error and "outside allowed directories" in text


@pytest.mark.parametrize(
    ("module", "tool", "arguments", "expected"),
    [
        ("mcp_server_time", "convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, "21:00"),
        ("mcp_server_git", "git_status", {"repo_path": "REPOSITORY"}, "nothing to commit"),
    ],
)
async def test_servers_in_python(tmp_path: Path, module: str, tool: str, arguments: JsonObject, expected: str) -> None:
    async def report(_: str) -> None: ...

    repository = tmp_path / "repository"
    repository.mkdir()
    await anyio.run_process(["git", "init", "-q", "-b", "main"], cwd=repository)
    server = installed(module)
    given = {name: str(repository) if value == "REPOSITORY" else value for name, value in arguments.items()}
    async with connections(tmp_path / "home") as servers:
        tools = {one.name: one for _, one in await servers.offered([server], str(repository))}
        result = await servers.call(server, tools[tool], given, str(repository), report)
        assert not result.error and expected in result.text
