"""Earlier messages made short for an agent that takes a conversation over: the oldest as a summary, the newest as they are."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moot.agents.outside.told import told
from moot.convert.history import estimate
from moot.errors import MootError, StoreError
from moot.runtime.aside import aside
from moot.runtime.runtime import Runtime
from moot.types import chunk
from moot.types.chunk import Chunk
from moot.types.message import Message
from moot.types.part import text_part

__all__ = ["shortened"]

WHOLE = 12_000
"""Tokens up to which everything is told as it was said."""
RECENT = 6_000
"""Tokens of the newest messages that are told as they are when it is more."""
READ = 100_000
"""Characters of what is older that the summary is made of; the newest of it."""

_ASKED = (
    "Another agent takes over the conversation that you are given. Write what it has to know to go on: what the person wants and has said"
    " must hold, what was decided and why, what was done (files, commands, results, errors), and what is still open. Names, paths and"
    " numbers to the letter. No greeting, no advice."
)
_HEAD = "Summary of the first {} messages of this conversation, made by {}:\n\n"

log = logging.getLogger("moot.runtime")


async def shortened(runtime: Runtime, conversation: str, messages: Sequence[Message]) -> tuple[list[Message], tuple[Chunk, ...]]:
    """The messages as they are when they are few; else a summary of the older ones and the newest, and a note that says so.

    Without a model for it (`models.compaction`, else `models.small`), or when it fails, the newest alone. Nothing stored is changed: the
    summary is an exchange of the log beside the run.
    """
    if sum(estimate(message.parts) for message in messages) <= WHOLE:
        return list(messages), ()
    older, newer = _split(messages)
    model = runtime.settings.models.compaction or runtime.settings.models.small
    if not older:
        return list(messages), ()
    if not model:
        words = f"the first {len(older)} messages were too much to tell and are left out: no model for summaries is set (models.compaction)"
        return newer, (chunk.data("note", {"text": words}),)
    asked = Message("summary", "user", (text_part(told(older, "Write the summary now.", limit=READ)),))
    try:
        text = await aside(runtime, conversation, "compact", _ASKED, [asked], model=model)
    except StoreError:
        raise
    except MootError as error:
        log.warning("no summary for the agent that takes over: %s", error.message, extra={"conversation": conversation})
        words = f"the first {len(older)} messages were too much to tell and are left out: {model} made no summary ({error.message})"
        return newer, (chunk.data("note", {"text": words}),)
    summary = Message("summary", "system", (text_part(_HEAD.format(len(older), model) + text.strip()),))
    words = f"the first {len(older)} messages were too much to tell: this agent knows them by a summary that {model} made"
    return [summary, *newer], (chunk.data("note", {"text": words}),)


def _split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The older and the newest ones; at least the last is among these."""
    left = RECENT
    at = len(messages)
    while at > 0 and (left := left - estimate(messages[at - 1].parts)) >= 0:
        at -= 1
    at = min(at, len(messages) - 1)
    return list(messages[:at]), list(messages[at:])
