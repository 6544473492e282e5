"""Conversion of Codex's `config.toml`: models, profiles, sandbox and MCP servers."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import cast

from moot.formats.kit.configuration import MAX_SETTINGS, ConfigurationBuilder, add_command_files
from moot.formats.kit.fields import items, obj, text
from moot.formats.kit.files import read_inside
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.format import ForeignConfiguration

_FILE = "config.toml"
_ABOVE = 6
"""Maximum number of a session's parent folders to search for settings."""
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "max"}
_READ = ("model", "model_reasoning_effort", "profiles", "profile", "mcp_servers", "sandbox_mode", "sandbox_workspace_write")
_REASONS = {
    "approval_policy": "moot uses its own permissions; set `permissions.mode`",
    "model_providers": "the setting only applies to Codex; add the providers that moot should use to `providers`",
    "notify": "moot has hooks for this: `hooks.Notification`",
    "projects": "trust projects with `moot trust`",
}


def configuration(path: Path) -> ForeignConfiguration:
    draft = ConfigurationBuilder("codex")
    home = next((folder for folder in (path, *path.absolute().parents[:_ABOVE]) if (folder / _FILE).is_file()), None)
    if home is None or not any((home / name).is_dir() for name in ("sessions", "archived_sessions")):
        return draft.found()
    settings = _settings(draft, home)
    if facts := _agent(settings):
        draft.agent("codex", facts)
    for name, profile in obj(settings, "profiles").items():
        facts = _agent(obj(profile))
        draft.agent(f"codex-{name}", facts or {"agent_type": "codex", "model": ""})
        for key in sorted(obj(profile).keys() - {"model", "model_reasoning_effort"}):
            draft.lose(f"profiles.{name}.{key}", _REASONS.get(key, "moot's agents have no such setting"))
    if text(settings, "profile"):
        draft.lose("profile", f"to use it in moot, run `moot -a codex-{text(settings, 'profile')}`")
    _sandbox(draft, settings)
    for name, server in obj(settings, "mcp_servers").items():
        if isinstance(server, dict):
            facts = {key: server.get(key) for key in ("command", "args", "env", "url")}
            draft.server(name, {**facts, "headers": server.get("http_headers")})
    for name in sorted(settings.keys() - set(_READ)):
        draft.lose(f"settings {name}", _REASONS.get(name, "moot has no such setting"), settings[name])
    add_command_files(draft, home / "prompts", home)
    return draft.found()


def _settings(draft: ConfigurationBuilder, home: Path) -> JsonObject:
    data = read_inside(home / _FILE, inside=home, limit=MAX_SETTINGS)
    try:
        found = loads(dumps(cast("Json", tomllib.loads((data or b"").decode()))))
    except (ValueError, TypeError) as error:
        draft.note(f"{_FILE} can't be read: {error}")
        return {}
    return found if isinstance(found, dict) else {}


def _agent(settings: JsonObject) -> JsonObject:
    model, effort = text(settings, "model"), text(settings, "model_reasoning_effort")
    facts: JsonObject = {"reasoning": {"effort": _EFFORTS[effort]}} if effort in _EFFORTS else {}
    return {"agent_type": "codex", "model": model, **facts} if model or facts else {}


def _sandbox(draft: ConfigurationBuilder, settings: JsonObject) -> None:
    workspace = obj(settings, "sandbox_workspace_write")
    if text(settings, "sandbox_mode") == "danger-full-access":
        draft.lose("sandbox_mode", "moot's sandbox is still enabled; to disable it, set `sandbox.enabled: false`")
    if workspace.get("network_access") is True:
        draft.setting("sandbox", "network", value=True)
    if folders := [folder for folder in items(workspace, "writable_roots") if str(folder).startswith(("/", "~/"))]:
        draft.setting("sandbox", "writable", list[Json](folders))
