"""Startup of the interactive `moot chat list`.
The list appears immediately, because it is drawn before the modules for actions are imported.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from moot.cli.arguments.signatures import Call
from moot.cli.console.format import age
from moot.cli.console.lines import Lines
from moot.cli.context.configuration import configured, here
from moot.cli.terminal.prompts.first_frame import Frame, Keyboard
from moot.cli.terminal.prompts.items import Action, Choice, Column, Item, Items, Listing, Scope
from moot.cli.terminal.prompts.layout import View, moves_cursor
from moot.config.loader import Loaded
from moot.convert.serialization import describe_cost, status_of
from moot.plugins.registry import attribute
from moot.store.database.snapshot import open_snapshot
from moot.store.tree.lists import ListFilter, live, page
from moot.types.conversation import Conversation, Page
from moot.types.run import RunStatus

COLUMNS = (
    Column("AGE", 6, right=True),
    Column("TITLE", 34, grows=True),
    Column("STATUS", 11, rank=1),
    Column("FROM", 10, rank=2),
    Column("COST", 8, rank=3, right=True),
    Column("MSGS", 4, rank=4, right=True),
    Column("MODEL", 20, rank=5),
    Column("IN", 14, rank=6),
)
KEYS: Mapping[str, Action] = {
    "s": Action("show", "c-o"),
    "e": Action("edit a message", "c-e"),
    "w": Action("edit as text"),
    "m": Action("delete messages"),
    "r": Action("rename", "c-r"),
    "f": Action("fork", "c-f"),
    "a": Action("archive or unarchive", "c-a"),
    "d": Action("delete or restore", "delete"),
    "c": Action("copy id", "c-y"),
    "p": Action("use for --reply"),
}
RETITLES = frozenset({"r"})
"""Actions after which the conversation may no longer match the filter."""
FIRST, _PAGE = 40, 200
"""Number of rows on the first page, enough for a screen, and on later pages."""
_NANO = 1_000_000_000


Read: TypeAlias = Callable[[ListFilter], Awaitable[Page[Conversation]]]
"""Function that reads one page of conversations."""


def items_of(page: Page[Conversation], live: Mapping[str, RunStatus], now: float) -> list[Item]:
    """Convert a page to rows. `now` is in seconds since the epoch."""
    return [_item(conversation, live, now) for conversation in page.items]


def pages_of(read: Read, wanted: ListFilter, live: Mapping[str, RunStatus], now: float, first: Page[Conversation] | None = None) -> Items:
    """Return the conversations as rows, most recent activity first. `first` is the first page if it has already been read."""
    if first is not None and first.next_cursor is None:
        return items_of(first, live, now)

    async def pages() -> AsyncGenerator[Sequence[Item], None]:
        page = first or await read(replace(wanted, limit=FIRST))
        yield items_of(page, live, now)
        while page.next_cursor is not None:
            page = await read(replace(wanted, limit=_PAGE, cursor=page.next_cursor))
            yield items_of(page, live, now)

    return pages


def money(conversation: Conversation) -> str:
    """Format the cost, including the number of runs whose price is unknown."""
    if 0 < (conversation.cost or 0) < _NANO // 100 and not conversation.unpriced_runs:
        return "<$0.01"
    return describe_cost(conversation.cost, conversation.unpriced_runs, digits=2) or "-"


def _item(conversation: Conversation, live: Mapping[str, RunStatus], now: float) -> Item:
    title = f"{'* ' if conversation.pinned_at else ''}{conversation.title or 'untitled'}"
    if conversation.tags:
        title += f" [{' '.join(conversation.tags)}]"
    status, model = status_of(conversation, live), conversation.shown_model
    cells = (
        age(conversation.updated_at, now),
        title,
        "" if status == "standby" else status,
        conversation.came_from or conversation.editor,
        money(conversation),
        str(conversation.message_count),
        model.rpartition("@")[0] or model or "-",
        Path(conversation.directory).name,
    )
    words = f"{title} {model} {conversation.agent} {cells[3]} {status} {conversation.directory} {conversation.id}"
    return Item(conversation.id, cells, words)


Start: TypeAlias = Literal["", "here", "archived", "deleted"]
"""The list to show first. Empty means this directory, or all directories if this one has no conversations."""
_HERE, _ALL, _ARCHIVED, _DELETED = range(4)
_TITLES = ("all directories", "archived", "deleted")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The conversations that are shown first, read from the database without starting an engine."""

    loaded: Loaded
    directory: Path
    filter: str
    start: Start
    scope: int = _HERE
    page: Page[Conversation] | None = None
    """First page of conversations; None if reading it requires an engine."""
    live: Mapping[str, RunStatus] = field(default_factory=dict[str, RunStatus])
    """Status of each conversation's live run."""
    at: float = 0.0
    """Time at which the snapshot was read, in seconds since the epoch."""

    @property
    def settled(self) -> bool:
        """True if no engine is needed. Only an engine can tell whether the process of a running run is still alive."""
        return self.page is not None and "running" not in self.live.values()


