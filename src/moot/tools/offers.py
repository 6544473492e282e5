"""Which tools an agent is offered."""

from __future__ import annotations

from functools import cache
from typing import cast

from moot.config.settings import Settings
from moot.errors import UsageError
from moot.plugins import TOOLS
from moot.types.agent import Agent
from moot.types.tool import Available, Tool

__all__ = ["offered", "tool"]


def offered(settings: Settings, agent: Agent) -> tuple[Tool, ...]:
    """The agent's tools, always in the same order: sorted by name.

    Hidden ones only when the agent names them; with role `read` none that does more than read; none whose configuration is missing.
    Raises UsageError for a name that is no tool.
    """
    named = agent.tools
    for name in named or ():
        if name not in TOOLS:
            raise UsageError(f"agent {agent.name!r}: {TOOLS.unknown(name)}", fix="moot tools list")
    candidates = [tool(name) for name in TOOLS.names() if named is None or name in named]
    return tuple(candidate for candidate in candidates if _fits(candidate, settings, agent))


@cache
def tool(name: str) -> Tool:
    """The tool of that name. Raises UsageError for an unknown one."""
    return cast("Tool", TOOLS.load(name)())


def _fits(candidate: Tool, settings: Settings, agent: Agent) -> bool:
    if candidate.hidden and candidate.name not in (agent.tools or ()):
        return False
    if agent.role == "read" and not candidate.effects <= {"read"}:
        return False
    return not _needs_settings(type(candidate)) or cast("Available", candidate).available(settings.tools.get(candidate.name, {}))


@cache
def _needs_settings(kind: type[Tool]) -> bool:
    # asked for every tool at every step, and a Protocol's isinstance takes 25 µs on Python 3.11
    return issubclass(kind, Available)
