"""MCP servers that an agent is handed: `agents.NAME.options.mcp`, as the protocol writes them."""

from __future__ import annotations

import shutil

from moot.errors import ConfigError
from moot.types.canonical import Json, JsonObject
from moot.types.run import RunRequest

__all__ = ["servers_of"]

_PROTOCOLS = ("http", "sse")


def servers_of(request: RunRequest) -> tuple[JsonObject, ...]:
    """The servers, `{name: {command, args}}` or `{name: {url, protocol}}`. Raises ConfigError.

    Neither variables nor headers: what we tell an agent is in the log, and they are where keys stand. A server on stdio inherits the
    agent's environment (`options.env`).
    """
    place = f"agents.{request.agent.name}.options.mcp"
    given = request.agent.options.get("mcp", {})
    if not isinstance(given, dict):
        raise ConfigError(f"{place} is {given!r}; expected names with their servers, as in {{files: {{command: npx, args: [..]}}}}")
    return tuple(_server(f"{place}.{name}", name, value) for name, value in given.items())


def _server(place: str, name: str, value: Json) -> JsonObject:
    fields = value if isinstance(value, dict) else {}
    for secret in ("env", "headers"):
        if secret in fields:
            fix = "lay variables over the agent's own by options.env" if secret == "env" else "give such a server to the agent itself"
            raise ConfigError(f"{place}.{secret} would stand in the log with all that is said to the agent", fix=fix)
    command, url, words = fields.get("command"), fields.get("url"), fields.get("args", [])
    if isinstance(url, str) and url:
        protocol = fields.get("protocol", "http")
        if protocol not in _PROTOCOLS:
            raise ConfigError(f"{place}.protocol is {protocol!r}; expected one of: {', '.join(_PROTOCOLS)}")
        return {"type": protocol, "name": name, "url": url, "headers": []}
    if isinstance(command, str) and command and isinstance(words, list) and all(isinstance(word, str) for word in words):
        return {"name": name, "command": shutil.which(command) or command, "args": words, "env": []}
    raise ConfigError(f"{place} is {value!r}; expected a command with its words, or a url")
