"""`moot chat list | show | stop | delete | restore`: what needs no model."""

from __future__ import annotations

import time
from typing import Annotated

from moot.cli.configured import here
from moot.cli.messages import message_json, print_message
from moot.cli.opening import opened
from moot.cli.options import AsJson, Cursor, Limit, Out, Which
from moot.cli.parameters import Parameter
from moot.cli.references import find_conversation, live_run
from moot.cli.tables import print_table
from moot.cli.times import age
from moot.engine import Engine
from moot.errors import UsageError
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.run import STARTED, RunStatus


async def list_(
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    here_only: Annotated[bool, Parameter(name="--here", help="Only those of this directory.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """All conversations, newest activity first."""
    async with opened(output) as engine:
        page = await engine.store.conversations.list(limit=limit, cursor=cursor, directory=str(here()) if here_only else None)
        live = await _live(engine)
    if json:
        output.json({"data": [conversation_json(item, live) for item in page.items], "next_cursor": page.next_cursor})
        return
    numbered = cursor is None and not here_only  # elsewhere a number would name another one
    rows = [_row(item, live, number if numbered else None) for number, item in enumerate(page.items, 1)]
    print_table(output, ["NO", "ID", "MODEL", "AGE", "MESSAGES", "STATUS", "TITLE"], rows)
    if page.next_cursor:
        output.say(f"moot: more with --cursor {page.next_cursor}", "dim")


async def show(
    conversation: Which,
    /,
    *,
    limit: Annotated[int | None, Parameter(help="Only the last so many messages.")] = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """The messages of a conversation."""
    async with opened(output) as engine:
        found = await find_conversation(engine.store, conversation, str(here()))
        messages = await engine.store.conversations.branch(found.id, limit=limit)
        live = await _live(engine)
    if json:
        output.json(
            {"data": [message_json(message) for message in messages], "next_cursor": None, "conversation": conversation_json(found, live)}
        )
        return
    output.say(f"{found.title or 'untitled'} · {found.id}", "bold")
    for message in messages:
        print_message(message, output)


async def stop(conversation: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Stops a conversation's run, wherever it runs; what was said is kept."""
    async with opened(output) as engine:
        found = await find_conversation(engine.store, conversation, str(here()))
        run = await live_run(engine.store, found)
        if run is not None:
            await engine.runs.cancel(run.id)
            run = await engine.runs.wait(run.id)
    if json:
        output.json({"ok": True, "conversation": found.id, "run": run.id if run else None, "status": run.status if run else None})
    else:
        output.say(f"moot: {run.status}" if run else "moot: nothing is running there")


async def delete(conversation: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Marks a conversation deleted: it is listed no more, and nothing of it is lost."""
    async with opened(output) as engine:
        found = await find_conversation(engine.store, conversation, str(here()))
        await engine.store.conversations.delete(found.id)
    if json:
        output.json({"ok": True, "conversation": found.id})
    else:
        output.say(f"moot: deleted {found.title or found.id}; moot chat restore {found.id[:13]} brings it back")


async def restore(conversation: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Brings a deleted conversation back, by its id, a prefix of it or its title."""
    async with opened(output) as engine:
        found = await engine.store.conversations.get(conversation)
        if found.deleted_at is None:
            raise UsageError(f"the conversation {conversation!r} is not deleted", fix=f"moot chat show {found.id[:13]}")
        await engine.store.conversations.delete(found.id, restore=True)
    if json:
        output.json({"ok": True, "conversation": found.id})
    else:
        output.say(f"moot: restored {found.title or found.id}")


def conversation_json(conversation: Conversation, live: dict[str, RunStatus]) -> JsonObject:
    """A conversation as lists give it out."""
    return {
        "id": conversation.id,
        "no": conversation.no,
        "title": conversation.title,
        "agent": conversation.agent,
        "model": conversation.model,
        "directory": conversation.directory,
        "status": status_of(conversation, live),
        "message_count": conversation.message_count,
        "usage": conversation.usage.to_json(),
        "cost": conversation.cost,
        "unpriced_runs": conversation.unpriced_runs,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
    }


def status_of(conversation: Conversation, live: dict[str, RunStatus]) -> str:
    """The state of its live run, else finished, pending or standby."""
    if conversation.id in live:
        return live[conversation.id]
    if conversation.is_task_finished:
        return "finished"
    return "pending" if conversation.parent else "standby"


async def _live(engine: Engine) -> dict[str, RunStatus]:
    queued: frozenset[RunStatus] = frozenset({"queued"})
    runs = await engine.store.records.runs(statuses=STARTED | queued)
    started = [run for run in runs if run.status in STARTED]
    return {run.conversation: run.status for run in [*runs, *started]}


def _row(conversation: Conversation, live: dict[str, RunStatus], number: int | None) -> list[str]:
    return [
        str(number or "-"),
        conversation.id[:13],
        conversation.model or "-",
        age(conversation.updated_at, time.time()),
        str(conversation.message_count),
        status_of(conversation, live),
        conversation.title or "untitled",
    ]
