"""What is seen of the store at once, and what is asked of the person."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from moot.cli.browsing.rows import COLUMNS, FIRST, KEYS
from moot.cli.picking.items import Choice, Items, Scope
from moot.config.loading import Loaded
from moot.store.connect import Connection
from moot.store.glance import glance
from moot.store.listing import Listed, live, page
from moot.types.conversation import Conversation
from moot.types.page import Page
from moot.types.run import RunStatus

Place: TypeAlias = Literal["", "here", "archived", "deleted"]
"""Which of the lists is shown at first; empty = of this directory, of all where it has none."""
_HERE, _ALL, _ARCHIVED, _DELETED = range(4)
_TITLES = ("all directories", "archived", "deleted")


@dataclass(frozen=True, slots=True)
class Look:
    """A first look, as quick as can be."""

    loaded: Loaded
    directory: Path
    filter: str
    place: Place
    scope: int = _HERE
    page: Page[Conversation] | None = None
    """None where only an engine can say."""
    live: Mapping[str, RunStatus] = field(default_factory=dict[str, RunStatus])
    """Conversation → the state of its live run."""
    at: float = 0.0
    """When, in seconds since the epoch."""

    @property
    def settled(self) -> bool:
        """Whether it can be relied on: that a run which calls itself running still does only an engine knows."""
        return self.page is not None and "running" not in self.live.values()


def look_at(loaded: Loaded, directory: Path, filter: str, place: Place) -> Look:
    """What the list begins with. Raises StoreError."""
    look = Look(loaded, directory, filter, place)
    with glance(loaded.settings.database) as connection:
        return look if connection is None else _seen(connection, look)


def _seen(connection: Connection, look: Look) -> Look:
    scope = first_scope(look.place, empty=not look.place and not page(connection, Listed(limit=1, directory=str(look.directory))).items)
    wanted = replace(lists(look.directory)[scope], limit=FIRST, query=look.filter)
    return replace(look, scope=scope, page=page(connection, wanted), live=live(connection), at=time.time())


def first_scope(place: Place, *, empty: bool) -> int:
    """Which of the lists comes first; `empty`: this directory has none."""
    return {"": _ALL if empty else _HERE, "here": _HERE, "archived": _ARCHIVED, "deleted": _DELETED}[place]


def lists(directory: Path) -> tuple[Listed, ...]:
    """What is in each of the lists that Tab goes round."""
    return (Listed(directory=str(directory)), Listed(), Listed(archived=True), Listed(deleted=True, archived=None))


def choice_of(directory: Path, items: Sequence[Items], *, filter: str = "", at: str = "", scope: int = 0) -> Choice:
    """What the person is asked; `items` are those of each list."""
    titles = (f"Conversations in {directory.name or directory}", *_TITLES)
    scopes = tuple(Scope(title, of) for title, of in zip(titles, items, strict=True))
    return Choice(scopes, COLUMNS, KEYS, "continue", "none yet", filter, at, scope)
