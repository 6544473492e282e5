"""The history of a leg: messages that another program sent with its call, and summaries for an agent that takes over."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

from moot.agents.outside.prompts import with_history
from moot.convert.history import estimate
from moot.convert.vendor import as_list, as_object
from moot.errors import MootError, StoreError
from moot.runtime.auxiliary import auxiliary_call
from moot.runtime.runtime import Runtime
from moot.types import chunk
from moot.types.canonical import JsonObject, loads
from moot.types.chunk import Chunk
from moot.types.message import Message, Part, Role, is_tool, text_part
from moot.types.store import Store

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


async def load_history(store: Store, blobs: Sequence[str]) -> list[Message]:
    """Return the messages, oldest first. An entry is a message, or names a stored one and adds outputs of its calls. Raise NotFound."""
    messages: list[Message] = []
    for sha256 in blobs:
        for entry in as_list(loads(await store.blobs.get(sha256))):
            if not isinstance(entry, dict):
                continue
            if isinstance(named := entry.get("message"), str):
                stored = await store.conversations.message(named)
                messages.append(dataclasses.replace(stored, parts=with_outputs(stored.parts, as_object(entry.get("outputs")))))
            else:
                own = tuple(part for part in as_list(entry.get("parts")) if isinstance(part, dict))
                messages.append(Message("", _ROLES.get(str(entry.get("role")), "user"), own, as_object(entry.get("metadata"))))
    return messages


def with_outputs(parts: Sequence[Part], outputs: JsonObject) -> tuple[Part, ...]:
    """Return the parts with outputs supplied by the program, by call id: `{"output": …}` or `{"errorText": …}`."""
    found: list[Part] = []
    for part in parts:
        outcome = outputs.get(str(part.get("toolCallId"))) if is_tool(part) else None
        if isinstance(outcome, dict):
            kept: Part = {name: value for name, value in part.items() if name not in ("output", "errorText", "preliminary")}
            part = {**kept, "state": "output-error" if "errorText" in outcome else "output-available", **outcome}
        found.append(part)
    return tuple(found)


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


async def summarize_history(runtime: Runtime, conversation: str, messages: Sequence[Message]) -> tuple[list[Message], tuple[Chunk, ...]]:
    """Return the messages unchanged if they are short, otherwise a summary of the older ones, the newest ones, and a note for the user.

    Without a model (`models.compaction` or `models.small`), or if the model fails, return only the newest messages. Stored messages don't
    change: the summary is an exchange in the log outside the run.
    """
    if sum(estimate(message.parts) for message in messages) <= WHOLE:
        return list(messages), ()
    # the newer ones contain at least the last message
    at, left = len(messages), RECENT
    while at > 0 and (left := left - estimate(messages[at - 1].parts)) >= 0:
        at -= 1
    at = min(at, len(messages) - 1)
    older, newer = list(messages[:at]), list(messages[at:])
    model = runtime.settings.models.compaction or runtime.settings.models.small
    if not older:
        return list(messages), ()
    if not model:
        note = f"The first {len(older)} messages were omitted: the history is too long, and models.compaction is not set."
        return newer, (chunk.data("note", {"text": note}),)
    prompt = Message("summary", "user", (text_part(with_history(older, "Write the summary now.", limit=READ)),))
    try:
        text = await auxiliary_call(runtime, conversation, "compact", _ASKED, [prompt], model=model)
    except StoreError:
        raise
    except MootError as error:
        log.warning("could not summarize the history: %s", error.message, extra={"conversation": conversation})
        note = f"The first {len(older)} messages were omitted: the history is too long. {model} failed to summarize it: {error.message}"
        return newer, (chunk.data("note", {"text": note}),)
    summary = Message("summary", "system", (text_part(_HEAD.format(len(older), model) + text.strip()),))
    note = f"The history is too long for this agent, so {model} summarized the first {len(older)} messages."
    return [summary, *newer], (chunk.data("note", {"text": note}),)
