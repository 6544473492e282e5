"""The request of another program to a model, independent of the dialect."""

from __future__ import annotations

from dataclasses import dataclass, field

from moot.types.message import Message
from moot.types.model import ModelSettings
from moot.types.provider import ToolDefinition

OUTPUT = "data-tool-output"
"""Type of a user part: the output of a call whose answer the caller did not repeat."""


@dataclass(frozen=True, slots=True)
class Asked:
    model: str
    messages: tuple[Message, ...]
    """All messages that the caller sent, oldest first, without ids. Outputs are on the calls of the answers that made them."""
    system: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    """The caller's own tools, which it runs itself."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    stream: bool = False
    stream_usage: bool = False
    """Send usage at the end of a chat completions stream."""
    after: str = ""
    """Id of the earlier answer that `messages` continue; empty if `messages` are the whole history."""
    conversation: str = ""
    """Conversation to use, by the caller's name; empty to find it by content or create one."""
