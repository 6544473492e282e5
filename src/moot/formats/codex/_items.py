"""Parts as items of OpenAI's API, limited to what the agent can send again."""

from __future__ import annotations

import re

from moot.convert.codex_items import named, outcome_of, thought_of
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.part import Part, is_tool, tool_name

__all__ = ["content_of", "item_of", "output_of", "says_it"]

_NAME = re.compile(r"[^A-Za-z0-9_-]")


def item_of(part: Part) -> JsonObject | None:
    """Return the item of an assistant part, or None if the API would reject it."""
    if is_tool(part):
        value = part.get("input")
        name = _NAME.sub("_", tool_name(part))[:64] or "tool"
        return {
            "type": "function_call",
            "name": name,
            "arguments": dumps(value if value is not None else {}).decode(),
            "call_id": _call_id(part),
        }
    if part.get("type") == "text" and part.get("text"):
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": part["text"]}]}
    metadata = part.get("providerMetadata")
    own = metadata.get("openai") if isinstance(metadata, dict) else None
    if part.get("type") != "reasoning" or not isinstance(own, dict) or not own.get("encryptedContent"):
        return None
    summary: list[Json] = [{"type": "summary_text", "text": part["text"]}] if part.get("text") else []
    item: JsonObject = {"type": "reasoning", "summary": summary, "encrypted_content": own["encryptedContent"]}
    return {**item, "id": own["itemId"]} if isinstance(own.get("itemId"), str) else item


def says_it(part: Part, item: JsonObject) -> bool:
    """Return whether reading the item gives the same part."""
    if is_tool(part):
        return (
            item["call_id"] == part.get("toolCallId")
            and named(item) == (tool_name(part), part.get("input"))
            and named(item)[0] != "update_plan"
        )
    if part.get("type") == "text":
        return part.keys() <= {"type", "text", "state"}
    return thought_of(item) == {name: value for name, value in part.items() if name != "id"}


def _call_id(part: Part) -> str:
    return _NAME.sub("_", str(part.get("toolCallId") or ""))[:64] or "call"


def content_of(parts: tuple[Part, ...]) -> list[Json]:
    """Return the content of a prompt. Unsupported files are replaced by a text."""
    return [_content_item(part) for part in parts if part.get("type") in ("text", "file")]


def _content_item(part: Part) -> Json:
    if part.get("type") == "text":
        return {"type": "input_text", "text": part.get("text", "")}
    url, media_type = part.get("url"), str(part.get("mediaType"))
    if media_type.startswith("image/") and isinstance(url, str) and url.startswith((f"data:{media_type};base64,", "http://", "https://")):
        return {"type": "input_image", "image_url": url}
    return {"type": "input_text", "text": f"[{part.get('filename') or 'a file'} ({media_type}): not included]"}


def output_of(part: Part) -> tuple[JsonObject, JsonObject]:
    """Return the item with a call's output, and the fields of the output that the item can't express."""
    item: JsonObject = {"type": "function_call_output", "call_id": _call_id(part), "output": _output(part)}
    recorded: JsonObject = {name: part[name] for name in ("state", "output", "errorText", "approval") if name in part}
    if part.get("state") not in ("output-available", "output-error", "output-denied"):
        return item, {"state": "output-error", "errorText": str(item["output"])}
    read = outcome_of(item)
    exact = read["type"] == "tool-output-available" and recorded == {"state": "output-available", "output": read.get("output")}
    return item, {} if exact else recorded


def _output(part: Part) -> Json:
    output = part.get("output")
    match part.get("state"):
        case "output-denied":
            return "exec command rejected by user"
        case "output-error":
            return str(part.get("errorText") or "failed")
        case "output-available" if isinstance(output, str):
            return output
        case "output-available":
            pieces = output.get("value") if isinstance(output, dict) and output.get("type") == "content" else None
            if isinstance(pieces, list):
                return content_of(tuple(piece for piece in pieces if isinstance(piece, dict)))
            return dumps(output).decode()
        case _:
            return "The call ended without an output."
