"""Permissions: standing rules, what was allowed in a conversation, and what would happen to a call."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from moot.server.wire.base import In, Out
from moot.types.agent import Mode

Action = Literal["allow", "ask", "deny"]
Tool = Annotated[str, Field(min_length=1, max_length=200)]
Match = Annotated[str, Field(min_length=1, max_length=4000)]


class RuleOut(Out):
    """A standing rule, or (kind `grant`) what was allowed in a conversation."""

    kind: Literal["rule", "grant"]
    tool: str
    action: Action
    match: str
    always: Literal["offer", "never"] | None = None
    origin: str | None = None
    """Where a rule was written."""
    at: int | None = None
    """ms; of a grant."""
    by: str | None = None


class PermissionsOut(Out):
    """The mode in force and every rule."""

    mode: Mode
    data: list[RuleOut]
    next_cursor: None = None


class ModeIn(In):
    """The mode of the configuration."""

    mode: Mode


class RuleIn(In):
    """A rule to write into the configuration."""

    tool: Tool
    action: Action
    match: Match = "*"
    always: Literal["offer", "never"] = "offer"


class CallIn(In):
    """A call to judge."""

    tool: Tool
    subject: Annotated[str, Field(max_length=100_000)] = ""
    """The command, path or URL that it would be about."""
    mode: Mode | None = None
    conversation: Annotated[str, Field(max_length=128)] | None = None


class PartOut(Out):
    """A part of a call, such as one command of a line."""

    text: str
    action: Action
    why: str
    patterns: list[str]
    always: bool
    within: bool
    origin: str


class RulingOut(Out):
    """What would happen to a call, the rule that decides it, and where that was written."""

    action: Action
    why: str
    origin: str
    parts: list[PartOut]
