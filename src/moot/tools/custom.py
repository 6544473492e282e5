"""Custom tools: commands in the configuration. Permissions, display and execution are the same as for the tool `shell`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from moot.errors import UsageError
from moot.guard.json_schema import find_problem
from moot.plugins.registry import attribute
from moot.types.approval import Effect
from moot.types.canonical import Json, JsonObject
from moot.types.command_tool import CommandTool
from moot.types.tool import ToolContext, ToolOutput, View

if TYPE_CHECKING:
    from pydantic import BaseModel


class CustomTool:
    """A tool that runs a command from the configuration."""

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
