"""Requests for Anthropic messages (reference: Claude API, create a message)."""

from __future__ import annotations

from typing import cast

from moot.convert.anthropic_stream import METADATA
from moot.convert.callers.asked import Asked
from moot.convert.callers.drafts import EFFORTS, Drafts, file_part, tool_name_of
from moot.convert.callers.fields import Fields, unfit
from moot.types.canonical import Json
from moot.types.model import Effort, ModelSettings
from moot.types.part import Part, text_part
from moot.types.provider import ToolDefinition

_BUDGETS = ((4_096, "low"), (10_240, "medium"), (16_384, "high"))
_THINKING = ("enabled", "disabled", "adaptive")


def read_messages(body: Json, *, counting: bool = False) -> Asked:
    """Parse the body. Raise UsageError for unsupported fields; hints are ignored.

    `counting` is for a request that only counts tokens: it has no `max_tokens`.
    """
    fields = Fields(body)
    fields.refuse("mcp_servers", "is not supported; configure MCP servers for an agent")
    fields.refuse("container", "is not supported")
    if not counting and fields.count("max_tokens") is None:
        raise unfit("max_tokens", "is missing")
    drafts = Drafts()
    drafts.instruct(_system(fields))
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
        stream_usage=True,
    )


def _system(fields: Fields) -> str:
    if not isinstance(fields.value.get("system"), list):
        return fields.text("system")
    return "\n\n".join(block.text("text") for block in fields.objects("system"))


def _settings(fields: Fields) -> ModelSettings:
    choice = fields.fields("tool_choice")
    form = fields.fields("output_config").fields("format")
    schema = None
    if form.one_of("type", ("json_schema",)):
        schema = cast("dict[str, object]", Fields(form.value.get("schema"), form.path("schema")).value)
    return ModelSettings(
        temperature=fields.number("temperature", 0, 1),
        max_tokens=fields.count("max_tokens"),
        top_p=fields.number("top_p", 0, 1),
        stop=fields.texts("stop_sequences"),
        effort=_effort(fields),
        show_reasoning=fields.fields("thinking").text("type") in ("enabled", "adaptive"),
        schema=schema,
        tool_choice=_choice(choice),
        parallel_calls=not choice.flag("disable_parallel_tool_use"),
    )


def _effort(fields: Fields) -> Effort | None:
    thinking, word = fields.fields("thinking"), fields.fields("output_config").one_of("effort", tuple(EFFORTS))
    kind = thinking.one_of("type", _THINKING)
    if kind == "disabled":
        return "none"
    if kind == "enabled":
        budget = thinking.count("budget_tokens") or 0
        return cast("Effort", next((effort for most, effort in _BUDGETS if budget <= most), "max"))
    return cast("Effort", EFFORTS[word]) if word else ("high" if kind == "adaptive" else None)


def _choice(choice: Fields) -> str:
    match choice.one_of("type", ("auto", "any", "tool", "none")):
        case "any":
            return "required"
        case "tool":
            return f"={choice.needed('name')}"
        case "none":
            return "none"
        case _:
            return ""


def _tool(tool: Fields) -> ToolDefinition:
    if tool.text("type", "custom") != "custom":
        raise unfit(tool.path("type"), f"tool type {tool.text('type')!r} is not supported; only the caller's own tools are")
    schema = tool.fields("input_schema").value or {"type": "object", "properties": {}}
    return ToolDefinition(tool_name_of(tool.needed("name"), tool.path("name")), tool.text("description"), schema)


def _message(drafts: Drafts, message: Fields) -> None:
    role = message.needed("role")
    if role not in ("user", "assistant", "system"):
        raise unfit(message.path("role"), f"{role!r} is not one of user, assistant, system")
    blocks = [_block(message)] if not isinstance(message.value.get("content"), list) else list(message.objects("content"))
    if role == "assistant":
        _assistant(drafts, blocks)
    elif role == "system":
        drafts.instruct("\n\n".join(block.text("text") for block in blocks))
    else:
        for block in blocks:
            if block.text("type") == "tool_result":
                drafts.output(block.needed("tool_use_id"), _result(block), block.path("tool_use_id"), error=block.flag("is_error"))
        drafts.say([_piece(block) for block in blocks if block.text("type") != "tool_result" and not _is_blank(block)])


def _block(message: Fields) -> Fields:
    """Return a message's text as a text block."""
    return Fields({"type": "text", "text": message.text("content")}, message.path("content"))


def _is_blank(block: Fields) -> bool:
    return block.text("type") == "text" and not block.text("text")


def _assistant(drafts: Drafts, blocks: list[Fields]) -> None:
    drafts.answer()
    for block in blocks:
        match block.needed("type"):
            case "text":
                drafts.answer([text_part(block.text("text"))] if block.text("text") else [], join=True)
            case "thinking":
                drafts.answer([_thought(block.text("thinking"), "signature", block.text("signature"))], join=True)
            case "redacted_thinking":
                drafts.answer([_thought("", "redactedData", block.text("data"))], join=True)
            case "tool_use":
                drafts.call(block.needed("id"), block.needed("name"), block.fields("input").value, block.path("name"))
            case other:
                raise unfit(block.path("type"), f"block type {other!r} is not supported")


def _thought(text: str, name: str, proof: str) -> Part:
    return {"type": "reasoning", "text": text, "state": "done", "providerMetadata": {METADATA: {name: proof}}}


def _result(block: Fields) -> Json:
    if not isinstance(block.value.get("content"), list):
        return block.text("content")
    parts = [_piece(piece) for piece in block.objects("content")]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return {"type": "content", "value": [*parts]}


def _piece(block: Fields) -> Part:
    match block.needed("type"):
        case "text":
            return text_part(block.text("text"))
        case "image":
            return _source(block, "image/*")
        case "document":
            return _source(block, "application/pdf")
        case other:
            raise unfit(block.path("type"), f"block type {other!r} is not supported")


def _source(block: Fields, kind: str) -> Part:
    source, name = block.fields("source"), block.text("title")
    match source.needed("type"):
        case "base64":
            media_type = source.needed("media_type")
            return file_part(f"data:{media_type};base64,{source.needed('data')}", source.path("data"), name=name)
        case "url":
            return file_part(source.needed("url"), source.path("url"), media_type=kind, name=name)
        case "text":
            return text_part(f"{name}:\n{source.text('data')}" if name else source.text("data"))
        case other:
            raise unfit(source.path("type"), f"{other!r} is not one of base64, url, text")
