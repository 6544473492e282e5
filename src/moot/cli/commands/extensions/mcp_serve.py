"""The command `moot mcp serve`. In a separate module, because the other commands need no server."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.signatures import Parameter
from moot.cli.context.configuration import configured_loader, here
from moot.cli.context.engine import open_watched
from moot.cli.context.output import Out
from moot.features.mcp.server import guarded, mcp_server, serve_http


async def serve_history(
    *,
    allow_runs: Annotated[bool, Parameter(help="Also offer tools that start and continue conversations.")] = False,
    port: Annotated[int | None, Parameter(help="Serve streamable HTTP on this port instead of stdio.", minimum=0)] = None,
    output: Out,
) -> None:
    """Serve the stored conversations until the client disconnects. Only the protocol is written to stdout."""
    async with open_watched(configured_loader(output), output) as engine:
        server = mcp_server(engine, str(here()), allow_runs=allow_runs)
        if port is None:
            await server.run_stdio_async()
            return
        app = guarded(server.streamable_http_app(), engine, allow_runs=allow_runs)
        await serve_http(app, port, lambda url: output.say(f"moot: MCP server at {url}; clients need a token: moot tokens create NAME"))
