"""Conversion of TAI's configuration: agents, permissions, cron jobs, webhooks, task watcher, custom tools, channels and context files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from moot.config.document import parse
from moot.config.tree import Place
from moot.errors import ConfigError
from moot.formats.kit.configuration import MAX_SETTINGS, ConfigurationBuilder, add_command, add_custom_tool, add_job, entry_name
from moot.formats.kit.database import open_copy, row_objects, tables
from moot.formats.kit.fields import items, obj, objects, text
from moot.formats.kit.files import files_below, read_inside
from moot.formats.kit.hooks import run_hooks_of
from moot.plugins import CHANNELS
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.format import ForeignConfiguration

CONFIGURATION = "config.yaml"
DATABASE = "agent.db"

_TOOLS = {
    "exec": "shell",
    "read": "read_file",
    "write": "write_file",
    "web_fetch": "fetch_url",
    "web_search": "web_search",
    "ask_user": "ask_user",
    "memory": "memory",
}
_DELEGATING = frozenset({"delegate", "task_status"})
"""TAI's delegation tools. In moot, an agent with a list of `agents` has such tools automatically."""
_BUILT_INTO_MOOT = frozenset({"memory", "read", "write", "web_fetch", "ask_user", "tasks", "projects", "documents"})
"""Sections of `tools` that only enable features that moot always has."""
_INPUT, _OUTPUT = re.compile(r"\{\{\s*input\s*\}\}"), re.compile(r"\{\{\s*output\s*\}\}")
_VARIABLES = ("last_run", "last_response", "next_task", "prompt")
_ACTIONS = {"auto": "allow", "approve": "ask", "conditional": "ask"}
_DATA = {
    "projects": "SELECT * FROM projects",
    "project_tasks": "SELECT * FROM project_tasks",
    "task_comments": "SELECT * FROM task_comments",
    "documents": "SELECT * FROM documents",
}
"""Tables with project data."""

_CONTEXT = 200_000
"""Maximum size of the context files of an agent, in bytes."""

_TASK = {
    "action": "changes",
    "task_id": "task.id",
    "task_title": "task.title",
    "task_status": "task.status",
    "task_description": "task.description",
    "task_author": "task.author",
    "task_tags": "task.tags",
}
"""Variable in the task watcher's prompt → name of the variable in moot."""
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_WATCHED = {"created": ("created",), "updated": ("status", "updated"), "commented": ("commented",)}
_READ = (
    *("providers", "agent", "agents", "profiles", "permissions", "cron", "webhooks", "taskWatcher", "custom_tools", "channels"),
    *("context", "commands", "tools"),
)
"""Sections that are converted or whose settings are reported individually."""


def configuration(home: Path) -> ForeignConfiguration:
    draft = ConfigurationBuilder("tai")
    settings = settings_of(home, draft)
    if isinstance(profiles := settings.get("profiles"), dict):  # the older name of `agents`
        settings["agents"] = {**profiles, **obj(settings, "agents")}
    tools = {**_TOOLS, **_custom_tools(draft, obj(settings, "custom_tools"))}
    _models(draft, settings)
    agents = {name: agent for name, agent in obj(settings, "agents").items() if isinstance(agent, dict)}
    context = _Context(home, text(settings, "context", "directory") or "data/context")
    for name, agent in agents.items():
        _agent(draft, name, agent, tools, [entry_name(other) for other in agents if other != name], context)
    if rules := context.of("", own_only=False):
        draft.note("the texts of the files in context/global were copied to `rules`; later changes to the files have no effect")
        _default_agent(draft, settings, rules)
    elif _default_facts(settings):
        _default_agent(draft, settings, "")
    _permissions(draft, obj(settings, "permissions"), tools)
    _tool_settings(draft, obj(settings, "tools"))
    _cron(draft, home, obj(settings, "cron"), tools)
    _webhooks(draft, obj(settings, "webhooks"))
    _task_watcher(draft, obj(settings, "taskWatcher"))
    _channels(draft, obj(settings, "channels"))
    for name, command in obj(settings, "commands").items():
        _command(draft, name, obj(command))
    for section in sorted(settings.keys() - set(_READ)):
        draft.lose(
            section,
            "moot has its own server and database" if section in ("server", "database") else "moot has no such section",
            settings[section],
        )
    return draft.found()


def settings_of(home: Path, draft: ConfigurationBuilder | None = None) -> JsonObject:
    """Return the settings. If the file can't be read, return nothing and a note."""
    data = read_inside(home / CONFIGURATION, inside=home, limit=MAX_SETTINGS)
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


