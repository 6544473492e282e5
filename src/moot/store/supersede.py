"""Ending an inactive run, because a new prompt replaces it or because it was cancelled before it started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from moot.convert.closing import close_open, settle_calls
from moot.convert.cutting import Cut
from moot.convert.fold import Folder
from moot.convert.totals import totals
from moot.store import lookup
from moot.store.changes import Target, deny_open, make
from moot.store.events import Events
from moot.store.rows import EXCHANGE, exchange_of, message_of
from moot.store.transaction import Transaction
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk, abort, finish, tool_denied
from moot.types.event import Event
from moot.types.exchange import Ending, Failure
from moot.types.part import Part, is_tool
from moot.types.store import CloseExchange, End, Fence, Fold

__all__ = ["WITHDRAWN", "supersede"]

_PAGE = 2048

SUPERSEDED = ("superseded", "superseded by a new prompt")
WITHDRAWN = ("cancelled", "cancelled before it started")


def supersede(transaction: Transaction, events: Events, conversation: int, run: str, why: tuple[str, str] = SUPERSEDED) -> None:
    """Deny the run's open approvals, close its exchange and message, and end it as cancelled; its fence becomes invalid.

    `why` is a keyword for the record and a sentence for calls without output.
    """
    reason, text = why
    row: Any = transaction.row("UPDATE run SET fence = fence + 1 WHERE id = ? RETURNING fence, message", (run,))
    number, message_id = row
    deny_open(transaction, run, reason)
    message = events.folded(transaction, message_of(lookup.message_row(transaction, message_id)), conversation)
    target = Target(Fence("", run, message_id, number), conversation, 0)
    cut = _cut(transaction, run)
    usage, cost, model = totals(_through(_journal(transaction, events, conversation, run), cut))
    folder = Folder(message.parts, message.metadata)
    if cut is not None and cut.is_open:
        end = cut.end(run, Failure(text, kind="cut"))
        usage += Ending.from_json(end.body if isinstance(end.body, dict) else {}).usage
        transaction.add(conversation, (end,))
        make(transaction, target, CloseExchange(str(end.exchange), "cut"))
        folder.feed_all(end.chunks)
    closing = (*_closing(folder.parts(), text), abort(reason), finish("other"))
    body: JsonObject = {"status": "cancelled", "finish_reason": "other"}
    seq = transaction.add(conversation, (Event("chunks", closing, run=run, phase="end", key="run", body=body),))[-1]
    folder.feed_all(closing)
    target = replace(target, through=seq)
    make(transaction, target, Fold(folder.parts(), folder.metadata(), "cancelled"))
    make(transaction, target, End("cancelled", None, usage, cost, model=model))


def _journal(transaction: Transaction, events: Events, conversation: int, run: str) -> Iterator[Event]:
    after = 0
    while page := events.page(transaction, conversation, after, _PAGE, run):
        yield from page
        after = page[-1].seq


def _cut(transaction: Transaction, run: str) -> Cut | None:
    """Return the run's last exchange if it was cut off; earlier ones without an end were abandoned when the run was resumed."""
    row: Any = transaction.row(f"SELECT {EXCHANGE} WHERE e.run = ? AND e.purpose = 'answer' ORDER BY e.rowid DESC LIMIT 1", (run,))
    exchange = None if row is None else exchange_of(row)
    return None if exchange is None or exchange.ended is not None else Cut(exchange.id, exchange.converter, exchange.options)


def _through(journal: Iterator[Event], cut: Cut | None) -> Iterator[Event]:
    for event in journal:
        if cut is not None:
            cut.take(event)
        yield event


def _closing(parts: Sequence[Part], text: str) -> Iterator[Chunk]:
    """Yield the chunks that close everything open: one output per tool call, and an end for each streaming part."""
    asked = [part for part in parts if is_tool(part) and str(part.get("state")).startswith("approval-")]
    yield from close_open(parts)
    yield from (tool_denied(str(part.get("toolCallId"))) for part in asked)
    yield from settle_calls([part for part in parts if part not in asked], text)
