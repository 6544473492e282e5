"""The initial snapshot of the store, and the lists of the browser."""

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

Start: TypeAlias = Literal["", "here", "archived", "deleted"]
"""List to show first. Empty means this directory, or all directories if it has no conversations."""
_HERE, _ALL, _ARCHIVED, _DELETED = range(4)
_TITLES = ("all directories", "archived", "deleted")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The initial snapshot, read without an engine."""

    loaded: Loaded
    directory: Path
    filter: str
    start: Start
    scope: int = _HERE
    page: Page[Conversation] | None = None
    """None if an engine is needed to read it."""
    live: Mapping[str, RunStatus] = field(default_factory=dict[str, RunStatus])
    """Status of live runs by conversation."""
    at: float = 0.0
    """Time of reading, in seconds since the epoch."""

    @property
    def settled(self) -> bool:
        """True if the snapshot is reliable. Only an engine can tell whether a running run's process is alive."""
        return self.page is not None and "running" not in self.live.values()


def read_snapshot(loaded: Loaded, directory: Path, filter: str, start: Start) -> Snapshot:
    """Read the initial snapshot. Raise StoreError on failure."""
    snapshot = Snapshot(loaded, directory, filter, start)
    with glance(loaded.settings.database) as connection:
        return snapshot if connection is None else _read(connection, snapshot)


def _read(connection: Connection, snapshot: Snapshot) -> Snapshot:
    scope = first_scope(
        snapshot.start, empty=not snapshot.start and not page(connection, Listed(limit=1, directory=str(snapshot.directory))).items
    )
    wanted = replace(lists(snapshot.directory)[scope], limit=FIRST, query=snapshot.filter)
    return replace(snapshot, scope=scope, page=page(connection, wanted), live=live(connection), at=time.time())


def first_scope(start: Start, *, empty: bool) -> int:
    """Return the index of the list to show first. `empty` says that this directory has no conversations."""
    return {"": _ALL if empty else _HERE, "here": _HERE, "archived": _ARCHIVED, "deleted": _DELETED}[start]


def lists(directory: Path) -> tuple[Listed, ...]:
    """Return the queries of the lists, in the order of Tab."""
    return (Listed(directory=str(directory)), Listed(), Listed(archived=True), Listed(deleted=True, archived=None))


def choice_of(directory: Path, items: Sequence[Items], *, filter: str = "", at: str = "", scope: int = 0) -> Choice:
    """Build the picker. `items` are the rows of each list."""
    titles = (f"Conversations in {directory.name or directory}", *_TITLES)
    scopes = tuple(Scope(title, of) for title, of in zip(titles, items, strict=True))
    return Choice(scopes, COLUMNS, KEYS, "continue", "none yet", filter, at, scope)
