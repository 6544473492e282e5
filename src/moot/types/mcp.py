"""The configuration of a Model Context Protocol server (reference: modelcontextprotocol.io, transports)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class McpServer:
    """One entry of `mcp`: a program on stdio, or a URL."""

    name: str
    command: str = ""
    """Empty = connect to `url`."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Resolved values, added to the program's default environment; never shown, logged or stored."""
    url: str = ""
    protocol: Literal["http", "sse"] = "http"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Resolved values; never shown, logged or stored."""
    enabled: bool = True

    def __repr__(self) -> str:
        return f"McpServer(name={self.name!r}, command={self.command!r}, url={self.url!r})"
