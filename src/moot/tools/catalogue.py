"""The available tools: placeholders for built-in ones, custom ones, the selection for an agent, and tools as JSON."""

from __future__ import annotations

import logging
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from moot.config.settings import Settings
from moot.errors import UsageError
from moot.guard.json_schema import find_problem
from moot.plugins import TOOLS
from moot.plugins.registry import attribute, hint
from moot.types.agent import Agent
from moot.types.approval import Effect
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.command_tool import CommandTool
from moot.types.model import ModelRole
from moot.types.tool import Available, NeedsModel, Tool, ToolContext, ToolOutput, View

if TYPE_CHECKING:
    from pydantic import BaseModel


FILE = Path(__file__).with_name("definitions.json")
"""The table of the built-in tools, written by `python docs/generate.py`."""

_FLAGS = ("concurrent", "idempotent", "hidden", "beta", "needs_folder", "ends_run")


class Placeholder:
    """A placeholder for a built-in tool. The tool, with pydantic and its other imports, is loaded when it is called."""

    def __init__(self, name: str, row: JsonObject) -> None:
        self.name = name
        self.description = cast("str", row["description"])
        self.schema = cast("JsonObject", row["schema"])
        """The JSON Schema of the tool's arguments, as returned by `moot.tools.arguments.schema_of`."""
        self.examples = tuple(cast("list[JsonObject]", row["examples"]))
        self.effects = frozenset(cast("list[Effect]", row["effects"]))
        self.reads = frozenset(cast("list[str]", row["reads"]))
        self.model_type = cast("ModelRole | None", row["model_type"])
        self.badge = cast("str", row["badge"])
        self.concurrent, self.idempotent, self.hidden, self.beta, self.needs_folder, self.ends_run = (row[flag] is True for flag in _FLAGS)

    @cached_property
    def tool(self) -> Tool:
        """The tool, which is loaded on first use."""
        return cast("Tool", TOOLS.make(self.name))

    @property
    def arguments(self) -> type[BaseModel]:
        return self.tool.arguments

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        return await self.tool.run(arguments, context)

    def doing(self, arguments: Any) -> View:
        return self.tool.doing(arguments)

    def done(self, arguments: Any, output: ToolOutput) -> View:
        return self.tool.done(arguments, output)


class _Configured(Placeholder):
    """A placeholder for a tool that needs settings. It loads the tool to check its availability only if there are settings."""

    def available(self, settings: JsonObject) -> bool:
        return bool(settings) and cast("Available", self.tool).available(settings)


def placeholders() -> dict[str, Placeholder]:
    """Return placeholders for the built-in tools, by name, from the generated table."""
    rows = cast("dict[str, JsonObject]", loads_object(FILE.read_bytes()))
    return {name: (_Configured if row["configured"] else Placeholder)(name, row) for name, row in rows.items()}


_built_in = cache(placeholders)


def generated_table() -> JsonObject:
    """Return the table of the built-in tools. Import all of them."""
    tools = [cast("Tool", TOOLS.make(name)) for name in TOOLS.names() if not TOOLS.package(name)]
    return {tool.name: _row(tool) for tool in tools}


def _row(tool: Tool) -> JsonObject:
    flags: JsonObject = {flag: getattr(tool, flag) for flag in _FLAGS}
    schema = attribute("moot.tools.arguments:schema_of")(tool.arguments)
    row: JsonObject = {
        "description": tool.description,
        "schema": schema,
        "examples": list(tool.examples),
        "effects": list[Json](sorted(tool.effects)),
        "reads": list[Json](sorted(getattr(tool, "reads", ()))),
        "badge": tool.badge,
        "model_type": tool.model_type if isinstance(tool, NeedsModel) else None,
        "configured": isinstance(tool, Available),
        **flags,
    }
    return loads_object(dumps(row))  # the same values as when loaded from the file


log = logging.getLogger("moot.tools")


_WEB_TOOLS = ("fetch_url", "web_search")


def tools_for(settings: Settings, agent: Agent, *, folder: bool = True, web_search: Json = None) -> tuple[Tool, ...]:
    """Return the agent's tools, sorted by name.

    Omit hidden tools that the agent does not list, tools with effects other than reading for the role `read`, tools whose configuration is
    missing, broken plugins that the agent does not list, and, without a `folder`, all tools that need one. If `web_search` is True, add
    `web_search` and `fetch_url` to the agent's list; if it is False, omit `web_search`. Raise UsageError for an unknown name.
    """
    named = agent.tools
    for name in named or ():
        if not is_tool(name, settings):
            raise UsageError(f"Agent {agent.name!r}: {unknown_tool(name, settings)}", fix="moot tools list")
    found: list[Tool] = []
    names = tool_names(settings) if named is None else sorted({*named, *(_WEB_TOOLS if web_search is True else ())})
    for name in names:
        if name == "web_search" and web_search is False:
            continue
        try:
            tool = find_tool(name, settings)
        except UsageError as error:
            if named is not None:
                raise
            _warn_once(error.message)
            continue
        hidden = tool.hidden and named is None
        if not folder and getattr(tool, "needs_folder", True):  # plugins without this attribute need a folder
            continue
        reads = tool.effects <= {"read"} or getattr(tool, "read_only", False)
        if not hidden and (agent.role != "read" or reads) and is_available(tool, settings):
            found.append(tool)
    return tuple(found)


@cache
def _warn_once(message: str) -> None:
    # called at every step
    log.warning("%s", message)


def tool_names(settings: Settings) -> list[str]:
    """Return the names of all tools, sorted."""
    return sorted({*TOOLS.names(), *settings.custom_tools})


