"""Two conversations side by side."""

from __future__ import annotations

from typing import Literal

from moot.server.wire.base import Out
from moot.server.wire.conversations import UsageOut


class CallOut(Out):
    """A tool call."""

    name: str
    input: str
    """The arguments as JSON, the beginning of them."""
    state: str


class TookOut(Out):
    """What something took; null = not known. Money is nano-dollars."""

    usage: UsageOut
    cost: int | None
    ms: int | None


class AnswerOut(TookOut):
    """What a prompt was answered with."""

    message: str
    status: Literal["streaming", "finished", "failed", "cancelled", "interrupted"]
    agent: str
    model: str
    text: str
    tools: list[CallOut]


class PromptsOut(Out):
    """What was asked on either side; null = nothing."""

    a: str | None
    b: str | None


class PairOut(Out):
    """Prompts that belong together, with their answers."""

    prompt: PromptsOut
    a: AnswerOut | None
    b: AnswerOut | None
    same: bool
    diff: list[tuple[Literal[" ", "-", "+"], str]]
    """The texts in pieces: both have it, only a, only b."""


class SideOut(TookOut):
    """One of the two conversations, with its sums."""

    id: str
    title: str
    agent: str
    model: str
    forked_from: str | None
    answers: int
    tools: int


class ComparisonOut(Out):
    """Two conversations side by side."""

    a: SideOut
    b: SideOut
    same: bool
    pairs: list[PairOut]
