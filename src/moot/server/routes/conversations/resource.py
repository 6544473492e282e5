"""Routes to list, read, create, change, delete and fork conversations."""

from __future__ import annotations

from typing import Annotated, cast

from anyio import to_thread
from fastapi import BackgroundTasks, Query, Request
from starlette.responses import Response

from moot.convert.serialization import conversation_json
from moot.engine.submissions import default_directory, first_folders
from moot.errors import Refused
from moot.features.family import Relative, family_of
from moot.features.installs import resume_command
from moot.features.settings import SettingsChange, agent_type_of, settings_change, widened
from moot.runtime.setup import confined_conversation, find_agent, has_folder
from moot.server.auth import Chatter, Reader, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.idempotency import Attempt, CurrentAttempt
from moot.server.models import (
    ContinueIn,
    ConversationChange,
    ConversationIn,
    ConversationOut,
    ForkIn,
    GoingOut,
    HeadIn,
    ListChoicesOut,
    ListOut,
    Out,
    conversation_out,
)
from moot.server.resources import (
    LATEST,
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
from moot.server.routes.projects.resource import ListedFileOut, Match, files_of
from moot.server.state import CurrentServer, Server
from moot.types.canonical import JsonObject
from moot.types.children import ChildStatus
from moot.types.conversation import DEFAULT_PROJECT, LOCAL_HOST, Conversation, check_tags
from moot.types.ids import new_id
from moot.types.maintenance import ErasureReceipt, FileOutcome
from moot.types.run import Awaits, RunStatus


class FileOut(Out, of=FileOutcome, fields="path what why"):
    """Result for a file outside the database that contains data to be deleted."""

    why: str | None


class ForgottenOut(
    Out,
    of=ErasureReceipt,
    fields="no kind begun_at done_at conversations rows blobs blob_bytes files left not_looked_into bytes_before bytes_after",
):
    """Receipt of a permanent deletion. Times are in milliseconds."""

    done_at: int | None
    """Time at which everything was deleted; null while the deletion is in progress."""
    files: list[FileOut]
    not_looked_into: list[str]
    """Descriptions of data that a redaction did not search."""


class RelativeOut(Out):
    """A conversation and, in `children`, the conversations of the sub-agents that its agent started."""

    id: str
    agent: str
    status: ChildStatus
    """`standby` = the run is queued or interrupted. `pending` = the run is waiting for a person, its client or a point in time."""
    call: str | None
    """Id of the tool call that started the conversation; null if none did."""
    run: str | None
    run_status: RunStatus | None
    awaits: Awaits | None
    prompt: str
    """First line of the conversation's first prompt."""
    summary: str
    """Result of the newest run, after the run has ended."""
    cost: int | None
    """Known cost in nano-dollars, including all sub-agents; null = no price is known."""
    unpriced_runs: int
    """Number of runs, including those of all sub-agents, whose cost is completely or partly unknown."""
    files: list[str]
    """Files that the agent has written."""
    origin: str | None
    """Path of the file from which the conversation was imported; null if it was created in moot."""
    watchers: int
    """Number of clients that have the conversation open on this server."""
    children: list[RelativeOut]


router = Router(prefix="/api/conversations", tags=["conversations"])

_CHANGEABLE = ("title", "agent", "model", "project", "settings", "head", "tags", "pinned_at", "archived_at", "deleted_at", "expires_at")


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
    parent: Annotated[str | None, Query(max_length=200, description="Id of a conversation; list only those of its sub-agents.")] = None,
    host: Annotated[
        str | None, Query(max_length=64, description="Name of another machine, as in `/api/choices`; `local` or empty for this machine.")
    ] = None,
    agent: Annotated[str | None, Query(max_length=200, description="Exact name, as in `/api/choices`.")] = None,
    model: Annotated[str | None, Query(max_length=200, description="Exact name, as in `/api/choices`.")] = None,
    since: Annotated[int | None, Query(ge=0, le=LATEST, description="Last activity at or after this time, in ms.")] = None,
    until: Annotated[int | None, Query(ge=0, le=LATEST, description="Created before this time, in ms.")] = None,
    called: Annotated[
        bool | None, Query(description="true = only conversations that programs created by calling `/v1`; false = only others.")
    ] = None,
    tag: Annotated[str | None, Query(max_length=200, description="Exact tag, as in `/api/choices`.")] = None,
    pinned: Annotated[bool | None, Query(description="true = only pinned conversations; false = only others.")] = None,
    pinned_first: Annotated[bool, Query(description="List pinned conversations before the others.")] = False,
) -> ListOut[ConversationOut]:
    """List conversations, most recent activity first. Conversations of sub-agents are only listed with `parent`."""
    shelf = archived if archived is not None or deleted else False
    above = None if parent is None else (await conversation_of(caller, parent)).id
    page = await caller.store.conversations.list(
        limit=limit,
        cursor=cursor,
        query=query,
        project=project,
        directory=directory,
        archived=shelf,
        deleted=deleted,
        parent=above,
        host="" if host == LOCAL_HOST else host,
        agent=agent,
        model=model,
        since=since,
        until=until,
        called=called,
        tag=tag,
        pinned=pinned,
        pinned_first=pinned_first,
    )
    live = await live_statuses(server, caller)
    return page_out(page, lambda conversation: conversation_out(conversation, live))


