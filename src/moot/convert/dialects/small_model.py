"""The openai-chat dialect for very small models. They call tools by structured output, because servers can't parse their tool calls.

The request asks for one JSON object (`response_format: json_schema`): `{"tool", "arguments"}` with one alternative for each tool, or
`{"reply"}`. The translator parses that object while it streams, and emits the chunks of a normal tool call or of text.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from moot.convert.dialects.openai_chat import OpenAIChat
from moot.convert.dialects.openai_chat_stream import OpenAIStream
from moot.convert.dialects.openai_chat_stream import State as Inner
from moot.convert.dialects.small_model_prompt import (
    ACTION_TOOLS,
    HISTORY_TOKENS,
    answer_schema,
    cost,
    examples,
    history,
    is_settled,
    question_of,
    requested_tool,
    step_prompt,
    system_prompt,
)
from moot.convert.dialects.small_model_steps import CHOOSE, call_schema, next_step
from moot.convert.writer import Parts, Writer, begin
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.provider import ModelPrompt, ToolDefinition

Mode: TypeAlias = Literal["start", "reply", "input", "plain", "after"]
"""`start`: not known yet. `reply`: inside the reply's string. `input`: inside the arguments.
`plain`: not the requested JSON. `after`: complete.
"""

_LONGEST_START = 400
_REPLY = re.compile(r'\s*\{\s*"reply"\s*:\s*"')
_TOOL = re.compile(r'\s*\{\s*"tool"\s*:\s*"([A-Za-z0-9_.-]*)"\s*,\s*"arguments"\s*:\s*(?=\{)')
_LITERALS = (("{", '"reply"', ":", '"'), ("{", '"tool"', ":", '"', "", '"', ",", '"arguments"', ":", "{"))
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_STRING_END = re.compile(r'["\\]')
_INPUT_MARK = re.compile(r'["\\{}\[\]]')


class Scan(NamedTuple):
    """State of the parser. It can be serialized as JSON."""

    mode: Mode = "start"
    held: str = ""
    """Buffered input: the start of the object, an incomplete escape, or a surrogate without its second half."""
    depth: int = 0
    quoted: bool = False
    escaped: bool = False


class Found(NamedTuple):
    """The result of parsing a piece of text."""

    text: str = ""
    """Text of the answer."""
    tool: str = ""
    """The name of the called tool, reported once; otherwise empty."""
    input: str = ""
    """A piece of the arguments' JSON."""
    done: bool = False
    """True if the reply or the arguments are complete."""


def feed(scan: Scan, text: str) -> tuple[Scan, Found]:
    """Return the next state, and the result of parsing this piece of text. Results don't depend on how a text is split."""
    match scan.mode:
        case "start":
            return _start(scan.held + text)
        case "reply":
            return _reply(scan, text)
        case "input":
            return _input(scan, text)
        case "plain" | "after":
            return scan, Found(text if scan.mode == "plain" else "")


def rest(scan: Scan) -> str:
    """Return the text that is still buffered at the end of the answer: the start of something else, or an incomplete escape."""
    if scan.mode == "reply":
        return "\ufffd" if scan.held else ""
    return scan.held


def _start(text: str) -> tuple[Scan, Found]:
    if (match := _REPLY.match(text)) and match.end() <= _LONGEST_START:
        return _reply(Scan("reply"), text[match.end() :])
    if (match := _TOOL.match(text)) and match.end() <= _LONGEST_START:
        scan, found = _input(Scan("input"), text[match.end() :])
        return scan, found._replace(tool=match[1] or "unknown")
    if len(text) <= _LONGEST_START and any(_may_become(text, literals) for literals in _LITERALS):
        return Scan("start", text), Found()
    return Scan("plain"), Found(text)


