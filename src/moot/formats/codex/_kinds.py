"""What kind of line it is, in files of this version and of older ones."""

from __future__ import annotations

import re

from moot.convert.codex_items import CALLS, OUTPUT_TYPES, asked
from moot.convert.codex_rollout import EXACTLY
from moot.types.canonical import Json, JsonObject
from moot.types.part import Part

__all__ = ["PART", "asked_by_person", "is_rollout_line", "normal", "written"]

PART = "moot_part"
"""Lines that we write for parts which the agent's own can't hold."""
_ITEMS = frozenset({"message", "reasoning", *CALLS, *OUTPUT_TYPES})
_LINES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", "token_usage_record"})
_TAGS = (
    "environment_context user_instructions permissions turn_aborted skill skills_instructions app-context apps_instructions INSTRUCTIONS "
    "subagent_notification user_shell_command collaboration_mode personality_spec model_switch hook_context plugins_instructions"
)
_CONTEXT = re.compile(rf"\s*(?:<(?:{'|'.join(_TAGS.split())})[\s>]|# AGENTS\.md instructions for )")
"""How texts begin that the program puts in a person's name."""


def normal(value: JsonObject) -> tuple[str, JsonObject]:
    """Kind and body of a line; the first versions wrote bodies alone."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return kind, payload
    if kind in _ITEMS:
        return "response_item", value
    if kind is None and isinstance(value.get("id"), str) and "timestamp" in value and ("instructions" in value or "git" in value):
        return "session_meta", value
    return "", value


def is_rollout_line(value: JsonObject) -> bool:
    """Whether the line can only be of a session file of this program."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(payload, dict):
        return kind in _LINES and "timestamp" in value
    return normal(value)[0] == "session_meta" and "instructions" in value


def asked_by_person(item: JsonObject) -> tuple[Part, ...]:
    """What a person said with an item of theirs; nothing when it was the program that said it."""
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
    told = item.get("internal_chat_message_metadata_passthrough")
    kinds = told.get("content_item_kinds") if isinstance(told, dict) else None
    return [str(kind) for kind in kinds] if isinstance(kinds, list) else None


def written(line: JsonObject) -> JsonObject:
    """What a line of ours says beside the agent's own fields; nothing for any other line."""
    mark = line.get(EXACTLY)
    return mark if isinstance(mark, dict) and isinstance(mark.get("message"), str) else {}
