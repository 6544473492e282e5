"""Compare two conversations by prompts, answers and usage, and find differences between JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import NamedTuple

from moot.types.canonical import Json, JsonObject, dumps
from moot.types.conversation import Conversation
from moot.types.message import Message, is_tool, model_ms, text_of, tool_name
from moot.types.run import Run
from moot.types.usage import Usage

_MAX_SHOWN = 160
"""Maximum number of characters of a value to show."""


class Difference(NamedTuple):
    where: str
    """A path such as `[3].output.stdout`; empty for the whole value."""
    expected: str
    found: str


def first_difference(expected: Json, found: Json) -> Difference | None:
    """Return the first difference, or None if the values are identical. The order of an object's fields is ignored."""
    return next(differences(expected, found), None)


def differences(expected: Json, found: Json, where: str = "") -> Iterator[Difference]:
    """Yield each difference in order. `1` differs from `true` and from `1.0`."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in dict.fromkeys((*expected, *found)):
            path = f"{where}.{name}" if where else name
            if name not in found:
                yield Difference(path, short(expected[name]), "nothing")
            elif name not in expected:
                yield Difference(path, "nothing", short(found[name]))
            else:
                yield from differences(expected[name], found[name], path)
    elif isinstance(expected, list) and isinstance(found, list):
        for index, (left, right) in enumerate(zip(expected, found, strict=False)):
            yield from differences(left, right, f"{where}[{index}]")
        shorter = min(len(expected), len(found))
        for index, value in enumerate(islice(expected, shorter, None), shorter):
            yield Difference(f"{where}[{index}]", short(value), "nothing")
        for index, value in enumerate(islice(found, shorter, None), shorter):
            yield Difference(f"{where}[{index}]", "nothing", short(value))
    elif type(expected) is not type(found) or expected != found:
        yield _apart(expected, found, where)


def _apart(expected: Json, found: Json, where: str) -> Difference:
    """Return the difference between two values. For long strings, show only the part around the first different character."""
    if isinstance(expected, str) and isinstance(found, str) and max(len(expected), len(found)) > _MAX_SHOWN:
        same = next((at for at, (left, right) in enumerate(zip(expected, found, strict=False)) if left != right), None)
        at = min(len(expected), len(found)) if same is None else same
        begin = max(0, at - _MAX_SHOWN // 4)
        mark = f" from character {begin}" if begin else ""
        return Difference(where, short(expected[begin : begin + _MAX_SHOWN]) + mark, short(found[begin : begin + _MAX_SHOWN]) + mark)
    return Difference(where, short(expected), short(found))


def short(value: Json, limit: int = _MAX_SHOWN) -> str:
    """Return the value as JSON, truncated if it is long."""
    text = dumps(value).decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MANY = 6_000
"""Maximum total number of words in both texts for a comparison by words. Longer texts are compared by lines, which is faster."""
_MAX_INPUT = 200


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two conversations."""

    conversation: Conversation
    messages: Sequence[Message]
    """The messages of the current branch, oldest first."""
    runs: Mapping[str, Run]


@dataclass(frozen=True, slots=True)
class _Exchange:
    prompt: Message | None
    answers: tuple[Message, ...]

    @property
    def text(self) -> str:
        return " ".join(text_of(self.prompt.parts).split()) if self.prompt is not None else ""


def compare_conversations(one: Side, other: Side) -> JsonObject:
    """Return `{a, b, pairs: [{prompt, a, b, same, diff}]}`. If only one side has the prompt, the other side's answer is null.

    `diff` lists words in order as `[op, text]`. The op is ` ` (in both), `-` (only in a) or `+` (only in b).
    """
    pairs = [_pair(one, other, left, right) for left, right in _align(_asked(one.messages), _asked(other.messages))]
    return {"a": _side(one), "b": _side(other), "same": all(pair["same"] is True for pair in pairs), "pairs": list[Json](pairs)}


def _asked(messages: Sequence[Message]) -> list[_Exchange]:
    found: list[_Exchange] = []
    for message in messages:
        if message.role == "user":
            found.append(_Exchange(message, ()))
        elif message.role == "assistant":
            last = found.pop() if found else _Exchange(None, ())
            found.append(_Exchange(last.prompt, (*last.answers, message)))
    return found