choices_router = Router(prefix="/api/choices", tags=["conversations"])


@choices_router.get("")
async def get_choices(caller: Reader) -> ListChoicesOut:
    """Get the values by which the list of conversations can be filtered."""
    return ListChoicesOut.of(await caller.store.conversations.choices())


@router.post("", status_code=201, response_model=ConversationOut)
async def create_conversation(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, body: ConversationIn) -> Response:
    """Create an empty conversation."""
    if (existing := await _created(server, caller, attempt)) is not None:
        return existing
    folder = await caller.store.projects.get(body.project or DEFAULT_PROJECT)
    if body.directory is not None:
        await check_directory(caller, body.directory)
    directory = body.directory or folder.root_path or default_directory(caller.owner_id)
    agent_type = await _agent_type(server, body.agent, body.model, directory)
    agent = find_agent(server.engine.runtime.settings, body.agent, {}, directory)
    created = await caller.store.conversations.create(
        Conversation(
            attempt.id or new_id(),
            project=folder.id if body.project else "",
            client_id=body.client_id,
            title=body.title,
            title_source="user" if body.title else "none",
            agent=body.agent,
            agent_type=agent_type,
            model=body.model,
            expires_at=0 if body.temporary else None,
            directory=directory,
            allowed_uris=first_folders(agent, caller.owner_id, directory),
        )
    )
    return await _sent(server, caller, created, 201, {"location": f"/api/conversations/{created.id}"})


@router.get("/{conversation_id}", response_model=ConversationOut, responses={304: {"description": "Not modified."}})
async def get_conversation(server: CurrentServer, caller: Reader, request: Request, conversation_id: str) -> Response:
    """Get a conversation, with an ETag of its editable fields."""
    found = await conversation_of(caller, conversation_id)
    return tagged(request, await _out(server, caller, found), etag=_tag(found))


@router.get("/{conversation_id}/children")
async def list_children(server: CurrentServer, caller: Reader, conversation_id: str) -> RelativeOut:
    """Get the conversation and, below it, the conversations of its sub-agents with their status, cost and results."""
    return _relative_out(server, await family_of(caller.store, await conversation_of(caller, conversation_id)))


@router.get("/{conversation_id}/files")
async def list_conversation_files(
    server: CurrentServer, caller: ToolUser, background: BackgroundTasks, conversation_id: str, q: Match = "", limit: Limit = 50
) -> ListOut[ListedFileOut]:
    """List files in the conversation's folder that match `q`, best match first. Files ignored by Git are left out."""
    found = await confined_conversation(server.engine.store, (await conversation_of(caller, conversation_id)).id)
    return await files_of(server, background, found.directory if has_folder(found) else "", q, limit)


