"""Requests for OpenAI chat completions (reference: OpenAI API, create chat completion)."""

from __future__ import annotations

from typing import cast

from moot.convert.callers.asked import Asked
from moot.convert.callers.drafts import EFFORTS, Drafts, file_part, tool_name_of
from moot.convert.callers.fields import Fields, unfit
from moot.types.canonical import Json, JsonObject
from moot.types.model import Effort, ModelSettings
from moot.types.part import Part, text_part
from moot.types.provider import ToolDefinition

AUDIO = {"mp3": "audio/mpeg", "wav": "audio/wav"}

OBJECT: JsonObject = {"type": "object"}
"""The schema for `json_object`: any object."""


def read_chat(body: Json) -> Asked:
    """Parse the body. Raise UsageError for unsupported fields; hints (seed, penalties, tiers) are ignored."""
    fields = Fields(body)
    _refuse(fields)
    drafts = Drafts()
    for message in fields.objects("messages"):
        _message(drafts, message)
    if not fields.items("messages"):
        raise unfit("messages", "expected at least one message")
    return Asked(
        model=fields.needed("model"),
        messages=drafts.messages(),
        system=drafts.system,
        tools=tuple(_tool(tool) for tool in fields.objects("tools")),
        settings=_settings(fields),
        stream=fields.flag("stream"),
        stream_usage=fields.fields("stream_options").flag("include_usage"),
    )


def _refuse(fields: Fields) -> None:
    if fields.value.get("n") not in (None, 1):
        raise unfit("n", "only 1 is supported", fix="make more calls")
    fields.refuse("functions", "is deprecated and not supported; use tools")
    fields.refuse("logprobs", "is not supported")
    fields.refuse("audio", "is not supported; answers are text")
    fields.refuse("web_search_options", "is not supported; use an agent with a web search tool")


def _settings(fields: Fields) -> ModelSettings:
    effort = fields.one_of("reasoning_effort", tuple(EFFORTS))
    return ModelSettings(
        temperature=fields.number("temperature", 0, 2),
        max_tokens=fields.count("max_completion_tokens") or fields.count("max_tokens"),
        top_p=fields.number("top_p", 0, 1),
        stop=fields.texts("stop"),
        effort=cast("Effort", EFFORTS[effort]) if effort else None,
        schema=cast("dict[str, object] | None", schema_of(fields.fields("response_format"), nested=True)),
        tool_choice=_choice(fields),
        parallel_calls=fields.flag("parallel_tool_calls", True),
    )


def schema_of(form: Fields, *, nested: bool) -> JsonObject | None:
    """Return the JSON Schema that the answer must match. Chat completions nest it one level deeper than responses."""
    match form.one_of("type", ("text", "json_object", "json_schema")):
        case "json_schema":
            form = form.fields("json_schema") if nested else form
            return Fields(form.value.get("schema"), form.path("schema")).value
        case "json_object":
            return OBJECT
        case _:
            return None


def _choice(fields: Fields) -> str:
    choice = fields.value.get("tool_choice")
    if not isinstance(choice, dict):
        word = fields.one_of("tool_choice", ("auto", "none", "required"))
        return "" if word == "auto" else word
    chosen = fields.fields("tool_choice")
    if chosen.text("type") != "function":
        raise unfit(chosen.path("type"), "only 'function' is supported")
    return f"={chosen.fields('function').needed('name')}"


def _tool(tool: Fields) -> ToolDefinition:
    if tool.text("type", "function") != "function":
        raise unfit(tool.path("type"), f"tool type {tool.text('type')!r} is not supported; use 'function'")
    function = tool.fields("function")
    name = tool_name_of(function.needed("name"), function.path("name"))
    schema = function.fields("parameters").value or {"type": "object", "properties": {}}
    return ToolDefinition(name, function.text("description"), schema)


def _message(drafts: Drafts, message: Fields) -> None:
    match message.needed("role"):
        case "system" | "developer":
            drafts.instruct(_text(message))
        case "user":
            drafts.say(_content(message))
        case "assistant":
            _assistant(drafts, message)
        case "tool":
            drafts.output(message.needed("tool_call_id"), _output(message), message.path("tool_call_id"))
        case other:
            raise unfit(message.path("role"), f"{other!r} is not one of system, developer, user, assistant, tool")


def _assistant(drafts: Drafts, message: Fields) -> None:
    message.refuse("function_call", "is deprecated and not supported; use tool_calls")
    reasoning, text = message.text("reasoning_content"), _text(message)
    parts: list[Part] = [{"type": "reasoning", "text": reasoning, "state": "done"}] if reasoning else []
    drafts.answer([*parts, text_part(text)] if text else parts)
    for call in message.objects("tool_calls"):
        if call.text("type", "function") != "function":
            raise unfit(call.path("type"), "only 'function' is supported")
        function = call.fields("function")
        drafts.call(call.needed("id"), function.needed("name"), function.text("arguments"), function.path("name"))


def _text(message: Fields) -> str:
    """Return the text of a message, given whole or in pieces."""
    if not isinstance(message.value.get("content"), list):
        return message.text("content")
    texts: list[str] = []
    for piece in message.objects("content"):
        kind = piece.needed("type")
        if kind not in ("text", "refusal"):
            raise unfit(piece.path("type"), f"{kind!r} is not allowed here; only text")
        texts.append(piece.text(kind))
    return "".join(texts)


def _content(message: Fields) -> list[Part]:
    if not isinstance(message.value.get("content"), list):
        text = message.text("content")
        return [text_part(text)] if text else []
    return [_piece(piece) for piece in message.objects("content")]


def _output(message: Fields) -> Json:
    if not isinstance(message.value.get("content"), list):
        return message.text("content")
    parts = _content(message)
    if all(part["type"] == "text" for part in parts):
        return "".join(str(part["text"]) for part in parts)
    return {"type": "content", "value": [*parts]}


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
            file.refuse("file_id", "stored files are not supported; send file_data")
            return file_part(file.needed("file_data"), file.path("file_data"), name=file.text("filename"))
        case other:
            raise unfit(piece.path("type"), f"{other!r} is not one of text, image_url, input_audio, file")
