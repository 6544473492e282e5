"""The history that is sent with a model call: trim it to a token budget, add text from hooks, and split messages into steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from moot.convert.files.attachments import prompt_text
from moot.convert.fold import in_history
from moot.types import canonical
from moot.types.canonical import Json, dumps
from moot.types.hooks import CONTEXT, hook_of, is_withheld
from moot.types.message import Message, Part, is_tool, text_part, tool_name

CHARACTERS = 4
"""Estimated number of characters per token, for prose and code in most languages. For text that is not ASCII, bytes are counted instead."""

FILE_TOKENS = 1_500
"""Estimated number of tokens in a file."""

LOW_DETAIL_TOKENS = 300
"""Estimated number of tokens in an image with low detail. No provider that has this setting counts more."""

_OVERHEAD = 4
"""Estimated number of tokens in a message's role and delimiters."""


class Step(NamedTuple):
    """The parts of an assistant message that belong to one model call."""

    steering: tuple[Part, ...]
    """Text and file parts of the user's steering messages that precede this model call."""
    parts: tuple[Part, ...]
    """Output of the model, in order: text, reasoning, files, and tool calls with their outputs."""

    @property
    def calls(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if is_tool(part))


def estimate(parts: Sequence[Part]) -> int:
    """Estimate the number of tokens in these parts. The estimate is the same for every file that is not text, regardless of its size."""
    return sum(_tokens(part) for part in parts)


def history_tokens(messages: Sequence[Message], count: Callable[[Sequence[Part]], int] = estimate) -> int:
    """Estimate the number of tokens in these messages."""
    return sum(count(message.parts) + _OVERHEAD for message in messages)


def split_steps(message: Message) -> tuple[Step, ...]:
    """Split an assistant message into model calls, oldest first, without abandoned attempts. A message without step markers is one step."""
    steps: list[Step] = []
    steering: list[Part] = []
    current: list[Part] = []

    def border() -> None:
        if current or steering:
            steps.append(Step(tuple(steering), tuple(current)))
            steering.clear()
            current.clear()

    for part in in_history(message.parts):
        kind = part.get("type")
        if kind == "steering-message":
            if current:
                border()
            inner = part.get("parts")
            steering += [piece for piece in inner if isinstance(piece, dict)] if isinstance(inner, list) else []
        elif kind == "step-start":
            if current:
                border()
        else:
            current.append(part)
    border()
    return tuple(steps)


def trim(
    messages: tuple[Message, ...], budget_tokens: int | None, count: Callable[[Sequence[Part]], int] = estimate
) -> tuple[Message, ...]:
    """Return the newest messages that fit the budget, oldest first. If there is no budget, return all messages.

    Groups are kept or dropped as a whole: a user message with all its answers and, inside an answer, each step with its calls and outputs.
    The last user message and the last step of its answer are always kept, however large they are.
    """
    if budget_tokens is None or history_tokens(messages, count) <= budget_tokens:
        return messages
    groups: list[list[Message]] = []  # messages before the first user message are also a group
    for message in messages:
        if not groups or (message.role == "user" and any(known.role != "user" for known in groups[-1])):
            groups.append([])
        groups[-1].append(message)
    kept: list[Sequence[Message]] = []
    left = budget_tokens
    for position, group in enumerate(reversed(groups)):
        size = history_tokens(group, count)
        if size > left:
            if position == 0:
                kept.append(_shortened(group, left, count))
            break
        left -= size
        kept.append(group)
    return tuple(message for group in reversed(kept) for message in group)


def _shortened(group: Sequence[Message], budget: int, count: Callable[[Sequence[Part]], int]) -> tuple[Message, ...]:
    """Shorten the newest group: keep its user messages, and as many of the answers' last steps as fit, but at least one."""
    left = budget - history_tokens([message for message in group if message.role != "assistant"], count)
    kept: list[Message] = []
    for message in reversed(group):
        if message.role != "assistant":
            kept.append(message)
            continue
        steps: list[Part] = []
        for step in reversed(_blocks(message)):
            size = count(step) + _OVERHEAD
            if size > left and any(known.role == "assistant" for known in kept) | bool(steps):
                left = 0
                break
            left -= size
            steps[:0] = step
        if steps:
            kept.append(replace(message, parts=tuple(steps)))
    return tuple(reversed(kept))