def is_tool(name: str, settings: Settings) -> bool:
    """Return True if there is a tool with this name."""
    return name in TOOLS or name in settings.custom_tools


def unknown_tool(name: str, settings: Settings) -> str:
    """Return the error message for an unknown tool name."""
    if not settings.custom_tools:
        return TOOLS.unknown(name)
    names = tool_names(settings)
    return f"Tool {name!r} not found.{hint(name, names)} Known tools: {', '.join(names)}."


def find_tool(name: str, settings: Settings) -> Tool:
    """Return a tool by name, or its placeholder if it is built in. Raise UsageError for an unknown name."""
    if settings.custom_tools and name not in TOOLS:
        if name in settings.custom_tools:
            return cast("Tool", CustomTool(settings.custom_tools[name]))
        raise UsageError(unknown_tool(name, settings))
    return provided_tool(name)


def configures(name: str, settings: Settings) -> bool:
    """Return True if a tool changes moot's configuration, so that only the local user may approve its calls."""
    return is_tool(name, settings) and "configure" in find_tool(name, settings).effects


@cache
def provided_tool(name: str) -> Tool:
    """Return a tool of moot (as a placeholder) or of an installed package. Raise UsageError for an unknown name."""
    return cast("Tool", _built_in().get(name) or TOOLS.make(name))


def is_available(candidate: Tool, settings: Settings) -> bool:
    """Return True if the tool has the configuration that it needs. A plugin that raises an exception is not available."""
    needed = getattr(candidate, "model_type", None)  # `NeedsModel`, checked for every tool at every step
    if needed is not None and not getattr(settings.models, str(needed), ""):
        return False
    if not _needs_settings(type(candidate)):
        return True
    try:
        return cast("Available", candidate).available(settings.tools.get(candidate.name, {}))
    except Exception as error:
        if not TOOLS.package(candidate.name):
            raise
        _warn_once(f"tool {candidate.name!r} from the package {TOOLS.package(candidate.name)} failed to check its availability: {error!r}")
        return False


@cache
def _needs_settings(kind: type[Tool]) -> bool:
    # checked for every tool at every step, and isinstance of a Protocol takes 25 µs on Python 3.11
    return issubclass(kind, Available)


def tool_facts(name: str, settings: Settings) -> JsonObject:
    """Return the facts about a tool as JSON. For a broken plugin, they include the error."""
    try:
        return tool_json(find_tool(name, settings), settings)
    except UsageError as error:
        package = TOOLS.package(name)
        facts: JsonObject = {"name": name, "description": error.message, "effects": [], "available": False, "origin": "package"}
        return {**facts, "package": package, "error": error.message}


def tool_json(tool: Tool, settings: Settings) -> JsonObject:
    """Return the facts about a tool as JSON."""
    command: JsonObject = {}
    if isinstance(tool, CustomTool):
        limits: JsonObject = {"network": tool.template.network, "read_only": tool.template.read_only, "cwd": tool.template.cwd}
        command = {"command": tool.template.identity()["command"], "timeout": tool.template.timeout, **limits}
    return {
        "name": tool.name,
        "description": tool.description,
        "effects": list[Json](sorted(tool.effects)),
        "available": is_available(tool, settings),
        "hidden": tool.hidden,
        "concurrent": tool.concurrent,
        "idempotent": tool.idempotent,
        "beta": tool.beta,
        "badge": tool.badge,
        "package": TOOLS.package(tool.name),
        "origin": "configuration" if command else "package" if TOOLS.package(tool.name) else "built-in",
        **command,
    }


class CustomTool:
    """A tool that runs a command from the configuration. Permissions, display and execution are the same as for the tool `shell`."""

    beta = False
    badge = "custom"
    needs_folder = True
    effects: frozenset[Effect] = frozenset({"execute"})
    examples: tuple[JsonObject, ...] = ()

    def __init__(self, template: CommandTool) -> None:
        self.template = template
        self.name = template.name
        self.description = template.description
        self.schema = template.parameters
        self.hidden = template.hidden
        self.read_only = self.concurrent = self.idempotent = template.read_only

    @property
    def arguments(self) -> type[BaseModel]:
        """A model that accepts any object. `find_problem` checks the arguments."""
        return cast("type[BaseModel]", attribute("moot.tools.arguments:Anything"))

    def line(self, input: Json) -> str:
        """Return the shell line that a call runs; empty if the arguments are not valid."""
        try:
            return self.template.line(input if isinstance(input, dict) else {})
        except (ValueError, KeyError):
            return ""

    async def find_problem(self, input: JsonObject) -> str:
        """Return why the arguments are not valid; empty if they are valid."""
        try:
            if problem := await find_problem(input, self.schema, "arguments"):
                return f"The arguments do not match the schema: {problem}"
            self.template.line(input)
        except (UsageError, ValueError) as error:
            return str(error)
        return ""

    async def run(self, arguments: BaseModel, context: ToolContext) -> ToolOutput:
        input = cast("JsonObject", arguments.model_dump())
        if problem := await self.find_problem(input):
            return ToolOutput(problem, error=True)
        run = attribute("moot.tools.builtin.shell:run_template")  # imported by name, because it needs pydantic
        return await run(self.template, self.template.line(input), context)

    def doing(self, arguments: BaseModel) -> View:
        line = self.line(cast("JsonObject", arguments.model_dump()))
        return View(f"{self.name}: $ {' '.join(line.split())}"[:120], body=line, language="bash")

    def done(self, arguments: BaseModel, output: ToolOutput) -> View:
        return View(self.doing(arguments).title, "", output.text)
