"""The prompt of a very small model: a short system prompt with examples, and the end of the conversation as its own JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from moot.convert._tools import output_of
from moot.convert.history import split_steps
from moot.convert.schema_arguments import small_arguments
from moot.convert.schema_tokens import cut, tokens
from moot.convert.schema_wishes import ACTING, EXAMPLES, FILE, OUTCOMES, wish_of
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message
from moot.types.part import Part, is_tool, text_of, tool_name
from moot.types.provider import ToolDefinition

SYSTEM_TOKENS = 480
"""Limit of the system prompt, by our high estimate; DESIGN section 1 allows 500."""
HISTORY_TOKENS = 1_900
"""Limit of all other messages, by our high estimate, including examples and the chat template; 2,000 are allowed."""
STEPS = 3
"""Maximum model calls for one prompt. The last one has no tools, so it ends in an answer."""
_OWN_WORDS_TOKENS = 120
"""Limit of a caller's own system prompt: a small model follows short instructions better than long ones."""
_EXAMPLES_TOKENS = 420
_QUESTION_TOKENS = 150
_ONE_CALL = 3
"""Lines of a question with one call: the question, the call, its output."""
_PER_MESSAGE = 6
"""Tokens that the chat template adds to a message."""
_OPENING = "You are moot, a helpful assistant."
_FORM = "You answer with one JSON object: a tool call to look something up, or a reply."
_RULES = (
    "Never guess what a file says: call read_file with its name first. Greetings, sums and general knowledge need no tool. "
    "After a tool's output, reply in a full sentence with what it says."
)
_ACT = (
    "You answer with one JSON object: the tool call that does what was asked, or a reply. "
    "Copy names, commands and texts from the user's words to the letter. After the tool's output, reply in one short sentence."
)
_TELL = "(Tell in one short sentence what came of it.)"
_SELDOM = "ask_user"
"""Offered without an example: with one, the model asks back instead of looking."""
_REPLIES = (("Hello, who are you?", "Hello! I am moot. How can I help you?"), ("What is 3 times 4?", "3 times 4 is 12."))
_LINE_NUMBERS = re.compile(r"^[ ]*\d+\t", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Line:
    """One message as the model sees it."""

    role: Literal["user", "assistant"]
    text: str


def system_prompt(own: str, tools: Sequence[ToolDefinition]) -> str:
    """Build at most `SYSTEM_TOKENS`: the first paragraph of the caller's own instructions, then the tools and how to answer."""
    if not tools:
        return cut(own, SYSTEM_TOKENS)
    own = own.strip().partition("\n\n")[0]
    listed = "\n".join(["Tools:", *(_tool_line(tool) for tool in tools)])
    if tools[0].name in ACTING:
        return cut("\n\n".join([cut(own, _OWN_WORDS_TOKENS) or _OPENING, listed, _ACT]), SYSTEM_TOKENS)
    return cut("\n\n".join([f"{cut(own, _OWN_WORDS_TOKENS) or _OPENING} {_FORM}", listed, _RULES]), SYSTEM_TOKENS)


def examples(tools: Sequence[ToolDefinition], *, settled: bool = False) -> list[Line]:
    """Return an example conversation that shows each tool and two replies, as far as it fits; empty without tools.

    If `settled`, the action was done or denied, and the examples show how to report that.
    """
    if not tools:
        return []
    if tools[0].name in ACTING and settled:
        return [
            line for text, reply in OUTCOMES for line in (Line("user", f"{text}\n\n{_TELL}"), Line("assistant", _dumps({"reply": reply})))
        ]
    if tools[0].name in ACTING:
        return [line for tool in tools for question, given in EXAMPLES[tool.name] for line in _shown(tool.name, question, given)]
    own, *others = [_calls(tool) if tool.name != _SELDOM else [] for tool in tools]
    firsts = [calls[0] for calls in others if calls]
    replies = [(question, _dumps({"reply": answer})) for question, answer in _REPLIES]
    # the last example has the most influence: a call of the first tool, which most questions need
    ordered = [*firsts[:1], *replies[:1], *firsts[1:2], *replies[1:], *own[1:2], *firsts[2:], *own[:1]]
    shown: list[Line] = []
    room = _EXAMPLES_TOKENS
    for question, answer in reversed(ordered):
        pair = [Line("user", _hinted(question)), Line("assistant", answer)]
        room -= sum(map(_cost, pair))
        if room < 0:
            break
        shown[:0] = pair
    return shown


def history(messages: Sequence[Message], tools: Sequence[ToolDefinition], *, room: int) -> list[Line]:
    """Return the newest lines that fit `room`, oldest first; always including the last question and its tool outputs."""
    start = _question_at(messages)
    question = question_of(messages)
    as_json = bool(tools)
    current = [line for message in messages[start:] for line in _lines(message, as_json)]
    if as_json:
        current = _pointed(current, question, messages[start:], [tool.name for tool in tools])
    current = _fitted(current, room)
    room -= sum(map(_cost, current))
    kept: list[Line] = []
    for line in reversed([line for message in messages[:start] for line in _lines(message, as_json)]):
        room -= _cost(line)
        if room < 0:
            break
        kept.append(line)
    while kept and kept[-1].role == "assistant":  # an answer without its question misleads more than it helps
        kept.pop()
    return [*reversed(kept), *current]


def cost(lines: Sequence[Line]) -> int:
    """Return the tokens of these lines, by our high estimate."""
    return sum(map(_cost, lines))


def is_settled(messages: Sequence[Message]) -> bool:
    """Return True if only an answer is needed: the steps are used up, or the files named in the question have been read."""
    start = _question_at(messages)
    calls = _calls_since(messages, start)
    if len(calls) >= STEPS - 1 or any(tool_name(part) in ACTING for part in calls):
        return True
    read = {_path_of(part) for part in calls if tool_name(part) == "read_file" and part.get("state") == "output-available"}
    named = set(FILE.findall(text_of(messages[start].parts))) if messages else set[str]()
    return bool(read) and named <= read


def question_of(messages: Sequence[Message]) -> str:
    """Return the user's last message."""
    return text_of(messages[_question_at(messages)].parts) if messages else ""


def _shown(tool: str, question: str, arguments: JsonObject) -> tuple[Line, Line]:
    return Line("user", f"{question}\n{_hint(tool)}"), Line("assistant", _dumps({"tool": tool, "arguments": arguments}))


def _tool_line(tool: ToolDefinition) -> str:
    properties = small_arguments(tool)["properties"]
    names = ", ".join(properties) if isinstance(properties, dict) else ""
    sentence = tool.description.split("\n", 1)[0].split(". ", 1)[0].rstrip(".")
    return f"- {tool.name}({names}): {cut(sentence, 24)}"


def _calls(tool: ToolDefinition) -> list[tuple[str, str]]:
    """Return the tool's examples as question and call: those that need only the arguments this model is offered."""
    properties = small_arguments(tool)["properties"]
    known = properties if isinstance(properties, dict) else {}
    found: list[tuple[str, str]] = []
    for example in tool.examples:
        given = example.get("arguments")
        arguments: JsonObject = {name: value for name, value in given.items() if name in known} if isinstance(given, dict) else {}
        if not found or arguments == given:
            found.append((str(example.get("user", "")), _dumps({"tool": tool.name, "arguments": arguments})))
    return found


def _lines(message: Message, as_json: bool) -> Iterator[Line]:
    if message.role != "assistant":
        text = text_of(message.parts)
        yield Line("user", text if message.role == "user" else f"(Note: {text})")
        return
    for step in split_steps(message):
        if steering := text_of(step.steering):
            yield Line("user", steering)
        for part in step.parts:
            if is_tool(part):
                yield from _call_lines(part, as_json)
            elif part.get("type") == "text" and (text := str(part.get("text", ""))).strip():
                yield Line("assistant", _dumps({"reply": text}) if as_json else text)


def _call_lines(part: Part, as_json: bool) -> Iterator[Line]:
    name = tool_name(part)
    output = output_of(part)
    if as_json:
        yield Line("assistant", _dumps({"tool": name, "arguments": part.get("input")}))
    text = _LINE_NUMBERS.sub("", output.text) if name == "read_file" else output.text
    yield Line("user", f"Output of {name}:\n{'Error: ' if output.error else ''}{text}")


def _pointed(lines: list[Line], question: str, messages: Sequence[Message], names: Sequence[str]) -> list[Line]:
    """Add what to do next to the last line: a small model follows what it read last."""
    if not lines or lines[-1].role != "user":
        return lines
    last = lines[-1].text
    if len(lines) == 1:
        wished = wish_of(question)
        pointed = f"{last}\n{_hint(wished)}" if wished is not None and wished in names else _hinted(last)
    elif any(name in ACTING for name in names):
        before = [] if len(lines) == _ONE_CALL else lines[:-1]  # the request, its call and the output, as one line
        return [*before, Line("user", f"{cut(question, _QUESTION_TOKENS)}\n\n{last}\n\n{_TELL}")]
    elif is_settled(messages) or not (missing := _unread(question, messages)):
        pointed = f"{last}\n\nUsing this output, answer: {cut(question, _QUESTION_TOKENS)}"
    else:
        pointed = f"{last}\n\n{_hint('read_file', missing)}"
    return [*lines[:-1], Line("user", pointed)]


def _question_at(messages: Sequence[Message]) -> int:
    return max((index for index, message in enumerate(messages) if message.role == "user"), default=0)


def _calls_since(messages: Sequence[Message], start: int) -> list[Part]:
    return [part for message in messages[start:] for part in message.parts if is_tool(part)]


def _path_of(part: Part) -> str:
    arguments = part.get("input")
    return str(arguments.get("path", "")) if isinstance(arguments, dict) else ""


def _unread(question: str, messages: Sequence[Message]) -> str:
    """Return the first file that the question names and no call has read; empty if there is none."""
    read = {_path_of(part) for part in _calls_since(messages, 0) if tool_name(part) == "read_file"}
    return next((file for file in FILE.findall(question) if file not in read), "")


def _hinted(question: str) -> str:
    """Return the question with a hint about the file it names."""
    file = FILE.search(question)
    return f"{question}\n{_hint('read_file', file[0])}" if file else question


def _hint(tool: str, file: str = "") -> str:
    return f"(Use {tool} on {file}.)" if file else f"(Use {tool}.)"


def _fitted(lines: list[Line], room: int) -> list[Line]:
    """Truncate the longest lines until all fit."""
    limit = room
    while cost(lines) > room and limit > 1:
        limit = limit * 3 // 4
        lines = [Line(line.role, cut(line.text, limit)) for line in lines]
    return lines if cost(lines) <= room else lines[-1:]


def _cost(line: Line) -> int:
    return tokens(line.text) + _PER_MESSAGE


def _dumps(value: Json) -> str:
    return canonical.dumps(value).decode()
