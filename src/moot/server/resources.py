"""Functions that routes share: look-up by id, pagination and ETags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import anyio
from fastapi import Header, Query, Request, Response
from pydantic import BaseModel

from moot.engine import Engine
from moot.engine.submissions import default_directory
from moot.errors import NotFound, Refused, UsageError
from moot.features.prompts.references import Place, attach_references
from moot.guard.roots import is_below
from moot.server.credentials import Caller
from moot.server.models import ListOut
from moot.server.problems import Problem
from moot.server.state import Server
from moot.types.approval import Approval
from moot.types.canonical import dumps
from moot.types.conversation import Conversation, Page
from moot.types.message import Message
from moot.types.run import STARTED, Prompt, Run, RunStatus

Notes: TypeAlias = tuple[str, ...]
"""Warnings for the user."""

LIVE: frozenset[RunStatus] = frozenset({*STARTED, "queued"})


async def check_directory(caller: Caller, directory: str) -> None:
    """Check that the caller may choose this working directory. Raise Refused if not, UsageError if it is not an existing folder."""
    if not caller.may("tools"):
        raise Refused("Choosing a folder on this machine requires the 'tools' scope.", fix="Omit `directory`.")
    if not caller.is_home_owner and not await _assigned(caller, directory):
        raise Refused(
            f"{directory!r} is not in a project that was assigned to you.", fix="Ask the administrator for a project with this folder."
        )
    if not Path(directory).is_absolute() or not await anyio.Path(directory).is_dir():
        raise UsageError(f"{directory!r} is not the absolute path of a folder.", fix="Use the path of an existing folder.")


def check_references(caller: Caller) -> None:
    """Raise Problem (403) if the caller may not attach what a prompt refers to: files, web pages, resources and tool outputs."""
    if not caller.may("tools") or not caller.is_home_owner:
        detail = "`references` requires a token of the user who runs the server, with the scope 'tools'."
        raise Problem(403, detail, fix="Omit `references`, and upload files to /api/blobs.")


async def with_references(engine: Engine, caller: Caller, prompt: Prompt, conversation: Conversation | None) -> tuple[Prompt, Notes]:
    """Attach what the prompt's last text refers to. Return the prompt and notes for the user.

    File names are relative to the conversation's folder.

    Raise Problem (403) if the caller may not attach anything, and the same errors as `attach_references`.
    """
    check_references(caller)
    folder = (conversation.directory if conversation is not None else "") or prompt.directory or default_directory(caller.owner_id)
    return await attach_references(prompt, Place(engine.runtime, folder, conversation, prompt.agent or ""))


async def _assigned(caller: Caller, directory: str) -> bool:
    """Return True if the directory is below the root of one of the user's projects."""
    cursor: str | None = None
    while True:
        page = await caller.store.projects.list(limit=200, cursor=cursor)
        if any(project.root_path and is_below(directory, project.root_path) for project in page.items):
            return True
        cursor = page.next_cursor
        if cursor is None:
            return False


async def conversation_of(caller: Caller, id: str) -> Conversation:
    """Return the conversation. Raise NotFound if it does not exist."""
    found = await caller.store.conversations.by_client_id(id)
    if found is None:
        raise NotFound(f"No conversation has the id {id!r}.")
    return found


async def user_message(caller: Caller, conversation: Conversation | None, id: str | None) -> Message | None:
    """Return the user message with the client's id, or None if it is new."""
    if conversation is None or id is None:
        return None
    try:
        found = await caller.store.conversations.message(id, conversation=conversation.id)
    except NotFound:
        return None
    return found if found.role == "user" else None


async def run_of(caller: Caller, id: str) -> Run:
    """Return the run. Raise NotFound if it does not exist."""
    found = await caller.store.records.run(id)
    if found.id != id:
        raise NotFound(f"No run has the id {id!r}.")
    return found


