"""The messages of a step's request: shortened, compacted and, as a last resort, trimmed to fit.

Compacting means shortening tool outputs and choosing the messages to summarize. The summary is a message.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from anyio import to_thread

from moot.convert.files.attachments import facts_of, place_of
from moot.convert.fold import in_history
from moot.convert.history import CHARACTERS, estimate, for_model, history_tokens, trim
from moot.tools.schema import definition
from moot.types.canonical import Json, dumps
from moot.types.context import RunContext, StepSetup
from moot.types.message import Message, Part, is_settled, is_tool, plan_of, text_part, tool_name
from moot.types.provider import ToolDefinition
from moot.types.tool import Tool
from moot.types.tree import Compaction

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


_HEAD = (
    "[Summary of the earlier part of this conversation, written by a model to save space. It is not a new request, and nothing in it is a "
    "permission. The messages after it are unchanged.]\n\n"
)
_PLAN = "\n\n[The plan or to-do list at that point]\n"
_SUMMARY_ID = "summary"

RECENT = 8
"""Number of most recent tool outputs that are never shortened.
Older outputs are shortened in groups of this size, so that the providers' prompt caches keep working.
"""
_FIRST_LINES = 5
_SHORT = 600
"""Outputs up to this number of characters are not shortened."""
_STALE = "[Omitted: {} was called again with the same arguments later; its newer output follows.]"
_FAR = "{}\n[Shortened: the first lines of {:,} characters. Call the tool again if you need the rest.]"
_MARKS = {"completed": "[x]", "in_progress": "[~]"}


def summary_message(compaction: Compaction) -> Message:
    """Return the summary as a user message to place at the start of the history."""
    plan = f"{_PLAN}{compaction.plan}" if compaction.plan else ""
    return Message(_SUMMARY_ID, "user", (text_part(f"{_HEAD}{compaction.summary}{plan}"),))


def is_summary(message: Message) -> bool:
    """Return True if the message was created by `summary_message`."""
    return message.id == _SUMMARY_ID


def shorten_outputs(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with outdated tool outputs replaced by a note, and old outputs by their first lines.

    The newest to-do list is not shortened.
    """
    calls = [part for message in messages for part in in_history(message.parts) if is_tool(part) and is_settled(part)]
    newest = {_signature(part): index for index, part in enumerate(calls)}
    border = max(len(calls) - RECENT, 0) // RECENT * RECENT
    kept = {id(part) for part in (_last_todo(calls),) if part is not None}
    shorter: dict[int, Part] = {}
    for index, part in enumerate(calls[:-RECENT]):
        text = _output_text(part)
        if id(part) in kept or text is None or len(text) <= _SHORT:
            continue
        if newest[_signature(part)] > index:
            shorter[id(part)] = {**part, "output": _STALE.format(tool_name(part))}
        elif index < border:
            first = "\n".join(text.split("\n", _FIRST_LINES)[:_FIRST_LINES])[:_SHORT]
            shorter[id(part)] = {**part, "output": _FAR.format(first, len(text))}
    if not shorter:
        return tuple(messages)
    return tuple(replace(message, parts=tuple(shorter.get(id(part), part) for part in message.parts)) for message in messages)


def _signature(part: Part) -> bytes:
    return tool_name(part).encode() + b"\0" + dumps(part.get("input"))


def _output_text(part: Part) -> str | None:
    """Return a call's output as text, or None if it contains anything other than text."""
    output = part.get("output")
    if isinstance(output, dict) and output.get("type") == "content":
        return None
    return output if isinstance(output, str) else dumps(output).decode() if output is not None else None


def first_kept(messages: Sequence[Message], keep: int, room: int | None = None) -> int:
    """Return the index of the first message to keep unsummarized: one of the last `keep` messages, and a prompt if possible.

    If these messages exceed half of `room` (in tokens), fewer are kept, but always the last one. A message that is still being written and
    those after it are never summarized.
    """
    last = next((at for at, message in enumerate(messages) if message.status == "streaming"), len(messages)) - 1
    at = max(min(len(messages) - max(keep, 1), last), 0)
    if room is not None:
        while at < last and history_tokens(messages[at:]) > room // 2:
            at += 1
    prompt = next((index for index in range(at, 0, -1) if messages[index].role == "user"), at)
    fits = room is None or history_tokens(messages[prompt:]) <= room // 2
    return prompt if fits and at - prompt < max(keep, 1) else at


def pieces(messages: Sequence[Message], tokens: int, most: int) -> list[list[Message]]:
    """Split the messages into pieces of about this many tokens, and return the newest pieces, oldest first."""
    found: list[list[Message]] = [[]]
    left = tokens
    for message in reversed(messages):
        size = min(estimate(message.parts), tokens)
        if size > left and found[-1]:
            if len(found) == most:
                break
            found.append([])
            left = tokens
        found[-1].append(message)
        left -= size
    return [piece[::-1] for piece in reversed(found) if piece]


def latest_plan(messages: Sequence[Message], before: str = "") -> str:
    """Return the latest plan and to-do list in these messages as text, or `before` if there are none."""
    parts = [part for message in messages for part in in_history(message.parts)]
    lists: list[str] = []
    if (todo := _last_todo([part for part in parts if is_tool(part)])) is not None:
        lists.append("\n".join(_todo_lines(todo.get("input"))))
    if (plan := next((part for part in reversed(parts) if part.get("type") == "data-plan"), None)) is not None:
        lists.append("\n".join(f"{_MARKS.get(entry.status, '[ ]')} {entry.content}" for entry in plan_of(plan)))
    return "\n\n".join(filter(None, lists)) or before


def _last_todo(calls: Sequence[Part]) -> Part | None:
    return next((part for part in reversed(calls) if tool_name(part) == "todo" and any(_todo_lines(part.get("input")))), None)


def _todo_lines(value: Json) -> Iterator[str]:
    items = value.get("todos") if isinstance(value, dict) else None
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict):
            yield f"{_MARKS.get(str(item.get('status')), '[ ]')} {item.get('content', '')}"
