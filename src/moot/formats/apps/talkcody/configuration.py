"""Conversion of the agents, MCP servers and tasks in TalkCody's database, and of the hooks in its settings files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from moot.formats.kit.configuration import ConfigurationBuilder, add_job
from moot.formats.kit.database import open_copy, row_objects, tables
from moot.formats.kit.fields import milliseconds, obj, text
from moot.formats.kit.hooks import add_command_hooks
from moot.formats.kit.json import json_object, json_value
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

_TOOLS = {
    "readFile": "read_file",
    "glob": "find_files",
    "codeSearch": "search_files",
    "listFiles": "list_files",
    "writeFile": "write_file",
    "editFile": "edit_file",
    "bash": "shell",
    "webSearch": "web_search",
    "webFetch": "fetch_url",
    "imageGeneration": "generate_image",
    "todoWrite": "todo",
    "askUserQuestions": "ask_user",
}
_MODELS = {
    "main_model": "main",
    "small_model": "small",
    "message_compaction": "compaction",
    "image_generator": "image",
    "transcription": "transcription",
}
_PARTS = {
    "env": "environment",
    "agents_md": "agents_md",
    "output_format": "output_format",
    "skills": "skills",
    "subagents": "sub_agents",
    "global_memory": "memory",
    "project_memory": "memory",
}
"""Provider in TalkCody's dynamic prompts → equivalent part of moot's system prompts."""

_SKILLS = "moot uses skills in ~/.talkcody/skills and .talkcody/skills; run 'moot skills add FOLDER' for others"

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SETTINGS = Path(".talkcody") / "settings.json"
_ABOVE = 4
"""Maximum number of the database's parent folders to search for settings files."""


def configuration(database: Path) -> ForeignConfiguration:
    draft = ConfigurationBuilder("talkcody")
    with open_copy(database) as connection:
        there = tables(connection)
        for agent in row_objects(connection, "SELECT * FROM agents ORDER BY id") if "agents" in there else ():
            _agent(draft, agent)
        for server in row_objects(connection, "SELECT * FROM mcp_servers ORDER BY id") if "mcp_servers" in there else ():
            if server.get("is_enabled") or not server.get("is_built_in"):
                _server(draft, server)
        projects = [*row_objects(connection, "SELECT * FROM projects")] if "projects" in there else []
        for task in row_objects(connection, "SELECT * FROM scheduled_tasks ORDER BY id") if "scheduled_tasks" in there else ():
            _job(draft, task, {str(project.get("id")): text(project, "root_path") for project in projects})
        for skill in row_objects(connection, "SELECT * FROM skills ORDER BY id") if "skills" in there else ():
            draft.lose(f"skills {text(skill, 'name') or skill.get('id')!r}", _SKILLS, skill)
    roots = (Path(root) for project in projects if (root := text(project, "root_path")) and Path(root).is_absolute())
    # the home folder and each project may contain settings
    projects_of = [*roots]
    for folder in dict.fromkeys([*database.absolute().parents[1 : _ABOVE + 1], *projects_of]):
        settings = draft.read(folder / _SETTINGS, folder)
        if folder not in projects_of:
            add_command_hooks(draft, obj(settings, "hooks"), _TOOLS, "TALKCODY_PROJECT_DIR")
        elif hooks := settings.get("hooks"):
            draft.lose(f"hooks of the project {folder}", "add them to its .moot/config.yaml", hooks)
    draft.note("projects were left out: `moot import` adds the projects of imported conversations")
    return draft.found()


def _agent(draft: ConfigurationBuilder, agent: JsonObject) -> None:
    if agent.get("source_type") == "system" or agent.get("is_enabled") == 0:
        return
    name = text(agent.get("name")) or str(agent.get("id"))
    offered = json_value(agent.get("tools_config"))
    tools: Json = list[Json](offered) if isinstance(offered, dict) else offered
    skills = json_value(agent.get("default_skills"))
    facts: JsonObject = {
        "description": agent.get("description"),
        "model": _MODELS.get(text(agent.get("model_type")), "main"),
        "instructions": agent.get("system_prompt"),
        "rules": agent.get("rules"),
    }
    facts |= {"output_format": agent.get("output_format"), **({"hidden": True} if agent.get("is_hidden") else {})}
    if agent.get("dynamic_enabled"):
        facts |= _dynamic(draft, name, agent)
    if isinstance(skills, list) and skills:
        draft.lose(f"agents.{name}.default_skills", _SKILLS, skills)
    if isinstance(tools, list) and "callAgent" in tools:
        draft.lose(f"agents.{name}.callAgent", "it does not name the agents that may be called; list them in `agents`")
        tools = [tool for tool in tools if tool != "callAgent"]
    draft.agent(name, facts, tools=tools or None, known=_TOOLS)
    if (rest := agent.get("dynamic_provider_settings")) not in (None, "", 0, "[]", "{}"):
        draft.lose(f"agents.{name}.dynamic_provider_settings", "the parts of moot's system prompts have no such settings", rest)


