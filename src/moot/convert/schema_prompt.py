"""What a very small model is sent: a short system prompt with examples, and the end of the conversation as the JSON it would say itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from moot.convert.schema_arguments import small_arguments
from moot.convert.schema_tokens import cut, tokens
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message
from moot.types.part import TOOL_DONE, Part, is_tool, text_of, tool_name
from moot.types.provider import ToolDefinition

SYSTEM_TOKENS = 460
"""Of the system prompt, by our upward estimate and without the template's own; DESIGN section 1 allows 500."""
HISTORY_TOKENS = 1_850
"""Of all other messages, by our upward estimate; 2,000 are allowed."""
STEPS = 3
"""Model calls for one prompt: the last one is offered no tool, so it ends in an answer."""
_OWN_WORDS_TOKENS = 90
"""Of a system prompt that comes from outside: a small model follows few words better than many."""
_PER_MESSAGE = 6
"""The chat template's own tokens around a message."""
_RULES = (
    'You answer with one JSON object. To look something up call a tool: {"tool": NAME, "arguments": {…}}. '
    'When you know the answer say {"reply": "…"}. A question about a file or folder needs a tool first; '
    "greetings and general knowledge need none. Answer with what the tool's output says, in full sentences."
)
_REPLIES = (("Hello!", "Hello! How can I help you?"), ("What is 3 times 4?", "3 times 4 is 12."))
_AFTER_OUTPUT = "Using this output, answer: "
_QUESTION_TOKENS = 120


@dataclass(frozen=True, slots=True)
class Line:
    """One message as the model gets it."""

    role: Literal["user", "assistant"]
    text: str


def system_prompt(own: str, tools: Sequence[ToolDefinition]) -> str:
    """At most `SYSTEM_TOKENS`: our rules and the tools first, then examples and the caller's own words as far as they fit."""
    if not tools:
        return cut(own, SYSTEM_TOKENS)
    head = "\n".join([_RULES, "", "Tools:", *(_tool_line(tool) for tool in tools)])
    own = cut(own, _OWN_WORDS_TOKENS)
    text = cut(head, SYSTEM_TOKENS - tokens(own) - 2)
    for example in _examples(tools):
        longer = f"{text}\n\n{example}"
        if tokens(longer) + tokens(own) + 2 > SYSTEM_TOKENS:
            break
        text = longer
    return f"{own}\n\n{text}" if own else text


def history(messages: Sequence[Message], *, as_json: bool) -> list[Line]:
    """The newest lines that fit `HISTORY_TOKENS`, oldest first; the last question and what its tools said are always among them."""
    lines = [line for message in messages for line in _lines(message, as_json)]
    start = max((index for index, message in enumerate(messages) if message.role == "user"), default=0)
    question = text_of(messages[start].parts) if messages else ""
    current = [line for message in messages[start:] for line in _lines(message, as_json)]
    earlier = lines[: len(lines) - len(current)]
    current = _fitted(_asked_again(current, question))
    room = HISTORY_TOKENS - sum(map(_cost, current))
    kept: list[Line] = []
    for line in reversed(earlier):
        room -= _cost(line)
        if room < 0:
            break
        kept.append(line)
    while kept and kept[-1].role == "assistant":  # an answer without its question misleads more than it helps
        kept.pop()
    return [*reversed(kept), *current]


def steps_taken(messages: Sequence[Message]) -> int:
    """Tool calls since the last question."""
    start = max((index for index, message in enumerate(messages) if message.role == "user"), default=0)
    return sum(1 for message in messages[start:] for part in message.parts if is_tool(part))


def _tool_line(tool: ToolDefinition) -> str:
    properties = small_arguments(tool)["properties"]
    names = ", ".join(properties) if isinstance(properties, dict) else ""
    sentence = tool.description.split("\n", 1)[0].split(". ", 1)[0].rstrip(".")
    return f"- {tool.name}({names}): {cut(sentence, 24)}"


def _examples(tools: Sequence[ToolDefinition]) -> Iterator[str]:
    """One of each tool, the replies, then the tools' further ones."""
    shown = [[_said(example, tool.name) for example in tool.examples] for tool in tools]
    yield from (examples[0] for examples in shown if examples)
    yield from (f"User: {question}\nYou: {_dumps({'reply': answer})}" for question, answer in _REPLIES)
    yield from (example for examples in shown for example in examples[1:])


def _said(example: JsonObject, name: str) -> str:
    return f"User: {example.get('user', '')}\nYou: {_dumps({'tool': name, 'arguments': example.get('arguments')})}"


def _lines(message: Message, as_json: bool) -> Iterator[Line]:
    if message.role == "user":
        yield Line("user", text_of(message.parts))
        return
    if message.role == "system":
        yield Line("user", f"(Note: {text_of(message.parts)})")
        return
    for part in message.parts:
        if is_tool(part):
            yield from _call_lines(part, as_json)
        elif part.get("type") == "text" and (text := str(part.get("text", ""))).strip():
            yield Line("assistant", _dumps({"reply": text}) if as_json else text)


def _call_lines(part: Part, as_json: bool) -> Iterator[Line]:
    if part.get("state") not in TOOL_DONE:
        return
    name = tool_name(part)
    if as_json:
        yield Line("assistant", _dumps({"tool": name, "arguments": part.get("input")}))
    yield Line("user", f"Output of {name}:\n{_output(part)}")


def _output(part: Part) -> str:
    match part.get("state"):
        case "output-error":
            return f"Error: {part.get('errorText', '')}"
        case "output-denied":
            return "Error: the user did not allow this."
        case _:
            output = part.get("output")
            return output if isinstance(output, str) else _dumps(output)


def _asked_again(lines: list[Line], question: str) -> list[Line]:
    """The question repeated behind the last output: a small model answers what it read last."""
    if len(lines) < 2 or lines[-1].role != "user" or not question:
        return lines
    return [*lines[:-1], Line("user", f"{lines[-1].text}\n\n{_AFTER_OUTPUT}{cut(question, _QUESTION_TOKENS)}")]


def _fitted(lines: list[Line]) -> list[Line]:
    """The lines with the longest ones cut until all fit."""
    limit = HISTORY_TOKENS
    while sum(map(_cost, lines)) > HISTORY_TOKENS and limit > 1:
        limit = limit * 3 // 4
        lines = [Line(line.role, cut(line.text, limit)) for line in lines]
    return lines if sum(map(_cost, lines)) <= HISTORY_TOKENS else lines[-1:]


def _cost(line: Line) -> int:
    return tokens(line.text) + _PER_MESSAGE


def _dumps(value: Json) -> str:
    return canonical.dumps(value).decode()
