"""Routes for search."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query

from moot.convert.hits import found_json
from moot.errors import UsageError
from moot.server.auth import Reader, Router
from moot.server.models import ListOut, Out
from moot.server.resources import Cursor, Limit, conversation_of
from moot.server.state import CurrentServer
from moot.store.search.query import CONTEXT, OPERATORS
from moot.types.search import Hit, SemanticQuery


class HitOut(Out, of=Hit, fields="id conversation title role at snippet column seq context"):
    """A message that matches the query."""

    id: str
    """Id of the message."""


class IndexOut(Out):
    """Progress of indexing: number of indexed messages, and number of all messages."""

    done: int
    total: int


class FoundOut(ListOut[HitOut]):
    """Results of a search."""

    index: IndexOut
    ranked: int | None
    """Number of matches that were ranked, which are the newest ones; null if all or none were ranked."""
    cut: bool
    """True if a partial word matches so many words that only the most common ones were searched."""
    loose: bool
    """True if no message contains all words. The results then contain some of the words and are on one page, best first."""
    stopped_at: int | None
    """If a search with a regular expression reached the time limit: time in ms of the oldest message searched. `next_cursor` continues the
    search.
    """


_OPERATORS = ", ".join(f"{name}:" for name in OPERATORS)

router = Router(prefix="/api/search", tags=["search"])


@router.get("")
async def search(
    caller: Reader,
    server: CurrentServer,
    q: Annotated[str, Query(max_length=1000, description=f'Words, "phrases", -not, /regex/, and operators: {_OPERATORS}.')],
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only search this conversation.")] = None,
    sort: Annotated[Literal["newest", "best"], Query(description="`newest` or `best` match first.")] = "newest",
    mode: Annotated[
        Literal["words", "meaning"],
        Query(description="`meaning` ranks answers by similarity to `q`, on one page; `sort` and `cursor` are ignored."),
    ] = "words",
    context: Annotated[int, Query(ge=0, le=CONTEXT, description="Number of lines before and after the match to return in `context`.")] = 0,
    wait: Annotated[float, Query(ge=0, le=2, description="Maximum number of seconds to spend on indexing new messages first.")] = 2.0,
) -> FoundOut:
    """Search messages. New messages are indexed first, for up to `wait` seconds; `index` reports the progress.

    With mode `meaning`, `index` counts the answers that can be found so far. If the optional package or the model weights for it are not
    installed, the error explains how to install them.
    """
    if not q.strip():
        raise UsageError("The query is empty.", fix="Enter one or more words.")
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    if mode == "meaning":
        embedder = await server.engine.meanings.embedder()
        return FoundOut.model_validate(found_json(await caller.store.meaning.search(SemanticQuery(q, limit, within), embedder=embedder)))
    page = await caller.store.search.search(
        q, limit=limit, cursor=cursor, conversation=within, best=sort == "best", context=context, wait=wait
    )
    return FoundOut.model_validate(found_json(page))
