"""The commands of `moot mcp`."""

from __future__ import annotations

import base64
import os
import sys
import webbrowser
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Literal

import anyio
from anyio import to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import plural, print_fields, print_table
from moot.cli.console.lines import write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.output import Out
from moot.cli.terminal.prompts.plain import ask_hidden, confirm
from moot.config.changes import set_value
from moot.config.loader import FILE
from moot.config.settings import Settings
from moot.errors import MootError, NeedsApproval, NotFound, UsageError
from moot.features.mcp import definitions
from moot.guard.hidden import spelled_out
from moot.mcp.logins import LoginFile
from moot.mcp.servers import McpServers, check_configured
from moot.plugins.registry import attribute, hint
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject, loads
from moot.types.mcp import McpStatus, McpTool

Name = Annotated[str, Parameter(metavar="NAME", help="Name of the server.")]

_SUMMARY = 72
"""Maximum length of a description in a table."""


@asynccontextmanager
async def _opened(output: Output) -> AsyncGenerator[tuple[Settings, McpServers]]:
    """Provide connections to MCP servers, and close them at the end of the block."""
    settings = configured(output).settings
    async with anyio.create_task_group() as group:
        try:
            yield settings, McpServers(settings.home, group)
        finally:
            group.cancel_scope.cancel()


def _server(settings: Settings, name: str) -> McpServer:
    if name not in settings.mcp:
        raise NotFound(f"MCP server {name!r} not found.{hint(name, list(settings.mcp))}", fix="moot mcp list")
    return settings.mcp[name]


