"""Conversations: list, read, create, change, delete and fork."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from starlette.responses import Response

from moot.convert.serialization import conversation_json
from moot.errors import Refused, UsageError
from moot.plugins import AGENTS
from moot.runtime.setup import find_agent
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.models import (
    ContinueIn,
    ConversationChange,
    ConversationIn,
    ConversationOut,
    ForkIn,
    GoingOut,
    HeadIn,
    ListOut,
    Out,
    conversation_out,
)
from moot.server.resources import Cursor, IfMatch, Limit, check_match, conversation_of, etag_of, listed, live_of, tagged
from moot.server.state import Here, Server
from moot.types.canonical import JsonObject
from moot.types.conversation import DEFAULT_PROJECT, Conversation
from moot.types.ids import new_id


class FileOut(Out):
    """What became of a file beside the database."""

    path: str
    what: Literal["deleted", "rewritten", "left", "not reached"]
    why: str | None


class ForgottenOut(Out):
    """The receipt of a purge. Times are milliseconds."""

    no: int
    kind: Literal["purge", "redact"]
    begun_at: int
    done_at: int | None
    """Null while something is still to be done; the server goes on with it by itself."""
    conversations: list[str]
    rows: dict[str, int]
    """By table."""
    blobs: int
    blob_bytes: int
    files: list[FileOut]
    left: list[str]
    """What was not reached, and why."""
    not_looked_into: list[str]
    """Where a redaction did not look, in words."""
    bytes_before: int
    """Of the database."""
    bytes_after: int


router = Router(prefix="/api/conversations", tags=["conversations"])

_CHANGEABLE = ("title", "agent", "model", "project", "settings", "head", "archived_at", "deleted_at")

ONE: dict[int | str, dict[str, Any]] = {200: {"model": ConversationOut}, 304: {"description": "It is as it was."}}


@router.get("")
async def list_conversations(
    here: Here,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    query: Annotated[str, Query(max_length=500, description="Words in title, model, agent, origin or directory.")] = "",
    project: Annotated[str | None, Query(max_length=200)] = None,
    directory: Annotated[str | None, Query(max_length=4096)] = None,
    archived: Annotated[bool | None, Query(description="Only those that are; false unless `deleted` is asked for.")] = None,
    deleted: bool = False,
) -> ListOut[ConversationOut]:
    """Lists conversations, newest activity first."""
    shelf = archived if archived is not None or deleted else False
    page = await caller.store.conversations.list(
        limit=limit, cursor=cursor, query=query, project=project, directory=directory, archived=shelf, deleted=deleted
    )
    live = await live_of(here, caller)
    return listed(page, lambda conversation: conversation_out(conversation, live))


@router.post("", status_code=201, response_model=ConversationOut)
async def create_conversation(here: Here, caller: Chatter, wanted: ConversationIn) -> Response:
    """Makes an empty conversation."""
    folder = await caller.store.projects.get(wanted.project or DEFAULT_PROJECT)
    if wanted.directory is not None:
        check_directory(caller, wanted.directory)
    agent_type = await _agent_type(here, wanted.agent, wanted.model)
    made = await caller.store.conversations.create(
        Conversation(
            new_id(),
            project=folder.id if wanted.project else "",
            client_id=wanted.client_id,
            title=wanted.title,
            title_source="user" if wanted.title else "none",
            agent=wanted.agent,
            agent_type=agent_type,
            model=wanted.model,
            directory=wanted.directory or folder.root_path or str(Path.cwd()),
        )
    )
    return await _sent(here, caller, made, 201, {"location": f"/api/conversations/{made.id}"})


@router.get("/{conversation_id}", response_model=None, responses=ONE)
async def get_conversation(here: Here, caller: Reader, request: Request, conversation_id: str) -> Response:
    """Gives a conversation, with an ETag that says in which state."""
    found = await conversation_of(caller, conversation_id)
    return tagged(request, await _out(here, caller, found), etag=_tag(found))


@router.patch("/{conversation_id}", response_model=ConversationOut)
async def change_conversation(
    here: Here, caller: Chatter, conversation_id: str, wanted: ConversationChange, if_match: IfMatch = None
) -> Response:
    """Changes title, agent, model, project, settings, shown branch or archived; `If-Match` guards what others have changed meanwhile."""
    async with here.changing:
        found = await conversation_of(caller, conversation_id)
        check_match(if_match, _tag(found))
        await _change(here, caller, found, wanted)
        return await _sent(here, caller, await conversation_of(caller, found.id))


@router.delete("/{conversation_id}", response_model=ConversationOut | ForgottenOut)
async def delete_conversation(
    here: Here,
    caller: Chatter,
    conversation_id: str,
    if_match: IfMatch = None,
    purge: Annotated[bool, Query(description="Take it away for good, with all that hangs on it; the answer is the receipt.")] = False,
) -> Response:
    """Deletes a conversation; it can be restored until it is purged, which `purge` does at once."""
    async with here.changing:
        found = await conversation_of(caller, conversation_id)
        check_match(if_match, _tag(found))
        if purge:
            receipt = await here.engine.store.forgetting.purge([found.id])
            here.engine.runtime.hub.touch(found.id)
            return Response(ForgottenOut.model_validate(receipt.to_json()).model_dump_json(), media_type="application/json")
        deleted = await caller.store.conversations.delete(found.id)
    here.engine.runtime.hub.touch(found.id)
    return await _sent(here, caller, deleted)


@router.post("/{conversation_id}/restore", response_model=ConversationOut)
async def restore_conversation(here: Here, caller: Chatter, conversation_id: str) -> Response:
    """Brings a deleted conversation back."""
    found = await conversation_of(caller, conversation_id)
    restored = await caller.store.conversations.delete(found.id, restore=True)
    here.engine.runtime.hub.touch(found.id)
    return await _sent(here, caller, restored)


@router.post("/{conversation_id}/fork", status_code=201, response_model=ConversationOut)
async def fork_conversation(here: Here, caller: Chatter, conversation_id: str, wanted: ForkIn) -> Response:
    """Copies a branch into a conversation of its own."""
    found = await conversation_of(caller, conversation_id)
    message = None
    if wanted.message is not None:
        message = (await caller.store.conversations.message(wanted.message, conversation=found.id)).id
    made = await caller.store.tree.fork(found.id, message=message, title=wanted.title)
    return await _sent(here, caller, made, 201, {"location": f"/api/conversations/{made.id}"})


@router.post("/{conversation_id}/continue")
async def continue_conversation(here: Here, caller: Chatter, conversation_id: str, wanted: ContinueIn) -> GoingOut:
    """Gives the conversation in which this one is gone on with: itself, or the linked copy of one that another program writes."""
    found = await conversation_of(caller, conversation_id)
    message = None
    if wanted.message is not None:
        message = (await caller.store.conversations.message(wanted.message, conversation=found.id)).id
    going = await caller.store.tree.continuation(found.id, message=message)
    return GoingOut(conversation=await _out(here, caller, going.conversation), message=going.message)


@router.post("/{conversation_id}/head", response_model=ConversationOut)
async def show_branch(here: Here, caller: Chatter, conversation_id: str, wanted: HeadIn) -> Response:
    """Shows the branch through a message."""
    found = await conversation_of(caller, conversation_id)
    await _show(here, caller, found, wanted.message, exactly=wanted.exactly)
    return await _sent(here, caller, await conversation_of(caller, found.id))


async def _change(here: Server, caller: Caller, found: Conversation, wanted: ConversationChange) -> None:
    """All that can be refused is looked at first."""
    agent = None
    if wanted.agent is not None or wanted.model:
        kind = await _agent_type(here, wanted.agent or found.agent, wanted.model or "")
        agent = (wanted.agent, kind) if wanted.agent is not None else None
    if wanted.settings is not None:
        _check_settings(caller, found, wanted.settings)
    project = None if wanted.project is None else (await caller.store.projects.get(wanted.project)).id
    conversations = caller.store.conversations
    if wanted.head is not None:
        await _show(here, caller, found, wanted.head, exactly=False)
    if wanted.title is not None:
        await conversations.rename(found.id, wanted.title, "user")
    if wanted.settings is not None:
        await conversations.set_settings(found.id, wanted.settings)
    await conversations.update(found.id, agent=agent, model=wanted.model, archived=wanted.archived, project=project)
    here.engine.runtime.hub.touch(found.id)


async def _show(here: Server, caller: Caller, conversation: Conversation, message: str, *, exactly: bool) -> None:
    target = await caller.store.conversations.message(message, conversation=conversation.id)
    await caller.store.tree.switch(conversation.id, target.id, exactly=exactly)
    here.engine.runtime.hub.touch(conversation.id)


def check_directory(caller: Caller, directory: str) -> None:
    """Whether the caller may say where tools work. Raises Refused and UsageError."""
    if not caller.may("tools"):
        raise Refused("to choose a folder of this machine a token needs the scope 'tools'", fix="leave `directory` out")
    if not Path(directory).is_absolute() or not Path(directory).is_dir():
        raise UsageError(f"{directory!r} is no absolute path of a folder", fix="name a folder that is there")


def _check_settings(caller: Caller, conversation: Conversation, wanted: JsonObject) -> None:
    if wanted.get("mode") != conversation.settings.get("mode") and not caller.may("tools"):
        raise Refused("to say what goes without asking a token needs the scope 'tools'")


async def _agent_type(here: Server, agent: str, model: str) -> str:
    """The type of the agent of that name. Raises UsageError when there is no such agent or model."""
    found = find_agent(here.engine.runtime.settings, agent, {})
    if found.agent_type not in AGENTS:
        raise UsageError(f"agent {agent!r} has the agent_type {found.agent_type!r}, which nothing here brings")
    if model:
        await here.engine.providers.choice(model)
    return found.agent_type


def _tag(conversation: Conversation) -> str:
    """The state of what a caller can change about it: what its runs make of it moves on by itself."""
    found = conversation_json(conversation, {})
    return etag_of([found["id"], *(found[name] for name in _CHANGEABLE)])


async def _out(here: Server, caller: Caller, conversation: Conversation) -> ConversationOut:
    live = await live_of(here, caller, conversation.id)
    return conversation_out(conversation, live, await caller.store.log.last_seq(conversation.id))


async def _sent(
    here: Server, caller: Caller, conversation: Conversation, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    out = await _out(here, caller, conversation)
    return Response(out.model_dump_json(), status, {"etag": _tag(conversation), **(headers or {})}, "application/json")
