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


class CountsOut(Out):
    """What runs took. Money is nano-dollars."""

    runs: int
    failed: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost: int
    """Of the runs whose price is known."""
    unpriced_runs: int


class GroupOut(CountsOut):
    """The same of one day, model, agent or project."""

    name: str


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
