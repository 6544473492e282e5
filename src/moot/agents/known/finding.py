"""Lookup of agents by name: those in the configuration, and outside agents that need no configuration."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from moot.config.settings import Settings
from moot.plugins import KNOWN_AGENTS
from moot.types.agent import Agent, KnownAgent
from moot.types.canonical import JsonObject


@dataclass(frozen=True, slots=True)
class Presence:
    """The availability of an agent's program on this machine."""

    ready: bool
    program: str = ""
    """Path of the program; empty for moot's own agents and for Python packages."""
    missing: str = ""
    """A description of what is missing."""
    install: str = ""
    """The command that installs it."""

    def to_json(self) -> JsonObject:
        return {"ready": self.ready, "program": self.program, "missing": self.missing, "install": self.install}


def known_agents() -> dict[str, KnownAgent]:
    """Return every outside agent that runs without configuration, installed or not."""
    tables: list[tuple[KnownAgent, ...]] = [KNOWN_AGENTS.load(name) for name in KNOWN_AGENTS.names()]
    return {known.name: known for table in tables for known in table}


def agent_called(settings: Settings, name: str) -> Agent | None:
    """Return the agent of that name, or None. The configuration takes precedence."""
    if (agent := settings.agents.get(name)) is not None:
        return agent
    if name == "default":
        return Agent()
    known = known_agents()
    found = known.get(name) or next((entry for entry in known.values() if entry.agent_type == name), None)
    return found.agent() if found is not None else None


def agents_here(settings: Settings) -> dict[str, Agent]:
    """Return the agents to choose from: those of the configuration, and known ones whose program is installed."""
    known = {name: entry.agent() for name, entry in known_agents().items() if _presence(entry, ()).ready}
    return {"default": Agent(), **settings.agents, **{name: agent for name, agent in known.items() if name not in settings.agents}}


def presence_of(agent: Agent, environ: Mapping[str, str] = os.environ) -> Presence:
    """Return the availability of the agent's program. An unknown agent counts as available; its run reports errors."""
    known = next((entry for entry in known_agents().values() if entry.agent_type == agent.agent_type), None)
    command = agent.options.get("command")
    words = tuple(str(word) for word in command) if isinstance(command, list) else ()
    if known is not None:
        return _presence(known, words, environ)
    program = _found(words[:1], environ)
    if words and not program:
        return Presence(False, missing=f"{words[0]!r} is not on the PATH", install=f"Set agents.{agent.name}.options.command.")
    return Presence(True, program)


def _presence(known: KnownAgent, command: tuple[str, ...], environ: Mapping[str, str] = os.environ) -> Presence:
    programs = command[:1] or known.programs
    program = _found(programs, environ)
    if known.package and find_spec(known.package) is None:
        return Presence(False, program, f"the Python package {known.package!r} is not installed", known.install)
    if programs and not program:
        return Presence(False, "", f"{' or '.join(repr(name) for name in programs)} is not on the PATH", known.install)
    return Presence(True, program)


def _found(programs: tuple[str, ...], environ: Mapping[str, str]) -> str:
    paths = (shutil.which(program, path=environ.get("PATH", "")) for program in programs)
    return next((path for path in paths if path), "")
