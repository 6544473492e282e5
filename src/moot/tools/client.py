"""A tool that the run's client brings and runs itself: the model may call it, the run waits for the output that the client sends."""

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
"""The key of `Run.settings` that holds them: a list of `{name, description, inputSchema}`."""

_ANYTHING: JsonObject = {"type": "object"}


class ClientTool:
    """One such tool; its value is in the run's settings, so a resumed run has it too. Nothing of ours is touched by it."""

    concurrent = True
    idempotent = True  # entered again from its top when the output has come
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
        """Takes any object: what fits is said by the schema, which is looked at when the tool is called."""
        return cast("type[BaseModel]", attribute("moot.tools.arguments:Anything"))

    async def run(self, arguments: BaseModel, context: ToolContext) -> ToolOutput:
        given = cast("JsonObject", arguments.model_dump())
        if problem := await self._problem(given):
            return ToolOutput(f"The arguments do not match the schema: {problem}", error=True)
        told = await context.client_output(given)
        if "output" not in told:
            return ToolOutput(str(told.get("error") or "it failed"), error=True)
        output = told["output"]
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
    """The tools that a run's settings bring, in their order. Raises UsageError for one without a name."""
    given = settings.get(SETTING)
    return tuple(cast("Tool", _tool(item)) for item in given) if isinstance(given, list) else ()


def _tool(item: Json) -> ClientTool:
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(name, str) or not name:
        raise UsageError("a client's tool needs a name", fix="send tools as a list of {name, description, inputSchema}")
    schema = item.get("inputSchema")
    return ClientTool(name, str(item.get("description") or ""), schema if isinstance(schema, dict) else _ANYTHING)
