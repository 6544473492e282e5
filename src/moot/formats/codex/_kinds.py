"""Kinds of lines in files of current and older versions."""

from __future__ import annotations

import re

from moot.convert.codex_items import CALLS, OUTPUT_TYPES, asked
from moot.convert.codex_rollout import EXACTLY
from moot.types.canonical import Json, JsonObject
from moot.types.part import Part

__all__ = ["PART", "asked_by_person", "is_rollout_line", "normal", "written"]

PART = "moot_part"
"""Type of lines that moot writes for parts that Codex can't store."""
_ITEMS = frozenset({"message", "reasoning", *CALLS, *OUTPUT_TYPES})
_LINES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", "token_usage_record"})
_TAGS = (
    "environment_context user_instructions permissions turn_aborted skill skills_instructions app-context apps_instructions INSTRUCTIONS "
    "subagent_notification user_shell_command collaboration_mode personality_spec model_switch hook_context plugins_instructions"
)
_CONTEXT = re.compile(rf"\s*(?:<(?:{'|'.join(_TAGS.split())})[\s>]|# AGENTS\.md instructions for )")
"""Prefixes of user texts that the program writes itself."""


def normal(value: JsonObject) -> tuple[str, JsonObject]:
    """Return the type and body of a line. The first versions wrote only the body."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return kind, payload
    if kind in _ITEMS:
        return "response_item", value
    if kind is None and isinstance(value.get("id"), str) and "timestamp" in value and ("instructions" in value or "git" in value):
        return "session_meta", value
    return "", value


def is_rollout_line(value: JsonObject) -> bool:
    """Return whether the line can only belong to a session of Codex."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(payload, dict):
        return kind in _LINES and "timestamp" in value
    return normal(value)[0] == "session_meta" and "instructions" in value


def asked_by_person(item: JsonObject) -> tuple[Part, ...]:
    """Return the parts of a prompt, or nothing if the program wrote the item."""
    parts = asked(item.get("content"))
    kinds = _kinds(item)
    if kinds is not None:
        if not any(kind.startswith("user.") or kind == "unknown" for kind in kinds):
            return ()
        if len(kinds) == len(_blocks(item)) == len(parts):
            return tuple(part for part, kind in zip(parts, kinds, strict=True) if kind.startswith("user.") or kind == "unknown")
    return tuple(part for part in parts if not _CONTEXT.match(str(part.get("text", ""))))


def _blocks(item: JsonObject) -> list[Json]:
    content = item.get("content")
    return content if isinstance(content, list) else []


def _kinds(item: JsonObject) -> list[str] | None:
    metadata = item.get("internal_chat_message_metadata_passthrough")
    kinds = metadata.get("content_item_kinds") if isinstance(metadata, dict) else None
    return [str(kind) for kind in kinds] if isinstance(kinds, list) else None


def written(line: JsonObject) -> JsonObject:
    """Return moot's own fields of a line, or nothing."""
    mark = line.get(EXACTLY)
    return mark if isinstance(mark, dict) and isinstance(mark.get("message"), str) else {}
