"""One page of a list and the cursor of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: Sequence[Item]
    next_cursor: str | None = None
    """Pass it back unchanged; None = this was the last page."""