def _may_become(text: str, literals: tuple[str, ...]) -> bool:
    """Return True if the text can be the start of these literals with white space between them. An empty literal stands for any name."""
    inside = False
    for literal in literals:
        text = text if inside else text.lstrip()
        if not text:
            return True
        if not literal:
            text = text.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
            inside = True
            continue
        inside = False
        if not text.startswith(literal):
            return literal.startswith(text)
        text = text[len(literal) :]
    return True


def _reply(scan: Scan, text: str) -> tuple[Scan, Found]:
    """Decode a JSON string as it arrives. Incomplete escapes are buffered."""
    text = scan.held + text
    out: list[str] = []
    position = 0
    while match := _STRING_END.search(text, position):
        out.append(text[position : match.start()])
        position = match.start()
        if match[0] == '"':
            return Scan("after"), Found("".join(out), done=True)
        escape = _escape(text, position)
        if escape is None:
            return Scan("reply", text[position:]), Found("".join(out))
        out.append(escape[0])
        position = escape[1]
    return Scan("reply"), Found("".join([*out, text[position:]]))


def _escape(text: str, at: int) -> tuple[str, int] | None:
    """Return the character of the escape at this position and the position after the escape, or None if the escape is incomplete."""
    if at + 1 >= len(text):
        return None
    if text[at + 1] != "u":
        return _ESCAPES.get(text[at + 1], "\ufffd"), at + 2
    unit = _unit(text, at)
    if unit is None:
        return None
    if unit < 0:
        return "\ufffd", at + 2
    if not 0xD800 <= unit < 0xDC00:
        return "\ufffd" if 0xDC00 <= unit < 0xE000 else chr(unit), at + 6
    if not "\\u".startswith(text[at + 6 : at + 8]):
        return "\ufffd", at + 6
    second = _unit(text, at + 6)
    if second is None:
        return None
    if 0xDC00 <= second < 0xE000:
        return chr(0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00)), at + 12
    return "\ufffd", at + 6


def _unit(text: str, at: int) -> int | None:
    """Return the code unit of a `\\uXXXX` escape, -1 if the escape is invalid, or None if it is incomplete."""
    digits = text[at + 2 : at + 6]
    if re.fullmatch(r"[0-9a-fA-F]*", digits) is None:
        return -1
    return int(digits, 16) if len(digits) == 4 else None


def _input(scan: Scan, text: str) -> tuple[Scan, Found]:
    """Return the text of the arguments object, up to its closing brace."""
    depth, quoted, escaped = scan.depth, scan.quoted, scan.escaped
    position = 0
    if escaped and text:
        position, escaped = 1, False
    while match := _INPUT_MARK.search(text, position):
        position = match.end()
        mark = match[0]
        if quoted:
            if mark == '"':
                quoted = False
            elif mark == "\\":
                escaped = position >= len(text)
                position += 1
        elif mark == '"':
            quoted = True
        elif mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth <= 0:
                return Scan("after"), Found(input=text[:position], done=True)
    return Scan("input", "", depth, quoted, escaped), Found(input=text)


TOOLS = ("read_file", "list_files", "search_files", "find_files", "ask_user")
"""Tools offered to such a model, in order. Tools with side effects are offered only if the user clearly asks (`requested_tool`)."""
TEMPERATURE = 0.0
OUTPUT_TOKENS = 600
"""Maximum number of output tokens, enough for the longest reply that the schema allows."""
_INNER = OpenAIStream()