# ── models and agents ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _models(draft: ConfigurationBuilder, settings: JsonObject) -> None:
    agent, providers = obj(settings, "agent"), obj(settings, "providers")
    for name, provider in providers.items():
        if isinstance(provider, dict):
            found: JsonObject = {"base_url": url} if (url := text(provider, "baseUrl")) else {}
            if key := text(provider, "apiKey"):
                found["api_key"] = draft.secret(f"{name}_api_key", key, "key")
            draft.setting("providers", name, found)
    first = text(agent.get("defaultProvider")) or ("ollama" if "ollama" in providers else "")
    model = text(providers, first, "defaultModel")
    if model:
        draft.setting("models", "main", f"{model}@{first}")
    if fallback := _models_of(agent.get("models")):
        draft.setting("models", "fallback", list[Json](fallback))
    if agent.get("maxContextTokens"):
        draft.lose("agent.maxContextTokens", "moot takes the context size of each model from its model catalog")


def _models_of(value: Json) -> list[str]:
    return [f"{one['model']}@{one['provider']}" for one in objects(value) if one.get("model") and one.get("provider")]


def _default_facts(settings: JsonObject) -> JsonObject:
    agent = obj(settings, "agent")
    facts: JsonObject = {
        "rules": agent.get("extraInstructions"),
        "temperature": agent.get("temperature"),
        "max_steps": agent.get("maxToolRounds"),
    }
    if folders := [path for path in items(settings, "tools", "write", "allowedPaths") if str(path).startswith(("/", "~/"))]:
        facts["allowed_uris"] = folders
    if type(limit := agent.get("maxHistoryTokens")) is int and limit > 0:
        facts["history"] = {"max_tokens": limit}
    return {key: value for key, value in facts.items() if value not in (None, "")}


def _default_agent(draft: ConfigurationBuilder, settings: JsonObject, rules: str) -> None:
    facts = _default_facts(settings)
    if texts := [one for one in (text(facts, "rules"), rules) if one]:
        facts["rules"] = "\n\n".join(texts)
    draft.agent("default", facts)


class _Context:
    """The files that TAI adds to system prompts."""

    def __init__(self, home: Path, folder: str) -> None:
        self._home = home
        self._base = home / folder

    def of(self, agent: str, *, own_only: bool) -> str:
        """Return the global context and the agent's context or, if `own_only` is True, only the agent's. `agent` may be empty."""
        folders = [] if own_only else [self._base / "global"]
        folders += [self._base / "agents" / agent] if agent and "/" not in agent else []
        return "\n\n".join(text for folder in folders for text in self._texts(folder))

    def _texts(self, folder: Path) -> Iterator[str]:
        for file in files_below(folder, ".md", depth=1):
            data = read_inside(file, inside=self._home, limit=_CONTEXT)
            if data and (found := data.decode("utf-8", "replace").strip()):
                yield found


def _agent(
    draft: ConfigurationBuilder, name: str, agent: JsonObject, tools: Mapping[str, str], others: list[str], context: _Context
) -> None:
    model, provider = text(agent.get("model")), text(agent.get("provider"))
    fallback = _models_of(agent.get("models"))
    facts: JsonObject = {
        "description": agent.get("description"),
        "model": f"{model}@{provider}" if model and provider else model or (fallback[0] if fallback else None),
        "instructions": agent.get("instructions"),
        "rules": context.of(name, own_only=agent.get("skipGlobalContext") is True),
        "temperature": agent.get("temperature"),
        "max_steps": agent.get("maxToolRounds"),
    }
    if fallback[1:]:
        facts["fallback"] = list[Json](fallback[1:])
    if hooks := run_hooks_of(draft, name, obj(agent, "hooks"), tools, _VARIABLES):
        facts["hooks"] = hooks
    named = agent.get("tools")
    if isinstance(named, list):
        if "delegate" in named and others:
            facts["agents"] = list[Json](others)
        named = [tool for tool in named if tool not in _DELEGATING]
    draft.agent(name, facts, tools=named, known=tools)
    if agent.get("nudgeOnText"):
        draft.lose(f"agents.{name}.nudgeOnText", "moot ends a run when the model answers with text")
    if agent.get("contextDir"):
        draft.lose(f"agents.{name}.contextDir", "moot has no folder for context files; put the texts into `rules`", agent["contextDir"])


def _custom_tools(draft: ConfigurationBuilder, tools: JsonObject) -> dict[str, str]:
    """Add the custom tools. Return a mapping from their names in TAI to their names in moot."""
    found: dict[str, str] = {}
    for name, tool in tools.items():
        if not isinstance(tool, dict):
            continue
        properties: JsonObject = {key: facts for key, facts in obj(tool, "parameters").items() if isinstance(facts, dict)}
        facts: JsonObject = {"description": tool.get("description"), "command": text(tool, "command")}
        facts["parameters"] = {"properties": properties, "required": list[Json](properties)} if properties else None
        timeout = tool.get("timeout_ms")
        facts["timeout"] = min(max(timeout / 1000, 0.1), 3600) if isinstance(timeout, int | float) else 30
        if ours := add_custom_tool(draft, name, facts):
            found[name] = ours
    return found


