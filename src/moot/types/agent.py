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
