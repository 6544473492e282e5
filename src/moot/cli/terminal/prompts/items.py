"""Items, columns and actions of a picker, and its result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Item:
    """One row of a picker."""

    key: str
    """Unique identifier."""
    cells: tuple[str, ...]
    """One text per column. Untrusted: control characters are removed when it is drawn, and markup is shown literally."""
    words: str = ""
    """Text that the filter searches, most important words first. If empty, the cells are searched."""
    group: str = ""
    """Heading above the first of the items with this group, which must be adjacent. A filter keeps the order of such items."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a picker."""

    title: str = ""
    width: int = 8
    """Width in terminal cells. For a column that grows, the minimum width."""
    rank: int = 0
    """Columns with the highest rank are hidden first on a narrow terminal. 0 means never."""
    grows: bool = False
    """True for the columns that share the rest of the line."""
    right: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """An additional action on the selected item, chosen by its letter in the menu."""

    words: str
    key: str = ""
    """Shortcut in prompt-toolkit's notation, such as `c-e` or `delete`; empty if the action is only in the menu."""


Pages: TypeAlias = Callable[[], AsyncGenerator[Sequence[Item], None]]


@dataclass(frozen=True, slots=True)
class Live:
    """A list that changes while it is shown."""

    snapshots: Pages
    """Generator of the whole list: once at the start, and again after each change."""


Items: TypeAlias = Sequence[Item] | Pages | Live
"""All items, a generator of pages, or a list that changes."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One of the lists that Tab switches between."""

    title: str
    items: Items


@dataclass(frozen=True, slots=True)
class Picked:
    """The picked item and how it was picked."""

    item: Item
    action: str = ""
    """The letter of the action; empty for Enter."""
    filter: str = ""
    scope: int = 0
    """Index of the list that contains the item."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Everything that a picker shows."""

    scopes: tuple[Scope, ...]
    columns: tuple[Column, ...] = (Column(grows=True),)
    keys: Mapping[str, Action] = field(default_factory=dict[str, Action])
    enter: str = "choose"
    """Label of the Enter key's action, shown in the footer."""
    empty: str = "Nothing to choose from"
    filter: str = ""
    at: str = ""
    """Key of the item that is selected at the start. If empty, the first item is selected."""
    scope: int = 0
    letters: bool = False
    """If True, letters are commands: those of `keys`, j and k to move, / to filter and q to close. Otherwise, they are typed into the
    filter."""
