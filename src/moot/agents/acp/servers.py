"""MCP servers in the protocol's form."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from moot.types.canonical import Json, JsonObject
from moot.types.mcp import McpServer


def handed(server: McpServer) -> JsonObject:
    """Return one entry of `mcpServers`."""
    if server.command:
        command = shutil.which(server.command) or server.command  # the protocol requires an absolute path
        return {"name": server.name, "command": command, "args": list(server.args), "env": _pairs(server.env)}
    return {"type": server.protocol, "name": server.name, "url": server.url, "headers": _pairs(server.headers)}


def _pairs(values: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]
