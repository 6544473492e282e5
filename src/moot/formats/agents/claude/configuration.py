"""Conversion of Claude Code's user settings: hooks, permissions, agents and MCP servers. Project settings are not read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from moot.config.agents.claude_code import FOLDER as AGENTS
from moot.config.agents.files import agent_file
from moot.config.tree import plain
from moot.errors import ConfigError
from moot.formats.kit.configuration import MAX_SETTINGS, ConfigurationBuilder, add_command_files
from moot.formats.kit.fields import items, obj, text
from moot.formats.kit.files import files_below, read_inside
from moot.formats.kit.hooks import add_command_hooks
from moot.types.canonical import JsonObject
from moot.types.format import ForeignConfiguration

_TOOLS = {
    "Bash": "shell",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "MultiEdit": "edit_file",
    "Glob": "find_files",
    "Grep": "search_files",
    "LS": "list_files",
    "WebFetch": "fetch_url",
    "WebSearch": "web_search",
    "TodoWrite": "todo",
    "AskUserQuestion": "ask_user",
}
_ABOVE = 6
"""Maximum number of a session's parent folders to search for settings."""
_ACTIONS: tuple[Literal["deny", "ask", "allow"], ...] = ("deny", "ask", "allow")
_RULE = re.compile(r"([\w*.-]+)(?:\((.*)\))?", re.DOTALL)
_MODES = {"acceptEdits": "edits", "plan": "plan", "default": "ask"}
_REASONS = {
    "env": "moot can't set variables for agents that it does not start",
    "model": "the setting only applies to Claude Code; set `agents.NAME.model` for moot's agents",
    "statusLine": "moot's `ui.statusline` has different fields",
}
_UNUSED = frozenset({"mcp"})


def configuration(path: Path) -> ForeignConfiguration:
    draft = ConfigurationBuilder("claude")
    home = next((folder for folder in (path, *path.absolute().parents[:_ABOVE]) if (folder / "settings.json").is_file()), None)
    if home is None or not (home / "projects").is_dir():
        return draft.found()
    settings = draft.read(home / "settings.json", home)
    add_command_hooks(draft, obj(settings, "hooks"), _TOOLS, "CLAUDE_PROJECT_DIR")
    _permissions(draft, obj(settings, "permissions"))
    for name in sorted(settings.keys() - {"hooks", "permissions", "$schema"}):
        draft.lose(f"settings {name}", _REASONS.get(name, "moot has no such setting"))
    _agents(draft, home)
    for name, server in obj(draft.read(home.parent / ".claude.json", home.parent), "mcpServers").items():
        if isinstance(server, dict):
            facts: JsonObject = {key: server.get(key) for key in ("command", "args", "env", "url", "headers")}
            draft.server(name, {**facts, **({"protocol": "sse"} if server.get("type") == "sse" else {})})
    add_command_files(draft, home / "commands", home)
    return draft.found()


def _permissions(draft: ConfigurationBuilder, permissions: JsonObject) -> None:
    for action in _ACTIONS:
        for rule in items(permissions, action):
            _rule(draft, action, str(rule))
    mode = text(permissions, "defaultMode")
    if mode in _MODES:
        draft.setting("permissions", "mode", _MODES[mode])
    elif mode:
        draft.lose("permissions.defaultMode", f"moot has no default mode as permissive as {mode}; use --mode auto for a single run")
    folders = [folder for folder in items(permissions, "additionalDirectories") if str(folder).startswith(("/", "~/"))]
    if folders:
        draft.agent("default", {"allowed_uris": folders})
    for name in sorted(permissions.keys() - {*_ACTIONS, "defaultMode", "additionalDirectories"}):
        draft.lose(f"permissions.{name}", "moot has no such setting")


def _rule(draft: ConfigurationBuilder, action: Literal["deny", "ask", "allow"], rule: str) -> None:
    """Add a rule such as `Bash(git log:*)`, `Read(~/.ssh/**)`, `WebFetch(domain:example.org)` or `mcp__server__tool`."""
    found = _RULE.fullmatch(rule.strip())
    name, pattern = (found[1], found[2] or "") if found else ("", "")
    if name.startswith("mcp__") and name.count("__") > 1 and not pattern and "*" not in name:
        draft.rule(name, action)
    elif name.startswith("mcp__"):
        draft.lose(f"permissions {action} {rule}", "in moot, each rule applies to a single tool of an MCP server")
    elif name not in _TOOLS:
        draft.lose(f"permissions {action} {rule}", "no equivalent for the tool")
    elif pattern.startswith("domain:"):
        draft.rule(_TOOLS[name], action, f"https://{pattern.removeprefix('domain:')}/*")
    elif pattern.startswith("/") and not pattern.startswith("//"):
        draft.lose(f"permissions {action} {rule}", "its path is relative to the settings file")
    else:
        draft.rule(_TOOLS[name], action, _match(pattern) or "*")


def _match(pattern: str) -> str:
    """Convert a pattern to moot's syntax: `git log:*` becomes `git log *`, and the absolute path `//tmp` becomes `/tmp`."""
    pattern = re.sub(r":\*$", " *", pattern)
    return pattern.removeprefix("/") if pattern.startswith("//") else pattern.removeprefix("./")


def _agents(draft: ConfigurationBuilder, home: Path) -> None:
    folder = Path(AGENTS).name
    for file in files_below(home / folder, ".md", depth=1):
        data = read_inside(file, inside=home, limit=MAX_SETTINGS)
        try:
            found = agent_file(file, (data or b"").decode("utf-8", "replace"), foreign=True)
        except ConfigError as error:
            draft.lose(f"agents {file.stem!r}", error.message)
            continue
        facts = plain(found.node)
        facts = facts if isinstance(facts, dict) else {}
        for key in _UNUSED & facts.keys():
            draft.lose(f"agents.{found.name}.{key}", "moot's own agents can't use it yet", facts.pop(key))
        draft.agent(found.name, facts)
        for note in found.notes:
            draft.lose(f"agents {found.name!r}", note.partition(": ")[2])
