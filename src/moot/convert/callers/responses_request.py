"""Requests for OpenAI responses (reference: OpenAI API, create a model response)."""

from __future__ import annotations

from typing import cast

from moot.convert.callers.asked import Asked
from moot.convert.callers.chat_request import schema_of
from moot.convert.callers.drafts import EFFORTS, Drafts, file_part, tool_name_of
from moot.convert.callers.fields import Fields, unfit
from moot.types.canonical import Json
from moot.types.model import Effort, ModelSettings
from moot.types.part import Part, text_part
from moot.types.provider import ToolDefinition


def read_responses(body: Json) -> Asked:
    """Parse the body. Raise UsageError for unsupported fields; hints are ignored."""
    fields = Fields(body)
    fields.refuse("background", "is not supported; wait for the answer")
    fields.refuse("prompt", "stored prompts are not supported")
    after, conversation = fields.text("previous_response_id"), _conversation(fields)
    if after and conversation:
        raise unfit("previous_response_id", "can't be combined with conversation")
    drafts = Drafts(after=bool(after))
    drafts.instruct(fields.text("instructions"))
    if isinstance(fields.value.get("input"), list):
        for item in fields.objects("input"):
            _item(drafts, item)
    else:
        drafts.say([text_part(fields.needed("input"))])
    return Asked(
        model=fields.needed("model"),
        messages=drafts.messages(),
        system=drafts.system,
        tools=tuple(_tool(tool) for tool in fields.objects("tools")),
        settings=_settings(fields),
        stream=fields.flag("stream"),
        stream_usage=True,
        after=after,
        conversation=conversation,
    )


def _conversation(fields: Fields) -> str:
    if isinstance(fields.value.get("conversation"), str):
        return fields.text("conversation")
    return fields.fields("conversation").text("id")


def _settings(fields: Fields) -> ModelSettings:
    effort = fields.fields("reasoning").one_of("effort", tuple(EFFORTS))
    return ModelSettings(
        temperature=fields.number("temperature", 0, 2),
        max_tokens=fields.count("max_output_tokens"),
        top_p=fields.number("top_p", 0, 1),
        effort=cast("Effort", EFFORTS[effort]) if effort else None,
        schema=cast("dict[str, object] | None", schema_of(fields.fields("text").fields("format"), nested=False)),
        tool_choice=_choice(fields),
        parallel_calls=fields.flag("parallel_tool_calls", True),
    )


def _choice(fields: Fields) -> str:
    choice = fields.value.get("tool_choice")
    if not isinstance(choice, dict):
        word = fields.one_of("tool_choice", ("auto", "none", "required"))
        return "" if word == "auto" else word
    chosen = fields.fields("tool_choice")
    if chosen.text("type") != "function":
        raise unfit(chosen.path("type"), "only 'function' is supported")
    return f"={chosen.needed('name')}"


def _tool(tool: Fields) -> ToolDefinition:
    if tool.text("type", "function") != "function":
        raise unfit(tool.path("type"), f"tool type {tool.text('type')!r} is not supported; use 'function'")
    schema = tool.fields("parameters").value or {"type": "object", "properties": {}}
    return ToolDefinition(tool_name_of(tool.needed("name"), tool.path("name")), tool.text("description"), schema)


def _item(drafts: Drafts, item: Fields) -> None:
    match item.text("type", "message"):
        case "message":
            _message(drafts, item)
        case "function_call":
            drafts.answer(join=True)
            drafts.call(item.needed("call_id"), item.needed("name"), item.text("arguments"), item.path("name"))
        case "function_call_output":
            drafts.output(item.needed("call_id"), _output(item), item.path("call_id"))
        case "reasoning":
            pass  # moot's own reasoning: it is not signed, so no model would accept it
        case other:
            raise unfit(item.path("type"), f"item type {other!r} is not supported")


def _message(drafts: Drafts, item: Fields) -> None:
    match item.needed("role"):
        case "system" | "developer":
            drafts.instruct(_text(_content(item)))
        case "user":
            drafts.say(_content(item))
        case "assistant":
            text = _text(_content(item))
            drafts.answer([text_part(text)] if text else [], join=True)
        case other:
            raise unfit(item.path("role"), f"{other!r} is not one of system, developer, user, assistant")


def _text(parts: list[Part]) -> str:
    return "".join(str(part["text"]) for part in parts if part["type"] == "text")


def _content(item: Fields, name: str = "content") -> list[Part]:
    if not isinstance(item.value.get(name), list):
        text = item.text(name)
        return [text_part(text)] if text else []
    return [_piece(piece) for piece in item.objects(name)]


def _output(item: Fields) -> Json:
    parts = _content(item, "output")
    if all(part["type"] == "text" for part in parts):
        return _text(parts)
    return {"type": "content", "value": [*parts]}


def _piece(piece: Fields) -> Part:
    match piece.needed("type"):
        case "input_text" | "output_text" | "text":
            return text_part(piece.text("text"))
        case "refusal":
            return text_part(piece.text("refusal"))
        case "input_image":
            piece.refuse("file_id", "stored files are not supported; send image_url")
            url, detail = piece.needed("image_url"), piece.one_of("detail", ("auto", "low", "high", "original"))
            kind = "" if url.startswith("data:") else "image/*"
            return file_part(url, piece.path("image_url"), media_type=kind, detail=detail.replace("original", "high"))
        case "input_file":
            piece.refuse("file_id", "stored files are not supported; send file_data")
            field = "file_url" if piece.text("file_url") else "file_data"
            return file_part(piece.needed(field), piece.path(field), name=piece.text("filename"))
        case other:
            raise unfit(piece.path("type"), f"{other!r} is not one of input_text, input_image, input_file, output_text")
