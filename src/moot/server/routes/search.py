"""Finding words in all conversations."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query

from moot.convert.found import found_json
from moot.errors import UsageError
from moot.server.auth import Reader
from moot.server.finding import conversation_of
from moot.server.paging import Cursor, Limit
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.finding import FoundOut
from moot.store.searching.query import OPERATORS
from moot.types.meaning import Meant

_OPERATORS = ", ".join(f"{name}:" for name in OPERATORS)

router = Router(prefix="/api/search", tags=["search"])


@router.get("")
async def search(
    caller: Reader,
    here: Here,
    q: Annotated[str, Query(max_length=1000, description=f'Words, "phrases", -not, and operators: {_OPERATORS}.')],
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only in this one.")] = None,
    sort: Annotated[Literal["newest", "best"], Query(description="What comes first.")] = "newest",
    mode: Annotated[
        Literal["words", "meaning"],
        Query(description="`meaning`: answers about what `q` is about, the nearest first, on one page; `sort` and `cursor` don't matter."),
    ] = "words",
    wait: Annotated[float, Query(ge=0, le=2, description="Seconds to index what is missing before the answer.")] = 2.0,
) -> FoundOut:
    """Finds messages. What is missing in the index is indexed first, for up to `wait` seconds; `index` says how far it goes.

    By meaning, `index` counts the answers that were read. Without the extra or the weights that is an error which says how to get them.
    """
    if not q.strip():
        raise UsageError("there is nothing to search for: the query is empty", fix="give a word or several")
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    if mode == "meaning":
        embedder = await here.engine.meanings.embedder()
        return FoundOut.model_validate(found_json(await caller.store.meaning.search(Meant(q, limit, within), embedder=embedder)))
    page = await caller.store.search.search(q, limit=limit, cursor=cursor, conversation=within, best=sort == "best", wait=wait)
    return FoundOut.model_validate(found_json(page))