def _align(left: Sequence[_Exchange], right: Sequence[_Exchange]) -> Iterable[tuple[_Exchange | None, _Exchange | None]]:
    """Yield pairs of equal prompts and, for the prompts between them, pairs of those at the same position. A missing prompt is None."""
    matcher = SequenceMatcher(None, [one.text for one in left], [one.text for one in right], autojunk=False)
    for _, begin, end, first, last in matcher.get_opcodes():
        for at in range(max(end - begin, last - first)):
            yield (left[begin + at] if begin + at < end else None, right[first + at] if first + at < last else None)


def _pair(one: Side, other: Side, left: _Exchange | None, right: _Exchange | None) -> JsonObject:
    a, b = _answer(one, left), _answer(other, right)
    texts = [str(side["text"]) if side is not None else "" for side in (a, b)]
    tools = [side["tools"] if side is not None else None for side in (a, b)]
    asked = [text_of(side.prompt.parts) if side is not None and side.prompt is not None else None for side in (left, right)]
    same = texts[0] == texts[1] and tools[0] == tools[1] and asked[0] == asked[1]
    prompts: JsonObject = {"a": asked[0], "b": asked[1]}
    return {"prompt": prompts, "a": a, "b": b, "same": same, "diff": list[Json](word_diff(*texts))}


def _answer(side: Side, asked: _Exchange | None) -> JsonObject | None:
    if asked is None or not asked.answers:
        return None
    runs = [run for message in asked.answers if message.run is not None and (run := side.runs.get(message.run)) is not None]
    last = asked.answers[-1]
    tools = [_call(part) for message in asked.answers for part in message.parts if is_tool(part)]
    return {
        "message": last.id,
        "status": last.status,
        "agent": str(last.metadata.get("agent") or side.conversation.agent),
        "model": _model(last, runs),
        "text": "\n\n".join(text for message in asked.answers if (text := text_of(message.parts))),
        "tools": list[Json](tools),
        **_took(asked.answers, runs),
    }


def _model(message: Message, runs: Sequence[Run]) -> str:
    model, provider = message.metadata.get("model"), message.metadata.get("provider")
    if isinstance(model, str) and isinstance(provider, str):
        return f"{model}@{provider}"
    return runs[-1].model if runs else str(model or "")


def _call(part: JsonObject) -> JsonObject:
    arguments = short(part["input"], _MAX_INPUT) if part.get("input") is not None else ""
    return {"name": tool_name(part), "input": arguments, "state": str(part.get("state"))}


def _took(messages: Iterable[Message], runs: Sequence[Run]) -> JsonObject:
    usage = sum((run.usage for run in runs), Usage())
    costs = [run.cost for run in runs]
    known = [cost for cost in costs if cost is not None]
    times = [ms for message in messages if (ms := model_ms(message.metadata)) is not None]
    return {
        "usage": usage.to_json(),
        "cost": sum(known) if known and len(known) == len(costs) else None,
        "ms": sum(times) if times else None,
    }


def _side(side: Side) -> JsonObject:
    shown = [side.runs[message.run] for message in side.messages if message.run is not None and message.run in side.runs]
    conversation = side.conversation
    tools = sum(is_tool(part) for message in side.messages for part in message.parts)
    facts: JsonObject = {"id": conversation.id, "title": conversation.title, "agent": conversation.agent}
    facts |= {"model": conversation.model, "last_model": conversation.last_model}
    return {**facts, "forked_from": conversation.forked_from, "answers": len(shown), "tools": tools, **_took(side.messages, shown)}


def word_diff(left: str, right: str) -> list[list[Json]]:
    """Return the diff of two texts as a list of `[op, text]`.
    The op is ` ` (in both texts), `-` (only in the left one) or `+` (only in the right one).
    """
    if left == right:
        return [[" ", left]] if left else []
    a, b = _WORDS.findall(left), _WORDS.findall(right)
    if len(a) + len(b) > _MANY:
        a, b = left.splitlines(keepends=True), right.splitlines(keepends=True)
    found: list[list[Json]] = []
    for kind, begin, end, first, last in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append([" ", "".join(a[begin:end])])
            continue
        if end > begin:
            found.append(["-", "".join(a[begin:end])])
        if last > first:
            found.append(["+", "".join(b[first:last])])
    return found