def _command(draft: ConfigurationBuilder, name: str, command: JsonObject) -> None:
    """Add a slash command. Its shell line runs before the prompt, and the output is inserted before the prompt."""
    line, prompt = text(command, "command").strip(), text(command, "prompt")
    if "`" in line or "\n" in line:
        draft.lose(f"commands {name!r}", "a shell line in a command can't contain backquotes or line breaks", command)
        return
    line, prompt = (_INPUT.sub("$ARGUMENTS", each) for each in (line, prompt))
    shown = _OUTPUT.sub("(the output of the command above)", prompt) or "Show the output of the command as it is."
    facts: JsonObject = {"description": text(command, "description"), "agent": text(command, "agent")}
    add_command(draft, name, {**facts, "prompt": f"!`{line}`\n\n{shown}" if line else prompt})
    if command.get("new_session"):
        draft.lose(f"commands.{name}.new_session", "moot's commands continue the conversation; start a new one before you run the command")


def _permissions(draft: ConfigurationBuilder, permissions: JsonObject, tools: Mapping[str, str]) -> None:
    if not permissions:
        return
    if permissions.get("defaultMode") == "auto":
        draft.note("tools without a rule were allowed; in moot, calls without a matching rule need approval")
    timeout = permissions.get("timeoutMs")
    if isinstance(timeout, int) and timeout >= 0:
        draft.setting("permissions", "timeout", timeout / 1000)
    if permissions.get("timeoutAction") == "auto_approve":
        draft.lose("permissions.timeoutAction", "moot never allows a call when an approval times out")
    for name, tool in obj(permissions, "tools").items():
        rule = obj(tool)
        mode = str(rule.get("mode"))
        if name in tools and mode in _ACTIONS:
            draft.rule(tools[name], "allow" if mode == "auto" else "ask")
        if name not in tools:
            draft.lose(f"permissions for {name!r}", "no equivalent for the tool", rule)
        elif mode not in ("auto", "approve"):
            reason = "moot has no equivalent for rules about arguments, so every call without another rule needs approval"
            draft.lose(f"permissions for {name!r}", reason, rule)


def _tool_settings(draft: ConfigurationBuilder, tools: JsonObject) -> None:
    for name, section in tools.items():
        options = obj(section)
        if options.get("enabled") is False:
            if name in _TOOLS:
                draft.rule(_TOOLS[name], "deny")
        elif name == "exec":
            for command in items(options, "allowedCommands"):
                draft.rule("shell", "allow", f"{command} *")
        elif name == "web_search":
            facts: JsonObject = {"provider": text(options, "provider") or "brave"}
            if key := text(options, "apiKey"):
                facts["api_key"] = draft.secret("web_search_api_key", key, "key")
            draft.entry("tools", "web_search", facts)
        elif name == "read" and items(options, "allowedPaths"):
            draft.lose("tools.read.allowedPaths", "moot has one list of folders for reading and writing; the `write` list is used", options)
        elif name not in _BUILT_INTO_MOOT:
            draft.lose(f"tools.{name}", "moot has no such tool", options)


# ── scheduled and triggered runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cron(draft: ConfigurationBuilder, home: Path, cron: JsonObject, tools: Mapping[str, str]) -> None:
    jobs = objects(cron, "jobs")
    if cron.get("enabled") is False and jobs:
        draft.lose("cron", "it is disabled, but moot's jobs are always enabled", list[Json](jobs))
        jobs = []
    known = {text(job, "name") for job in objects(cron, "jobs")}
    for job in jobs:
        _job(draft, job, tools)
    if not (home / DATABASE).is_file():
        return
    with open_copy(home / DATABASE) as connection:
        there = tables(connection)
        for row in row_objects(connection, "SELECT * FROM cron_jobs") if "cron_jobs" in there else ():
            if text(row, "name") not in known:  # all other jobs are also in the configuration file
                _job(
                    draft,
                    {**row, "prompt": row.get("task"), "sessionKey": row.get("session_key"), "enabled": bool(row.get("enabled"))},
                    tools,
                )
        for table, query in _DATA.items():
            if table in there and (rows := [*row_objects(connection, query)]):
                draft.lose(
                    f"{table} of {DATABASE}", f"{len(rows)} rows of project data, which are not part of the configuration", list[Json](rows)
                )


