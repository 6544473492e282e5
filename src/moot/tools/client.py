"""Tools that the run's client provides and executes. The run waits for the output that the client sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from moot.errors import UsageError
from moot.guard.json_schema import find_problem
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.tool import Effect, Tool, ToolContext, ToolOutput, View

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["SETTING", "ClientTool", "client_tools"]

SETTING = "client_tools"
"""The key in `Run.settings` for a list of `{name, description, inputSchema}`."""

_ANYTHING: JsonObject = {"type": "object"}


class ClientTool:
    """A tool of the client. It is defined in the run's settings, so a resumed run has it too. It touches nothing on this machine."""

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
        if problem := await self._problem(values):
            return ToolOutput(f"The arguments do not match the schema: {problem}", error=True)
        result = await context.client_output(values)
        if "output" not in result:
            return ToolOutput(str(result.get("error") or "the tool failed"), error=True)
        output = result["output"]
        text = output if isinstance(output, str) else dumps(output).decode()
        return ToolOutput(text, output, structured=True)

    async def _problem(self, arguments: JsonObject) -> str:
        try:
            return await find_problem(arguments, self.schema, "arguments")
        except UsageError:  # the client's own schema can't be evaluated: the client gets the call and judges it
            return ""

    def doing(self, arguments: BaseModel) -> View:
        return View(self.name, "run by the client")

    def done(self, arguments: BaseModel, output: ToolOutput) -> View:
        return View(self.name, "run by the client", output.text)


def client_tools(settings: JsonObject) -> tuple[Tool, ...]:
    """Return the tools in a run's settings, in their order. Raise UsageError if one has no name."""
    tools = settings.get(SETTING)
    return tuple(cast("Tool", _tool(item)) for item in tools) if isinstance(tools, list) else ()


def _tool(item: Json) -> ClientTool:
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(name, str) or not name:
        raise UsageError("a client's tool needs a name", fix="send tools as a list of {name, description, inputSchema}")
    schema = item.get("inputSchema")
    return ClientTool(name, str(item.get("description") or ""), schema if isinstance(schema, dict) else _ANYTHING)
