"""On a terminal, `moot chat new` and `continue` keep the conversation open."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.options import RunFlags, ShowFlags, run_settings
from moot.cli.output import Output
from moot.commands import RunOverrides
from moot.plugins.registry import Registry
from moot.types.part import Part

_LOOPS = Registry("moot.loops", {"terminal": "moot.cli.repl.conversing:converse"})
"""Loaded by name: the REPL is not needed in a pipe."""


def stays(flags: RunFlags, shown: ShowFlags, output: Output) -> bool:
    """Return whether to keep the conversation open: on a terminal, and without options that apply to a single answer."""
    about_one = (flags.schema, flags.max_steps, flags.max_cost, flags.timeout)
    return output.attended and shown.form() == "text" and flags.on_busy == "reject" and all(flag is None for flag in about_one)


async def stay(conversation: str | None, parts: Sequence[Part], flags: RunFlags, output: Output) -> int:
    """Print the conversation, send the prompt and continue until the user leaves. Return the exit code."""
    tools = run_settings(flags, None, attended=True).get("tools")
    named = [str(name) for name in tools] if isinstance(tools, list) else [] if tools is False else None
    overrides = RunOverrides(agent=flags.agent, model=flags.model, mode=flags.mode, effort=flags.effort, tools=named)
    return await _LOOPS.load("terminal")(conversation, output, prompt=parts, overrides=overrides, yes=flags.yes)
