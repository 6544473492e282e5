"""Routes for MCP servers: show their state, enable them, sign in, accept their tools, and read their resources."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated

from fastapi import Path, Query
from pydantic import Field

from moot.errors import NotFound
from moot.mcp.servers import McpServers, check_configured, check_usable
from moot.server.auth import Operator, Router
from moot.server.models import In, ListOut, Out
from moot.server.problems import Problem
from moot.server.routes.settings.config import write
from moot.server.state import CurrentServer, Server
from moot.types.agent import McpServer
from moot.types.mcp import McpLogin, McpResource, McpState, McpStatus, McpTool

if TYPE_CHECKING:  # the SDK takes long to import
    from moot.mcp.content import McpFile


class McpToolOut(Out, of=McpTool, fields="name title description read_only digest"):
    """A tool of an MCP server, as the server defines it."""

    digest: str
    """Hash of the tool's definition, including the schema of its arguments."""
    is_changed: bool
    """True if the tool is new or its definition has changed. Agents can't use it until it is accepted."""


class McpLoginOut(Out, of=McpLogin, fields="state address error"):
    """The login to a remote MCP server."""


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
    login: McpLoginOut


class McpResourceOut(Out, of=McpResource, fields="uri name description media_type size is_template"):
    """A resource of an MCP server, or a template for the URIs of several resources."""


class McpContentOut(Out):
    """A part of a resource: text or binary data."""

    uri: str
    media_type: str
    text: str | None
    """The text; null for binary data."""
    base64: str | None
    """The binary data; null for text."""


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
    return McpServerOut(
        name=server.name,
        enabled=server.enabled,
        status=status.state,
        error=status.error,
        place=place,
        tools=tools,
        login=McpLoginOut.of(status.login),
    )


def _found(server: Server, name: str) -> tuple[McpServers, McpServer]:
    servers, settings = server.engine.runtime.mcp, server.engine.runtime.settings
    if servers is None or name not in settings.mcp:
        raise NotFound(f"MCP server {name!r} not found.", fix="moot mcp list")
    return servers, settings.mcp[name]


def _enabled(server: Server, name: str) -> tuple[McpServers, McpServer]:
    servers, found = _found(server, name)
    if not found.enabled:
        raise Problem(409, f"The MCP server {name!r} is disabled.", fix="Enable it first.")
    return servers, found


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
    servers, found = _enabled(server, name)
    await servers.fetch(found, str(server.engine.settings.home))
    return _one(servers, found)


@router.post("/{name}/login")
async def start_mcp_login(server: CurrentServer, _: Operator, name: ServerName) -> McpServerOut:
    """Start signing in to an enabled remote MCP server (OAuth), and return the address to open in a browser on the server's machine.

    `login.state` is `pending` until the browser has returned, for at most ten minutes. A pending login is replaced.
    """
    servers, found = _enabled(server, name)
    check_usable(found)
    await servers.logins.start(found, str(server.engine.settings.home))
    return _one(servers, found)


@router.delete("/{name}/login")
async def delete_mcp_login(server: CurrentServer, _: Operator, name: ServerName) -> McpServerOut:
    """Cancel the pending login to an MCP server. If there is none, sign out: delete the stored login and close the connections."""
    servers, found = _found(server, name)
    await servers.logins.log_out(found)
    return _one(servers, found)


@router.get("/{name}/resources")
async def list_mcp_resources(server: CurrentServer, _: Operator, name: ServerName) -> ListOut[McpResourceOut]:
    """Connect to an enabled MCP server and list its resources, followed by templates for URIs."""
    servers, found = _enabled(server, name)
    resources = await servers.resources(found, str(server.engine.settings.home))
    return ListOut(data=[McpResourceOut.of(one) for one in resources])


@router.get("/{name}/resource")
async def read_mcp_resource(
    server: CurrentServer, _: Operator, name: ServerName, uri: Annotated[str, Query(min_length=1, max_length=8192)]
) -> ListOut[McpContentOut]:
    """Read a resource of an enabled MCP server."""
    servers, found = _enabled(server, name)
    return ListOut(data=[_content(file) for file in await servers.read(found, uri, str(server.engine.settings.home))])


def _content(file: McpFile) -> McpContentOut:
    is_text = file.media_type.startswith("text/")
    text, binary = (file.data.decode(), None) if is_text else (None, base64.b64encode(file.data).decode())
    return McpContentOut(uri=file.name, media_type=file.media_type, text=text, base64=binary)


@router.post("/{name}/accept")
async def accept_mcp_tools(server: CurrentServer, _: Operator, name: ServerName, body: AcceptIn) -> McpServerOut:
    """Accept all new and changed tools of an MCP server, so that agents can use them. Return 409 if `digests` is not the current list."""
    servers, found = _found(server, name)
    accepted = servers.accepted.of(found)
    if accepted is None or {tool.digest for tool in accepted.changes} != set(body.digests):
        raise Problem(409, f"The tools of {name!r} have changed since you loaded them.", fix="Load them again, and review them.")
    servers.accepted.accept(found, accepted.seen)
    return _one(servers, found)
