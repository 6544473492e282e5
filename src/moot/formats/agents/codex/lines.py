"""Line types in session files, and conversion between message parts and items of OpenAI's API."""

from __future__ import annotations

import re

from moot.convert.agents.codex_session import CALLS, OUTPUT_TYPES, call_input, outcome_of, reasoning_part, user_parts
from moot.convert.agents.session import EXACTLY
from moot.convert.files.attachments import with_texts
from moot.formats.kit.fields import at, items, obj, objects, text
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.message import Part, is_tool, tool_name

PART = "moot_part"
"""Type of lines that moot writes for parts that Codex can't store."""
_ITEMS = frozenset({"message", "reasoning", *CALLS, *OUTPUT_TYPES})
_LINES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", "token_usage_record"})
_TAGS = (
    "environment_context user_instructions permissions turn_aborted skill skills_instructions app-context apps_instructions INSTRUCTIONS "
    "subagent_notification user_shell_command collaboration_mode personality_spec model_switch hook_context plugins_instructions"
)
_CONTEXT = re.compile(rf"\s*(?:<(?:{'|'.join(_TAGS.split())})[\s>]|# AGENTS\.md instructions for )")
"""Prefixes of user texts that were written by the program itself."""


def normalize(value: JsonObject) -> tuple[str, JsonObject]:
    """Return the type and body of a line. The first versions of Codex wrote only the body."""
    kind, payload = text(value, "type"), value.get("payload")
    if kind and isinstance(payload, dict):
        return kind, payload
    if kind in _ITEMS:
        return "response_item", value
    if "type" not in value and isinstance(value.get("id"), str) and "timestamp" in value and ("instructions" in value or "git" in value):
        return "session_meta", value
    return "", value


def is_rollout_line(value: JsonObject) -> bool:
    """Return whether only session files of Codex contain such lines."""
    kind, payload = text(value, "type"), value.get("payload")
    if isinstance(payload, dict):
        return kind in _LINES and "timestamp" in value
    return normalize(value)[0] == "session_meta" and "instructions" in value


def is_without_message(line: JsonObject) -> bool:
    """Return whether an import omits text of the line on purpose, for example because another line contains the same text."""
    kind, item = normalize(line)
    if kind != "response_item":
        return kind in _LINES
    if text(item, "type") in OUTPUT_TYPES:
        return bool(text(item, "call_id")) and isinstance(item.get("output"), str | list | dict)
    if text(item, "type") == "local_shell_call" and items(item, "action", "command"):
        return True  # the message contains the command as one string, not word by word
    content = items(item, "content")
    written = text(item, "role") in ("developer", "system") or (text(item, "role") == "user" and not prompt_parts(item))
    known = bool(content) and all(text(block, "type").startswith("input_") for block in content)
    return text(item, "type") == "message" and written and known


def prompt_parts(item: JsonObject) -> tuple[Part, ...]:
    """Return the parts of a prompt, or nothing if the program wrote the item."""
    parts = user_parts(item.get("content"))
    listed = at(item, "internal_chat_message_metadata_passthrough", "content_item_kinds")
    if isinstance(listed, list):
        kinds = [str(kind) for kind in listed]
        if not any(kind.startswith("user.") or kind == "unknown" for kind in kinds):
            return ()
        if len(kinds) == len(items(item, "content")) == len(parts):
            return tuple(part for part, kind in zip(parts, kinds, strict=True) if kind.startswith("user.") or kind == "unknown")
    return tuple(part for part in parts if not _CONTEXT.match(str(part.get("text", ""))))


def moot_fields(line: JsonObject) -> JsonObject:
    """Return the fields that moot added to a line when it exported the session, or an empty object."""
    mark = line.get(EXACTLY)
    return mark if isinstance(mark, dict) and isinstance(mark.get("message"), str) else {}


_NAME = re.compile(r"[^A-Za-z0-9_-]")


def item_of(part: Part) -> JsonObject | None:
    """Convert an assistant part to an item of the API. Return None if the API would reject the item."""
    if is_tool(part):
        value = part.get("input")
        name = _NAME.sub("_", tool_name(part))[:64] or "tool"
        arguments = dumps(value if value is not None else {}).decode()
        return {"type": "function_call", "name": name, "arguments": arguments, "call_id": _call_id(part)}
    if part.get("type") == "text" and part.get("text"):
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": part["text"]}]}
    own = obj(part, "providerMetadata", "openai")
    if part.get("type") != "reasoning" or not own.get("encryptedContent"):
        return None
    summary: list[Json] = [{"type": "summary_text", "text": part["text"]}] if part.get("text") else []
    item: JsonObject = {"type": "reasoning", "summary": summary, "encrypted_content": own["encryptedContent"]}
    return {**item, "id": own["itemId"]} if isinstance(own.get("itemId"), str) else item


def is_exact(part: Part, item: JsonObject) -> bool:
    """Return whether the item can be read back as the same part."""
    if is_tool(part):
        return (
            item["call_id"] == part.get("toolCallId")
            and call_input(item) == (tool_name(part), part.get("input"))
            and call_input(item)[0] != "update_plan"
        )
    if part.get("type") == "text":
        return part.keys() <= {"type", "text", "state"}
    return reasoning_part(item) == {name: value for name, value in part.items() if name != "id"}


def _call_id(part: Part) -> str:
    return _NAME.sub("_", str(part.get("toolCallId") or ""))[:64] or "call"


def content_of(parts: tuple[Part, ...]) -> list[Json]:
    """Return the content of a prompt in the format of the API. Unsupported files are replaced by text."""
    return [_content_item(part) for part in with_texts(parts) if part.get("type") in ("text", "file")]


def _content_item(part: Part) -> Json:
    if part.get("type") == "text":
        return {"type": "input_text", "text": part.get("text", "")}
    url, media_type = part.get("url"), str(part.get("mediaType"))
    if media_type.startswith("image/") and isinstance(url, str) and url.startswith((f"data:{media_type};base64,", "http://", "https://")):
        return {"type": "input_image", "image_url": url}
    return {"type": "input_text", "text": f"[{part.get('filename') or 'a file'} ({media_type}): not included]"}


def output_of(part: Part) -> tuple[JsonObject, JsonObject]:
    """Return the API item for a call's output, and the fields of the part that the item can't express."""
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
            if text(output, "type") == "content" and isinstance(at(output, "value"), list):
                return content_of(tuple(objects(output, "value")))
            return dumps(output).decode()
        case _:
            return "The call ended without an output."
