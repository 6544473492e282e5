"""Which tools an agent is offered."""

from __future__ import annotations

import logging
from functools import cache
from typing import cast

from moot.config.settings import Settings
from moot.errors import UsageError
from moot.plugins import TOOLS
from moot.tools.standing_in import StandIn, stand_ins
from moot.types.agent import Agent
from moot.types.tool import Available, Tool

__all__ = ["is_available", "offered", "tool"]

log = logging.getLogger("moot.tools")


def offered(settings: Settings, agent: Agent) -> tuple[Tool, ...]:
    """The agent's tools, always in the same order: sorted by name.

    Hidden ones only when the agent names them; with role `read` none that does more than read; none whose configuration is missing.
    A plugin that can't be had is left out unless the agent names it. Raises UsageError for a name that is no tool.
    """
    named = agent.tools
    for name in named or ():
        if name not in TOOLS:
            raise UsageError(f"agent {agent.name!r}: {TOOLS.unknown(name)}", fix="moot tools list")
    candidates = [tool(name) for name in named] if named is not None else _all()
    return tuple(candidate for candidate in sorted(candidates, key=lambda one: one.name) if _fits(candidate, settings, agent))


def _all() -> list[Tool]:
    found: list[Tool] = []
    for name in TOOLS.names():
        try:
            found.append(tool(name))
        except UsageError as error:
            _say_once(error.message)
    return found


@cache
def _say_once(words: str) -> None:
    # asked at every step
    log.warning("%s", words)


@cache
def tool(name: str) -> Tool:
    """The tool of that name, a built-in one by its stand-in. Raises UsageError for an unknown one."""
    return cast("Tool", _built_in().get(name) or TOOLS.make(name))


@cache
def _built_in() -> dict[str, StandIn]:
    return stand_ins()


def _fits(candidate: Tool, settings: Settings, agent: Agent) -> bool:
    if candidate.hidden and candidate.name not in (agent.tools or ()):
        return False
    if agent.role == "read" and not candidate.effects <= {"read"}:
        return False
    return is_available(candidate, settings)


def is_available(candidate: Tool, settings: Settings) -> bool:
    """Whether it has the configuration that it needs; what a plugin can't say is a no."""
    needed = getattr(candidate, "model_type", None)  # `NeedsModel`, asked for every tool at every step
    if needed is not None and not getattr(settings.models, str(needed), ""):
        return False
    if not _needs_settings(type(candidate)):
        return True
    try:
        return cast("Available", candidate).available(settings.tools.get(candidate.name, {}))
    except Exception as error:
        if not TOOLS.package(candidate.name):
            raise
        _say_once(f"the tool {candidate.name!r}, from the package {TOOLS.package(candidate.name)}, can't say if it is available: {error!r}")
        return False


@cache
def _needs_settings(kind: type[Tool]) -> bool:
    # asked for every tool at every step, and a Protocol's isinstance takes 25 µs on Python 3.11
    return issubclass(kind, Available)
