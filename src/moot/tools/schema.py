"""Tool definitions for models, client tools, and the view that permission rules have of a call."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

from moot.errors import UsageError
from moot.guard.json_schema import find_problem
from moot.plugins.registry import attribute
from moot.tools.catalogue import CustomTool, Placeholder
from moot.types.approval import Effect
from moot.types.canonical import Json, JsonObject, dumps, loads_exact
from moot.types.provider import ToolDefinition
from moot.types.sandbox import Access
from moot.types.tool import HasSchema, Tool, ToolContext, ToolOutput, View

if TYPE_CHECKING:
    from pydantic import BaseModel

SETTING = "client_tools"
"""Key in `Run.settings` of the client's tools, a list of `{name, description, inputSchema}`."""

_ANYTHING: JsonObject = {"type": "object"}


class ClientTool:
    """A tool that the run's client executes. It is defined in the run's settings, so a resumed run has it too."""

    concurrent = True
    idempotent = True  # restarted when the output arrives
    hidden = False
    beta = False
    badge = "client"
    effects: frozenset[Effect] = frozenset()
    examples: tuple[JsonObject, ...] = ()

    def __init__(self, name: str, description: str, schema: JsonObject) -> None:
        self.name = name
        self.description = description
        self.schema = schema

    @property
    def arguments(self) -> type[BaseModel]:
        """A model that accepts any object. The arguments are checked against the schema when the tool is called."""
        return cast("type[BaseModel]", attribute("moot.tools.arguments:Anything"))

    async def run(self, arguments: BaseModel, context: ToolContext) -> ToolOutput:
        values = cast("JsonObject", arguments.model_dump())
        # if the schema can't be evaluated, the client gets the call and checks it
        with suppress(UsageError):
            if problem := await find_problem(values, self.schema, "arguments"):
                return ToolOutput(f"The arguments do not match the schema: {problem}", error=True)
        result = await context.client_output(values)
        if "output" not in result:
            return ToolOutput(str(result.get("error") or "The tool failed."), error=True)
        output = result["output"]
        text = output if isinstance(output, str) else dumps(output).decode()
        return ToolOutput(text, output, structured=True)

    def doing(self, arguments: BaseModel) -> View:
        return View(self.name, "run by the client")

    def done(self, arguments: BaseModel, output: ToolOutput) -> View:
        return View(self.name, "run by the client", output.text)


def client_tools(settings: JsonObject) -> tuple[Tool, ...]:
    """Return the client's tools in a run's settings, in their order. Raise UsageError if one has no name."""
    tools = settings.get(SETTING)
    return tuple(cast("Tool", _tool(item)) for item in tools) if isinstance(tools, list) else ()


def _tool(item: Json) -> ClientTool:
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(name, str) or not name:
        raise UsageError("A tool of the client has no name.", fix="Send tools as a list of {name, description, inputSchema}.")
    schema = item.get("inputSchema")
    return ClientTool(name, str(item.get("description") or ""), schema if isinstance(schema, dict) else _ANYTHING)


def definition(tool: Tool) -> ToolDefinition:
    """Return the definition sent to a model: the JSON Schema without titles and references, and the examples."""
    return ToolDefinition(tool.name, tool.description, _schema(tool), tool.examples)


def definition_digest(tool: Tool) -> bytes:
    """Return a 32-byte hash of a tool's definition, including the command of a custom tool."""
    definition_: JsonObject = {"name": tool.name, "description": tool.description, "schema": _schema(tool)}
    if isinstance(tool, CustomTool):
        definition_["command"] = tool.template.identity()
    elif (identity := getattr(tool, "identity", None)) is not None:  # `HasIdentity`
        definition_["identity"] = identity()
    return blake2b(dumps(definition_), digest_size=32).digest()


def parse(tool: Tool, input: Json) -> BaseModel | str:
    """Return the validated arguments, or an error message for the model that says what is wrong and what is expected."""
    # imported here because most runs call no tool, and importing pydantic takes as long as starting Python three times
    return attribute("moot.tools.arguments:parse")(tool, input)


@dataclass(frozen=True, slots=True)
class Called:
    """The name and effects of a tool in one call, for permission rules."""

    name: str
    effects: frozenset[Effect]


def as_called(tool: Tool, input: Json) -> Tool | Called:
    """Return a call's tool for permission rules: with its name in rules, and with the effect `read` if its `action` only reads."""
    reads: frozenset[str] = getattr(tool, "reads", frozenset())
    action = input.get("action") if isinstance(input, dict) else None
    if isinstance(action, str) and action in reads:
        return Called(rule_name_of(tool), frozenset({"read"}))
    return tool if rule_name_of(tool) == tool.name else Called(rule_name_of(tool), tool.effects)


def rule_name_of(tool: Tool) -> str:
    """Return the name by which permission rules, approvals and hooks know a tool."""
    return getattr(tool, "rule_name", tool.name)


async def validated(tool: Tool, input: Json) -> BaseModel | str:
    """Return the validated arguments as `parse` does. If the tool has its own schema, check the arguments against it too."""
    arguments = parse(tool, input)
    find = getattr(tool, "find_problem", None)  # `HasSchema`
    if find is not None and isinstance(input, dict) and not isinstance(arguments, str):
        return await find(input) or arguments
    return arguments


def subject_of(tool: Tool, input: Json) -> str:
    """Return the part of a call that permission rules match: its command, path, URL or agents; empty if there is none."""
    if isinstance(tool, CustomTool):
        return tool.line(input)
    return subject_in(input)


def subject_in(input: Json) -> str:
    """Return the argument that permission rules match: a command, path, URL or agents; empty if there is none."""
    found = (input.get(name) for name in ("command", "path", "url")) if isinstance(input, dict) else ()
    return next((value for value in found if isinstance(value, str)), _agents_of(input))


def _agents_of(input: Json) -> str:
    """Return the names of the agents that a call of `delegate` starts, separated by commas, without duplicates."""
    if not isinstance(input, dict):
        return ""
    more = input.get("more")
    if isinstance(more, str):  # `parse` accepts a list that a small model wrote as JSON text
        with suppress(ValueError):
            more = loads_exact(more)
    calls = (input, *(more if isinstance(more, list) else ()))
    return ", ".join(dict.fromkeys(str(call["agent"]) for call in calls if isinstance(call, dict) and "agent" in call))


def access_of(input: Json) -> Access:
    """Return the access that a shell command requests; `sandbox` for other tools and for unknown values, which the tool refuses later."""
    wanted = input.get("access") if isinstance(input, dict) else None
    return "network" if wanted == "network" else "outside" if wanted == "outside" else "sandbox"


def _schema(tool: Tool) -> JsonObject:
    if isinstance(tool, Placeholder | ClientTool) or getattr(tool, "find_problem", None) is not None:
        return cast("HasSchema", tool).schema
    return cast("JsonObject", attribute("moot.tools.arguments:schema_of")(tool.arguments))