class OpenAISchema:
    """The dialect of the embedded model."""

    name = "openai-chat-schema"

    @property
    def translator(self) -> SchemaStream:
        return SchemaStream()

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the body: a short system prompt, examples, the end of the conversation, and the schema of the answer.

        Without tools, or if the caller sets a schema, the request is a plain chat within the same limits. If only an answer is needed (see
        `is_settled`), the schema allows only a reply, so that every prompt is answered.
        """
        tools = () if prompt.settings.schema is not None else _offered(prompt.tools, question_of(prompt.messages))
        settings = dataclasses.replace(
            prompt.settings,
            temperature=TEMPERATURE if prompt.settings.temperature is None else prompt.settings.temperature,
            max_tokens=min(prompt.settings.max_tokens or OUTPUT_TOKENS, OUTPUT_TOKENS),
            effort=None,
        )
        body = OpenAIChat().to_request(dataclasses.replace(prompt, system="", messages=(), tools=(), settings=settings))
        body["chat_template_kwargs"] = {"enable_thinking": False}  # reasoning would use up the output tokens; other templates ignore it
        step = next_step(prompt.messages, [tool.name for tool in tools]) if tools and tools[0].name not in ACTION_TOOLS else CHOOSE
        if step.kind != "choose":
            system, lines = step_prompt(prompt.system, prompt.messages, step, room=HISTORY_TOKENS)
            body["messages"] = [{"role": "system", "content": system}, *({"role": line.role, "content": line.text} for line in lines)]
            return body | (_format(call_schema(step)) if step.kind == "call" else {})
        system = system_prompt(prompt.system, tools)
        shown = examples(tools, settled=is_settled(prompt.messages))
        lines = [*shown, *history(prompt.messages, tools, room=HISTORY_TOKENS - cost(shown))]
        first: list[Json] = [{"role": "system", "content": system}] if system else []
        body["messages"] = [*first, *({"role": line.role, "content": line.text} for line in lines)]
        if tools:
            offered: Sequence[ToolDefinition] = () if is_settled(prompt.messages) else tools
            body |= _format(answer_schema(offered))
        return body


def _format(schema: JsonObject) -> JsonObject:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}}


def _offered(tools: Sequence[ToolDefinition], question: str) -> tuple[ToolDefinition, ...]:
    wished = requested_tool(question)
    if wished is not None and (found := [tool for tool in tools if tool.name == wished]):
        return tuple(found)
    return tuple(tool for name in TOOLS for tool in tools if tool.name == name)


class State(NamedTuple):
    """The state of the openai-chat translator and of this one. It can be serialized as JSON."""

    inner: Inner
    parts: Parts
    scan: Scan = Scan()


class SchemaStream:
    name = "openai-chat-schema"
    version = 1

    def open(self, options: ExchangeOptions) -> State:
        ours = dataclasses.replace(options, prefix=f"{options.prefix}.s")  # the openai-chat translator numbers its parts separately
        return State(_INNER.open(options), begin(ours))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        inner, chunks = _INNER.feed(state.inner, raw)
        reading = _Reading(state.parts, state.scan)
        reading.take(chunks)
        return State(inner, reading.writer.parts, reading.scan), tuple(reading.writer.chunks)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        chunks, ending = _INNER.close(state.inner, ended)
        reading = _Reading(state.parts, state.scan)
        reading.take(chunks)
        reading.end()
        if ending.finish_reason == "stop" and reading.writer.parts.calls:
            ending = dataclasses.replace(ending, finish_reason="tool-calls")
        return tuple(reading.writer.chunks), ending


class _Reading:
    """Handler of the openai-chat translator's chunks for one raw event."""

    def __init__(self, parts: Parts, scan: Scan) -> None:
        self.writer = Writer(parts)
        self.scan = scan

    def take(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            match chunk.get("type"):
                case "text-start":
                    self.scan = Scan()
                case "text-delta":
                    self._text(str(chunk.get("delta", "")))
                case "text-end":
                    self.end()
                case _:
                    self.writer.chunks.append(chunk)

    def end(self) -> None:
        """End the text. Emit buffered text, and an error for an incomplete call."""
        if buffer := rest(self.scan):
            self.writer.say("text", buffer)
        self.writer.close(cut=True)
        self.scan = Scan()

    def _text(self, text: str) -> None:
        self.scan, found = feed(self.scan, text)
        if found.text:
            self.writer.say("text", found.text)
        if found.tool:
            self.writer.call(len(self.writer.parts.calls), "", found.tool)
        if found.input:
            call = self.writer.arguments(self.writer.parts.calls[-1], found.input)
            if found.done:
                self.writer.finish(call)
