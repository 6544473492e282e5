"""A real MCP server with one tool, which knows its key only by its environment or by a header; run as a script."""

from __future__ import annotations

import os
import sys

from mcp.server import MCPServer

KEY = "mcp-key-5e6f708192"

server = MCPServer("vault")


@server.tool()
def open_vault(door: str) -> str:
    """Opens a door, for who has the key."""
    return f"{door} is open" if os.environ.get("VAULT_KEY") == KEY else f"{door} stays shut"


if __name__ == "__main__":
    sys.exit(server.run())
