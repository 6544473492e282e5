"""Compacting a history: shortening tool outputs, choosing the messages to summarize, and the summary as a message. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from moot.convert.fold import in_history
from moot.convert.history import estimate, history_tokens
from moot.types.canonical import Json, dumps
from moot.types.message import Message, Part, is_settled, is_tool, plan_of, text_part, tool_name
from moot.types.tree import Compaction

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
