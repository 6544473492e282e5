"""The state of a run when an owner claims it: everything a leg needs to start, from one snapshot."""

from __future__ import annotations

from typing import Any

from moot.store import lookup
from moot.store.connect import Queries
from moot.store.events import Events
from moot.store.projects import project_of
from moot.store.rows import kept, message_of
from moot.types.event import Event
from moot.types.store import InboxItem, Standing

__all__ = ["called_off", "standing"]

_PAGE = 2048
_INBOX = "SELECT kind, body, no, at FROM inbox WHERE run = ? AND taken_at IS NULL ORDER BY no"
_ANSWERED = "SELECT id FROM approval WHERE run = ? AND approved IS NOT NULL"
_CALLED_OFF = "SELECT DISTINCT run FROM inbox WHERE run IN (SELECT value FROM json_each(?)) AND kind = 'cancel' AND taken_at IS NULL"


def standing(id: str, events: Events, queries: Queries) -> Standing:
    """Find by the run's exact id. Raise NotFound."""
    run = lookup.run(queries, id)
    conversation = lookup.conversation(queries, run.conversation)
    row: Any = lookup.message_row(queries, run.message)
    return Standing(
        run,
        conversation,
        project_of(queries, conversation.project),
        message_of(row),
        _events(queries, events, row[13], id),
        _inbox(queries, id),
        frozenset(found[0] for found in queries.execute(_ANSWERED, (id,))),
    )


def _inbox(queries: Queries, run: str) -> tuple[InboxItem, ...]:
    found = queries.execute(_INBOX, (run,))
    return tuple([InboxItem(kind, kept(body) if body is not None else None, no, at) for kind, body, no, at in found])


def called_off(runs: bytes, queries: Queries) -> frozenset[str]:
    """Return the runs (given as a JSON array of ids) that have a cancel in their inbox."""
    return frozenset(found[0] for found in queries.execute(_CALLED_OFF, (runs.decode(),)))


def _events(queries: Queries, events: Events, conversation: int, run: str) -> tuple[Event, ...]:
    found: list[Event] = []
    while page := events.page(queries, conversation, found[-1].seq if found else 0, _PAGE, run):
        found += page
        if len(page) < _PAGE:
            break
    return tuple(found)
