"""References to conversations and messages: an id or its prefix, a title, a list number, or the latest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moot.cli.arguments.signatures import LATEST, PREVIOUS
from moot.cli.console.format import plural
from moot.cli.context.numbers import numbered
from moot.errors import NotFound
from moot.types.conversation import Conversation
from moot.types.ids import SHORTEST_PREFIX
from moot.types.run import STARTED, Run, RunStatus
from moot.types.store import OwnerStore
from moot.types.tree import Node

if TYPE_CHECKING:
    from moot.cli.remote import AnyEngine

QUEUED: frozenset[RunStatus] = frozenset({"queued"})


async def live_runs(engine: AnyEngine) -> list[Run]:
    """Return the started and queued runs, newest first.
    The status of a run whose process no longer exists is `interrupted`, even if it can't be stored.
    """
    runs = await engine.store.records.runs(statuses=STARTED | QUEUED)
    return [await engine.runs.current(run.id) if run.status == "running" else run for run in runs]


async def live_statuses(engine: AnyEngine) -> dict[str, RunStatus]:
    """Return the status of each conversation's live run, keyed by conversation id."""
    runs = await live_runs(engine)
    started = [run for run in runs if run.status in STARTED]
    return {run.conversation: run.status for run in [*runs, *started]}


_INDEX = re.compile(r"[1-9][0-9]{0,2}")
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
MAX_INDEX = 200


async def find_in(store: OwnerStore, state: Path, reference: str, directory: str) -> Conversation:
    """Find a conversation by a reference, without an engine. `state` is the `state` directory of moot's home."""
    if reference in (LATEST, PREVIOUS):
        found = await previous(store, directory if reference == LATEST else None)
        if found is None:
            where = f" in {directory!r}" if reference == LATEST else ""
            raise NotFound(f"No conversation{where} yet.", fix="moot chat list")
        return found
    if _INDEX.fullmatch(reference) and int(reference) <= MAX_INDEX:
        return await _by_id(store, reference) or await _by_number(store, state, int(reference))
    return await store.conversations.get(reference)


async def previous(store: OwnerStore, directory: str | None) -> Conversation | None:
    """Return the most recently used conversation, in a directory or, if that is None, anywhere. Conversations of sub-agents are skipped."""
    cursor: str | None = None
    while True:
        page = await store.conversations.list(limit=50, cursor=cursor, directory=directory)
        found = next((item for item in page.items if item.parent is None), None)
        if found is not None or page.next_cursor is None:
            return found
        cursor = page.next_cursor


async def _by_id(store: OwnerStore, reference: str) -> Conversation | None:
    try:
        found = await store.conversations.get(reference)
    except NotFound:
        return None
    return found if reference in (found.id, found.client_id) else None


async def _by_number(store: OwnerStore, state: Path, number: int) -> Conversation:
    """Return a conversation from the most recently printed list, or from the current list if none has been printed yet."""
    ids = numbered(state)
    if ids is None:
        listed = (await store.conversations.list(limit=number)).items
        ids = [item.id for item in listed]
    if len(ids) < number:
        raise NotFound(
            f"There is no conversation number {number}: the last list had {plural(len(ids), 'conversation')}.", fix="moot chat list"
        )
    return await store.conversations.get(ids[number - 1])


def copied(source: Conversation, copy: Conversation) -> str:
    """Return a message saying that a copy of an imported conversation is continued instead of the original."""
    return f"continuing in {copy.id[:13]}, a copy, because {source.id[:13]} is synchronized with {source.came_from}"


def in_folder(conversation: Conversation) -> str:
    """Return a message saying that a conversation that had no folder now has one."""
    return f"the conversation had no folder; it now uses {conversation.directory}"


async def live_run(store: OwnerStore, conversation: Conversation) -> Run | None:
    """Return the conversation's started run, or its oldest queued run if none has started, or None if it has neither."""
    live: frozenset[RunStatus] = STARTED | frozenset[RunStatus]({"queued"})
    runs = await store.records.runs(conversation=conversation.id, statuses=live)
    started = [run for run in runs if run.status in STARTED]
    return started[0] if started else runs[-1] if runs else None


def find_message(nodes: Sequence[Node], reference: str) -> Node:
    """Return the message with this id, id prefix, or number in `moot chat tree`. Raise NotFound if none or several match."""
    exact = next((node for node in nodes if node.id == reference), None)
    if exact is not None:
        return exact
    if _NUMBER.fullmatch(reference):
        if int(reference) <= len(nodes):
            return nodes[int(reference) - 1]
        raise NotFound(
            f"There is no message number {reference}: the conversation has {plural(len(nodes), 'message')}.", fix="moot chat tree ID"
        )
    found = [node for node in nodes if len(reference) >= SHORTEST_PREFIX and node.id.startswith(reference)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(
            f"Several messages match {reference!r}: {', '.join(node.id for node in found[:5])}.", fix="Use more characters of the id."
        )
    short = f" The beginning of an id needs at least {SHORTEST_PREFIX} characters." if len(reference) < SHORTEST_PREFIX else ""
    raise NotFound(f"No message matches {reference!r}.{short}", fix="moot chat tree ID")
