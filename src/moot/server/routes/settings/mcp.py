"""Routes for MCP servers: add, test and change them, show their state, sign in, accept their tools, and read their resources."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, cast

import anyio
from anyio import to_thread
from fastapi import Path, Query, Response
from pydantic import Field

from moot.errors import NotFound
from moot.features.mcp import definitions
from moot.mcp.servers import McpServers, check_configured, check_usable, fetch_tools
from moot.server.auth import Operator, Router
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, ListOut, Out
from moot.server.problems import Problem
from moot.server.resources import IfMatch, check_match, etag_of
from moot.server.routes.settings.config import changed, is_saved, write
from moot.server.state import CurrentServer, Server
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject
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
    is_saved: bool
    """True if the server is in the configuration file, so that it can be changed and removed."""
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


class McpDefinitionOut(Out):
    """An MCP server as the configuration file defines it, without the values of `env` and `headers`, which may be secrets."""

    name: str
    command: str
    args: list[str]
    env: list[str]
    """Names of the environment variables that are set for the program."""
    url: str
    protocol: str
    headers: list[str]
    """Names of the HTTP headers that are sent to the server."""
    trust_hints: bool


Text = Annotated[str, Field(max_length=4000)]
Values = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=200)], Annotated[str, Field(max_length=20_000)] | None], Field(max_length=100)
]
NewName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class McpDefinitionIn(In):
    """An MCP server: a program with `args` and `env`, or a remote server with `protocol` and `headers`.

    Values may refer to environment variables of moot, as in `${NAME}`.
    """

    command: Text = ""
    """Program to start on the server's machine. Empty = connect to `url`."""
    args: Annotated[list[Text], Field(max_length=200)] = Field(default_factory=list[str])
    env: Values = Field(default_factory=dict[str, str | None])
    """Environment variables to set for the program. null keeps the stored value."""
    url: Text = ""
    protocol: Literal["http", "sse"] = "http"
    headers: Values = Field(default_factory=dict[str, str | None])
    """HTTP headers to send. null keeps the stored value, unless the URL now belongs to another site."""
    trust_hints: bool = False
    """Trust the server's hints about which tools are read-only. These tools then run without approval."""

    def fields(self) -> JsonObject:
        """Return the fields of the configuration. Null stands for a default."""
        values = cast("JsonObject", self.model_dump(include=set(McpDefinitionIn.model_fields), exclude_defaults=True))
        return {name: values.get(name) for name in McpDefinitionIn.model_fields}


class NewMcpServerIn(McpDefinitionIn):
    """An MCP server to add."""

    name: NewName


class McpTrialOut(Out):
    """The tools of an MCP server that was tested."""

    tools: list[McpToolOut]
    seconds: float
    """Duration of the start and the connection."""


class AcceptIn(In):
    """Tools to accept."""

    digests: Annotated[list[str], Field(min_length=1, max_length=1000)]
    """The `digest` of each tool whose `is_changed` is true."""


ServerName = Annotated[str, Path(max_length=64, description="Name of the server in the section `mcp` of the configuration.")]

router = Router(prefix="/api/mcp", tags=["mcp"])


