"""Conversion of Mutsumi's settings, which are part of the editor's settings, to moot's configuration."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path

from moot.formats.kit.configuration import MAX_SETTINGS, ConfigurationBuilder, entry_name, server_name
from moot.formats.kit.fields import items, obj, objects, text
from moot.formats.kit.files import read_inside
from moot.formats.kit.json import json_value
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SETTINGS = "settings.json"
_HOMES = (Path(".config"), Path("Library") / "Application Support")
_ABOVE = 12
"""Maximum number of a project's parent folders to search for user settings."""
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
"""Built-in tool sets. They are used if the settings define none."""
_ALL: list[Json] = ["read", "deliver", "dispatch"]
_OF_TYPES: JsonObject = {"chat": ["read"], "reviewer": ["read"], "implementer": _ALL, "orchestrator": _ALL}
"""Agent type → its tool sets. They apply to built-in types if the settings don't contain them."""
_MODELS = {"defaultModel": "main", "titleGeneratorModel": "small", "compressModel": "compaction"}
_CHILDREN: Mapping[str, tuple[str, ...]] = {
    "implementer": ("implementer", "reviewer"),
    "orchestrator": ("implementer", "reviewer"),
}
"""Agent type → the types that it may start. They apply to built-in types if the settings don't contain them."""
_DISPATCH = "dispatch_subagents"
_RULES = Path(".mutsumi") / "rules"
_RULE_BYTES = 200_000
_SERVER_REASON = "moot's MCP servers have no such setting"
_LOST = {
    "httpServer": "moot has its own server; see docs/server.md",
    "embedding": "moot uses its own model for search",
    "rag": "moot uses its own model for search",
}
"""Beginning of a setting's name → reason why the setting is lost."""


def configuration(source: Path) -> ForeignConfiguration:
    """Convert the settings of the project that contains the notebooks. Project settings override user settings."""
    draft = ConfigurationBuilder("mtm")
    settings: JsonObject = {}
    for place, file in _files(source):
        settings |= _read(draft, place, file)
    _models(draft, settings)
    servers = {name: server for name, server in obj(settings.pop("mcpServers", None)).items() if isinstance(server, dict)}
    _agents(draft, settings.pop("agentConfig", None), _project_of(source), servers)
    for name, server in servers.items():
        _server(draft, name, server)
    if settings.pop("autoApproveEnabled", False) is True:
        draft.note("all tool calls were approved automatically; in moot, calls without a matching rule need approval")
    for name, value in settings.items():
        reason = next((reason for word, reason in _LOST.items() if name.startswith(word)), "moot has no such setting")
        draft.lose(f"settings {name}", reason, value)
    return draft.found()


def _files(source: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each settings file together with the folder that must contain it. Later files take precedence."""
    project = _project_of(source)
    for above in islice(project.parents, _ABOVE):
        for editor in EDITORS:
            for home in _HOMES:
                yield above, above / home / editor / "User" / _SETTINGS
    yield project, project / ".vscode" / _SETTINGS


def _project_of(source: Path) -> Path:
    folder = source.absolute() if source.is_dir() else source.absolute().parent
    return folder.parent if folder.name == ".mutsumi" else folder


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


def _agents(draft: ConfigurationBuilder, value: Json, project: Path, servers: Collection[str]) -> None:
    sets: JsonObject = {**_SETS, **obj(value, "toolSets")}
    types = {name: agent for name, agent in obj(value, "agentTypes").items() if isinstance(agent, dict)}
    for name, agent in types.items():
        named = agent.get("toolSets", _OF_TYPES.get(name))
        tools = [tool for one in items(named) if isinstance(one, str) for tool in items(sets, one)]
        facts: JsonObject = {"model": _model(agent.get("defaultModel")), "rules": _rules(draft, name, agent, project)}
        if agent.get("isEntry") is False:
            facts["hidden"] = True
        if _DISPATCH in tools:
            facts["agents"] = _children(draft, name, agent, [*types])
        if skills := [one for one in items(agent.get("defaultSkills")) if isinstance(one, str)]:
            facts["skills"] = list[Json](skills)
        if wanted := [one for one in items(agent.get("defaultMcpServers")) if isinstance(one, str)]:
            facts["mcp"] = list[Json](server_name(one) for one in wanted if one in servers)
            if unknown := [one for one in wanted if one not in servers]:
                draft.lose(f"agents.{name}.defaultMcpServers", f"the settings don't define the MCP servers {', '.join(unknown)}")
        offered: Json = [tool for tool in tools if tool not in (_DISPATCH, "get_agent_types")] if isinstance(named, list) else None
        draft.agent(name, facts, tools=offered, known=_TOOLS)


def _children(draft: ConfigurationBuilder, name: str, agent: JsonObject, types: list[str]) -> list[Json]:
    """Return the names of the agents that this agent may start."""
    named: Json = agent["allowedChildTypes"] if "allowedChildTypes" in agent else list[Json](_CHILDREN.get(name, ()))
    wanted = [one for one in items(named) if isinstance(one, str)]
    if unknown := [one for one in wanted if one not in types]:
        draft.lose(f"agents.{name}.allowedChildTypes", f"the settings don't define the agent types {', '.join(unknown)}")
    return [entry_name(one) for one in wanted if one in types]


def _rules(draft: ConfigurationBuilder, name: str, agent: JsonObject, project: Path) -> str:
    """Return the current texts of the agent's default rule files."""
    found: list[str] = []
    for file in items(agent, "defaultRules"):
        data = read_inside(project / _RULES / str(file), inside=project, limit=_RULE_BYTES)
        if data is None:
            draft.lose(f"agents.{name}.defaultRules", f"the file {str(_RULES / str(file))!r} is not in the project")
        elif content := data.decode("utf-8", "replace").strip():
            found.append(content)
            draft.note("the texts of rule files were copied to the agents' `rules`; later changes to the files have no effect")
    return "\n\n".join(found)


def _server(draft: ConfigurationBuilder, name: str, server: JsonObject) -> None:
    draft.server(name, {key: server.get(key) for key in ("command", "env", "url", "args", "headers")})
    for key in ("cwd", "timeout"):
        if server.get(key):
            draft.lose(f"mcp server {name!r}: {key}", _SERVER_REASON, server[key])
