"""Agents by name: those of the configuration, and outside agents that need none."""

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

__all__ = ["Presence", "agent_called", "agents_here", "known_agents", "presence_of"]


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether an agent's program is on this machine."""

    ready: bool
    program: str = ""
    """Where it is; empty for moot's own agents, and for what comes as a Python package."""
    missing: str = ""
    """What is absent, in words."""
    install: str = ""
    """The line that brings it."""

    def to_json(self) -> JsonObject:
        return {"ready": self.ready, "program": self.program, "missing": self.missing, "install": self.install}


def known_agents() -> dict[str, KnownAgent]:
    """Every outside agent that can be run by name alone, installed or not."""
    tables: list[tuple[KnownAgent, ...]] = [KNOWN_AGENTS.load(name) for name in KNOWN_AGENTS.names()]
    return {known.name: known for table in tables for known in table}


def agent_called(settings: Settings, name: str) -> Agent | None:
    """The agent of that name, the configuration's first; None when nobody knows it."""
    if (agent := settings.agents.get(name)) is not None:
        return agent
    if name == "default":
        return Agent()
    known = known_agents()
    found = known.get(name) or next((entry for entry in known.values() if entry.agent_type == name), None)
    return found.agent() if found is not None else None


def agents_here(settings: Settings) -> dict[str, Agent]:
    """The agents that a person may choose from: the configuration's, and the known ones whose program is here."""
    known = {name: entry.agent() for name, entry in known_agents().items() if _presence(entry, ()).ready}
    return {"default": Agent(), **settings.agents, **{name: agent for name, agent in known.items() if name not in settings.agents}}


def presence_of(agent: Agent, environ: Mapping[str, str] = os.environ) -> Presence:
    """Whether the agent's program is here. What nobody knows anything about is taken to be ready: its run will say."""
    known = next((entry for entry in known_agents().values() if entry.agent_type == agent.agent_type), None)
    command = agent.options.get("command")
    words = tuple(str(word) for word in command) if isinstance(command, list) else ()
    if known is not None:
        return _presence(known, words, environ)
    program = _found(words[:1], environ)
    if words and not program:
        return Presence(False, missing=f"{words[0]!r} is not on the PATH", install=f"agents.{agent.name}.options.command names it")
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
