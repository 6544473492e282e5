"""Conversations: list, read, create, change, delete and fork."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
from moot.server.resources import (
    Cursor,
    IfMatch,
    Limit,
    check_directory,
    check_match,
    conversation_of,
    etag_of,
    live_statuses,
    message_id,
    page_out,
    tagged,
)
from moot.server.state import CurrentServer, Server
from moot.types.conversation import DEFAULT_PROJECT, Conversation
from moot.types.ids import new_id
from moot.types.maintenance import ErasureReceipt, FileOutcome


class FileOut(Out, of=FileOutcome, fields="path what why"):
    """Outcome for a file outside the database."""

    why: str | None


class ForgottenOut(
    Out,
    of=ErasureReceipt,
    fields="no kind begun_at done_at conversations rows blobs blob_bytes files left not_looked_into bytes_before bytes_after",
):
    """The receipt of a purge. Times are in milliseconds."""

    done_at: int | None
    """Null while work remains; the server continues it automatically."""
    files: list[FileOut]
    not_looked_into: list[str]
    """Descriptions of what a redaction did not search."""


router = Router(prefix="/api/conversations", tags=["conversations"])

_CHANGEABLE = ("title", "agent", "model", "project", "settings", "head", "archived_at", "deleted_at")


@router.get("")
async def list_conversations(
    server: CurrentServer,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    query: Annotated[str, Query(max_length=500, description="Words to find in the title, model, agent, origin or directory.")] = "",
    project: Annotated[str | None, Query(max_length=200)] = None,
    directory: Annotated[str | None, Query(max_length=4096)] = None,
    archived: Annotated[bool | None, Query(description="Filter by archived state. Defaults to false unless `deleted` is set.")] = None,
    deleted: bool = False,
) -> ListOut[ConversationOut]:
    """List conversations, most recent activity first."""
    shelf = archived if archived is not None or deleted else False
    page = await caller.store.conversations.list(
        limit=limit, cursor=cursor, query=query, project=project, directory=directory, archived=shelf, deleted=deleted
    )
    live = await live_statuses(server, caller)
    return page_out(page, lambda conversation: conversation_out(conversation, live))


@router.post("", status_code=201, response_model=ConversationOut)
async def create_conversation(server: CurrentServer, caller: Chatter, body: ConversationIn) -> Response:
    """Create an empty conversation."""
    folder = await caller.store.projects.get(body.project or DEFAULT_PROJECT)
    if body.directory is not None:
        check_directory(caller, body.directory)
    agent_type = await _agent_type(server, body.agent, body.model)
    created = await caller.store.conversations.create(
        Conversation(
            new_id(),
            project=folder.id if body.project else "",
            client_id=body.client_id,
            title=body.title,
            title_source="user" if body.title else "none",
            agent=body.agent,
            agent_type=agent_type,
            model=body.model,
            directory=body.directory or folder.root_path or str(Path.cwd()),
        )
    )
    return await _sent(server, caller, created, 201, {"location": f"/api/conversations/{created.id}"})


@router.get("/{conversation_id}", response_model=ConversationOut, responses={304: {"description": "Not modified."}})
async def get_conversation(server: CurrentServer, caller: Reader, request: Request, conversation_id: str) -> Response:
    """Get a conversation, with an ETag of its editable fields."""
    found = await conversation_of(caller, conversation_id)
    return tagged(request, await _out(server, caller, found), etag=_tag(found))


@router.patch("/{conversation_id}", response_model=ConversationOut)
async def change_conversation(
    server: CurrentServer, caller: Chatter, conversation_id: str, body: ConversationChange, if_match: IfMatch = None
) -> Response:
    """Change the title, agent, model, project, settings, current branch or archived state. `If-Match` prevents overwriting concurrent
    changes.
    """
    async with server.change_lock:
        found = await conversation_of(caller, conversation_id)
        check_match(if_match, _tag(found))
        await _change(server, caller, found, body)
        return await _sent(server, caller, await conversation_of(caller, found.id))


@router.delete("/{conversation_id}", response_model=ConversationOut | ForgottenOut)
async def delete_conversation(
    server: CurrentServer,
    caller: Chatter,
    conversation_id: str,
    if_match: IfMatch = None,
    purge: Annotated[
        bool, Query(description="Permanently delete the conversation and everything that belongs to it, and return a receipt.")
    ] = False,
) -> Response:
    """Delete a conversation. It can be restored until it is purged; `purge` purges it immediately."""
    async with server.change_lock:
        found = await conversation_of(caller, conversation_id)
        check_match(if_match, _tag(found))
        if purge:
            receipt = await server.engine.store.erasure.purge([found.id])
            server.engine.runtime.hub.touch(found.id)
            return Response(ForgottenOut.model_validate(receipt.to_json()).model_dump_json(), media_type="application/json")
        deleted = await caller.store.conversations.delete(found.id)
    server.engine.runtime.hub.touch(found.id)
    return await _sent(server, caller, deleted)


@router.post("/{conversation_id}/restore", response_model=ConversationOut)
async def restore_conversation(server: CurrentServer, caller: Chatter, conversation_id: str) -> Response:
    """Restore a deleted conversation."""
    found = await conversation_of(caller, conversation_id)
    restored = await caller.store.conversations.delete(found.id, restore=True)
    server.engine.runtime.hub.touch(found.id)
    return await _sent(server, caller, restored)


@router.post("/{conversation_id}/fork", status_code=201, response_model=ConversationOut)
async def fork_conversation(server: CurrentServer, caller: Chatter, conversation_id: str, body: ForkIn) -> Response:
    """Copy a branch into a new conversation."""
    found = await conversation_of(caller, conversation_id)
    message = await message_id(caller, found.id, body.message)
    created = await caller.store.tree.fork(found.id, message=message, title=body.title)
    return await _sent(server, caller, created, 201, {"location": f"/api/conversations/{created.id}"})


@router.post("/{conversation_id}/continue")
async def continue_conversation(server: CurrentServer, caller: Chatter, conversation_id: str, body: ContinueIn) -> GoingOut:
    """Get the conversation to continue in: this one, or a linked copy if another program writes it."""
    found = await conversation_of(caller, conversation_id)
    target = await caller.store.tree.continuation(found.id, message=await message_id(caller, found.id, body.message))
    return GoingOut(conversation=await _out(server, caller, target.conversation), message=target.message)


@router.post("/{conversation_id}/head", response_model=ConversationOut)
async def show_branch(server: CurrentServer, caller: Chatter, conversation_id: str, body: HeadIn) -> Response:
    """Switch to the branch that contains a message."""
    found = await conversation_of(caller, conversation_id)
    await _show(server, caller, found, body.message, exactly=body.exactly)
    return await _sent(server, caller, await conversation_of(caller, found.id))


async def _change(server: Server, caller: Caller, found: Conversation, body: ConversationChange) -> None:
    """Apply the changes, after checking everything that can be refused."""
    agent = None
    if body.agent is not None or body.model:
        kind = await _agent_type(server, body.agent or found.agent, body.model or "")
        agent = (body.agent, kind) if body.agent is not None else None
    if body.settings is not None and body.settings.get("mode") != found.settings.get("mode") and not caller.may("tools"):
        raise Refused("Changing the permission mode requires the 'tools' scope.")
    project = None if body.project is None else (await caller.store.projects.get(body.project)).id
    conversations = caller.store.conversations
    if body.head is not None:
        await _show(server, caller, found, body.head, exactly=False)
    if body.title is not None:
        await conversations.rename(found.id, body.title, "user")
    if body.settings is not None:
        await conversations.set_settings(found.id, body.settings)
    await conversations.update(found.id, agent=agent, model=body.model, archived=body.archived, project=project)
    server.engine.runtime.hub.touch(found.id)


async def _show(server: Server, caller: Caller, conversation: Conversation, message: str, *, exactly: bool) -> None:
    target = await caller.store.conversations.message(message, conversation=conversation.id)
    await caller.store.tree.switch(conversation.id, target.id, exactly=exactly)
    server.engine.runtime.hub.touch(conversation.id)


async def _agent_type(server: Server, agent: str, model: str) -> str:
    """Return the agent_type of an agent. Raise UsageError if the agent or the model is unknown."""
    found = find_agent(server.engine.runtime.settings, agent, {})
    if found.agent_type not in AGENTS:
        raise UsageError(f"Agent {agent!r} has the agent_type {found.agent_type!r}, which is not installed.")
    if model:
        await server.engine.providers.choice(model)
    return found.agent_type


def _tag(conversation: Conversation) -> str:
    """Return the ETag of the fields a caller can change; fields updated by runs are not part of it."""
    found = conversation_json(conversation, {})
    return etag_of([found["id"], *(found[name] for name in _CHANGEABLE)])


async def _out(server: Server, caller: Caller, conversation: Conversation) -> ConversationOut:
    live = await live_statuses(server, caller, conversation.id)
    return conversation_out(conversation, live, await caller.store.log.last_seq(conversation.id))


async def _sent(
    server: Server, caller: Caller, conversation: Conversation, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    out = await _out(server, caller, conversation)
    return Response(out.model_dump_json(), status, {"etag": _tag(conversation), **(headers or {})}, "application/json")
