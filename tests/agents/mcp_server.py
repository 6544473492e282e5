"""A real MCP server with one tool; it gets its key from its environment or a header. Run as a script."""

from __future__ import annotations

import os
import sys

from mcp.server import MCPServer

KEY = "mcp-key-5e6f708192"

server = MCPServer("vault")


@server.tool()
def open_vault(door: str) -> str:
    """Open a door if the caller has the key."""
    return f"{door} is open" if os.environ.get("VAULT_KEY") == KEY else f"{door} stays shut"


if __name__ == "__main__":
    sys.exit(server.run())