@router.patch("/{conversation_id}", response_model=ConversationOut)
async def change_conversation(
    server: CurrentServer, caller: Chatter, conversation_id: str, body: ConversationChange, if_match: IfMatch = None
) -> Response:
    """Change the title, agent, model, project, settings, tags, current branch, or the pinned or archived state. Send the ETag as
    `If-Match` to detect concurrent changes.
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
    """Delete a conversation. It can be restored until it is deleted permanently. With `purge`, it is deleted permanently now."""
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
async def fork_conversation(
    server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, conversation_id: str, body: ForkIn
) -> Response:
    """Copy a branch into a new conversation."""
    if (existing := await _created(server, caller, attempt)) is not None:
        return existing
    found = await conversation_of(caller, conversation_id)
    message = await message_id(caller, found.id, body.message)
    created = await caller.store.tree.fork(found.id, message=message, title=body.title, id=attempt.id)
    return await _sent(server, caller, created, 201, {"location": f"/api/conversations/{created.id}"})


@router.post("/{conversation_id}/continue")
async def continue_conversation(server: CurrentServer, caller: Chatter, conversation_id: str, body: ContinueIn) -> GoingOut:
    """Get the conversation in which to send new prompts: this one, or a linked copy if another program writes to this one."""
    found = await conversation_of(caller, conversation_id)
    target = await caller.store.tree.continuation(found.id, message=await message_id(caller, found.id, body.message))
    return GoingOut(conversation=await _out(server, caller, target.conversation), message=target.message)


@router.post("/{conversation_id}/head", response_model=ConversationOut)
async def show_branch(server: CurrentServer, caller: Chatter, conversation_id: str, body: HeadIn) -> Response:
    """Switch to the branch that contains a message."""
    found = await conversation_of(caller, conversation_id)
    await _show(server, caller, found, body.message, exactly=body.exactly)
    return await _sent(server, caller, await conversation_of(caller, found.id))


async def _created(server: Server, caller: Caller, attempt: Attempt) -> Response | None:
    """Return the response for the conversation that an earlier attempt of the same request has created, or None."""
    found = await caller.store.conversations.by_client_id(attempt.id) if attempt.repeated else None
    return None if found is None else await _sent(server, caller, found, 201, {"location": f"/api/conversations/{found.id}"})


async def _change(server: Server, caller: Caller, found: Conversation, body: ConversationChange) -> None:
    """Apply the changes after all checks have passed."""
    agent = None
    if body.agent is not None or body.model:
        kind = await _agent_type(server, body.agent or found.agent, body.model or "", found.directory)
        agent = (body.agent, kind) if body.agent is not None else None
    change = None if body.settings is None else await settings_change(server.engine, cast("JsonObject", body.settings), found.directory)
    if change is not None:
        await _check_widening(server, caller, found, change)
    tags = None if body.tags is None else check_tags(body.tags)
    project = None if body.project is None else (await caller.store.projects.get(body.project)).id
    conversations = caller.store.conversations
    if body.head is not None:
        await _show(server, caller, found, body.head, exactly=False)
    if body.title is not None:
        await conversations.rename(found.id, body.title, "user")
    if change is not None:
        await change.store(conversations, found.id)
    await conversations.update(
        found.id,
        agent=agent,
        model=body.model,
        archived=body.archived,
        project=project,
        pinned=body.pinned,
        tags=tags,
        keep=body.temporary is False,
    )
    server.engine.runtime.hub.touch(found.id)


def _relative_out(server: Server, relative: Relative) -> RelativeOut:
    facts = {name: value for name, value in relative.to_json().items() if name != "children"}
    watchers = server.engine.runtime.hub.watching(relative.conversation.id)
    children = [_relative_out(server, child) for child in relative.children]
    return RelativeOut.model_validate({**facts, "watchers": watchers, "children": children})


async def _show(server: Server, caller: Caller, conversation: Conversation, message: str, *, exactly: bool) -> None:
    target = await caller.store.conversations.message(message, conversation=conversation.id)
    await caller.store.tree.switch(conversation.id, target.id, exactly=exactly)
    server.engine.runtime.hub.touch(conversation.id)


async def _check_widening(server: Server, caller: Caller, found: Conversation, change: SettingsChange) -> None:
    """Raise Refused if the change gives agents more rights and the caller may not do that, UsageError if a folder does not exist."""
    # links are resolved, which may take long on a network disk
    wider = await to_thread.run_sync(widened, server.engine.runtime.settings, found, change.applied(found))
    if wider and not caller.may("tools"):
        raise Refused(f"Changing {' and '.join(wider)} to a less restrictive value requires the 'tools' scope.")
    for folder in change.allowed_uris or () if "allowed_uris" in wider else ():
        await check_directory(caller, folder)


async def _agent_type(server: Server, agent: str, model: str, directory: str) -> str:
    """Return the agent_type of an agent. Raise UsageError if the agent or the model is unknown."""
    kind = await agent_type_of(server.engine, agent, directory)
    if model:
        await server.engine.providers.choice(model)
    return kind


def _tag(conversation: Conversation) -> str:
    """Return the ETag of the fields a caller can change; fields updated by runs are not part of it."""
    found = conversation_json(conversation, {})
    return etag_of([found["id"], *(found[name] for name in _CHANGEABLE)])


async def _out(server: Server, caller: Caller, conversation: Conversation) -> ConversationOut:
    # read before the status, so that a client that streams from this `seq` is notified of a run that ends meanwhile
    seq = await caller.store.log.last_seq(conversation.id)
    return conversation_out(conversation, await live_statuses(server, caller, conversation.id), seq, resume_command(conversation))


async def _sent(
    server: Server, caller: Caller, conversation: Conversation, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    out = await _out(server, caller, conversation)
    return Response(out.model_dump_json(), status, {"etag": _tag(conversation), **(headers or {})}, "application/json")
