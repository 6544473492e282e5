"""What takes how much in the store."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from moot.server.auth import Admin
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.store import SizesOut

router = Router(prefix="/api/store", tags=["store"])


@router.get("")
async def get_store(
    here: Here, caller: Admin, largest: Annotated[int, Query(ge=0, le=200, description="How many conversations to name.")] = 10
) -> SizesOut:
    """Adds up the database: the log, sealed or not, messages, search, requests, files, free pages. Looks through all of it.

    Of conversations only your own are named.
    """
    sizes = await here.engine.store.upkeep.sizes(largest=largest, owner=caller.owner_id)
    return SizesOut.model_validate(sizes.to_json())
