"""What there is to pick from, what may be done with it, and what was picked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Item:
    """One row."""

    key: str
    """What tells it from all others."""
    cells: tuple[str, ...]
    """One text for each column; untrusted, cleaned when drawn, shown to the letter."""
    words: str = ""
    """What the filter reads, what matters most first; empty = the cells."""


@dataclass(frozen=True, slots=True)
class Column:
    title: str = ""
    width: int = 8
    """In terminal cells; of the column that grows: at least."""
    rank: int = 0
    """When there is no room the highest ones go; 0 = never."""
    grows: bool = False
    """Takes what is left of the line. One column does."""
    right: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """Something else than picking, by its letter in the menu."""

    words: str
    key: str = ""
    """A key that does it at once, as prompt-toolkit names it: `c-e`, `delete`; empty = only by the menu."""


Pages: TypeAlias = Callable[[], AsyncGenerator[Sequence[Item], None]]
Items: TypeAlias = Sequence[Item] | Pages
"""All of them, or pages that are asked for when they are needed."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One of the lists that Tab goes round."""

    title: str
    items: Items


@dataclass(frozen=True, slots=True)
class Picked:
    item: Item
    action: str = ""
    """The letter of the action; empty = picked."""
    filter: str = ""
    scope: int = 0
    """Which of the lists it was in; 0 = the first."""


@dataclass(frozen=True, slots=True)
class Choice:
    """All that is asked."""

    scopes: tuple[Scope, ...]
    columns: tuple[Column, ...] = (Column(grows=True),)
    keys: Mapping[str, Action] = field(default_factory=dict[str, Action])
    enter: str = "choose"
    """What Enter does, for the footer."""
    empty: str = "nothing here"
    filter: str = ""
    at: str = ""
    """The key of the item that is selected at first; empty = the first one."""
    scope: int = 0
