"""TAI's `config.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from moot.config.document import parse
from moot.config.tree import Place
from moot.errors import ConfigError
from moot.formats._source.beside import beside
from moot.formats._source.configuring import Draft
from moot.formats._source.database import object_of as row_object
from moot.formats._source.database import opened, rows
from moot.formats._source.fields import objects, text
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.format import ForeignConfiguration

__all__ = ["CONFIGURATION", "configuration", "settings_of"]

CONFIGURATION = "config.yaml"
_TOOLS = {
    "exec": "shell",
    "read": "read_file",
    "write": "write_file",
    "web_fetch": "fetch_url",
    "web_search": "web_search",
    "ask_user": "ask_user",
}
_ACTIONS = {"auto": "allow", "approve": "ask", "conditional": "ask"}
_LATER = ("cron", "webhooks", "taskWatcher", "commands", "custom_tools", "channels", "context")
_TABLES = {
    "projects": "SELECT * FROM projects",
    "project_tasks": "SELECT * FROM project_tasks",
    "task_comments": "SELECT * FROM task_comments",
    "documents": "SELECT * FROM documents",
    "cron_jobs": "SELECT * FROM cron_jobs",
}
_SMALL = 4 << 20


def configuration(home: Path) -> ForeignConfiguration:
    draft = Draft("tai")
    settings = settings_of(home, draft)
    if isinstance(profiles := settings.get("profiles"), dict):  # the older name
        settings["agents"] = {**profiles, **_object(settings.get("agents"))}
    _models(draft, settings)
    for name, agent in _object(settings.get("agents")).items():
        if isinstance(agent, dict):
            _agent(draft, name, agent)
    _permissions(draft, _object(settings.get("permissions")))
    for section in _LATER:
        draft.keep(section, settings.get(section))
    draft.keep("tools", settings.get("tools"))
    _tables(draft, home / "agent.db")
    return draft.found()


def settings_of(home: Path, draft: Draft | None = None) -> JsonObject:
    """Return the settings, or nothing and a note if the file can't be read."""
    data = beside(home / CONFIGURATION, inside=home, limit=_SMALL)
    if data is None:
        return {}
    try:
        content = data.decode()
        parse(content, Place("user", str(home / CONFIGURATION)))  # rejects YAML bombs, tags and duplicate keys
        value = cast("Any", YAML(typ="safe", pure=True)).load(content)
        found = loads(dumps(value))
    except (ConfigError, YAMLError, ValueError) as error:
        if draft is not None:
            draft.note(f"{CONFIGURATION} can't be read: {error}")
        return {}
    return found if isinstance(found, dict) else {}


def _models(draft: Draft, settings: JsonObject) -> None:
    agent, providers = _object(settings.get("agent")), _object(settings.get("providers"))
    for name, provider in providers.items():
        if isinstance(provider, dict):
            draft.setting("providers", name, _provider(draft, name, provider))
    first = text(agent.get("defaultProvider")) or ("ollama" if "ollama" in providers else "")
    model = text(_object(providers.get(first)).get("defaultModel"))
    if model:
        draft.setting("models", "main", f"{model}@{first}")
    if fallback := _models_of(agent.get("models")):
        draft.setting("models", "fallback", list[Json](fallback))
    facts: JsonObject = {
        "rules": agent.get("extraInstructions"),
        "temperature": agent.get("temperature"),
        "max_steps": agent.get("maxToolRounds"),
    }
    if type(limit := agent.get("maxHistoryTokens")) is int and limit > 0:
        facts["history"] = {"max_tokens": limit}
    if any(value not in (None, "") for value in facts.values()):
        draft.agent("default", facts)


def _provider(draft: Draft, name: str, provider: JsonObject) -> JsonObject:
    found: JsonObject = {}
    if url := text(provider.get("baseUrl")):
        found["base_url"] = url
    if key := text(provider.get("apiKey")):
        found["api_key"] = draft.secret(f"{name}_api_key", key, "key")
    return found


def _models_of(value: Json) -> list[str]:
    return [f"{one['model']}@{one['provider']}" for one in objects(value) if one.get("model") and one.get("provider")]


def _agent(draft: Draft, name: str, agent: JsonObject) -> None:
    model, provider = text(agent.get("model")), text(agent.get("provider"))
    fallback = _models_of(agent.get("models"))
    facts: JsonObject = {
        "description": agent.get("description"),
        "model": f"{model}@{provider}" if model and provider else model or (fallback[0] if fallback else None),
        "instructions": agent.get("instructions"),
        "temperature": agent.get("temperature"),
        "max_steps": agent.get("maxToolRounds"),
    }
    if fallback[1:]:
        facts["fallback"] = list[Json](fallback[1:])
    draft.agent(name, facts, tools=agent.get("tools"), known=_TOOLS)
    rest = {
        key: value
        for key, value in agent.items()
        if key in ("hooks", "contextDir", "nudgeOnText", "nudgeMessage", "skipGlobalContext", "summarizeOnTrim")
    }
    if rest:
        draft.keep("agents", {name: rest})


def _permissions(draft: Draft, permissions: JsonObject) -> None:
    if not permissions:
        return
    if permissions.get("defaultMode") == "auto":
        draft.note("everything without a rule was allowed; here calls without a matching rule need approval")
    timeout = permissions.get("timeoutMs")
    if isinstance(timeout, int) and timeout >= 0:
        draft.setting("permissions", "timeout", timeout / 1000)
    for name, tool in _object(permissions.get("tools")).items():
        rule = _object(tool)
        mode = str(rule.get("mode"))
        if name in _TOOLS and mode in _ACTIONS:
            draft.rule(_TOOLS[name], "allow" if mode == "auto" else "ask")
        if name not in _TOOLS or mode not in ("auto", "approve"):
            draft.keep("permissions", {name: rule})  # TAI's rules are expressions over arguments, moot's are patterns over resources


def _tables(draft: Draft, database: Path) -> None:
    if not database.is_file():
        return
    with opened(database) as connection:
        for name, query in _TABLES.items():
            draft.keep(f"{name} (agent.db)", [row_object(row) for row in rows(connection, query) if not isinstance(row, str)])


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
