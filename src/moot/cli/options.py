"""The flags that commands share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from moot.cli.arguments import ALL_TOOLS
from moot.cli.output import Output
from moot.cli.parameters import AsJson, Cursor, Limit, Parameter
from moot.errors import UsageError
from moot.types.agent import Mode
from moot.types.canonical import Json, JsonObject
from moot.types.model import Effort
from moot.types.run import OnBusy

__all__ = ["AsJson", "Cursor", "Files", "Limit", "Out", "RunFlags", "ShowFlags", "Which", "run_settings", "seconds"]

Out = Annotated[Output, Parameter(parse=False)]
"""Handed in by `main`, not typed by anybody."""

Which = Annotated[str, Parameter(kind="conversation", help="Its id or the beginning of it, its title, or its number in `moot chat list`.")]
Files = Annotated[list[Path], Parameter(name=("--file", "-f"), help="A file to go with the prompt; give it again for more.")]

NANO = 1_000_000_000
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What a prompt may be run with."""

    model: Annotated[
        str | None, Parameter(name=("--model", "-m"), kind="model", help="MODEL@PROVIDER, a model's name, or a type such as small.")
    ] = None
    agent: Annotated[
        str | None, Parameter(name=("--agent", "-a", "-p", "--profile"), kind="agent", help="An agent of the configuration.")
    ] = None
    tools: Annotated[str | None, Parameter(name="--tools", kind="tool", help="Only these tools, names joined by commas.")] = None
    no_tools: Annotated[bool, Parameter(name="--no-tools", help="No tools at all.")] = False
    effort: Annotated[Effort | None, Parameter(name="--effort", help="How much the model reasons.")] = None
    mode: Annotated[Mode | None, Parameter(name="--mode", help="What may happen without asking.")] = None
    on_busy: Annotated[
        OnBusy, Parameter(name="--on-busy", help="While another answer is being written: refuse, stand behind it, say it into it, stop it.")
    ] = "reject"
    schema: Annotated[Path | None, Parameter(name="--schema", help="A file with a JSON Schema that the answer must fit.")] = None
    max_steps: Annotated[int | None, Parameter(name="--max-steps", least=1, help="Model calls at most.")] = None
    max_cost: Annotated[float | None, Parameter(name="--max-cost", above=0, help="Dollars at most.")] = None
    timeout: Annotated[str | None, Parameter(name="--timeout", help="Time at most: seconds, or 90s, 5m, 1h.")] = None
    yes_download: Annotated[bool, Parameter(name="--yes-download", help="Weights of a local model may be fetched.")] = False
    yes: Annotated[
        bool,
        Parameter(name=("--yes", "-y"), help="Where no model was ever chosen: take the first there is, also one to fetch; ask nothing."),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowFlags:
    """How a run is shown on stdout."""

    json: Annotated[bool, Parameter(name="--json", help="One JSON document at the end.")] = False
    jsonl: Annotated[bool, Parameter(name="--jsonl", help="Each event as a line of JSON, the result as the last.")] = False
    ui: Annotated[bool, Parameter(name="--ui", help="Each chunk (AI SDK) as a line of JSON.")] = False

    def form(self) -> Literal["text", "json", "jsonl", "ui"]:
        """The one that was chosen. Raises UsageError for two."""
        chosen: list[Literal["json", "jsonl", "ui"]] = []
        if self.json:
            chosen.append("json")
        if self.jsonl:
            chosen.append("jsonl")
        if self.ui:
            chosen.append("ui")
        if len(chosen) > 1:
            raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
        return chosen[0] if chosen else "text"


def run_settings(flags: RunFlags, schema: JsonObject | None, *, attended: bool) -> JsonObject:
    """The settings of a prompt. Raises UsageError for flags that contradict each other."""
    if flags.no_tools and flags.tools is not None:
        raise UsageError("--tools and --no-tools exclude each other")
    settings: JsonObject = {}
    if flags.no_tools:
        settings["tools"] = False
    elif flags.tools is not None and flags.tools != ALL_TOOLS:
        settings["tools"] = list[Json]([name.strip() for name in flags.tools.split(",") if name.strip()])
    if flags.effort is not None:
        settings["effort"] = flags.effort
    if flags.max_steps is not None:
        settings["max_steps"] = flags.max_steps
    if flags.max_cost is not None:
        settings["max_cost"] = round(flags.max_cost * NANO)
    if flags.timeout is not None:
        settings["timeout"] = seconds(flags.timeout)
    if schema is not None:
        settings["schema"] = schema
    if not attended:
        settings["unattended"] = "deny"
    return settings


def seconds(text: str) -> float:
    """`90`, `90s`, `5m`, `1h` as seconds. Raises UsageError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f"--timeout {text!r}: expected seconds or a duration such as 90s, 5m or 1h")
    return float(match[1]) * _UNITS[match[2]]
