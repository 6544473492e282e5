"""What was found, and what was counted."""

from __future__ import annotations

from typing import Literal

from moot.server.wire.base import ListOut, Out


class HitOut(Out):
    """A message in which the words occur."""

    id: str
    """Of the message."""
    conversation: str
    title: str
    role: str
    at: int
    snippet: str
    """Plain text; matches stand between U+0002 and U+0003."""
    column: Literal["text", "tools", "reasoning"]
    """Where the snippet is from: what was said, tool calls with their outputs, or reasoning."""
    seq: int
    """First seq of the message in its conversation's log; 0 = none."""


class IndexOut(Out):
    """How far the index goes."""

    done: int
    total: int


class FoundOut(ListOut[HitOut]):
    """What was found so far."""

    index: IndexOut
    ranked: int | None
    """Only so many of the matches were ranked, the newest ones; null = all, or none were."""
    cut: bool
    """A piece of a word occurs in so many words that only the most common of them were looked for."""
    loose: bool
    """Nothing has all of the words: these have some of them, the best first, on one page."""


class CountsOut(Out):
    """What answers took: runs, and what was brought in. Money is nano-dollars."""

    runs: int
    failed: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost: int
    """Of the answers whose price is known."""
    unpriced_runs: int
    steps: int
    ms: int
    """That models worked, where it is known."""
    timed_output: int
    """Output tokens of that time."""
    first_ms: int
    """Sum of the times to the first that was shown, where it is known."""
    firsts: int
    contexts: int
    """Sum of the input tokens of each answer's largest model call."""
    context: int
    """Their mean."""
    first: int | None
    """Mean ms to the first that was shown."""
    rate: float | None
    """Output tokens a second while models worked."""


class GroupOut(CountsOut):
    """The same of one day, model, agent or project."""

    name: str


class ToolCountsOut(Out):
    """What calls of one tool came to."""

    name: str
    calls: int
    failed: int
    denied: int
    ms: int
    """Of the calls whose time is known."""
    timed: int
    """How many those are."""


class ErrorCountOut(Out):
    """Answers that failed for one kind of reason."""

    name: str
    runs: int


class AsideCountsOut(Out):
    """Model calls that belong to no answer (titles, summaries, pictures); their cost is in no other sum."""

    name: str
    calls: int
    input: int
    output: int
    cost: int
    unpriced: int


class ContextSizeOut(Out):
    """How large the context was for an answer."""

    at: int
    tokens: int


class StatsOut(Out):
    """What was stored and what it took."""

    conversations: int
    messages: int
    total: CountsOut
    days: list[GroupOut]
    """UTC, newest first."""
    models: list[GroupOut]
    """The most runs first."""
    agents: list[GroupOut]
    projects: list[GroupOut]
    tools: list[ToolCountsOut]
    """The most calls first."""
    errors: list[ErrorCountOut]
    asides: list[AsideCountsOut]
    contexts: list[ContextSizeOut]
    """Of the one conversation that was asked for, oldest first."""
    uncounted: int
    """Answers that are over and in no sum yet."""
