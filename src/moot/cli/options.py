"""Options that are shared by several commands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from moot.cli.arguments.signatures import ALL_TOOLS, LATEST, Parameter
from moot.errors import UsageError
from moot.plugins import TOOLS
from moot.types.agent import Mode
from moot.types.canonical import Json, JsonObject
from moot.types.model import Detail, Effort
from moot.types.run import OnBusy

_TOOL_NAMES = re.compile(r"[a-z][\w-]*(,[a-z][\w-]*)*")
_REFERENCE = re.compile(r"[0-9]{1,4}|0[0-9a-f]{3}[0-9a-f-]{0,32}")

Form: TypeAlias = Literal["text", "json", "jsonl", "ui"]
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def is_reference(word: str) -> bool:
    """Return True if a word after `-c` is a conversation's id or list number and not part of a prompt."""
    return _REFERENCE.fullmatch(word) is not None


def names_tools(word: str) -> bool:
    """Return True if a word after `--tools` looks like tool names. Other words, such as `hello`, belong to the prompt."""
    return bool(_TOOL_NAMES.fullmatch(word)) and (word in TOOLS or "," in word or "_" in word)


NEW_WORKTREE = "+"
"""The value of `--worktree` without a name."""


WORKTREE = "moot.cli.commands.worktrees:worktree_folder"
"""Import path, loaded on first use, because few prompts need a worktree."""


def is_no_value(word: str) -> bool:
    """Return False, because the word after `--worktree` belongs to the prompt."""
    return False


Which = Annotated[
    str, Parameter(kind="conversation", help="Conversation: its id, the beginning of its id, its title, or its number in 'moot chat list'.")
]
Files = Annotated[list[Path], Parameter(name=("--file", "-f"), help="File to attach to the prompt. May be repeated.")]
Continue = Annotated[
    str,
    Parameter(
        name=("--continue", "-c"),
        kind="conversation",
        implied=LATEST,
        accepts=is_reference,
        help="Conversation to continue: its id or list number, or --continue=TITLE."
        " Without a value, the latest one in this directory is continued.",
    ),
]


Timeout = Annotated[
    str, Parameter(metavar="DURATION", help="Maximum duration of the run: a number of seconds, or a duration such as 90s, 5m or 1h.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """Options of a run."""

    model: Annotated[
        str | None,
        Parameter(
            name=("--model", "-m"),
            kind="model",
            help="Model: MODEL@PROVIDER, a model name, or a name defined in the configuration, such as small.",
        ),
    ] = None
    agent: Annotated[str | None, Parameter(name=("--agent", "-a", "-p", "--profile"), kind="agent", help="Agent that runs the prompt.")] = (
        None
    )
    tools: Annotated[
        str | None,
        Parameter(
            kind="tool",
            metavar="TOOLS",
            implied=ALL_TOOLS,
            accepts=names_tools,
            help="Tools to offer to the model, separated by commas. Without a value, all tools are offered.",
        ),
    ] = None
    no_tools: Annotated[bool, Parameter(help="Don't offer any tools to the model.")] = False
    effort: Annotated[Effort | None, Parameter(metavar="LEVEL", help="Reasoning effort.")] = None
    detail: Annotated[Detail | None, Parameter(metavar="LEVEL", help="Level of detail in which the model sees attached images.")] = None
    mode: Annotated[Mode | None, Parameter(metavar="MODE", help="Permission mode: which tool calls run without approval.")] = None
    on_busy: Annotated[
        OnBusy,
        Parameter(metavar="ACTION", help="What to do if the conversation is busy."),
    ] = "reject"
    allow: Annotated[
        list[Path] | None,
        Parameter(metavar="DIR", help="Folder that tools and commands may use in addition to the working folder. May be repeated."),
    ] = None
    worktree: Annotated[
        str | None,
        Parameter(
            implied=NEW_WORKTREE,
            accepts=is_no_value,
            metavar="NAME",
            help="Work in a new git worktree. With --worktree=NAME, use the worktree with this name, or create it.",
        ),
    ] = None
    temporary: Annotated[
        bool, Parameter(help="Start a conversation that is not listed or searched, and permanently delete it when the command ends.")
    ] = False
    schema: Annotated[Path | None, Parameter(help="File with a JSON Schema that the answer must match.")] = None
    max_steps: Annotated[int | None, Parameter(minimum=1, help="Maximum number of model calls.")] = None
    max_cost: Annotated[float | None, Parameter(metavar="DOLLARS", above=0, help="Maximum cost in US dollars.")] = None
    timeout: Timeout | None = None
    yes_download: Annotated[bool, Parameter(help="Download the weights of a local model without prompting.")] = False
    yes: Annotated[
        bool,
        Parameter(name=("--yes", "-y"), help="Don't prompt: use the first available model, downloading it if needed."),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowFlags:
    """Output format of a run."""

    json: Annotated[bool, Parameter(help="Print the result as one JSON document at the end.")] = False
    jsonl: Annotated[bool, Parameter(help="Print each event as a line of JSON, and the result as the last line.")] = False
    ui: Annotated[bool, Parameter(help="Print each chunk of the answer in the format of the AI SDK, as a line of JSON.")] = False

    def form(self) -> Form:
        """Return the chosen format. Raise UsageError if several are given."""
        forms: tuple[tuple[Form, bool], ...] = (("json", self.json), ("jsonl", self.jsonl), ("ui", self.ui))
        chosen: list[Form] = [name for name, wanted in forms if wanted]
        if len(chosen) > 1:
            raise UsageError(f"--{chosen[0]} and --{chosen[1]} cannot be used together.")
        return chosen[0] if chosen else "text"


NO_FLAGS, NO_SHOW = RunFlags(), ShowFlags()


def run_settings(flags: RunFlags, answer_schema: JsonObject | None, *, attended: bool) -> JsonObject:
    """Return the settings of a prompt. Raise UsageError if options contradict each other."""
    if flags.no_tools and flags.tools is not None:
        raise UsageError("--tools and --no-tools cannot be used together.")
    tools: Json = False if flags.no_tools else None
    if flags.tools is not None:
        tools = flags.tools == ALL_TOOLS or list[Json]([name.strip() for name in flags.tools.split(",") if name.strip()])
    settings: JsonObject = {
        "tools": tools,
        "effort": flags.effort,
        "detail": flags.detail,
        "max_steps": flags.max_steps,
        "max_cost": None if flags.max_cost is None else round(flags.max_cost * 1e9),
        "timeout": None if flags.timeout is None else seconds(flags.timeout),
        "schema": answer_schema,
        "unattended": None if attended else "deny",
        "attended": True if attended else None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def seconds(text: str, option: str = "--timeout") -> float:
    """Convert `90`, `90s`, `5m`, `12h` or `30d` to seconds. Raise UsageError for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f"Invalid value {text!r} for {option!r}: expected a number of seconds, or a duration such as 90s, 5m, 12h or 30d.")
    return float(match[1]) * _UNITS[match[2]]
