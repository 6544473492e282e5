"""read_setting, change_setting and create_agent: access to moot's configuration, for agents that list these tools."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from moot.errors import UsageError
from moot.tools.basics import BaseTool, title
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.tool import ToolContext, ToolOutput, View

_MASKED = "Secrets are masked."


class ReadSettingArguments(BaseModel):
    key: str = Field(default="", max_length=200, description="Such as models.main; empty = the names of all sections")


class ReadSetting(BaseTool):
    """The `read_setting` tool."""

    name = "read_setting"
    description = f"Read moot's configuration. {_MASKED}"
    arguments = ReadSettingArguments
    concurrent = True
    idempotent = True
    hidden = True
    needs_folder = False
    effects = frozenset({"read"})

    async def call(self, arguments: ReadSettingArguments, context: ToolContext) -> ToolOutput:
        found = await context.services.administration.read(arguments.key)
        if not arguments.key and isinstance(found, dict):
            found = list[Json](found)
        return ToolOutput(_text(found), found)

    def doing(self, arguments: ReadSettingArguments) -> View:
        return View(title("Read the setting", arguments.key))


class ChangeSettingArguments(BaseModel):
    key: str = Field(min_length=1, max_length=200, description="Such as models.main")
    value: JsonValue = Field(description="The new value")


class ChangeSetting(BaseTool):
    """The `change_setting` tool. It changes only a few keys, none of which affects permissions."""

    name = "change_setting"
    description = "Change a setting of moot: a model, the look of the terminal, or a lower limit. The user is always asked."
    arguments = ChangeSettingArguments
    idempotent = True
    hidden = True
    needs_folder = False
    effects = frozenset({"configure"})

    async def call(self, arguments: ChangeSettingArguments, context: ToolContext) -> ToolOutput:
        before = await context.services.administration.change(arguments.key, arguments.value)
        return ToolOutput(f"Changed {arguments.key} from {_text(before)} to {_text(arguments.value)}.")

    def doing(self, arguments: ChangeSettingArguments) -> View:
        return View(title("Set", f"{arguments.key} to {_text(arguments.value)}"))


class CreateAgentArguments(BaseModel):
    name: str = Field(min_length=1, max_length=64, description="Letters, digits, - and _")
    description: str = Field(min_length=1, max_length=1_000, description="One sentence: when to use it")
    instructions: str = Field(min_length=1, max_length=50_000, description="Its system prompt")
    tools: list[str] = Field(max_length=100, description="Its tools; only ones that you have")
    agents: list[str] = Field(default=[], max_length=50, description="Agents that it may start; only ones that you may start")
    allowed_uris: list[str] = Field(default=[], max_length=50, description="Folders that it may use; only ones that you may use")
    role: Literal["read", "write"] = Field(default="write", description="read = only tools without side effects")
    model: str = Field(default="main", max_length=200, description="main, small, or MODEL@PROVIDER")


class CreateAgent(BaseTool):
    """The `create_agent` tool. The new agent has at most the rights of the agent that creates it."""

    name = "create_agent"
    description = "Create an agent that can be used in later conversations. It can't have more rights than you. The user is always asked."
    arguments = CreateAgentArguments
    hidden = True
    needs_folder = False
    effects = frozenset({"configure"})

    async def call(self, arguments: CreateAgentArguments, context: ToolContext) -> ToolOutput:
        values: JsonObject = arguments.model_dump(exclude={"name"})
        if "${" in dumps(values).decode():
            raise UsageError("Text that contains '${' can't be stored, because it looks like a reference to a variable.")
        path = await context.services.administration.create_agent(arguments.name, values)
        return ToolOutput(f"Created the agent {arguments.name} in {path}.")

    def doing(self, arguments: CreateAgentArguments) -> View:
        return View(title("Create the agent", arguments.name), "", arguments.instructions, "markdown")


def _text(value: Json) -> str:
    return value if isinstance(value, str) and value else dumps(value).decode()
