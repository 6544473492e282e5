"""How long conversations stay; in a file of its own, because every configuration holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Keeping", "Retention"]


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long conversations stay that nobody deletes. 0 = for ever."""

    keep_days: int = 0
    """Without activity, then they are deleted."""
    archived_days: int = 0
    """After they were archived, then they are deleted."""


@dataclass(frozen=True, slots=True)
class Retention(Keeping):
    """What is over when."""

    trash_days: int = 30
    """After they were deleted, then they are purged. 0 = never by itself."""
    projects: Mapping[str, Keeping] = field(default_factory=dict[str, Keeping])
    """By name or id, in the place of the general rules."""
