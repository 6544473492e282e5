"""Summary of earlier messages for an agent that takes over a conversation. The newest messages are passed on unchanged."""

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
"""Number of tokens up to which the history is passed on completely."""
RECENT = 6_000
"""Number of tokens of the newest messages to pass on unchanged if the history is longer."""
READ = 100_000
"""Maximum number of characters of older messages to summarize, the newest of them."""

_ASKED = (
    "Another agent takes over this conversation. Write what it needs to know to continue: what the user wants and which requirements they"
    " stated, what was decided and why, what was done (files, commands, results, errors), and what is still open. Quote names, paths and"
    " numbers exactly. No greeting, no advice."
)
_HEAD = "Summary of the first {} messages of this conversation, made by {}:\n\n"

log = logging.getLogger("moot.runtime")


async def shortened(runtime: Runtime, conversation: str, messages: Sequence[Message]) -> tuple[list[Message], tuple[Chunk, ...]]:
    """Return the messages unchanged if they are short, otherwise a summary of the older ones, the newest ones, and a note about it.

    Without a model (`models.compaction` or `models.small`), or if it fails, return only the newest messages. Stored messages don't
    change: the summary is an exchange in the log outside the run.
    """
    if sum(estimate(message.parts) for message in messages) <= WHOLE:
        return list(messages), ()
    older, newer = _split(messages)
    model = runtime.settings.models.compaction or runtime.settings.models.small
    if not older:
        return list(messages), ()
    if not model:
        note = f"the first {len(older)} messages were omitted: the history is too long, and models.compaction is not set"
        return newer, (chunk.data("note", {"text": note}),)
    prompt = Message("summary", "user", (text_part(told(older, "Write the summary now.", limit=READ)),))
    try:
        text = await aside(runtime, conversation, "compact", _ASKED, [prompt], model=model)
    except StoreError:
        raise
    except MootError as error:
        log.warning("could not summarize the history: %s", error.message, extra={"conversation": conversation})
        note = (
            f"the first {len(older)} messages were omitted: the history is too long, and {model} failed to summarize it ({error.message})"
        )
        return newer, (chunk.data("note", {"text": note}),)
    summary = Message("summary", "system", (text_part(_HEAD.format(len(older), model) + text.strip()),))
    note = f"the history is too long for this agent, so {model} summarized the first {len(older)} messages"
    return [summary, *newer], (chunk.data("note", {"text": note}),)


def _split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Split the messages into older and newer ones. The newer ones contain at least the last message."""
    left = RECENT
    at = len(messages)
    while at > 0 and (left := left - estimate(messages[at - 1].parts)) >= 0:
        at -= 1
    at = min(at, len(messages) - 1)
    return list(messages[:at]), list(messages[at:])
