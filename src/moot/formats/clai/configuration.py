"""clai's profiles, servers and settings."""

from __future__ import annotations

from pathlib import Path

from moot.formats._source.beside import beside
from moot.formats._source.configuring import Draft, texts
from moot.formats._source.fields import text
from moot.formats._source.folders import files_below
from moot.formats._source.pieces import value_in
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

__all__ = ["configuration"]

_TOOLS = {
    "cat": "read_file",
    "rows_between": "read_file",
    "find": "find_files",
    "file_tree": "list_files",
    "ls": "list_files",
    "rg": "search_files",
    "website_text": "fetch_url",
    "write_file": "write_file",
    "apply_patch": "edit_file",
    "sed": "edit_file",
    "cmd": "shell",
    "freetext_command": "shell",
    "git": "shell",
    "go": "shell",
}
_PREFIXES = {"ollama": "ollama", "or": "openrouter"}
_LATER = ("use_skills", "save-reply-as-conv", "shell_context", "use_lookback")
_SMALL = 4 << 20


def configuration(home: Path) -> ForeignConfiguration:
    """Convert the configuration in clai's folder."""
    draft = Draft("clai")
    settings = _read(draft, home / "textConfig.json", home)
    if model := _model(text(settings.get("model"))):
        draft.setting("models", "main", model)
    if instructions := text(settings.get("system-prompt")):
        draft.agent("default", {"instructions": instructions})
    _bans(draft, settings.get("cmd-ban"))
    for file in files_below(home / "mcpServers", ".json", depth=1):
        _server(draft, file.stem, _read(draft, file, home))
    for file in files_below(home / "profiles", ".json", depth=1):
        _profile(draft, file.stem, _read(draft, file, home))
    for section in ("shellContexts",):
        draft.keep(section, {file.stem: _read(draft, file, home) for file in files_below(home / section, ".json", depth=1)})
    draft.keep("skills.json", _read(draft, home / "skills.json", home))
    return draft.found()


def _read(draft: Draft, file: Path, home: Path) -> JsonObject:
    data = beside(file, inside=home, limit=_SMALL)
    if data is None:
        return {}
    value = value_in(data.decode("utf-8", "replace"))
    if not isinstance(value, dict):
        draft.note(f"{file.name} is not a JSON object")
        return {}
    return value


def _profile(draft: Draft, name: str, profile: JsonObject) -> None:
    tools = profile.get("tools") if profile.get("use_tools") else []
    facts: JsonObject = {"model": _model(text(profile.get("model"))), "instructions": profile.get("prompt")}
    draft.agent(text(profile.get("name")) or name, facts, tools=None if tools == ["*"] else tools, known=_TOOLS)
    _bans(draft, profile.get("cmd-ban"))
    servers = profile.get("mcp_servers")
    for server, value in servers.items() if isinstance(servers, dict) else ():
        if isinstance(value, dict):
            _server(draft, server, value)
    if rest := {key: profile[key] for key in _LATER if key in profile}:
        draft.keep("profiles", {name: rest})


def _server(draft: Draft, name: str, server: JsonObject) -> None:
    facts: JsonObject = {"command": server.get("command"), "env": texts(server.get("env"))}
    arguments = server.get("args")
    facts["args"] = [str(one) for one in arguments] if isinstance(arguments, list) else []
    if server:
        draft.server(text(server.get("name")) or name, facts)
    if rest := {key: server[key] for key in ("envfile", "timeout_seconds") if server.get(key)}:
        draft.keep("mcpServers", {name: rest})


def _bans(draft: Draft, bans: Json) -> None:
    """Convert banned word sequences, which clai refuses anywhere in a command, to deny rules."""
    for ban in bans if isinstance(bans, list) else []:
        if isinstance(ban, str) and ban.strip():
            draft.rule("shell", "deny", f"{ban.strip()}*")
            draft.note("banned words were refused anywhere in a command; here a rule matches a command from its beginning")


def _model(name: str) -> str:
    prefix, colon, rest = name.partition(":")
    return f"{rest}@{_PREFIXES[prefix]}" if colon and prefix in _PREFIXES else name
