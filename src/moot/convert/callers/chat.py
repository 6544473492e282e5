"""OpenAI Chat Completions: callers' requests and the answers to them (reference: OpenAI API, create chat completion).

Reasoning is sent in `reasoning_content`, which DeepSeek introduced and most clients of this dialect read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from moot.convert.callers.errors import completion_error
from moot.convert.callers.pieces import Change, Outcome, Piece
from moot.convert.callers.request import CallerRequest, Drafts, Fields, content_of, effort_of, file_part, invalid_field, output_of, tool_of
from moot.types.canonical import Json, JsonObject
from moot.types.message import Part, text_part
from moot.types.model import Effort, ModelSettings
from moot.types.provider import ToolDefinition
from moot.types.usage import Usage

AUDIO = {"mp3": "audio/mpeg", "wav": "audio/wav"}

OBJECT: JsonObject = {"type": "object"}
"""The schema used for the response format `json_object`, which accepts any object."""


def read_chat(body: Json) -> CallerRequest:
    """Parse the body of a request. Raise UsageError for unsupported fields. Hints (seed, penalties, tiers) are ignored."""
    fields = Fields(body)
    if fields.value.get("n") not in (None, 1):
        raise invalid_field("n", "Only 1 is supported.", fix="Make more calls.")
    fields.refuse("functions", "This field is deprecated. Use tools.")
    fields.refuse("logprobs")
    fields.refuse("audio", "Audio is not supported. Answers are text.")
    fields.refuse("web_search_options", "This field is not supported. Use an agent with a web search tool.")
    drafts = Drafts()
    for message in fields.objects("messages"):
        _message(drafts, message)
    if not fields.items("messages"):
        raise invalid_field("messages", "Expected at least one message.")
    limit = fields.count("max_completion_tokens") or fields.count("max_tokens")
    settings = read_settings(fields, effort_of(fields, "reasoning_effort"), limit, fields.fields("response_format"), nested=True)
    usage = fields.fields("stream_options").flag("include_usage")
    return drafts.request(fields, lambda tool: read_function(tool, nested=True), settings, stream_usage=usage)


def read_settings(fields: Fields, effort: Effort | None, max_tokens: int | None, form: Fields, *, nested: bool) -> ModelSettings:
    """Return the model settings of a request.

    Chat Completions are `nested`: names and schemas are one level deeper than in the Responses API.
    """
    return ModelSettings(
        temperature=fields.number("temperature", 0, 2),
        max_tokens=max_tokens,
        top_p=fields.number("top_p", 0, 1),
        stop=fields.texts("stop") if nested else (),
        effort=effort,
        schema=cast("dict[str, object] | None", _schema(form, nested=nested)),
        tool_choice=_choice(fields, nested=nested),
        parallel_calls=fields.flag("parallel_tool_calls", True),
    )


def _schema(form: Fields, *, nested: bool) -> JsonObject | None:
    match form.one_of("type", ("text", "json_object", "json_schema")):
        case "json_schema":
            form = form.fields("json_schema") if nested else form
            return Fields(form.value.get("schema"), form.path("schema")).value
        case "json_object":
            return OBJECT
        case _:
            return None


def _choice(fields: Fields, *, nested: bool) -> str:
    if not isinstance(fields.value.get("tool_choice"), dict):
        word = fields.one_of("tool_choice", ("auto", "none", "required"))
        return "" if word == "auto" else word
    chosen = fields.fields("tool_choice")
    if chosen.text("type") != "function":
        raise invalid_field(chosen.path("type"), "Only 'function' is supported.")
    return f"={(chosen.fields('function') if nested else chosen).needed('name')}"


def read_function(tool: Fields, *, nested: bool) -> ToolDefinition:
    """Return the definition of a caller's tool. See `read_settings` for `nested`."""
    if tool.text("type", "function") != "function":
        raise invalid_field(tool.path("type"), f"Tool type {tool.text('type')!r} is not supported. Use 'function'.")
    return tool_of(tool.fields("function") if nested else tool, "parameters")


def _message(drafts: Drafts, message: Fields) -> None:
    match message.needed("role"):
        case "system" | "developer":
            drafts.instruct(_text(message))
        case "user":
            drafts.say(content_of(message, "content", _piece))
        case "assistant":
            _assistant(drafts, message)
        case "tool":
            output = output_of(content_of(message, "content", _piece))
            drafts.output(message.needed("tool_call_id"), output, message.path("tool_call_id"))
        case other:
            raise invalid_field(message.path("role"), f"{other!r} is not one of system, developer, user, assistant, tool.")


