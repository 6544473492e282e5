"""The tools that the user has accepted from each MCP server, stored as files in moot's home folder.

A server can change the description of a tool after a person has agreed to use it. So agents get only accepted definitions: all of
those from the first connection, and later changes only after `moot mcp accept`. If the command, an argument or the URL changes, it counts
as a new server.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from moot.config.home import lock_file, write_atomically
from moot.guard.paths import Stamp, stamp
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.mcp import McpPrompt, McpTool

FOLDER = "mcp"
_VERSION = 1


@dataclass(frozen=True)
class Accepted:
    """The accepted tools of a server, and the tools that it had at the last connection."""

    tools: tuple[McpTool, ...]
    seen: tuple[McpTool, ...]
    prompts: tuple[McpPrompt, ...] = ()
    """The prompts of the last connection. They need no acceptance, because only people use them."""

    @cached_property
    def changes(self) -> tuple[McpTool, ...]:
        """The tools from the last connection that are new or differ from the accepted tools."""
        known = {tool.name: tool.digest for tool in self.tools}
        return tuple(tool for tool in self.seen if known.get(tool.name) != tool.digest)

    @cached_property
    def usable(self) -> tuple[McpTool, ...]:
        """The accepted tools that the server still defines in the same way."""
        seen = {tool.name: tool.digest for tool in self.seen}
        return tuple(tool for tool in self.tools if seen.get(tool.name) == tool.digest)


def identity_of(server: McpServer) -> str:
    """Return a hash of a server's command and arguments, or its URL. For `env` and `headers`, only the names are included."""
    names: list[Json] = [*sorted(server.env), *sorted(server.headers)]
    return sha256(dumps([server.command, list(server.args), server.url, server.protocol, names])).hexdigest()


class AcceptedTools:
    """The files below `MOOT_HOME/mcp`. Methods do short file operations, and may be called in any thread."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._read: dict[str, tuple[Stamp | None, str, Accepted | None]] = {}

    def of(self, server: McpServer) -> Accepted | None:
        """Return the accepted tools of a server, or None if it was never connected, or its configuration now describes another server.

        An unchanged file is not read again.
        """
        path, identity = self._path(server), identity_of(server)
        try:
            now = stamp(os.stat(path))  # noqa: PTH116  asked at each step, and pathlib is slow
        except OSError:
            now = None
        cached = self._read.get(server.name)
        if cached is None or cached[:2] != (now, identity):
            self._read[server.name] = cached = now, identity, None if now is None else _parsed(path, identity)
        return cached[2]

    def record(self, server: McpServer, tools: Sequence[McpTool], prompts: Sequence[McpPrompt] = ()) -> Accepted:
        """Store the tools and prompts of a new connection, and return the current state. Tools of the first connection are accepted."""
        seen, listed = tuple(tools), tuple(prompts)

        def merged(known: Accepted | None) -> Accepted:
            return Accepted(seen, seen, listed) if known is None else replace(known, seen=seen, prompts=listed)

        if (known := self.of(server)) is not None and merged(known) == known:
            return known
        with lock_file(Path(self._path(server))):
            found = merged(self.of(server))
            self._write(server, found)
        return found

    def accept(self, server: McpServer, tools: Sequence[McpTool]) -> None:
        """Accept these tools in place of all earlier ones."""
        with lock_file(Path(self._path(server))):
            known = self.of(server)
            self._write(server, Accepted(tuple(tools), tuple(tools), known.prompts if known is not None else ()))

    def forget(self, name: str) -> None:
        """Delete the file of a server that was removed from the configuration."""
        (self._folder / f"{name}.json").unlink(missing_ok=True)
        self._read.pop(name, None)

    def forget_removed(self, before: Iterable[McpServer], after: Iterable[McpServer] = ()) -> None:
        """Delete the files of servers that a changed plugin no longer contains."""
        for name in {server.name for server in before} - {server.name for server in after}:
            self.forget(name)

    def _path(self, server: McpServer) -> str:
        return f"{self._folder}/{server.name}.json"

    def _write(self, server: McpServer, found: Accepted) -> None:
        content: JsonObject = {
            "version": _VERSION,
            "server": identity_of(server),
            "accepted": [tool.to_json() for tool in found.tools],
            "seen": [tool.to_json() for tool in found.seen],
            "prompts": [prompt.to_json() for prompt in found.prompts],
        }
        write_atomically(Path(self._path(server)), dumps(content))
        self._read.pop(server.name, None)


def _parsed(path: str, identity: str) -> Accepted | None:
    """Return the content of a file, or None if it is damaged or belongs to another server. The next connection replaces it."""
    try:
        value = loads(Path(path).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict) or value.get("server") != identity or value.get("version") != _VERSION:
        return None
    prompts = value.get("prompts")  # files of earlier versions have no prompts
    found = [McpPrompt.from_json(item) for item in prompts if isinstance(item, dict)] if isinstance(prompts, list) else []
    return Accepted(_tools(value.get("accepted")), _tools(value.get("seen")), tuple(found))


def _tools(value: Json) -> tuple[McpTool, ...]:
    return tuple(McpTool.from_json(item) for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
