"""How much a run may take; each a key of `limits` in the configuration, 0 = no limit."""

from __future__ import annotations

from dataclasses import dataclass

TOOL_OUTPUT_CHARACTERS = 30_000
"""What a model gets of one tool output; the rest is in a blob that read_file can page."""

INLINE_BYTES = 16 * 1024
"""What an event carries of an output; more goes to a blob."""

TAIL_BYTES = 4 * 1024
"""What people are shown of a long output's end."""


@dataclass(frozen=True, slots=True)
class Limits:
    runs_per_user: int = 3
    subagents_per_user: int = 20
    subagents_per_run: int = 8
    depth: int = 3
    steps: int = 50
    repeats: int = 3
    """Identical tool calls in a row after which the run stops."""
    per_provider: int = 0
    """Calls of one provider at a time, in each process."""
    cached_conversations: int = 20
    cost: int = 0
    """Nano-dollars a run may cost."""
    tokens: int = 0
    """Input and output tokens a run may take."""
    uploads: int = 1 << 30
    """Bytes of all that one user has uploaded."""
    seconds: float = 0
    """Time that a run works, over all its legs; waiting for a person does not count."""
