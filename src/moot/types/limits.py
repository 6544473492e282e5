"""Limits of runs, and rules for deleting old conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TOOL_OUTPUT_CHARACTERS = 30_000
"""Maximum length of a tool output sent to a model; the rest is in a blob that read_file can page through."""

INLINE_BYTES = 16 * 1024
"""Maximum size in bytes of an output inside an event. A larger one is stored as a blob."""

TAIL_BYTES = 4 * 1024
"""Maximum size of the end of a long output, which is the part shown to people."""


@dataclass(frozen=True, slots=True)
class Limits:
    runs_per_user: int = 3
    subagents_per_user: int = 20
    subagents_per_run: int = 8
    depth: int = 3
    steps: int = 50
    repeats: int = 3
    """Number of identical tool calls in a row after which the run stops."""
    per_provider: int = 0
    """Maximum number of concurrent calls to one provider, per process; 0 = no limit."""
    cached_conversations: int = 20
    cost: int = 0
    """Maximum cost of a run in nano-dollars; 0 = no limit."""
    tokens: int = 0
    """Maximum number of input and output tokens of a run; 0 = no limit."""
    uploads: int = 1 << 30
    """Maximum total size of one user's uploads, in bytes."""
    seconds: float = 0
    """Maximum working time of a run in seconds, excluding waits for people; 0 = no limit."""
    wait_for_reset: float = 0
    """Maximum number of seconds that a step waits until a provider's usage limit resets; 0 = don't wait."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Periods after which conversations are deleted automatically; 0 = never."""

    keep_days: int = 0
    """Days without activity before a conversation is deleted."""
    archived_days: int = 0
    """Days after archiving before a conversation is deleted."""


@dataclass(frozen=True, slots=True)
class Retention(RetentionRule):
    """The retention rules of a store."""

    trash_days: int = 30
    """Days between deletion and purge. 0 = never purge automatically."""
    projects: Mapping[str, RetentionRule] = field(default_factory=dict[str, RetentionRule])
    """Rules by project name or id; they replace the general ones."""
