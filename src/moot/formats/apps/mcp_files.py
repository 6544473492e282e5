"""MCP servers defined in files of projects, editors and desktop programs: `.mcp.json`, and the files of Cursor, VS Code and Claude.

References: the documentation of Claude Code (`.mcp.json`), Cursor (`mcp.json`), VS Code (`mcp.json`, key `servers`) and Claude Desktop.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from moot.formats.kit.configuration import ConfigurationBuilder
from moot.formats.kit.fields import obj, text
from moot.types.canonical import JsonObject
from moot.types.format import ForeignConfiguration

NAMES = (".mcp.json", "mcp.json", "claude_desktop_config.json")
"""Names of files that define MCP servers."""

_IN_FOLDER = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "mcp.json", "claude_desktop_config.json")
_IN_HOME = (
    *(".mcp.json", ".cursor/mcp.json"),
    *(".config/Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json"),
    *(".config/Claude/claude_desktop_config.json", "Library/Application Support/Claude/claude_desktop_config.json"),
)
_FIELDS = ("command", "args", "env", "url", "headers")


def files_at(path: Path, *, is_home: bool = False) -> list[Path]:
    """Return the files that define MCP servers at a path, which may be such a file, a project or a home folder."""
    if path.is_file():
        return [path] if path.name in NAMES else []
    return [file for name in (_IN_HOME if is_home else _IN_FOLDER) if (file := path / name).is_file()]


def servers_in(files: list[Path]) -> Iterator[ForeignConfiguration]:
    """Yield the servers of each file as entries of moot's configuration."""
    for file in files:
        draft = ConfigurationBuilder(f"{file.parent.name}/{file.name}")
        settings = draft.read(file, file.parent, str(file))
        for name, server in (obj(settings, "mcpServers") or obj(settings, "servers")).items():
            if isinstance(server, dict):
                _add(draft, name, server)
        yield draft.found()


def _add(draft: ConfigurationBuilder, name: str, server: JsonObject) -> None:
    if "${input:" in json.dumps(server):
        draft.lose(f"mcp server {name!r}", "the editor prompts for its values; write them into moot's configuration", server)
        return
    facts: JsonObject = {key: server.get(key) or (server.get("serverUrl") if key == "url" else None) for key in _FIELDS}
    if facts.get("url"):
        facts["protocol"] = "sse" if text(server, "type") == "sse" else None
    if server.get("disabled") is True:
        facts["enabled"] = False
    draft.server(name, facts)
