"""Selection of the tools that an agent can use."""

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
    """Return the agent's tools, sorted by name.

    Leave out hidden tools that the agent does not list, tools with effects other than reading for role `read`, tools whose configuration
    is missing, and broken plugins that the agent does not list. Raise UsageError for an unknown name.
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
            _warn_once(error.message)
    return found


@cache
def _warn_once(message: str) -> None:
    # called at every step
    log.warning("%s", message)


@cache
def tool(name: str) -> Tool:
    """Return a tool by name; built-in ones as placeholders. Raise UsageError for an unknown name."""
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
    """Return whether the tool has the configuration that it needs. A plugin that fails to answer is not available."""
    needed = getattr(candidate, "model_type", None)  # `NeedsModel`, checked for every tool at every step
    if needed is not None and not getattr(settings.models, str(needed), ""):
        return False
    if not _needs_settings(type(candidate)):
        return True
    try:
        return cast("Available", candidate).available(settings.tools.get(candidate.name, {}))
    except Exception as error:
        if not TOOLS.package(candidate.name):
            raise
        _warn_once(f"tool {candidate.name!r} from the package {TOOLS.package(candidate.name)} failed to check its availability: {error!r}")
        return False


@cache
def _needs_settings(kind: type[Tool]) -> bool:
    # checked for every tool at every step, and isinstance of a Protocol takes 25 µs on Python 3.11
    return issubclass(kind, Available)
