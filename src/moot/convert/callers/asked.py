"""What another program wants of a model, whatever dialect it says it in."""

from __future__ import annotations

from dataclasses import dataclass, field

from moot.types.message import Message
from moot.types.model import ModelSettings
from moot.types.provider import ToolDefinition

__all__ = ["OUTPUT", "Asked"]

OUTPUT = "data-tool-output"
"""A part of a user message: what came of a call whose answer the caller does not repeat."""


@dataclass(frozen=True, slots=True)
class Asked:
    model: str
    messages: tuple[Message, ...]
    """All that the caller sent, oldest first; without ids. Outputs of calls stand in the answers that made the calls."""
    system: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    """The caller's own, which it carries out itself."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    stream: bool = False
    stream_usage: bool = False
    """Whether a stream of chat completions ends with the counts."""
    after: str = ""
    """The answer that `messages` come behind, by the id that the caller was given; empty = `messages` are all there is."""
    conversation: str = ""
    """The conversation that the call is to land in, by the caller's own name; empty = found by what is sent, else new."""
