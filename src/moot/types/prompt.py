"""Named parts of a system prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from moot.types.agent import Agent, Mode
from moot.types.conversation import Project

if TYPE_CHECKING:  # most conversations have no skills
    from moot.types.skill import SkillSelection

PART_ORDER = ("instructions", "project", "agents_md", "memory", "skills", "sub_agents", "output_format", "environment")
"""The system prompt parts of an agent that doesn't select any. Text that changes comes last, so that the providers' prompt caches work."""


@dataclass(frozen=True, slots=True)
class PromptContext:
    """Everything from which the parts of a step's system prompt are made."""

    agent: Agent
    directory: str = ""
    """The conversation's folder; empty = none."""
    boundary: str = ""
    """Folder to which the user is confined, so that no file outside of it may be read; empty = not confined."""
    is_local: bool = False
    """True if the conversation belongs to the owner of the home. Only then may the prompt contain texts from the home."""
    mode: Mode = "ask"
    now: int = 0
    """Wall time in µs."""
    home: Path = Path()
    """moot's home folder."""
    project: Project | None = None
    tools: tuple[str, ...] = ()
    """Names of the offered tools."""
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    """The agents that the agent may call."""
    skills: SkillSelection | None = None
    """The skills of the step; None = there are none."""
    web_search: bool = False
    """True if the user has turned on web search."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a system prompt."""

    name: str
    text: str


class PromptPartProvider(Protocol):
    """Function that returns the text of a part; empty = the part is left out. It is called before each step."""

    async def __call__(self, context: PromptContext) -> str: ...
