"""The messages of a step's request: shortened, compacted and, as a last resort, trimmed to fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from anyio import to_thread

from moot.agents.compaction import is_summary, shorten_outputs
from moot.convert.files.attachments import facts_of, place_of
from moot.convert.fold import in_history
from moot.convert.history import CHARACTERS, for_model, history_tokens, trim
from moot.tools.schema import definition
from moot.types.canonical import dumps
from moot.types.context import RunContext, StepSetup
from moot.types.message import Message, Part, text_part
from moot.types.provider import ToolDefinition
from moot.types.tool import Tool

T = TypeVar("T")

_MANY = 200
"""Number of messages that can be estimated or filtered in about a millisecond."""


async def off_loop(messages: Sequence[Message], compute: Callable[[Sequence[Message]], T]) -> T:
    """Return the result of a computation over the messages.
    If there are many messages, run it in a thread, so that it doesn't block the event loop.
    """
    return compute(messages) if len(messages) < _MANY else await to_thread.run_sync(compute, messages)


def offered(setup: StepSetup, tools: Sequence[Tool]) -> tuple[ToolDefinition, ...]:
    """Return the definitions of all tools in a request."""
    return (*(definition(tool) for tool in tools), *(setup.served.tools if setup.served is not None else ()))


def tool_tokens(tools: Sequence[ToolDefinition]) -> int:
    """Estimate the tokens of tool definitions."""
    return sum(len(tool.name) + len(tool.description) + len(dumps(tool.schema)) for tool in tools) // CHARACTERS


def room_for_history(setup: StepSetup, tools: Sequence[ToolDefinition], budget: int) -> int:
    """Return the number of tokens above which the history is compacted; 0 means never."""
    if not setup.compact_at:
        return 0
    fixed = len(setup.system) // CHARACTERS + tool_tokens(tools)
    return max(min(budget, setup.compact_at - fixed), budget // 4, 1)


async def request_messages(context: RunContext, setup: StepSetup, tools: Sequence[ToolDefinition], budget: int) -> tuple[Message, ...]:
    """Return the history and the run's own message, within the token budget. Compact the conversation if they don't fit otherwise."""
    room = room_for_history(setup, tools, budget)

    def fitted_or_none(messages: Sequence[Message]) -> tuple[Message, ...] | None:
        whole = in_request(messages)
        sent = with_references(whole)
        is_longer = bool(room) and history_tokens(sent) > room and history_tokens(shorten_outputs(sent)) > room
        return None if is_longer else fitted(whole, room, budget)

    found = await off_loop([*await context.history(budget), context.message()], fitted_or_none)
    if found is not None:
        return found
    compacted = [*await context.history(budget, compact_to=room), context.message()]
    return await off_loop(compacted, lambda messages: fitted(in_request(messages), room, budget))


def in_request(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without parts that aren't sent to models, and without messages that are then empty."""
    shown = [dataclasses.replace(message, parts=in_history(message.parts)) for message in for_model(messages)]
    return tuple(message for message in shown if message.parts)


def fitted(messages: tuple[Message, ...], room: int, budget: int) -> tuple[Message, ...]:
    """Replace repeated files by references. If the messages exceed `room`, shorten outputs;
    if they exceed `budget`, omit the oldest messages.
    """
    if room and history_tokens(with_references(messages)) > room:
        messages = shorten_outputs(messages)
    if messages and is_summary(messages[0]):
        return (messages[0], *_trimmed(messages[1:], max(budget - history_tokens(messages[:1]), budget // 2)))
    return _trimmed(messages, budget)


def _trimmed(messages: tuple[Message, ...], budget: int) -> tuple[Message, ...]:
    """Return the newest messages that fit the budget. References point only to files in these messages."""
    sent = with_references(messages)
    kept = trim(sent, budget)
    if kept is sent:
        return sent
    whole = {id(shorter): message for shorter, message in zip(sent, messages, strict=True)}
    restored = with_references(tuple(whole.get(id(message), message) for message in kept))
    return restored if history_tokens(restored) <= budget else with_references(trim(messages, budget))


def with_references(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with each attached file replaced by a reference if an earlier message has the same content attached.

    The result depends only on these messages, and later messages never change how earlier ones are shown, so prompt caches work.
    """
    known: dict[tuple[str, ...], str] = {}
    found: list[Message] = []
    for message in messages:
        if message.role == "user" and any(part.get("type") == "file" for part in message.parts):
            parts = tuple(_or_reference(part, known) for part in message.parts)
            message = message if parts == message.parts else dataclasses.replace(message, parts=parts)
        found.append(message)
    return tuple(found)


def _or_reference(part: Part, known: dict[tuple[str, ...], str]) -> Part:
    """Return a reference if the file was attached before and hasn't changed since then. `known` holds the latest contents."""
    facts = facts_of(part)
    path = facts.get("path")
    if part.get("type") != "file" or not isinstance(path, str):
        return part
    place, content = (path, str(facts.get("lines")), str(part.get("mediaType"))), str(part.get("url"))
    if known.get(place) != content:
        known[place] = content
        return part
    return text_part(f"{place_of(part)}: unchanged since it was attached above, so it is not repeated.")


def sent_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of these messages in a request that starts with them."""
    return history_tokens(with_references(tuple(messages)))