def _shown(state: Server, status: McpStatus) -> McpServerOut:
    server = status.server
    tools = [McpToolOut.of(tool, is_changed=False) for tool in status.tools]
    tools += [McpToolOut.of(tool, is_changed=True) for tool in status.changes]
    return McpServerOut(
        name=server.name,
        enabled=server.enabled,
        status=status.state,
        error=status.error,
        place=server.place,
        is_saved=is_saved(state, f"mcp.{server.name}"),
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


def _one(state: Server, servers: McpServers, server: McpServer) -> McpServerOut:
    return _shown(state, servers.status([server])[0])


@router.get("")
async def list_mcp_servers(server: CurrentServer, _: Operator) -> ListOut[McpServerOut]:
    """List the configured MCP servers without starting any."""
    servers = server.engine.runtime.mcp
    found = servers.status(server.engine.runtime.settings.mcp.values()) if servers is not None else []
    return ListOut(data=[_shown(server, status) for status in found])


@router.post("", status_code=201)
async def add_mcp_server(server: CurrentServer, _: Operator, attempt: CurrentAttempt, body: NewMcpServerIn) -> McpServerOut:
    """Add an MCP server to the configuration file without starting it. Errors name the invalid fields.

    Agents can use it, and start it when they need its tools. Test it first to see these tools.
    """
    if not (attempt.repeated and body.name in server.engine.runtime.settings.mcp):
        await to_thread.run_sync(partial(definitions.add_server, server.engine.runtime.settings, body.name, body.fields()))
        await changed(server)
    return _one(server, *_found(server, body.name))


@router.get("/{name}")
async def show_mcp_server(server: CurrentServer, _: Operator, response: Response, name: ServerName) -> McpDefinitionOut:
    """Get the definition of an MCP server in the configuration file. The values of `env` and `headers` are never returned."""
    entry = await _written(server, name)
    response.headers["etag"] = etag_of(entry)
    return _definition(name, entry)


@router.put("/{name}")
async def replace_mcp_server(
    server: CurrentServer, _: Operator, name: ServerName, body: McpDefinitionIn, if_match: IfMatch = None
) -> McpServerOut:
    """Change the definition of an MCP server in the configuration file, and close its connections. It is not started.

    With another command, argument or URL, it counts as a new server, whose tools are accepted at the first connection.
    Send the definition's ETag as `If-Match` to detect concurrent changes.
    """
    servers, _found_server = _found(server, name)
    check_match(if_match, etag_of(await _written(server, name)))
    await to_thread.run_sync(partial(definitions.change_server, server.engine.runtime.settings, name, body.fields()))
    await changed(server)
    servers.close(name)
    return _one(server, *_found(server, name))


@router.delete("/{name}", status_code=204, response_class=Response)
async def delete_mcp_server(server: CurrentServer, _: Operator, name: ServerName) -> None:
    """Remove an MCP server from the configuration file, with its accepted tools and its login. Refused while an agent names it."""
    servers, found = _found(server, name)
    await to_thread.run_sync(partial(definitions.remove_server, server.engine.runtime.settings, servers.accepted, found))
    await changed(server)
    servers.close(name)


@router.post("/{name}/test")
async def test_mcp_server(
    server: CurrentServer, _: Operator, name: Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")], body: McpDefinitionIn
) -> McpTrialOut:
    """Start the program or connect to the address of an MCP server that is not saved, list its tools, and close the connection.

    Nothing is saved, and no tool is accepted.
    """
    home = server.engine.settings.home
    tried = await to_thread.run_sync(partial(definitions.trial_server, server.engine.runtime.settings, name, body.fields()))
    started = anyio.current_time()
    tools = await fetch_tools(home, tried, str(home))
    return McpTrialOut(tools=[McpToolOut.of(tool, is_changed=False) for tool in tools], seconds=round(anyio.current_time() - started, 3))


async def _written(server: Server, name: str) -> JsonObject:
    """Return the entry of a server in the configuration file. Raise UsageError if the server is part of a plugin."""
    _, found = _found(server, name)
    check_configured(found)
    return await to_thread.run_sync(definitions.definition_of, server.engine.runtime.settings, name)


def _definition(name: str, entry: JsonObject) -> McpDefinitionOut:
    def names(value: Json) -> list[str]:
        return list(value) if isinstance(value, dict) else []

    args = entry.get("args")
    return McpDefinitionOut(
        name=name,
        command=str(entry.get("command", "")),
        args=[str(one) for one in args] if isinstance(args, list) else [],
        env=names(entry.get("env")),
        url=str(entry.get("url", "")),
        protocol=str(entry.get("protocol", "http")),
        headers=names(entry.get("headers")),
        trust_hints=entry.get("trust_hints") is True,
    )


@router.patch("/{name}")
async def change_mcp_server(server: CurrentServer, _caller: Operator, name: ServerName, body: McpServerIn) -> McpServerOut:
    """Enable or disable an MCP server in the configuration file."""
    servers, found = _found(server, name)
    check_configured(found)
    await write(server, {f"mcp.{name}.enabled": body.enabled})
    if not body.enabled:
        servers.close(name)
    return _one(server, *_found(server, name))


@router.post("/{name}/connect")
async def connect_mcp_server(server: CurrentServer, _: Operator, name: ServerName) -> McpServerOut:
    """Connect to an enabled MCP server and fetch its tools."""
    servers, found = _enabled(server, name)
    await servers.fetch(found, str(server.engine.settings.home))
    return _one(server, servers, found)


@router.post("/{name}/login")
async def start_mcp_login(server: CurrentServer, _: Operator, name: ServerName) -> McpServerOut:
    """Start signing in to an enabled remote MCP server (OAuth), and return the address to open in a browser on the server's machine.

    `login.state` is `pending` until the browser has returned, for at most ten minutes. A pending login is replaced.
    """
    servers, found = _enabled(server, name)
    check_usable(found)
    await servers.logins.start(found, str(server.engine.settings.home))
    return _one(server, servers, found)


@router.delete("/{name}/login")
async def delete_mcp_login(server: CurrentServer, _: Operator, name: ServerName) -> McpServerOut:
    """Cancel the pending login to an MCP server. If there is none, sign out: delete the stored login and close the connections."""
    servers, found = _found(server, name)
    await servers.logins.log_out(found)
    return _one(server, servers, found)


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
    return _one(server, servers, found)