def _blocks(message: Message) -> list[list[Part]]:
    """Split the parts into blocks to keep together. Each block starts with a step marker or with the steering messages before it."""
    blocks: list[list[Part]] = [[]]
    for part in in_history(message.parts):
        begins = part.get("type") in ("step-start", "steering-message")
        if begins and any(known.get("type") not in ("step-start", "steering-message") for known in blocks[-1]):
            blocks.append([])
        blocks[-1].append(part)
    return [block for block in blocks if block]


def _tokens(part: Part) -> int:
    kind = str(part.get("type", ""))
    if kind in ("text", "reasoning"):
        return _text_tokens(part.get("text"))
    if kind in ("file", "reasoning-file"):
        text = prompt_text(part)
        whole = LOW_DETAIL_TOKENS if part.get("detail") == "low" else FILE_TOKENS
        return whole if text is None else _text_tokens(text)
    if kind == "steering-message":
        inner = part.get("parts")
        return estimate([piece for piece in inner if isinstance(piece, dict)]) if isinstance(inner, list) else 0
    if is_tool(part):
        return _call_tokens(part)
    return 0


def _call_tokens(part: Part) -> int:
    output = part.get("output")
    value = output.get("value") if isinstance(output, dict) and output.get("type") == "content" else None
    files = 0
    if isinstance(value, list):
        files = sum(isinstance(piece, dict) and piece.get("type") == "file" for piece in value)
        output = [piece for piece in value if not (isinstance(piece, dict) and piece.get("type") == "file")]
    tokens = sum(_text_tokens(part.get(name)) for name in ("errorText", "rawInput"))
    return 10 + files * FILE_TOKENS + tokens + _json_tokens(part.get("input")) + _json_tokens(output)


def _json_tokens(value: object) -> int:
    if value is None:
        return 0
    return _text_tokens(value) if isinstance(value, str) else len(canonical.dumps(value)) // CHARACTERS


def _text_tokens(text: object) -> int:
    if not isinstance(text, str):
        return 0
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return (size + CHARACTERS - 1) // CHARACTERS


def for_model(messages: Sequence[Message]) -> list[Message]:
    """Return the messages to send to a model. Text that hooks added to an answer is moved before the prompt of that answer."""
    found: list[Message] = []
    for message in without_withheld(messages):
        if message.role == "assistant" and any(_is_of_hook(part) for part in message.parts):
            if found and found[-1].role == "user":
                found[-1] = replace(found[-1], parts=(*added_parts(message.parts), *found[-1].parts))
            message = replace(message, parts=tuple(part for part in message.parts if not _is_of_hook(part)))
        found.append(message)
    return found


def without_withheld(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without prompts that hooks withhold (blocked,
    skipped or not yet decided), and without the answers to these prompts.
    """
    found: list[Message] = []
    for message in messages:
        if not is_withheld(message.metadata):
            found.append(message)
        elif message.role == "assistant" and found and found[-1].id == message.parent and found[-1].role == "user":
            found.pop()
    return found


def added_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the text that hooks added to a prompt, as parts. It is stored in the parts of the prompt's answer."""
    texts = (_added(part) for part in parts if _is_of_hook(part))
    return tuple(text_part(text) for text in texts if text)


def output_text(part: Part) -> str:
    """Return the text of a call's output or error."""
    output: Json = part.get("output")
    if output is None:
        return str(part.get("errorText") or "")
    if isinstance(output, dict) and output.get("type") == "content" and isinstance(pieces := output.get("value"), list):
        return "\n".join(str(piece.get("text", "")) for piece in pieces if isinstance(piece, dict) and piece.get("type") == "text")
    return output if isinstance(output, str) else dumps(output).decode()


def _is_of_hook(part: Part) -> bool:
    return part.get("type") == CONTEXT or ("toolMetadata" in part and is_tool(part) and hook_of(part) != "")


def _added(part: Part) -> str:
    if part.get("type") == CONTEXT:
        data = part.get("data")
        return str(data.get("text", "")) if isinstance(data, dict) else ""
    if hook_of(part) != "before_run":
        return ""
    failed = " failed" if part.get("state") in ("output-error", "output-denied") else ""
    text = output_text(part) or str(part.get("state", ""))
    return f"Output of {tool_name(part)}{failed}, run before this prompt:\n{text}"
