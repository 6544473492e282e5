"""Routes for MCP servers: show their state, enable them, and accept their tools."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import Field

from moot.errors import NotFound
from moot.mcp.servers import McpServers, check_configured
from moot.server.auth import Operator, Router
from moot.server.models import In, ListOut, Out
from moot.server.problems import Problem
from moot.server.routes.settings.config import write
from moot.server.state import CurrentServer, Server
from moot.types.agent import McpServer
from moot.types.mcp import McpState, McpStatus, McpTool


class McpToolOut(Out, of=McpTool, fields="name title description read_only digest"):
    """A tool of an MCP server, as the server defines it."""

    digest: str
    """Hash of the tool's definition, including the schema of its arguments."""
    is_changed: bool
    """True if the tool is new or its definition has changed. Agents can't use it until it is accepted."""


class McpServerOut(Out):
    """An MCP server and its state."""

    name: str
    enabled: bool
    status: McpState
    error: str
    """Why the server could not be reached; empty otherwise."""
    place: str
    """The command line of a program, or the URL of a remote server."""
    tools: list[McpToolOut]
    """Accepted tools, followed by tools that must be accepted before agents can use them."""


class McpServerIn(In):
    """The settings of an MCP server to change."""

    enabled: bool


class AcceptIn(In):
    """Tools to accept."""

    digests: Annotated[list[str], Field(min_length=1, max_length=1000)]
    """The `digest` of each tool whose `is_changed` is true."""


ServerName = Annotated[str, Path(max_length=64, description="Name of the server in the section `mcp` of the configuration.")]

router = Router(prefix="/api/mcp", tags=["mcp"])


def _shown(status: McpStatus) -> McpServerOut:
    server = status.server
    tools = [McpToolOut.of(tool, is_changed=False) for tool in status.tools]
    tools += [McpToolOut.of(tool, is_changed=True) for tool in status.changes]
    place = server.url or " ".join((server.command, *server.args))
    return McpServerOut(name=server.name, enabled=server.enabled, status=status.state, error=status.error, place=place, tools=tools)


def _found(server: Server, name: str) -> tuple[McpServers, McpServer]:
    servers, settings = server.engine.runtime.mcp, server.engine.runtime.settings
    if servers is None or name not in settings.mcp:
        raise NotFound(f"MCP server {name!r} not found.", fix="moot mcp list")
    return servers, settings.mcp[name]


def _one(servers: McpServers, server: McpServer) -> McpServerOut:
    return _shown(servers.status([server])[0])


@router.get("")
async def list_mcp_servers(server: CurrentServer, _: Operator) -> ListOut[McpServerOut]:
    """List the configured MCP servers without starting any."""
    servers = server.engine.runtime.mcp
    found = servers.status(server.engine.runtime.settings.mcp.values()) if servers is not None else []
    return ListOut(data=[_shown(status) for status in found])


@router.patch("/{name}")
async def change_mcp_server(server: CurrentServer, _caller: Operator, name: ServerName, body: McpServerIn) -> McpServerOut:
    """Enable or disable an MCP server in the configuration file."""
    servers, found = _found(server, name)
    check_configured(found)
    await write(server, {f"mcp.{name}.enabled": body.enabled})
    if not body.enabled:
        servers.close(name)
    return _one(*_found(server, name))


@router.post("/{name}/connect")
async def connect_mcp_server(server: CurrentServer, _: Operator, name: ServerName) -> McpServerOut:
    """Connect to an enabled MCP server and fetch its tools."""
    servers, found = _found(server, name)
    if not found.enabled:
        raise Problem(409, f"The MCP server {name!r} is disabled.", fix="Enable it first.")
    await servers.fetch(found, str(server.engine.settings.home))
    return _one(servers, found)


@router.post("/{name}/accept")
async def accept_mcp_tools(server: CurrentServer, _: Operator, name: ServerName, body: AcceptIn) -> McpServerOut:
    """Accept all new and changed tools of an MCP server, so that agents can use them. Return 409 if `digests` is not the current list."""
    servers, found = _found(server, name)
    accepted = servers.accepted.of(found)
    if accepted is None or {tool.digest for tool in accepted.changes} != set(body.digests):
        raise Problem(409, f"The tools of {name!r} have changed since you loaded them.", fix="Load them again, and review them.")
    servers.accepted.accept(found, accepted.seen)
    return _one(servers, found)
