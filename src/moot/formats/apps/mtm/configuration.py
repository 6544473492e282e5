"""Mutsumi's settings, stored in its editor's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from moot.formats.kit.configuration import MAX_SETTINGS, ConfigurationBuilder
from moot.formats.kit.fields import items, obj, objects, text
from moot.formats.kit.files import read_inside
from moot.formats.kit.json import json_value
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SETTINGS = "settings.json"
_HOMES = (Path(".config"), Path("Library") / "Application Support")
_ABOVE = 12
"""Number of folders above a project that are searched for user settings."""
_PREFIX = "mutsumi."
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_TOOLS = {
    "read": "read_file",
    "glob": "find_files",
    "find_filename": "find_files",
    "grep": "search_files",
    "shell": "shell",
    "write": "write_file",
    "edit": "edit_file",
}
_SETS: JsonObject = {
    "read": [
        *("read", "glob", "grep", "find_filename", "get_env_var", "system_info", "project_outline", "diagnostics", "query_codebase"),
        *("inspect_shell_task", "kill_shell_task"),
    ],
    "deliver": ["shell", "write", "edit", "mkdir"],
    "dispatch": ["dispatch_subagents", "get_agent_types"],
}
"""Built-in tool sets, used if the settings define none."""
_ALL: list[Json] = ["read", "deliver", "dispatch"]
_OF_TYPES: JsonObject = {"chat": ["read"], "reviewer": ["read"], "implementer": _ALL, "orchestrator": _ALL}
"""Tool sets of the built-in agent types, which settings may omit."""
_MODELS = {"defaultModel": "main", "titleGeneratorModel": "small", "compressModel": "compaction"}
_LATER = ("defaultRules", "allowedChildTypes", "isEntry")


def configuration(source: Path) -> ForeignConfiguration:
    """Convert the settings of the project that contains the notebooks. Project settings override user settings."""
    draft = ConfigurationBuilder("mtm")
    settings: JsonObject = {}
    for place, file in _files(source):
        settings |= _read(draft, place, file)
    _models(draft, settings)
    _agents(draft, settings.pop("agentConfig", None))
    for name, server in obj(settings.pop("mcpServers", None)).items():
        if isinstance(server, dict):
            _server(draft, name, server)
    if settings.pop("autoApproveEnabled", False) is True:
        draft.note("all tool calls were approved automatically; here calls without a matching rule need approval")
    draft.keep("settings", settings)
    return draft.found()


def _files(source: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each settings file with the folder that must contain it. Later files take precedence."""
    folder = source.absolute() if source.is_dir() else source.absolute().parent
    project = folder.parent if folder.name == ".mutsumi" else folder
    for above in islice(project.parents, _ABOVE):
        for editor in EDITORS:
            for home in _HOMES:
                yield above, above / home / editor / "User" / _SETTINGS
    yield project, project / ".vscode" / _SETTINGS


def _read(draft: ConfigurationBuilder, folder: Path, file: Path) -> JsonObject:
    """Return the Mutsumi settings of a file without their prefix. Comments are allowed."""
    data = read_inside(file, inside=folder, limit=MAX_SETTINGS)
    if data is None:
        return {}
    plain = _TOKEN.sub(lambda found: found[1] or " ", data.decode("utf-8", "replace"))
    value = json_value(_COMMA.sub(lambda found: found[1] or " ", plain))
    if not isinstance(value, dict):
        draft.note(f"{str(file)!r} is not a JSON object")
        return {}
    return {name.removeprefix(_PREFIX): one for name, one in value.items() if name.startswith(_PREFIX)}


def _models(draft: ConfigurationBuilder, settings: JsonObject) -> None:
    lists = settings.pop("models", None)
    for provider in objects(settings.pop("providers", None)):
        name = text(provider.get("name"))
        models = obj(lists).get(name)
        found: JsonObject = {"base_url": text(provider.get("baseurl"))}
        if key := text(provider.get("api_key")):
            found["api_key"] = draft.secret(f"{name}_api_key", key, "key")
        if isinstance(models, list):
            found["models"] = {model: {} for model in models if isinstance(model, str)}
        if name:
            draft.setting("providers", name, found)
    for name, ours in _MODELS.items():
        draft.setting("models", ours, _model(settings.pop(name, None)))


def _model(value: Json) -> str:
    model, provider = text(value, "model"), text(value, "provider")
    return f"{model}@{provider}" if model and provider else model


def _agents(draft: ConfigurationBuilder, value: Json) -> None:
    sets: JsonObject = {**_SETS, **obj(value, "toolSets")}
    for name, agent in obj(value, "agentTypes").items():
        if isinstance(agent, dict):
            named = agent.get("toolSets", _OF_TYPES.get(name))
            tools = [tool for one in items(named) if isinstance(one, str) for tool in items(sets, one)]
            facts: JsonObject = {"model": _model(agent.get("defaultModel"))}
            facts |= {
                ours: agent[theirs] for theirs, ours in (("defaultSkills", "skills"), ("defaultMcpServers", "mcp")) if agent.get(theirs)
            }
            draft.agent(name, facts, tools=tools if isinstance(named, list) else None, known=_TOOLS)
            if rest := {key: agent[key] for key in _LATER if key in agent}:
                draft.keep("agentTypes", {name: rest})


def _server(draft: ConfigurationBuilder, name: str, server: JsonObject) -> None:
    draft.server(name, {key: server.get(key) for key in ("command", "env", "url", "args", "headers")})
    if rest := {key: server[key] for key in ("cwd", "timeout") if server.get(key)}:
        draft.keep("mcpServers", {name: rest})
