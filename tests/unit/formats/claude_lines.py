"""Lines of sessions, built by tests."""

from __future__ import annotations

import json
from typing import Any


def line(type: str, number: int, parent: int | None, **more: Any) -> bytes:
    told: dict[str, Any] = {
        "parentUuid": parent and f"u{parent}",
        "isSidechain": False,
        "type": type,
        "uuid": f"u{number}",
        "sessionId": "s1",
    }
    told |= {"timestamp": "2026-01-05T10:00:00.000Z"}
    return json.dumps({**told, **more}, separators=(",", ":")).encode() + b"\n"


def user(number: int, parent: int | None, content: Any, **more: Any) -> bytes:
    return line("user", number, parent, message={"role": "user", "content": content}, **more)


def model(number: int, parent: int | None, id: str, *blocks: Any, **more: Any) -> bytes:
    message = {
        "id": id,
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": list(blocks),
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }
    return line("assistant", number, parent, message=message, **more)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": content, **more}]
