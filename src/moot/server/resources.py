"""Look-ups by id, pages and ETags of resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, TypeAlias, TypeVar

from fastapi import Header, Query, Request, Response
from pydantic import BaseModel

from moot.errors import NotFound
from moot.server.credentials import Caller
from moot.server.models import ListOut
from moot.server.problems import Problem
from moot.server.state import Server
from moot.types.approval import Approval
from moot.types.canonical import dumps
from moot.types.conversation import Conversation, Page
from moot.types.run import STARTED, Run, RunStatus

__all__ = ["LIVE", "approval_of", "conversation_of", "current", "live_of", "run_of"]


LIVE: frozenset[RunStatus] = frozenset({*STARTED, "queued"})


async def conversation_of(caller: Caller, id: str) -> Conversation:
    """Raises NotFound."""
    found = await caller.store.conversations.by_client_id(id)
    if found is None:
        raise NotFound(f"no conversation with the id {id!r}")
    return found


async def run_of(caller: Caller, id: str) -> Run:
    """Raises NotFound."""
    found = await caller.store.records.run(id)
    if found.id != id:
        raise NotFound(f"no run with the id {id!r}")
    return found


async def approval_of(caller: Caller, id: str) -> Approval:
    """Raises NotFound."""
    found = await caller.store.records.approval(id)
    if found is None:
        raise NotFound(f"no approval with the id {id!r}")
    return found


async def current(here: Server, runs: Sequence[Run]) -> list[Run]:
    """The runs as they stand: one that is called running, and whose process has died, is interrupted first."""
    return [await here.engine.runs.current(run.id) if run.status == "running" else run for run in runs]


async def live_of(here: Server, caller: Caller, conversation: str | None = None) -> Mapping[str, RunStatus]:
    """Conversation → the state of its run that has started, else of one that is queued."""
    runs = await current(here, await caller.store.records.runs(conversation=conversation, statuses=LIVE))
    started = [run for run in runs if run.status in STARTED]
    return {run.conversation: run.status for run in [*runs, *started]}


Thing = TypeVar("Thing")
Item = TypeVar("Item")

Limit: TypeAlias = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
"""`limit: Limit = 50`"""

Cursor: TypeAlias = Annotated[str | None, Query(max_length=1000, description="`next_cursor` of the page before.")]
"""`cursor: Cursor = None`"""


def listed(page: Page[Thing], to_wire: Callable[[Thing], Item]) -> ListOut[Item]:
    """A page of the store as it is sent."""
    return ListOut(data=[to_wire(item) for item in page.items], next_cursor=page.next_cursor)


IfMatch: TypeAlias = Annotated[str | None, Header(alias="if-match", max_length=1000)]
"""`if_match: IfMatch = None`, for `check_match`."""


def etag_of(value: BaseModel | object) -> str:
    """The strong tag of a thing as it is sent; the same for the same content."""
    content = value.model_dump_json().encode() if isinstance(value, BaseModel) else dumps(value)
    return f'"{blake2b(content, digest_size=12).hexdigest()}"'


def check_match(if_match: str | None, etag: str) -> None:
    """Raises Problem (412) when the caller has seen another state than the one that stands. Without a header anything goes."""
    if if_match is not None and not _names(if_match, etag, weakly=False):
        raise Problem(412, "it was changed since you have read it", fix="read it again, and send its new ETag", headers={"etag": etag})


def tagged(request: Request, value: BaseModel, *, etag: str = "") -> Response:
    """The thing with its tag (its whole content's without one); 304 without a body when the caller has it already."""
    etag = etag or etag_of(value)
    if (seen := request.headers.get("if-none-match")) is not None and _names(seen, etag, weakly=True):
        return Response(status_code=304, headers={"etag": etag})
    return Response(value.model_dump_json(), media_type="application/json", headers={"etag": etag})


def _names(header: str, etag: str, *, weakly: bool) -> bool:
    named = [each.strip() for each in header.split(",")]
    return "*" in named or any((each.removeprefix("W/") if weakly else each) == etag for each in named)
