"""Sections in which users define their own tools and slash commands."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, Tag, model_validator

from moot.config.schema.basics import Duration, Part, as_words
from moot.plugins.registry import attribute
from moot.types.command import COMMAND_NAME, Requirement
from moot.types.command_tool import problem_of, schema_of
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.workflow import STEP_NAME


class CustomToolPart(Part):
    """A custom tool: an entry of `tools` with a command."""

    command: Annotated[Any, BeforeValidator(as_words)]
    description: str = Field(min_length=1, max_length=2_000)
    parameters: dict[str, Any] = {}
    cwd: str = Field(default="", max_length=1_000)
    timeout: Annotated[Duration, Field(gt=0, le=3_600)] = 120.0
    network: bool = False
    read_only: bool = False
    env: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    max_output: int = Field(default=TOOL_OUTPUT_CHARACTERS, ge=1_000, le=TOOL_OUTPUT_CHARACTERS)
    hidden: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        command = self.command if isinstance(self.command, str) else tuple(cast("list[str]", self.command))
        if not "".join(command).strip():
            raise ValueError("The command is empty.")
        if self.cwd.startswith(("/", "~")) or ".." in self.cwd.split("/"):
            raise ValueError("Expected `cwd` to be a path below the conversation's folder, without '..'.")
        if self.network and self.read_only:
            raise ValueError("A tool with `read_only` can't have `network`, because it runs without approval.")
        if self.parameters.get("type", "object") != "object":
            raise ValueError("Expected `parameters` to be a JSON Schema of type `object`.")
        schema = schema_of(self.parameters, command)
        fault = attribute("moot.guard.json_schema_evaluation:schema_fault")(schema)
        if problem := fault or problem_of(command, schema):
            raise ValueError(f"parameters: {fault}" if fault else problem)
        return self


def is_custom_tool(value: Any) -> bool:
    """Return True if an entry of `tools` defines a custom tool, False if it contains settings of an existing tool."""
    return isinstance(value, CustomToolPart) or (isinstance(value, dict) and "command" in value)


SETTINGS, CUSTOM = "settings", "custom"
"""The kinds of entries of `tools`. pydantic adds them to the paths of errors."""

ToolPart = Annotated[
    Annotated[CustomToolPart, Tag(CUSTOM)] | Annotated[dict[str, Any], Tag(SETTINGS)],
    Discriminator(lambda value: CUSTOM if is_custom_tool(value) else SETTINGS),
]


CommandName = Annotated[str, Field(pattern=COMMAND_NAME)]
MacroName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]


class CommandParameterPart(Part):
    name: str = Field(pattern=r"^[a-z_][a-z0-9_]{0,63}$")
    description: str = ""
    required: bool = False
    default: str = ""
    choices: list[str] = []


class StepCheckPart(Part):
    command: Annotated[str, StringConstraints(strip_whitespace=True, max_length=10_000)] = ""
    contains: str = Field(default="", max_length=10_000)
    matches: str = Field(default="", max_length=10_000)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(map(bool, (self.command, self.contains, self.matches))) != 1:
            raise ValueError("Expected exactly one of the keys `command`, `contains` and `matches`.")
        try:
            re.compile(self.matches)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"Expected a regular expression for `matches` ({error}).") from None
        return self


class WorkflowStepPart(Part):
    name: str = ""
    prompt: str = Field(max_length=100_000)
    agent: str = ""
    check: StepCheckPart | None = None
    retries: int = Field(default=0, ge=0, le=10)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name and not re.fullmatch(STEP_NAME, self.name):
            raise ValueError(f"Invalid step name {self.name!r}: use lowercase letters, digits, - and _.")
        if not self.prompt.strip():
            raise ValueError("The prompt is empty.")
        return self


class CommandPart(Part):
    prompt: str = Field(default="", max_length=100_000)
    description: str = ""
    argument: str = Field(default="", max_length=200)
    category: str = Field(default="custom", max_length=40)
    type: Literal["prompt", "insert", "workflow"] = "prompt"
    aliases: list[CommandName] = []
    parameters: list[CommandParameterPart] = []
    requires: list[Requirement] = []
    agent: str = ""
    model: str = ""
    examples: list[str] = []
    steps: list[WorkflowStepPart] = Field(default=[], max_length=50)