def read_snapshot(loaded: Loaded, directory: Path, filter: str, start: Start) -> Snapshot:
    """Read the conversations to show first. Raise StoreError on failure."""
    snapshot = Snapshot(loaded, directory, filter, start)
    with open_snapshot(loaded.settings.database) as connection:
        if connection is None:
            return snapshot
        empty = not start and not page(connection, ListFilter(limit=1, directory=str(directory))).items
        scope = first_scope(start, empty=empty)
        wanted = replace(lists(directory)[scope], limit=FIRST, query=filter)
        return replace(snapshot, scope=scope, page=page(connection, wanted), live=live(connection), at=time.time())


def first_scope(start: Start, *, empty: bool) -> int:
    """Return the index of the list to show first. `empty` is True if this directory has no conversations."""
    return {"": _ALL if empty else _HERE, "here": _HERE, "archived": _ARCHIVED, "deleted": _DELETED}[start]


def lists(directory: Path) -> tuple[ListFilter, ...]:
    """Return the filters of the four lists, in the order in which Tab cycles through them."""
    every = ListFilter(pinned_first=True)
    deleted = replace(every, deleted=True, archived=None)
    return (replace(every, directory=str(directory)), every, replace(every, archived=True), deleted)


def choice_of(directory: Path, items: Sequence[Items], *, filter: str = "", at: str = "", scope: int = 0) -> Choice:
    """Build the picker. `items` are the rows of each list."""
    titles = (f"Conversations in {directory.name or directory}", *_TITLES)
    scopes = tuple(Scope(title, of) for title, of in zip(titles, items, strict=True))
    return Choice(scopes, COLUMNS, KEYS, "continue", "none yet", filter, at, scope)


_PERFORM = "moot.cli.runner:perform"
_LOOP = "moot.cli.commands.chat.browser_loop:loop"
"""Import paths, loaded after the first frame, because the event loop, prompt-toolkit and the engine take much longer to import."""


def browse(output: Lines, filter: str, start: Start) -> int:
    """Browse the conversations in this directory, or all conversations if there are none here.
    Return the exit code of the conversation that was continued, or 0.

    Raise ConfigError or StoreError on failure.
    """
    if not moves_cursor():
        return _loop(read_snapshot(configured(output), here(), filter, start), None, None)
    with Keyboard() as keyboard:
        snapshot = read_snapshot(configured(output), here(), filter, start)
        frame = _frame(snapshot, keyboard, output)
        try:
            return _loop(snapshot, keyboard, frame)
        finally:
            if frame is not None:
                frame.hide()


def _frame(snapshot: Snapshot, keyboard: Keyboard, output: Lines) -> Frame | None:
    if snapshot.page is None:
        return None
    listing = Listing(snapshot.filter)
    listing.add(items_of(snapshot.page, snapshot.live, snapshot.at))
    choice = choice_of(snapshot.directory, ((),) * 4, filter=snapshot.filter, scope=snapshot.scope)
    ended = snapshot.page.next_cursor is None and not snapshot.filter  # the store's filter matches only exact spellings
    frame = Frame(View(choice, snapshot.scope, listing, ended), keyboard, output)
    frame.show()
    return frame


def _loop(snapshot: Snapshot, keyboard: Keyboard | None, frame: Frame | None) -> int:
    code: int = attribute(_PERFORM)(Call(attribute(_LOOP), (snapshot, keyboard, frame), {}, bare=False))
    return code