def _job(draft: ConfigurationBuilder, job: JsonObject, tools: Mapping[str, str]) -> None:
    name = text(job, "name") or "job"
    if job.get("enabled") is False:
        draft.lose(f"cron job {name!r}", "it is disabled, but moot's jobs are always enabled", job)
        return
    facts: JsonObject = {"prompt": text(job, "prompt"), "cron": text(job, "schedule"), "agent": _named(job)}
    facts |= {"model": text(job, "model"), "fresh": job.get("newSession") is True}
    hooks = run_hooks_of(draft, name, obj(job, "hooks"), tools, _VARIABLES)
    if hooks and "hooks" in attribute("moot.config.schema:fields_at")(("cron", name)):
        facts["hooks"] = hooks
    elif hooks:
        draft.lose(f"cron job {name!r}", "moot's cron jobs have no hooks; move them to the job's agent", hooks)
    if not (ours := add_job(draft, name, facts)):
        return
    if job.get("wakeAgent") is False:
        draft.change("cron", ours, "wake", value=False)
    if text(job, "sessionKey"):
        draft.lose(f"cron job {name!r}", "its session key is not used; in moot, each job continues its own conversation")
    _delivery(draft, f"cron job {name!r}", obj(job, "delivery"))


def _named(section: JsonObject) -> str:
    """Return the name of the agent in a section. `profile` is the older key."""
    name = text(section, "agent") or text(section, "profile")
    return entry_name(name) if name else ""


def _delivery(draft: ConfigurationBuilder, what: str, delivery: JsonObject) -> None:
    if (channel := text(delivery, "channel")) not in ("", "log"):
        draft.lose(what, f"answers are not delivered to {channel}; they are stored in its conversation", delivery)


def _webhooks(draft: ConfigurationBuilder, webhooks: JsonObject) -> None:
    secret = text(webhooks, "secret")
    for route in objects(webhooks, "routes"):
        path = text(route, "path").strip("/") or "webhook"
        if route.get("action") == "log" or not text(route, "messageTemplate").strip():
            draft.lose(f"webhooks {path!r}", "moot's webhooks always start a run", route)
            continue
        facts: JsonObject = {
            "prompt": text(route, "messageTemplate"),
            "secret": draft.secret("tai_webhook_secret", secret or "unset", "secret"),
            "auth": "bearer",
            "agent": _named(route),
            "conversation": "" if route.get("newSession") is True else text(route, "sessionKey") or f"webhook:{path}",
        }
        if webhooks.get("enabled") is False:
            facts["enabled"] = False
        if (ours := draft.entry("webhooks", path, facts)) != path:
            draft.note(f"the webhook {path!r} is now {ours}")
        draft.note("webhooks are at /api/webhooks/NAME and respond immediately with a link to the run")


def _task_watcher(draft: ConfigurationBuilder, watcher: JsonObject) -> None:
    if not text(watcher, "prompt").strip():
        return
    unknown = [name for name in _PLACEHOLDER.findall(text(watcher, "prompt")) if name not in _TASK]
    if unknown:
        draft.lose("taskWatcher", f"unknown variables in its prompt: {', '.join(unknown)}", watcher)
        return
    agent, wait = _named(watcher), watcher.get("debounceMs")
    triggers = [str(one) for one in items(watcher, "triggers")] or ["created", "updated"]
    facts: JsonObject = {
        "prompt": _PLACEHOLDER.sub(lambda found: f"{{{{{_TASK[found[1]]}}}}}", text(watcher, "prompt")),
        "events": [event for trigger in triggers for event in _WATCHED.get(trigger, ())],
        "agent": agent,
        "fresh": bool(agent) or None,  # in TAI, a task watcher with an agent starts a new session for each event
        "debounce": wait / 1000 if isinstance(wait, int | float) and 0 <= wait <= 86_400_000 else None,
    }
    draft.entry("task_watchers", "tai", {**facts, "enabled": watcher.get("enabled") is True})
    _delivery(draft, "taskWatcher", obj(watcher, "delivery"))
    if hooks := obj(watcher, "hooks"):
        draft.lose("taskWatcher hooks", "moot's task watchers have no hooks; move them to the agent", hooks)


def _channels(draft: ConfigurationBuilder, channels: JsonObject) -> None:
    for name, section in channels.items():
        options = obj(section)
        if name != "discord" or name not in CHANNELS:
            draft.lose(f"channels.{name}", "moot has no such channel", options)
        elif options.get("enabled") is False:
            draft.lose(f"channels.{name}", "it is disabled, but moot's channels are always enabled", options)
        else:
            owner = text(options, "owner")
            facts: JsonObject = {"token": draft.secret("discord_token", text(options, "token") or "unset", "token")}
            facts |= {"users": [owner] if owner else [], "guilds": items(options, "allowedGuilds")}
            draft.entry("channels", name, facts)
            for key in ("respondToDMs", "respondToMentions"):
                if options.get(key) is False:
                    draft.lose(
                        f"channels.{name}.{key}", "moot always answers direct messages and mentions from the allowed users and servers"
                    )
