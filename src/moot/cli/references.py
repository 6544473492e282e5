"""Conversations as people name them: id, unique prefix, title, list index, or the latest one here."""

from __future__ import annotations

import re

from moot.cli.arguments import LATEST
from moot.errors import NotFound
from moot.types.conversation import Conversation
from moot.types.run import STARTED, Run, RunStatus
from moot.types.store import Store

_INDEX = re.compile(r"[1-9][0-9]{0,2}")
MAX_INDEX = 200


async def find_conversation(store: Store, reference: str, directory: str) -> Conversation:
    """The one that is meant. Raises NotFound, naming the candidates if several fit."""
    if reference == LATEST:
        found = (await store.conversations.list(limit=1, directory=directory)).items
        if not found:
            raise NotFound(f"no conversation in {directory!r} yet", fix="moot chat list")
        return found[0]
    if _INDEX.fullmatch(reference) and int(reference) <= MAX_INDEX:
        index = int(reference)
        listed = (await store.conversations.list(limit=index)).items
        if len(listed) < index:
            raise NotFound(f"no conversation number {index}; the list has {len(listed)}", fix="moot chat list")
        return listed[index - 1]
    return await store.conversations.get(reference)


async def live_run(store: Store, conversation: Conversation) -> Run | None:
    """The run of it that has started and not ended, else the oldest queued one."""
    live: frozenset[RunStatus] = STARTED | frozenset[RunStatus]({"queued"})
    runs = await store.records.runs(conversation=conversation.id, statuses=live)
    started = [run for run in runs if run.status in STARTED]
    return started[0] if started else runs[-1] if runs else None
