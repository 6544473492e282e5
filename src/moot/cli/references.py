"""What people call things: conversations by id, prefix, title, number in the last list, or as the latest; messages by number or id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from moot.cli.arguments.parameters import LATEST, PREVIOUS
from moot.cli.numbers import numbered
from moot.engine import Engine
from moot.errors import NotFound
from moot.types.conversation import Conversation
from moot.types.run import STARTED, Run, RunStatus
from moot.types.store import Store
from moot.types.tree import Node

_INDEX = re.compile(r"[1-9][0-9]{0,2}")
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
MAX_INDEX = 200
SHORTEST_PREFIX = 4


async def find_conversation(engine: Engine, reference: str, directory: str) -> Conversation:
    """The one that is meant: an id goes before a number, a number before a title. Raises NotFound, naming the candidates if several fit."""
    return await find_in(engine.store, state_of(engine), reference, directory)


async def find_in(store: Store, state: Path, reference: str, directory: str) -> Conversation:
    """The same in a store alone; `state` is the folder for what moot remembers beside it."""
    if reference in (LATEST, PREVIOUS):
        found = await previous(store, directory if reference == LATEST else None)
        if found is None:
            where = f" in {directory!r}" if reference == LATEST else ""
            raise NotFound(f"no conversation{where} yet", fix="moot chat list")
        return found
    if _INDEX.fullmatch(reference) and int(reference) <= MAX_INDEX:
        return await _by_id(store, reference) or await _by_number(store, state, int(reference))
    return await store.conversations.get(reference)


def state_of(engine: Engine) -> Path:
    """The folder for what moot remembers beside the database."""
    return engine.settings.home / "state"


async def previous(store: Store, directory: str | None) -> Conversation | None:
    """The conversation that a person used last, anywhere or in that directory; not those that agents hold among themselves."""
    cursor: str | None = None
    while True:
        page = await store.conversations.list(limit=50, cursor=cursor, directory=directory)
        found = next((item for item in page.items if item.parent is None), None)
        if found is not None or page.next_cursor is None:
            return found
        cursor = page.next_cursor


async def _by_id(store: Store, reference: str) -> Conversation | None:
    try:
        found = await store.conversations.get(reference)
    except NotFound:
        return None
    return found if reference in (found.id, found.client_id) else None


async def _by_number(store: Store, state: Path, number: int) -> Conversation:
    """Of the list that was printed last; before the first one, of the list as it would be printed now."""
    ids = numbered(state)
    if ids is None:
        listed = (await store.conversations.list(limit=number)).items
        ids = [item.id for item in listed]
    if len(ids) < number:
        raise NotFound(f"no conversation number {number}; the last list had {len(ids)}", fix="moot chat list")
    return await store.conversations.get(ids[number - 1])


def copied(source: Conversation, copy: Conversation) -> str:
    """What a person is told who goes on with a conversation of another program."""
    return f"goes on in {copy.id[:13]}, a copy: {source.id[:13]} follows {source.came_from}"


async def live_run(store: Store, conversation: Conversation) -> Run | None:
    """The run of it that has started and not ended, else the oldest queued one."""
    live: frozenset[RunStatus] = STARTED | frozenset[RunStatus]({"queued"})
    runs = await store.records.runs(conversation=conversation.id, statuses=live)
    started = [run for run in runs if run.status in STARTED]
    return started[0] if started else runs[-1] if runs else None


def find_message(nodes: Sequence[Node], reference: str) -> Node:
    """The message that is meant: by its id, its number in `moot chat tree`, or the beginning of its id. Raises NotFound."""
    exact = next((node for node in nodes if node.id == reference), None)
    if exact is not None:
        return exact
    if _NUMBER.fullmatch(reference):
        if int(reference) <= len(nodes):
            return nodes[int(reference) - 1]
        raise NotFound(f"no message number {reference}; there are {len(nodes)}", fix="moot chat tree ID")
    found = [node for node in nodes if len(reference) >= SHORTEST_PREFIX and node.id.startswith(reference)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{reference!r} fits several messages: {', '.join(node.id for node in found[:5])}", fix="give more of the id")
    raise NotFound(f"no message {reference!r} in that conversation", fix="moot chat tree ID")
