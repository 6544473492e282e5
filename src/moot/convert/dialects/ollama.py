"""Ollama's native chat API: request bodies, and conversion of JSON lines to chunks (reference: Ollama API, generate a chat completion).

A call arrives complete, with its arguments as an object and usually without an id. The last line has `done`, token counts and durations.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from moot.convert.dialects import parts as _files
from moot.convert.dialects.openai_chat import function_tool
from moot.convert.dialects.parts import arguments_of, made_here, output_of, text_of_step, texts_and_files, vendor_id, wire_ids
from moot.convert.dialects.stream import StreamTranslator, Turn, event_of, start_of_body
from moot.convert.history import Step, split_steps
from moot.convert.vendor import as_list, as_object, as_text, count
from moot.convert.writer import Parts
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending
from moot.types.message import Message, Part, text_part, tool_name
from moot.types.model import Model
from moot.types.provider import ModelPrompt
from moot.types.usage import Usage

METADATA = "ollama"

_REASONS = {"stop": "stop", "length": "length"}
_NANOSECONDS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
_PICTURES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "UklGR": "image/webp", "R0lGO": "image/gif"}
"""Image types, recognized by the start of the base64 data, because the API does not send the type."""


class State(NamedTuple):
    parts: Parts
    provider: str = ""
    facts: JsonObject | None = None
    """Facts about the answer; None before its first line."""
    reason: str = ""
    done: bool = False
    totals: JsonObject | None = None
    """Token counts and durations from the last line."""
    error: JsonObject | None = None
    unreadable: int = 0
    body: str = ""
    """The start of a body that was sent instead of an answer; empty if there is none."""


class _Turn(Turn[State]):
    metadata = METADATA

    def take(self, event: JsonObject, name: str) -> None:
        if self._state.facts is None:
            self._state = self._state._replace(facts={"model": as_text(event.get("model")) or None})
        if event.get("error"):
            self.fail(event["error"])
        message = as_object(event.get("message"))
        if thinking := as_text(message.get("thinking")):
            self.writer.say("reasoning", thinking, self.made_by({}) if self._state.provider else None)
        if text := as_text(message.get("content")):
            self.writer.say("text", text)
        for image in as_list(message.get("images")):
            if not (data := as_text(image)):
                continue
            self.writer.end()
            media_type = next((kind for start, kind in _PICTURES.items() if data.startswith(start)), "image/png")
            self.writer.chunks.append({"type": "file", "url": f"data:{media_type};base64,{data}", "mediaType": media_type})
        for call in as_list(message.get("tool_calls")):
            self._call(as_object(call))
        if event.get("done") is True:
            self._done(event)

    def _call(self, call: JsonObject) -> None:
        function = as_object(call.get("function"))
        name = as_text(function.get("name"))
        if not function:
            return
        made = self.writer.call(len(self.writer.parts.calls), as_text(call.get("id")), name)
        arguments = function.get("arguments")
        self.writer.give(made, arguments if isinstance(arguments, str) else canonical.dumps(as_object(arguments)).decode())

    def _done(self, line: JsonObject) -> None:
        self.writer.close(cut=False)
        names = ("prompt_eval_count", "eval_count", *_NANOSECONDS)
        totals: JsonObject = {name: line[name] for name in names if line.get(name) is not None}
        reason = as_text(line.get("done_reason"))
        self._state = self._state._replace(done=True, reason=self._state.reason or reason, totals=totals or self._state.totals)


class OllamaStream(StreamTranslator[State]):
    name = "ollama"
    _begin = State
    _turn = _Turn
    _input = (b'"arguments"', re.compile(rb'"arguments"\s*:\s*\{'))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        # nearly all lines append to the open text and leave the state unchanged
        if state.parts.kind == "text" and raw.startswith(b'{"model"'):
            try:
                line = orjson.loads(raw)
                message = line["message"]
                text = message["content"]
                if text.__class__ is str and text and len(message) == 2 and line["done"] is False and "error" not in line:
                    return state, ({"type": "text-delta", "id": state.parts.id, "delta": text},)
            except (ValueError, LookupError, TypeError):
                pass
        return self._feed_line(state, raw)

    def _feed_line(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        text = raw.removeprefix(b"\xef\xbb\xbf").strip()
        if not text:
            return state, ()
        line = event_of(text, *self._input)
        if line is not None:
            turn = _Turn(state)
            turn.take(line, "")
            return turn.state, tuple(turn.writer.chunks)
        if raw[-1:] != b"\n" and (state.facts is not None or text[:1] == b"{"):
            return state, ()  # ignore a truncated last line
        body = state.body if state.facts is not None else start_of_body(state, raw)
        return state._replace(unreadable=state.unreadable + 1, body=body), ()

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        totals = state.totals or {}
        times: JsonObject = {name: totals[name] for name in _NANOSECONDS if count(totals.get(name)) is not None}
        reason = _REASONS.get(state.reason, "other") if state.reason else "stop" if state.done else "other"
        return _Turn(state).close(
            ended,
            whole=state.done,
            reason="tool-calls" if reason == "stop" and state.parts.calls else reason,
            raw_reason=state.reason,
            usage=Usage(count(totals.get("prompt_eval_count")), count(totals.get("eval_count"))),
            facts={METADATA: times} if times else None,
        )


class OllamaChat:
    """The dialect of Ollama's native `/api/chat`, whose requests contain the size of the context."""

    name = "ollama"

    @property
    def translator(self) -> OllamaStream:
        return OllamaStream()

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the body of a streaming request.
        It contains `num_ctx`, because otherwise servers silently truncate the history to a few thousand tokens.
        """
        settings, model = prompt.settings, prompt.model
        body: JsonObject = {"model": model.wire_name, "messages": _messages(prompt), "stream": True}
        if prompt.tools and model.tools == "native" and settings.tool_choice != "none":
            body["tools"] = [function_tool(tool) for tool in prompt.tools]
        if model.reasoning and settings.effort is not None:
            # only gpt-oss has levels, and it can't turn thinking off; all others take a boolean
            level = {"none": "low", "max": "high"}.get(settings.effort, settings.effort)
            body["think"] = level if "gpt-oss" in model.wire_name.lower() else settings.effort != "none"
        if settings.schema is not None:
            body["format"] = canonical.loads(canonical.dumps(settings.schema))
        options: JsonObject = {
            "num_ctx": model.context,
            "num_predict": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "stop": list[Json](settings.stop) or None,
        }
        given: JsonObject = {name: value for name, value in options.items() if value is not None}
        if given:
            body["options"] = given
        return body | prompt.quirks.extra


def _messages(prompt: ModelPrompt) -> list[Json]:
    messages: list[Json] = []
    if prompt.system:
        messages.append({"role": "system", "content": prompt.system})
    for message in prompt.messages:
        if message.role == "assistant":
            for step in split_steps(message):
                messages += _step(step, message, prompt)
        else:
            _add(messages, "user" if message.role == "user" else "system", message.parts, prompt.model)
    return messages


def _add(messages: list[Json], role: str, parts: tuple[Part, ...], model: Model) -> None:
    """Append a message unless it is empty. Its texts are joined to one string, and its images become a list of base64 data."""
    texts: list[str] = []
    images: list[Json] = []
    for part in texts_and_files(parts):
        file = _files.parse_file(part) if part["type"] == "file" else None
        if file is None:
            texts.append(str(part["text"]))
        elif file.kind == "image" and file.base64 and _files.is_accepted(file, model):
            images.append(file.base64)
        else:
            texts.append(_files.text_of_file(file))
    if texts or images:
        messages.append({"role": role, "content": "\n\n".join(texts), **({"images": images} if images else {})})


def _step(step: Step, message: Message, prompt: ModelPrompt) -> list[Json]:
    """Return the messages of a step: steering messages, the assistant's message, each call's output in order, and the images of outputs."""
    messages: list[Json] = []
    _add(messages, "user", step.steering, prompt.model)
    calls, provider = step.calls, prompt.model.id.provider
    text = text_of_step(step)
    assistant: JsonObject = {"role": "assistant", "content": text}
    # send reasoning back only to the provider that made it; some models continue it between calls
    own = (part for part in step.parts if part.get("type") == "reasoning" and made_here(part, METADATA, message, provider) is not None)
    if thinking := "".join(str(part.get("text", "")) for part in own):
        assistant["thinking"] = thinking
    ids = wire_ids(calls)
    if calls:
        assistant["tool_calls"] = [_call(call, id) for call, id in zip(calls, ids, strict=True)]
    if text or calls:
        messages.append(assistant)
    pictures: list[Part] = []
    for call, id in zip(calls, ids, strict=True):
        output = output_of(call)
        messages.append(
            {
                "role": "tool",
                "content": output.text,
                "tool_name": tool_name(call),
                **({"tool_call_id": id} if vendor_id(call) is not None else {}),
            }
        )
        if output.files:
            pictures += [text_part(f"Files that {tool_name(call)} gave:"), *output.files]
    _add(messages, "user", tuple(pictures), prompt.model)
    return messages


def _call(call: Part, id: str) -> JsonObject:
    sent: JsonObject = {"function": {"name": tool_name(call), "arguments": arguments_of(call)}}
    return {"id": id, **sent} if vendor_id(call) is not None else sent
