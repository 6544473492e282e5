"""The commands `moot mcp login` and `moot mcp logout`."""

from __future__ import annotations

import sys
import webbrowser
from typing import Annotated

from anyio import to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.commands.extensions.mcp import Name, server_named
from moot.cli.console.lines import write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.options import Out
from moot.cli.terminal.prompts.plain import ask_hidden
from moot.mcp.logins import LoginFile
from moot.plugins.registry import attribute


async def log_in(
    name: Name,
    /,
    *,
    no_open: Annotated[bool, Parameter(help="Print the address instead of opening a browser.")] = False,
    port: Annotated[int, Parameter(minimum=0, maximum=65535, help="Port to which the browser returns; 0 selects a free port.")] = 0,
    client_id: Annotated[
        str,
        Parameter(
            metavar="ID",
            help="Id of a client that you have registered at the server. The command prompts for its secret, or reads it from stdin.",
        ),
    ] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Sign in at a remote server in the browser."""
    settings = configured(output).settings
    server = server_named(settings, name)

    async def show(url: str) -> None:
        if not no_open and await to_thread.run_sync(webbrowser.open, url):
            output.say(f"moot: sign in at {name} in your browser; stop waiting with Ctrl+C", "dim")
        else:
            output.say("moot: open this address in a browser on this machine; stop waiting with Ctrl+C", "dim")
            output.say(url)

    client = attribute("moot.mcp.oauth:RegisteredClient")(client_id, await _secret(output)) if client_id else None
    await attribute("moot.mcp.oauth:log_in")(settings.home, server, here(), show, port, client)
    write_done(output, json, {"name": name, "signed_in": True}, f"signed in at {name}")


async def _secret(output: Output) -> str:
    if output.attended:
        return (await ask_hidden("Client secret (empty = none): ", output) or "").strip()
    return (await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)).strip()


async def log_out(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Delete the stored login for a server."""
    settings = configured(output).settings
    known = LoginFile(settings.home, server_named(settings, name)).delete()
    write_done(output, json, {"name": name, "signed_in": False}, f"signed out of {name}" if known else f"there is no login for {name}")
