"""Custom slash commands: texts with placeholders, which people write as Markdown files or in the configuration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from moot.types.workflow import WorkflowStep

CommandType: TypeAlias = Literal["action", "prompt", "insert", "workflow"]
"""action: performs an action itself · prompt: sends a prompt · insert: inserts text into the composer · workflow: runs several prompts."""

Requirement: TypeAlias = Literal["conversation", "folder", "repository", "file"]
"""conversation: the conversation has messages · folder: it has a directory · repository: the directory is in a Git repository · file: a
file is open."""

COMMAND_NAME = r"^[A-Za-z0-9][\w-]{0,63}(:[A-Za-z0-9][\w-]{0,63})*$"
"""Pattern of the names of custom commands. If the file is in a subfolder, its name comes first: `git:squash`."""

BUILT_IN = "built-in"
"""The origin of commands that are part of moot."""


@dataclass(frozen=True, slots=True)
class CommandParameter:
    """One argument of a command. Arguments are separated by spaces. An argument with spaces must be quoted."""

    name: str
    description: str = ""
    required: bool = False
    default: str = ""
    """Value of an argument that is left out."""
    choices: tuple[str, ...] = ()
    """All possible values; empty = any text."""


def argument_names(parameters: Iterable[CommandParameter]) -> list[str]:
    """Return the names of all placeholders that a template can contain: the whole argument, its words, the open file, and parameters."""
    return ["ARGUMENTS", "FILE", *map(str, range(1, 10)), *(parameter.name for parameter in parameters)]


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """Facts about a command that are shown in lists. They are the same for built-in and custom commands."""

    name: str
    help: str = ""
    """One line that describes the command."""
    argument: str = ""
    """Argument syntax in usage lines, such as `[NAME]`; empty = none."""
    category: str = "custom"
    type: CommandType = "prompt"
    aliases: tuple[str, ...] = ()
    parameters: tuple[CommandParameter, ...] = ()
    requires: tuple[Requirement, ...] = ()
    agent: str = ""
    """Agent that answers the prompt; empty = the current agent."""
    examples: tuple[str, ...] = ()
    origin: str = BUILT_IN
    """`built-in`, the name of a package, `MCP server NAME`, or the path of the file that defines it."""


@dataclass(frozen=True, slots=True)
class CommandDefinition:
    """A custom command as written by a person."""

    facts: CommandFacts
    prompt: str = ""
    """Template of the text. `$ARGUMENTS`, `$1` to `$9`, `$FILE`, and `$NAME` for a parameter are replaced, `` !`line` `` runs a line."""
    model: str = ""
    """Model that answers the prompt; empty = the current model."""
    notes: tuple[str, ...] = ()
    """Problems that don't prevent using the command, such as unknown fields from other programs."""
    steps: tuple[WorkflowStep, ...] = ()
    """The steps of a workflow."""
    agent_line: int = 0
    """Line of the field `agent` in the file; 0 = unknown."""
    model_line: int = 0
    """Line of the field `model` in the file; 0 = unknown."""
