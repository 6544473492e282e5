"""The messages of a step's request: shortened, compacted and, as a last resort, trimmed to fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from anyio import to_thread

from moot.agents.compaction import is_summary, shorten_outputs
from moot.convert.fold import in_history
from moot.convert.history import CHARACTERS, for_model, history_tokens, trim
from moot.tools.schema import definition
from moot.types.canonical import dumps
from moot.types.context import RunContext, StepSetup
from moot.types.message import Message
from moot.types.provider import ToolDefinition
from moot.types.tool import Tool

T = TypeVar("T")

_MANY = 200
"""Number of messages that take about a millisecond to estimate or filter."""


async def off_loop(messages: Sequence[Message], compute: Callable[[Sequence[Message]], T]) -> T:
    """Return the result of a computation over the messages. If there are many, it runs in a thread, so that the event loop stays free."""
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
    """Return the history and the run's own message, within the budget. Compact the conversation if it would not fit otherwise."""
    room = room_for_history(setup, tools, budget)

    def fitted_or_none(messages: Sequence[Message]) -> tuple[Message, ...] | None:
        sent = in_request(messages)
        is_longer = bool(room) and history_tokens(sent) > room and history_tokens(shorten_outputs(sent)) > room
        return None if is_longer else fitted(sent, room, budget)

    found = await off_loop([*await context.history(budget), context.message()], fitted_or_none)
    if found is not None:
        return found
    compacted = [*await context.history(budget, compact_to=room), context.message()]
    return await off_loop(compacted, lambda messages: fitted(in_request(messages), room, budget))


def in_request(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without parts that models don't get, and without empty ones."""
    shown = [dataclasses.replace(message, parts=in_history(message.parts)) for message in for_model(messages)]
    return tuple(message for message in shown if message.parts)


def fitted(messages: tuple[Message, ...], room: int, budget: int) -> tuple[Message, ...]:
    """Return the messages with shorter outputs if they exceed the room, and without the oldest ones if they exceed the budget."""
    if room and history_tokens(messages) > room:
        messages = shorten_outputs(messages)
    if messages and is_summary(messages[0]):
        return (messages[0], *trim(messages[1:], max(budget - history_tokens(messages[:1]), budget // 2)))
    return trim(messages, budget)
