"""The commands of `moot agents` that write files: new, edit, copy and remove."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.commands.agents import agent_of, report_saved
from moot.cli.commands.extensions.skills import Index, confirmed, index_places
from moot.cli.console.lines import write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.output import Out
from moot.cli.terminal.prompts.editor import edit_checked
from moot.config.agents.files import FOLDER, SUFFIX
from moot.config.changes import checked, create_agent, new_path, write_agent
from moot.config.home import home_of, lock_file
from moot.errors import ConfigError, Refused, UsageError
from moot.features.agents import change_agent, copy_agent, delete_agent, stored_path
from moot.guard.hidden import warning_of
from moot.skills.market import content_of, entry_named, read_indexes
from moot.types.canonical import Json, JsonObject

Name = Annotated[str, Parameter(kind="agent", help="Name of the agent.")]
NewName = Annotated[str, Parameter(help="Name of the new agent. It can contain letters, digits, - and _.")]

_TEMPLATE = """\
---
description: What the agent is for
# model: main
# tools: [read_file, search_files]
# role: read
---

You are …
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFields:
    """Options that set an agent's fields."""

    description: Annotated[str | None, Parameter(metavar="TEXT", help="Short description.")] = None
    instructions: Annotated[str | None, Parameter(metavar="TEXT", help="System prompt.")] = None
    model: Annotated[str | None, Parameter(name=("--model", "-m"), kind="model", help="Model of the agent.")] = None
    tools: Annotated[
        str | None, Parameter(kind="tool", metavar="TOOLS", help="Tools for the agent, separated by commas. An empty value means no tools.")
    ] = None

    def values(self) -> JsonObject:
        """Return the fields that were given as options. An empty text resets a field to its default."""
        texts = {"description": self.description, "instructions": self.instructions, "model": self.model}
        values: JsonObject = {name: text or None for name, text in texts.items() if text is not None}
        if self.tools is not None:
            values["tools"] = list[Json]([name.strip() for name in self.tools.split(",") if name.strip()])
        return values


NO_FIELDS = AgentFields()


async def new_agent(name: NewName, /, *, fields: AgentFields = NO_FIELDS, json: AsJson = False, output: Out) -> None:
    """Create an agent as a file in moot's home directory. If no options are given, open the file in the editor."""
    settings = configured(output).settings
    values: JsonObject = {field: value for field, value in fields.values().items() if value is not None}
    path = create_agent(settings, name, values) if values else new_path(settings, name)
    if not values:
        _require_terminal(output, "moot agents new NAME --instructions TEXT")
        if not await edit_checked(path, _TEMPLATE, lambda text, _: checked(settings, path, text, name), output, lock=path.parent):
            return
    report_saved(output, name, f"created {path}", json=json)


async def edit_agent(name: Name, /, *, fields: AgentFields = NO_FIELDS, json: AsJson = False, output: Out) -> None:
    """Change an agent that is stored as a file in moot's home directory. If no options are given, open the file in the editor."""
    values = fields.values()
    path = None if values else _invalid_file(output, name)
    settings = configured(output).settings if path is None else None
    if settings is not None:
        path = change_agent(settings, name, values) if values else stored_path(settings, name)
    assert path is not None
    if not values:
        file = path
        _require_terminal(output, f"Edit {path}, or use options such as --model.")
        if not await edit_checked(file, "", lambda text, _: checked(settings, file, text, name), output, lock=file.parent):
            return
    report_saved(output, name, f"changed {path}", json=json)


async def install_agent(
    name: Annotated[str, Parameter(metavar="NAME", help="Name of the agent in the index.")],
    /,
    *,
    index: Index = None,
    update: Annotated[bool, Parameter(help="Replace the agent's file if it exists.")] = False,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Show an agent from an index, and install exactly the content shown as a file in moot's home directory."""
    settings = configured(output).settings
    entry = entry_named(await read_indexes(index_places(index, settings)), "agent", name)
    text = (await content_of(entry)).decode("utf-8", "replace")
    path = settings.home / FOLDER / f"{name}{SUFFIX}" if update else new_path(settings, name)
    if hidden := warning_of(text):
        raise Refused(f"The agent {name!r} contains {hidden}.", fix="Nothing was installed.")
    checked(None, path, text, name)
    output.say(text)
    if not await confirmed(f"Install {name} as {path}?", yes, output):
        return 1
    with lock_file(path.parent):
        write_agent(settings, path, text, name)
    report_saved(output, name, f"installed {path}", json=json)
    return 0


def copy_agent_file(
    source: Annotated[str, Parameter(kind="agent", help="Agent to copy.")],
    name: NewName,
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> None:
    """Copy an agent to a new file in moot's home directory.

    An agent with ${VAR} references is copied within config.yaml, because references are only resolved there.
    """
    loaded = configured(output)
    path = copy_agent(loaded.settings, loaded.root, agent_of(loaded.settings, source, str(here())), name, {})
    report_saved(output, name, f"copied {source} to {path}", json=json)


def remove_agent(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Delete an agent's file from moot's home directory, even if the file is invalid."""
    path = _invalid_file(output, name)
    if path is None:
        path = delete_agent(configured(output).settings, name)
    else:
        with lock_file(path.parent):
            path.unlink(missing_ok=True)
    write_done(output, json, {"name": name, "file": str(path), "removed": True}, f"removed {path}")


def _invalid_file(output: Output, name: str) -> Path | None:
    """Return the agent's file if the configuration can't be loaded because of it.
    Raise ConfigError if it can't be loaded for any other reason.
    """
    path = home_of(os.environ) / FOLDER / f"{name}{SUFFIX}"
    try:
        configured(output)
    except ConfigError as error:
        if error.file == str(path):
            return path
        raise
    return None


def _require_terminal(output: Output, fix: str) -> None:
    if not output.attended:
        raise UsageError("Editing requires a terminal.", fix=fix)
