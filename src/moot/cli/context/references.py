"""References to conversations and messages: an id or its prefix, a title, a list number, or the latest."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from moot.cli.arguments.signatures import LATEST, PREVIOUS
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.numbers import numbered
from moot.config.settings import Settings
from moot.engine import Engine, open_engine
from moot.errors import NotFound
from moot.store.tree.lists import ListFilter
from moot.types.conversation import Conversation, Page
from moot.types.run import STARTED, Run, RunStatus
from moot.types.store import Store
from moot.types.tree import Node

QUEUED: frozenset[RunStatus] = frozenset({"queued"})


async def live_statuses(store: Store) -> dict[str, RunStatus]:
    """Return the status of each conversation's live run by conversation id."""
    runs = await store.records.runs(statuses=STARTED | QUEUED)
    started = [run for run in runs if run.status in STARTED]
    return {run.conversation: run.status for run in [*runs, *started]}


_INDEX = re.compile(r"[1-9][0-9]{0,2}")
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
MAX_INDEX = 200
SHORTEST_PREFIX = 4


async def find_conversation(engine: Engine, reference: str, directory: str) -> Conversation:
    """Return the conversation that the reference matches: an id first, then a list number, then a title. Raise NotFound otherwise."""
    return await find_in(engine.store, state_of(engine), reference, directory)


async def find_in(store: Store, state: Path, reference: str, directory: str) -> Conversation:
    """Find a conversation without an engine. `state` is the state directory of the home."""
    if reference in (LATEST, PREVIOUS):
        found = await previous(store, directory if reference == LATEST else None)
        if found is None:
            where = f" in {directory!r}" if reference == LATEST else ""
            raise NotFound(f"No conversation{where} yet.", fix="moot chat list")
        return found
    if _INDEX.fullmatch(reference) and int(reference) <= MAX_INDEX:
        return await _by_id(store, reference) or await _by_number(store, state, int(reference))
    return await store.conversations.get(reference)


def state_of(engine: Engine) -> Path:
    """Return the state directory of the home."""
    return engine.settings.home / "state"


async def previous(store: Store, directory: str | None) -> Conversation | None:
    """Return the conversation that the user used last, anywhere or in a directory. Conversations of sub-agents don't count."""
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
    """Return a conversation of the list printed last, or of the current list if none was printed yet."""
    ids = numbered(state)
    if ids is None:
        listed = (await store.conversations.list(limit=number)).items
        ids = [item.id for item in listed]
    if len(ids) < number:
        raise NotFound(f"No conversation number {number}: the last list had {len(ids)}.", fix="moot chat list")
    return await store.conversations.get(ids[number - 1])


def copied(source: Conversation, copy: Conversation) -> str:
    """Return the notice that an imported conversation is continued as a copy."""
    return f"continuing in {copy.id[:13]}, a copy, because {source.id[:13]} is synchronized with {source.came_from}"


async def live_run(store: Store, conversation: Conversation) -> Run | None:
    """Return the conversation's started run, or else its oldest queued one, or None."""
    live: frozenset[RunStatus] = STARTED | frozenset[RunStatus]({"queued"})
    runs = await store.records.runs(conversation=conversation.id, statuses=live)
    started = [run for run in runs if run.status in STARTED]
    return started[0] if started else runs[-1] if runs else None


def find_message(nodes: Sequence[Node], reference: str) -> Node:
    """Return the message with this id, number in `moot chat tree`, or id prefix. Raise NotFound if none or several match."""
    exact = next((node for node in nodes if node.id == reference), None)
    if exact is not None:
        return exact
    if _NUMBER.fullmatch(reference):
        if int(reference) <= len(nodes):
            return nodes[int(reference) - 1]
        raise NotFound(f"No message number {reference}: the conversation has {len(nodes)}.", fix="moot chat tree ID")
    found = [node for node in nodes if len(reference) >= SHORTEST_PREFIX and node.id.startswith(reference)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"Several messages match {reference!r}: {', '.join(node.id for node in found[:5])}.", fix="Type more of the id.")
    raise NotFound(f"No message matches {reference!r}.", fix="moot chat tree ID")


@asynccontextmanager
async def opened(output: Output) -> AsyncGenerator[Engine, None]:
    """Open the engine for the block. Raise ConfigError or StoreError on failure."""
    async with open_engine(configured(output).settings) as engine:
        yield engine


@asynccontextmanager
async def opened_at(conversation: str, output: Output) -> AsyncGenerator[tuple[Engine, Conversation], None]:
    """Open the engine and find a conversation. Raise ConfigError, StoreError or NotFound on failure."""
    async with opened(output) as engine:
        yield engine, await find_conversation(engine, conversation, str(here()))


def list_with_engine(settings: Settings, wanted: ListFilter) -> tuple[Page[Conversation], dict[str, RunStatus]]:
    """Return a page of conversations and live runs, for a command without an event loop. Raise StoreError on failure."""
    return anyio.run(_list_with_engine, settings, wanted)


async def _list_with_engine(settings: Settings, wanted: ListFilter) -> tuple[Page[Conversation], dict[str, RunStatus]]:
    async with open_engine(settings) as engine:
        shown = await engine.store.conversations.list(
            limit=wanted.limit,
            cursor=wanted.cursor,
            directory=wanted.directory,
            query=wanted.query,
            deleted=wanted.deleted,
            archived=wanted.archived,
        )
        return shown, await live_statuses(engine.store)
