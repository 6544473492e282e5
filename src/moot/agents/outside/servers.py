"""MCP servers provided to an outside agent, and their keys, which neither a command line nor the log may contain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moot.guard.secrets import HIDDEN, SHORTEST
from moot.types import chunk
from moot.types.canonical import dumps
from moot.types.event import Event
from moot.types.mcp import McpServer


def unreached(name: str, why: str) -> Event:
    """Return a note in the answer that an MCP server is not available."""
    text = f"The MCP server {name!r} can't be reached: {why}" if why else f"The MCP server {name!r} can't be reached"
    return Event("chunks", (chunk.data("note", {"text": text}, id=f"mcp:{name}"),))


def hiding(servers: Sequence[McpServer]) -> Callable[[bytes], bytes]:
    """Return a function that removes the values of variables and headers from our lines, for the log."""
    values = {value for server in servers for value in (*server.env.values(), *server.headers.values()) if len(value) >= SHORTEST}
    secrets = [dumps(value)[1:-1] for value in sorted(values, key=len, reverse=True)]

    def hidden(line: bytes) -> bytes:
        for secret in secrets:
            line = line.replace(secret, HIDDEN.encode())
        return line

    return hidden