def _job(draft: ConfigurationBuilder, task: JsonObject, folders: Mapping[str, str]) -> None:
    """Add a scheduled task as a cron job."""
    name = text(task, "name") or str(task.get("id"))
    if task.get("status") not in (None, "enabled"):
        draft.lose(f"cron job {name!r}", f"its status is {task.get('status')}, but moot's jobs are always enabled", task)
        return
    kind, every, at = text(task, "schedule_kind"), task.get("schedule_every_ms"), task.get("schedule_at")
    facts: JsonObject = {"prompt": text(task, "payload_message"), "tz": text(task, "schedule_tz") if kind != "every" else ""}
    if kind == "every" and isinstance(every, int | float):
        facts["every"] = every / 1000
    elif kind == "at":
        facts["at"] = _moment(at)
    else:
        facts["cron"] = text(task, "schedule_cron_expr")
    attempts = task.get("retry_max_attempts")
    facts |= {
        "model": text(task, "payload_model"),
        "mode": "edits" if task.get("payload_auto_approve_edits") else None,
        "directory": folders.get(str(task.get("project_id"))) or None,
        "retries": min(attempts, 10) if type(attempts) is int and attempts > 0 else None,
    }
    if not (ours := add_job(draft, name, facts)):
        return
    if task.get("exec_catch_up") in (0, False):
        draft.change("cron", ours, "catch_up", value=False)
    for key, words in (("delivery_policy_json", "delivery"), ("offline_policy_json", "offline runner")):
        if json_object(task.get(key)).get("enabled") is True:
            draft.lose(
                f"cron job {name!r}", f"its {words} is not used; moot serve runs the job and stores answers in its conversation", task[key]
            )
    if task.get("payload_auto_approve_plan"):
        draft.lose(f"cron job {name!r}", "moot never approves plans automatically")


def _moment(at: Json) -> str:
    """Convert a time, in ms or as text, to ISO 8601."""
    ms = milliseconds(at)
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat() if ms else str(at or "")


def _dynamic(draft: ConfigurationBuilder, name: str, agent: JsonObject) -> JsonObject:
    """Return an agent's dynamic prompt as the settings `prompt` and `instructions`, with moot's names for the parts."""
    providers = json_value(agent.get("dynamic_providers"))
    named = [str(provider) for provider in providers] if isinstance(providers, list) else []
    if unknown := [provider for provider in named if provider not in _PARTS]:
        draft.lose(f"agents.{name}.dynamic_providers", f"no equivalent for {', '.join(unknown)}")
    parts = dict.fromkeys(["instructions", *(_PARTS[provider] for provider in named if provider in _PARTS)])
    variables: JsonObject = {key: str(value) for key, value in json_object(agent.get("dynamic_variables")).items()}
    prompt: JsonObject = {"parts": list[Json](parts), **({"variables": variables} if variables else {})}
    instructions = _PLACEHOLDER.sub(lambda match: f"{{{{{_PARTS.get(match[1], match[1])}}}}}", text(agent, "system_prompt"))
    return {"prompt": prompt, "instructions": instructions}


def _server(draft: ConfigurationBuilder, server: JsonObject) -> None:
    if server.get("protocol") == "stdio":
        facts: JsonObject = {"command": server.get("stdio_command"), "env": json_value(server.get("stdio_env"))}
        facts["args"] = json_value(server.get("stdio_args"))
    else:
        headers = json_object(server.get("headers"))
        if (key := text(server, "api_key")) and headers.get("Authorization") is None:
            headers["Authorization"] = f"Bearer {key}"
        facts = {"url": server.get("url"), "protocol": server.get("protocol"), "headers": headers}
    draft.server(text(server.get("name")) or str(server.get("id")), facts)
