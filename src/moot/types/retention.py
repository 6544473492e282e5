"""Retention rules. A file of its own, because every configuration imports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Keeping", "Retention"]


@dataclass(frozen=True, slots=True)
class Keeping:
    """A rule for conversations that no one deletes. 0 = keep forever."""

    keep_days: int = 0
    """Days without activity before a conversation is deleted."""
    archived_days: int = 0
    """Days after archiving before a conversation is deleted."""


@dataclass(frozen=True, slots=True)
class Retention(Keeping):
    """The retention rules of a store."""

    trash_days: int = 30
    """Days between deletion and purge. 0 = never purge automatically."""
    projects: Mapping[str, Keeping] = field(default_factory=dict[str, Keeping])
    """Rules by project name or id; they replace the general ones."""