async def approval_of(caller: Caller, id: str) -> Approval:
    """Return the approval. Raise NotFound if it does not exist."""
    found = await caller.store.records.approval(id)
    if found is None:
        raise NotFound(f"No approval has the id {id!r}.")
    return found


async def current_runs(server: Server, runs: Sequence[Run]) -> list[Run]:
    """Return the runs with their current status: a running run whose process has died is first marked as interrupted."""
    return [await server.engine.runs.current(run.id) if run.status == "running" else run for run in runs]


async def live_statuses(server: Server, caller: Caller, conversation: str | None = None) -> Mapping[str, RunStatus]:
    """Return the live status of each conversation; a run that has started takes precedence over a queued one."""
    found = await current_runs(server, await caller.store.records.runs(conversation=conversation, statuses=LIVE))
    runs = [run for run in found if run.status in LIVE]  # one may have ended since the list was read
    started = [run for run in runs if run.status in STARTED]
    return {run.conversation: run.status for run in [*runs, *started]}


Entity = TypeVar("Entity")
Item = TypeVar("Item")

Limit: TypeAlias = Annotated[int, Query(ge=1, le=200, description="Maximum number of items.")]

LATEST = 253_402_300_799_999
"""Latest accepted time in ms: the end of the year 9999."""

Cursor: TypeAlias = Annotated[str | None, Query(max_length=1000, description="`next_cursor` from the previous page.")]


def page_out(page: Page[Entity], to_wire: Callable[[Entity], Item]) -> ListOut[Item]:
    """Return a page of results from the store as a response."""
    return ListOut(data=[to_wire(item) for item in page.items], next_cursor=page.next_cursor)


def cut(items: Sequence[Entity], limit: int, cursor: str | None, key: Callable[[Entity], str]) -> Page[Entity]:
    """Return the items after the cursor, which is the key of the last item already returned. Raise UsageError if it is unknown."""
    start = 0
    if cursor is not None:
        keys = [key(item) for item in items]
        if cursor not in keys:
            raise UsageError(f"{cursor!r} is not a valid cursor for this list.", fix="Use the `next_cursor` from the previous page.")
        start = keys.index(cursor) + 1
    page = items[start : start + limit]
    return Page(page, key(page[-1]) if page and start + limit < len(items) else None)


async def message_id(caller: Caller, conversation: str, reference: str | None) -> str | None:
    """Return the id of a message from its id or client id. Raise NotFound if the conversation has no such message."""
    return None if reference is None else (await caller.store.conversations.message(reference, conversation=conversation)).id


IfMatch: TypeAlias = Annotated[str | None, Header(alias="if-match", max_length=1000)]
"""Type of the `if_match` parameter, to be passed to `check_match`."""


def etag_of(value: BaseModel | object) -> str:
    """Return the strong ETag of a response's content."""
    content = value.model_dump_json().encode() if isinstance(value, BaseModel) else dumps(value)
    return f'"{blake2b(content, digest_size=12).hexdigest()}"'


def check_match(if_match: str | None, etag: str) -> None:
    """Raise Problem (412) if the resource has changed since the caller read it. Without the header, the check passes."""
    if if_match is not None and not _names(if_match, etag, weakly=False):
        raise Problem(
            412, "The resource has changed since you read it.", fix="Read it again and send its new ETag.", headers={"etag": etag}
        )


def tagged(request: Request, value: BaseModel, *, etag: str = "") -> Response:
    """Return a response with the value and its ETag, by default the hash of its content; 304 if the caller already has it."""
    etag = etag or etag_of(value)
    if (seen := request.headers.get("if-none-match")) is not None and _names(seen, etag, weakly=True):
        return Response(status_code=304, headers={"etag": etag})
    return Response(value.model_dump_json(), media_type="application/json", headers={"etag": etag})


def _names(header: str, etag: str, *, weakly: bool) -> bool:
    named = [each.strip() for each in header.split(",")]
    return "*" in named or any((each.removeprefix("W/") if weakly else each) == etag for each in named)
