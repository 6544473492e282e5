"""Agents and MCP servers of TalkCody's database, and the hooks in its settings files."""

from __future__ import annotations

from pathlib import Path

from moot.formats.kit.configuration import ConfigurationBuilder
from moot.formats.kit.database import open_copy, row_objects, tables
from moot.formats.kit.fields import text
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
_REST = ("output_format", "dynamic_enabled", "dynamic_providers", "dynamic_variables", "dynamic_provider_settings", "is_hidden")
_LATER = {
    "skills": "SELECT * FROM skills",
    "scheduled_tasks": "SELECT * FROM scheduled_tasks",
    "projects": "SELECT * FROM projects WHERE id <> 'default'",
}
_SETTINGS = Path(".talkcody") / "settings.json"
_ABOVE = 4
"""Number of folders above the data folder that are searched for the home folder."""


def configuration(database: Path) -> ForeignConfiguration:
    draft = ConfigurationBuilder("talkcody")
    with open_copy(database) as connection:
        there = tables(connection)
        for agent in row_objects(connection, "SELECT * FROM agents ORDER BY id") if "agents" in there else ():
            _agent(draft, agent)
        for server in row_objects(connection, "SELECT * FROM mcp_servers ORDER BY id") if "mcp_servers" in there else ():
            if server.get("is_enabled") or not server.get("is_built_in"):
                _server(draft, server)
        for name, query in _LATER.items():
            if name in there:
                draft.keep(name, list[Json](row_objects(connection, query)))
        projects = row_objects(connection, "SELECT * FROM projects") if "projects" in there else []
    roots = (Path(root) for project in projects if (root := text(project, "root_path")) and Path(root).is_absolute())
    # the home folder and each project may contain settings
    for folder in dict.fromkeys([*database.absolute().parents[1 : _ABOVE + 1], *roots]):
        settings = draft.read(folder / _SETTINGS, folder)
        if hooks := settings.get("hooks"):
            draft.keep("hooks", {str(folder): hooks})
    draft.note("projects: use `moot projects add FOLDER` to add each of them")
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
    if isinstance(skills, list) and skills:
        facts["skills"] = [str(skill) for skill in skills]
    draft.agent(name, facts, tools=tools or None, known=_TOOLS)
    if rest := {key: agent[key] for key in _REST if agent.get(key) not in (None, "", 0, "[]", "{}")}:
        draft.keep("agents", {name: rest})


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
