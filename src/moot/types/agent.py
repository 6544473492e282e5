"""A named definition of an agent: what a configuration or a person calls by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.types.canonical import JsonObject, empty
from moot.types.model import Effort

Mode: TypeAlias = Literal["ask", "edits", "plan", "auto"]
"""ask: every effect beyond reading asks · edits: file edits in the allowed paths don't · plan: reading only · auto: nothing asks."""


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """How much of a conversation a step sends."""

    max_tokens: int | None = None
    """None = what the model's context leaves."""
    compact_at: float = 0.8
    keep: int = 6


@dataclass(frozen=True, slots=True)
class Agent:
    """What a configuration calls an agent."""

    name: str = "default"
    description: str = ""
    agent_type: str = "moot"
    model: str = "main"
    """A model type (main, small …) or `model@provider`."""
    instructions: str = ""
    """Replaces the built-in system prompt's first paragraph when not empty."""
    rules: str = ""
    tools: tuple[str, ...] | None = None
    """None = all that are not hidden; () = none."""
    skills: tuple[str, ...] = ()
    mcp: tuple[str, ...] | None = None
    """Servers of the section `mcp` that it is handed; None = all, () = none."""
    role: Literal["read", "write"] = "write"
    """read: tools with effects beyond reading are not offered."""
    temperature: float | None = None
    max_steps: int | None = None
    effort: Effort | None = None
    show_reasoning: bool = True
    history: HistorySettings = field(default_factory=HistorySettings)
    options: JsonObject = field(default_factory=empty)
    """For its agent service alone, which says what may stand there."""
    fallback: tuple[str, ...] = ()
    """Models to try, in order, when the main one fails before anything was shown."""


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An outside agent that moot can run without a word of configuration, once its program is there."""

    name: str
    """What `-a` takes."""
    agent_type: str
    description: str
    install: str
    """The line that brings it, for a person to type."""
    programs: tuple[str, ...] = ()
    """Names on the PATH, any of which will do; () = it comes with `package`."""
    package: str = ""
    """The Python package that drives it; empty = none is needed."""

    def agent(self) -> Agent:
        """As it would stand in a configuration; the model is the agent's own choice."""
        return Agent(name=self.name, description=self.description, agent_type=self.agent_type, model="")