async def list_servers(
    *,
    connect: Annotated[bool, Parameter(help="Connect to all enabled servers before listing them.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the configured servers."""
    async with _opened(output) as (settings, servers):
        enabled = [server for server in settings.mcp.values() if server.enabled]
        if connect:
            async with anyio.create_task_group() as group:
                for server in enabled:
                    group.start_soon(_fetched, servers, server)
        found = servers.status(settings.mcp.values())
    if json:
        output.json({"data": list[Json](status.to_json() for status in found)})
    elif found:
        print_table(output, ["NAME", "STATUS", "TOOLS", "SERVER"], [_row(status) for status in found])
    else:
        output.say("moot: no MCP servers; add one with: moot mcp add NAME -- COMMAND", "dim")


async def _fetched(servers: McpServers, server: McpServer) -> None:
    with suppress(MootError):  # the server's status includes the error
        await servers.fetch(server, str(here()))


def _row(status: McpStatus) -> list[str]:
    state = f"{status.state}: {status.error}" if status.error else status.state
    changes = f", {len(status.changes)} to accept" if status.changes else ""
    return [status.server.name, state, f"{len(status.tools)}{changes}", status.server.place]


async def add_server(
    name: Name,
    /,
    *command: Annotated[str, Parameter(metavar="COMMAND", help="Command that starts a server on this machine, placed after --.")],
    url: Annotated[str, Parameter(metavar="URL", help="Address of a remote server.")] = "",
    protocol: Annotated[Literal["http", "sse"], Parameter(help="Protocol of a remote server.")] = "http",
    env: Annotated[
        list[str] | None, Parameter(metavar="KEY=VALUE", help="Environment variable to set for the program. May be repeated.")
    ] = None,
    header: Annotated[list[str] | None, Parameter(metavar="KEY=VALUE", help="HTTP header to send to the server. May be repeated.")] = None,
    trust_hints: Annotated[
        bool, Parameter(help="Trust the server's hints about which of its tools are read-only. These tools then run without approval.")
    ] = False,
    no_connect: Annotated[bool, Parameter(help="Add the server without connecting to it.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Add a server to the configuration, connect to it and print its tools."""
    if bool(command) == bool(url):
        raise UsageError(
            "Specify either a command or a URL.", fix=f"Use 'moot mcp add {name} -- COMMAND' or 'moot mcp add {name} --url URL'."
        )
    values: JsonObject = {"command": command[0], "args": list[Json](command[1:])} if command else {"url": url, "protocol": protocol}
    values |= {"env": _pairs(env, "--env")} if env else {}
    values |= {"headers": _pairs(header, "--header")} if header else {}
    values |= {"trust_hints": True} if trust_hints else {}
    definitions.add_server(configured(output).settings, name, values)
    if no_connect:
        write_done(output, json, {"name": name, "added": True}, f"added {name}")
        return
    output.say(f"moot: added {name}; connecting", "dim")
    await test_server(name, json=json, output=output)


def _pairs(texts: Sequence[str], option: str) -> JsonObject:
    found: JsonObject = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not key or not separator:
            raise UsageError(f"{option}: Expected KEY=VALUE, not {text!r}.")
        found[key] = value
    return found


async def show_server(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Print a server and its accepted tools."""
    async with _opened(output) as (settings, servers):
        (status,) = servers.status([_server(settings, name)])
    if json:
        output.json(status.to_json())
        return
    facts: JsonObject = {key: value for key, value in status.to_json().items() if key not in ("tools", "changes") and value not in ("", [])}
    facts |= {"login": "stored"} if status.server.url and LoginFile(settings.home, status.server).read() is not None else {}
    print_fields(output, facts, json=False)
    _print_tools(output, name, status.tools, status.changes)


async def test_server(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Connect to a server and print its tools."""
    async with _opened(output) as (settings, servers):
        server = _server(settings, name)
        started = anyio.current_time()
        found = await servers.fetch(server, str(here()))
        seconds = anyio.current_time() - started
    if json:
        tools: list[Json] = [tool.to_json() for tool in found.seen]
        output.json({"name": name, "status": "connected", "seconds": round(seconds, 3), "tools": tools})
        return
    output.say(f"moot: connected to {name} in {seconds:.1f} s, {plural(len(found.seen), 'tool')}", "green")
    _print_tools(output, name, found.usable, found.changes)


def _print_tools(output: Output, name: str, tools: Sequence[McpTool], changes: Sequence[McpTool]) -> None:
    if tools:
        print_table(output, ["TOOL", "DESCRIPTION"], [[tool.name, _summary(tool)] for tool in tools])
    if changes:
        output.say(
            f"moot: {name} has {plural(len(changes), 'new or changed tool')}; let agents use them with: moot mcp accept {name}", "yellow"
        )


def _summary(tool: McpTool) -> str:
    text = spelled_out(" ".join((tool.title or tool.description).split()))
    return text if len(text) <= _SUMMARY else f"{text[: _SUMMARY - 1]}…"


async def accept_changes(
    name: Name,
    /,
    *,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Show the tools that a server has added or changed, and let agents use them."""
    async with _opened(output) as (settings, servers):
        server = _server(settings, name)
        found = await servers.fetch(server, str(here()))
        removed = sorted({tool.name for tool in found.tools} - {tool.name for tool in found.seen})
        if not found.changes and not removed:
            write_done(output, json, {"name": name, "accepted": []}, f"{name} has no changed tools")
            return
        if not json:
            _print_changes(output, found.tools, found.changes, removed)
        if not yes and not (output.attended and await confirm(f"Let agents use the tools of {name} as shown?", output=output)):
            raise NeedsApproval("The changes were not accepted.", fix=f"moot mcp accept {name} --yes")
        servers.accepted.accept(server, found.seen)
    names: list[Json] = [tool.name for tool in found.changes]
    write_done(output, json, {"name": name, "accepted": names, "removed": list[Json](removed)}, f"accepted the tools of {name}")


def _print_changes(output: Output, before: Sequence[McpTool], changes: Sequence[McpTool], removed: Sequence[str]) -> None:
    known = {tool.name: tool for tool in before}
    for tool in changes:
        old = known.get(tool.name)
        output.line(f"{'changed' if old else 'new'}: {tool.name}")
        for key, value in tool.to_json().items():
            if old is None and key != "name" and value:
                output.line(f"  {key}: {_shown(output, value)}")
            elif old is not None and old.to_json()[key] != value:
                output.line(f"  {key} before: {_shown(output, old.to_json()[key])}")
                output.line(f"  {key} now: {_shown(output, value)}")
    for name in removed:
        output.line(f"removed: {name}")


def _shown(output: Output, value: Json) -> str:
    return spelled_out(value if isinstance(value, str) else output.to_json(value))


async def call_tool(
    name: Name,
    tool: Annotated[str, Parameter(metavar="TOOL", help="Name of the tool on the server.")],
    arguments: Annotated[str, Parameter(metavar="JSON", help="Arguments of the tool as a JSON object.")] = "{}",
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> int:
    """Call a tool on a server and print the result. Exit code 1 means that the tool reported an error."""
    try:
        given = loads(arguments)
    except ValueError as error:
        raise UsageError(f"The arguments are not valid JSON: {error}.") from error
    if not isinstance(given, dict):
        raise UsageError("The arguments are not a JSON object.", fix='Write them like this: \'{"path": "notes.txt"}\'')

    async def report(line: str) -> None:
        output.say(f"moot: {line}", "dim")

    async with _opened(output) as (settings, servers):
        server = _server(settings, name)
        found = {one.name: one for one in (await servers.fetch(server, str(here()))).usable}
        if tool not in found:
            raise NotFound(f"The MCP server {name!r} has no accepted tool {tool!r}.{hint(tool, list(found))}", fix=f"moot mcp test {name}")
        result = await servers.call(server, found[tool], given, str(here()), report)
    if json:
        files: list[Json] = [{"name": file.name, "mediaType": file.media_type, "size": len(file.data)} for file in result.files]
        output.json({"text": result.text, "structured": result.value, "files": files, "error": result.error})
    else:
        output.line(result.text)
        for file in result.files:
            output.say(f"moot: {file.name} ({file.media_type}, {len(file.data):,} bytes)", "dim")
    return 1 if result.error else 0


async def enable_server(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Let agents use a server again."""
    _switch(name, True, json, output)


async def disable_server(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Stop using a server, but keep it in the configuration."""
    _switch(name, False, json, output)


def _switch(name: str, enabled: bool, json: bool, output: Output) -> None:
    settings = configured(output).settings
    check_configured(_server(settings, name))
    set_value(settings.home / FILE, f"mcp.{name}.enabled", enabled, os.environ)
    write_done(output, json, {"name": name, "enabled": enabled}, f"{'enabled' if enabled else 'disabled'} {name}")


async def remove_server(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Remove a server from the configuration."""
    async with _opened(output) as (settings, servers):
        definitions.remove_server(settings, servers.accepted, _server(settings, name))
    write_done(output, json, {"name": name, "removed": True}, f"removed {name}")


# ── resources ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def list_resources(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Connect to a server and print its resources and templates."""
    async with _opened(output) as (settings, servers):
        found = await servers.resources(_server(settings, name), str(here()))
    if json:
        output.json({"data": list[Json](resource.to_json() for resource in found)})
    elif found:
        rows = [[spelled_out(one.uri), spelled_out(" ".join(one.name.split())), one.media_type] for one in found]
        print_table(output, ["URI", "NAME", "TYPE"], rows)
    else:
        output.say(f"moot: {name} has no resources", "dim")


async def read_resource(
    name: Name,
    uri: Annotated[str, Parameter(metavar="URI", help="URI of the resource.")],
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print a resource. Data that is not text is written unchanged, but never to a terminal."""
    async with _opened(output) as (settings, servers):
        found = await servers.read(_server(settings, name), uri, str(here()))
    if json:
        output.json({"data": [{"uri": one.name, "mediaType": one.media_type, **_content(one.data, one.media_type)} for one in found]})
        return
    for file in found:
        if file.media_type.startswith("text/"):
            output.line(file.data.decode())
        elif output.stdout_terminal:
            about = f"{file.name} is not text ({file.media_type}, {len(file.data):,} bytes)."
            raise UsageError(about, fix=f"moot mcp read {name} {uri} > FILE")
        else:
            sys.stdout.buffer.write(file.data)
            sys.stdout.buffer.flush()


def _content(data: bytes, media_type: str) -> dict[str, Json]:
    return {"text": data.decode()} if media_type.startswith("text/") else {"base64": base64.b64encode(data).decode()}


# ── logins ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def log_in(
    name: Name,
    /,
    *,
    no_open: Annotated[bool, Parameter(help="Print the address instead of opening a browser.")] = False,
    port: Annotated[
        int,
        Parameter(minimum=0, maximum=65535, help="Local port to which the browser is redirected after you sign in; 0 selects a free port."),
    ] = 0,
    client_id: Annotated[
        str,
        Parameter(
            metavar="ID",
            help="Id of an OAuth client registered with the server. The command prompts for the client's secret, or reads it from stdin.",
        ),
    ] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Sign in to a remote server in the browser."""
    settings = configured(output).settings
    server = _server(settings, name)

    async def show(url: str) -> None:
        if not no_open and await to_thread.run_sync(webbrowser.open, url):
            output.say(f"moot: sign in to {name} in your browser; stop waiting with Ctrl+C", "dim")
        else:
            output.say("moot: open this address in a browser on this machine; stop waiting with Ctrl+C", "dim")
            output.say(url)

    client = attribute("moot.mcp.oauth:RegisteredClient")(client_id, await _secret(output)) if client_id else None
    await attribute("moot.mcp.oauth:log_in")(settings.home, server, here(), show, port, client)
    write_done(output, json, {"name": name, "signed_in": True}, f"signed in to {name}")


async def _secret(output: Output) -> str:
    if output.attended:
        return (await ask_hidden("Client secret (empty = none): ", output) or "").strip()
    return (await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)).strip()


async def log_out(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Delete the stored login for a server."""
    settings = configured(output).settings
    known = LoginFile(settings.home, _server(settings, name)).delete()
    write_done(output, json, {"name": name, "signed_in": False}, f"signed out of {name}" if known else f"there is no login for {name}")
