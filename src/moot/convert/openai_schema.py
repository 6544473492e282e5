"""The openai-chat wire format for very small models: tools are called by structured output, because servers don't parse their tool calls.

The request asks for one JSON object (`response_format: json_schema`): one alternative for each tool, `{"tool", "arguments"}`, plus
`{"reply"}`. The translator parses that object while it streams, and emits the chunks of a native tool call or text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from moot.convert import schema_scan
from moot.convert._writer import Parts, Writer, begin
from moot.convert.openai_chat import OpenAIChat
from moot.convert.openai_stream import OpenAIStream
from moot.convert.openai_stream import State as Inner
from moot.convert.schema_arguments import answer_schema
from moot.convert.schema_prompt import HISTORY_TOKENS, cost, examples, history, is_settled, question_of, system_prompt
from moot.convert.schema_scan import Scan
from moot.convert.schema_wishes import wish_of
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.provider import ModelPrompt, ToolDefinition

TOOLS = ("read_file", "list_files", "search_files", "find_files", "ask_user")
"""Tools offered to such a model, in order: none with side effects, unless the user clearly asks for one (`schema_wishes`)."""
TEMPERATURE = 0.3
OUTPUT_TOKENS = 600
"""Enough for the longest reply that the schema allows."""
_INNER = OpenAIStream()


class OpenAISchema:
    """The dialect of the embedded model."""

    name = "openai-chat-schema"

    @property
    def translator(self) -> SchemaStream:
        return SchemaStream()

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the body: a short system prompt, examples, the end of the conversation, and the schema of the answer.

        Without tools, or if the caller asks for a schema of its own, it is plain chat within the same limits. Once the question is settled
        (see `is_settled`), the reply is the only alternative, so that every prompt gets an answer.
        """
        tools = () if prompt.settings.schema is not None else _offered(prompt.tools, question_of(prompt.messages))
        settings = dataclasses.replace(
            prompt.settings,
            temperature=TEMPERATURE if prompt.settings.temperature is None else prompt.settings.temperature,
            max_tokens=min(prompt.settings.max_tokens or OUTPUT_TOKENS, OUTPUT_TOKENS),
            effort=None,
        )
        body = OpenAIChat().to_request(dataclasses.replace(prompt, system="", messages=(), tools=(), settings=settings))
        body["messages"] = _messages(prompt, tools)
        if tools:
            offered: Sequence[ToolDefinition] = () if is_settled(prompt.messages) else tools
            schema = answer_schema(offered)
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
        return body


def _offered(tools: Sequence[ToolDefinition], question: str) -> tuple[ToolDefinition, ...]:
    wished = wish_of(question)
    if wished is not None and (found := [tool for tool in tools if tool.name == wished]):
        return tuple(found)
    return tuple(tool for name in TOOLS for tool in tools if tool.name == name)


def _messages(prompt: ModelPrompt, tools: Sequence[ToolDefinition]) -> list[Json]:
    system = system_prompt(prompt.system, tools)
    first: list[Json] = [{"role": "system", "content": system}] if system else []
    shown = examples(tools, settled=is_settled(prompt.messages))
    lines = [*shown, *history(prompt.messages, tools, room=HISTORY_TOKENS - cost(shown))]
    return [*first, *({"role": line.role, "content": line.text} for line in lines)]


class State(NamedTuple):
    """The inner dialect's state and this one's; JSON-serializable."""

    inner: Inner
    parts: Parts
    scan: Scan = Scan()


class SchemaStream:
    name = "openai-chat-schema"
    version = 1

    def open(self, options: ExchangeOptions) -> State:
        ours = dataclasses.replace(options, prefix=f"{options.prefix}.s")  # the inner dialect numbers its own parts
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
    """Handler of the inner dialect's chunks for one raw event."""

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
        """End the text: emit what is buffered, or an error for an incomplete call."""
        if buffer := schema_scan.rest(self.scan):
            self.writer.say("text", buffer)
        self.writer.close(cut=True)
        self.scan = Scan()

    def _text(self, text: str) -> None:
        self.scan, found = schema_scan.feed(self.scan, text)
        if found.text:
            self.writer.say("text", found.text)
        if found.tool:
            self.writer.call(len(self.writer.parts.calls), "", found.tool)
        if found.input:
            call = self.writer.arguments(self.writer.parts.calls[-1], found.input)
            if found.done:
                self.writer.finish(call)
