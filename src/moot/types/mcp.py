"""A server of the Model Context Protocol, as a configuration names it (reference: modelcontextprotocol.io, transports)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class McpServer:
    """One entry of `mcp`: a program on stdio, or an address."""

    name: str
    command: str = ""
    """Empty = it is reached at `url`."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Resolved, laid over what the program gets anyway; never shown, logged or stored."""
    url: str = ""
    protocol: Literal["http", "sse"] = "http"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Resolved; never shown, logged or stored."""
    enabled: bool = True

    def __repr__(self) -> str:
        return f"McpServer(name={self.name!r}, command={self.command!r}, url={self.url!r})"