def _assistant(drafts: Drafts, message: Fields) -> None:
    message.refuse("function_call", "This field is deprecated. Use tool_calls.")
    reasoning, text = message.text("reasoning_content"), _text(message)
    parts: list[Part] = [{"type": "reasoning", "text": reasoning, "state": "done"}] if reasoning else []
    drafts.answer([*parts, text_part(text)] if text else parts)
    for call in message.objects("tool_calls"):
        if call.text("type", "function") != "function":
            raise invalid_field(call.path("type"), "Only 'function' is supported.")
        function = call.fields("function")
        drafts.call(call.needed("id"), function.needed("name"), function.text("arguments"), function.path("name"))


def _text(message: Fields) -> str:
    """Return the text of a message, whose content is a string or a list of texts."""
    if not isinstance(message.value.get("content"), list):
        return message.text("content")
    texts: list[str] = []
    for piece in message.objects("content"):
        kind = piece.needed("type")
        if kind not in ("text", "refusal"):
            raise invalid_field(piece.path("type"), f"{kind!r} is not allowed here. Use text.")
        texts.append(piece.text(kind))
    return "".join(texts)


def _piece(piece: Fields) -> Part:
    match piece.needed("type"):
        case "text":
            return text_part(piece.text("text"))
        case "image_url":
            image = piece.fields("image_url")
            detail = image.one_of("detail", ("auto", "low", "high"))
            url = image.needed("url")
            kind = "" if url.startswith("data:") else "image/*"
            return file_part(url, image.path("url"), media_type=kind, detail=detail)
        case "input_audio":
            audio = piece.fields("input_audio")
            kind = AUDIO[audio.one_of("format", tuple(AUDIO), "wav")]
            return file_part(f"data:{kind};base64,{audio.needed('data')}", audio.path("data"))
        case "file":
            file = piece.fields("file")
            file.refuse("file_id", "Stored files are not supported. Send file_data.")
            return file_part(file.needed("file_data"), file.path("file_data"), name=file.text("filename"))
        case other:
            raise invalid_field(piece.path("type"), f"{other!r} is not one of text, image_url, input_audio, file.")


_REASONS = {"length": "length", "content-filter": "content_filter"}


class ChatAnswer:
    """Writer for a streamed answer. The methods return the data of the next frames, which have no event names in this dialect."""

    def __init__(self, id: str, model: str, created: int, *, usage: bool = False) -> None:
        self._head: JsonObject = {"id": f"chatcmpl-{id}", "object": "chat.completion.chunk", "created": created, "model": model}
        self._usage = usage
        self._calls: dict[int, int] = {}

    def begin(self) -> list[JsonObject]:
        return [self._chunk({"role": "assistant", "content": ""})]

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]:
        return [self._chunk(delta) for change in changes if (delta := self._delta(change))]

    def end(self, outcome: Outcome) -> list[JsonObject]:
        """Return the frames before `[DONE]`, or only the error for a failed run."""
        if outcome.error is not None:
            return [completion_error(outcome.error)]
        frames = [self._chunk({}, _reason(outcome, calls=bool(self._calls)))]
        if self._usage:
            frames.append({**self._head, "choices": [], "usage": _usage(outcome.usage)})
        return frames

    def _chunk(self, delta: JsonObject, reason: str | None = None) -> JsonObject:
        return {**self._head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

    def _delta(self, change: Change) -> JsonObject:
        piece = change.piece
        if piece.kind != "call":
            return {"content" if piece.kind == "text" else "reasoning_content": change.text} if change.what == "add" else {}
        at = self._calls.setdefault(change.at, len(self._calls))
        match change.what:
            case "open":
                return {"tool_calls": [{"index": at, **_call(piece, "")}]}
            case "add":
                return {"tool_calls": [{"index": at, "function": {"arguments": change.text}}]}
            case "close":
                return {}


def chat_completion(id: str, model: str, created: int, pieces: Sequence[Piece], outcome: Outcome) -> JsonObject:
    """Return the complete answer of a successful run."""
    text = "".join(piece.text for piece in pieces if piece.kind == "text")
    reasoning = "".join(piece.text for piece in pieces if piece.kind == "reasoning")
    calls: list[Json] = [_call(piece, piece.text) for piece in pieces if piece.kind == "call"]
    message: JsonObject = {"role": "assistant", "content": text or (None if calls else ""), "refusal": None}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    reason = _reason(outcome, calls=bool(calls))
    return {
        "id": f"chatcmpl-{id}",
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": _usage(outcome.usage),
    }


def _call(piece: Piece, arguments: str) -> JsonObject:
    return {"id": piece.id, "type": "function", "function": {"name": piece.name, "arguments": arguments}}


def _reason(outcome: Outcome, *, calls: bool) -> str:
    return _REASONS.get(outcome.reason) or ("tool_calls" if calls else "stop")


def _usage(usage: Usage) -> JsonObject | None:
    if usage.input is None and usage.output is None:
        return None
    sent, made = usage.input or 0, usage.output or 0
    return {
        "prompt_tokens": sent,
        "completion_tokens": made,
        "total_tokens": sent + made,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read or 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }
