"""Parsing of requests: the dialect, the model, and the messages in a common format."""

from __future__ import annotations

import json
import re
from typing import Any, cast
from urllib.parse import unquote

PICTURES, SOUNDS = "pictures", "sounds"
"""OpenAI's endpoints for images and recordings, which have no conversation."""

_GOOGLE = re.compile(r"/models/([^/:]+):\w+$")


def dialect_of(path: str) -> str:
    """Return the dialect of a path, or `PICTURES` or `SOUNDS`."""
    if _GOOGLE.search(path):
        return "google"
    ends = {
        "/messages": "anthropic",
        "/responses": "openai-responses",
        "/api/chat": "ollama",
        "/images/generations": PICTURES,
        "/images/edits": PICTURES,
        "/audio/transcriptions": SOUNDS,
    }
    return next((dialect for end, dialect in ends.items() if path.endswith(end)), "openai-chat")


def model_of(path: str, body: dict[str, Any]) -> str:
    """Return the requested model, which Google has in the path."""
    found = _GOOGLE.search(path)
    return unquote(found[1]) if found else str(body.get("model", ""))


def messages_of(dialect: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages with `role` (user, assistant, system, tool) and `content` as in openai-chat or anthropic."""
    match dialect:
        case "openai-responses":
            value = body.get("input", [])
            items = [{"role": "user", "content": value}] if isinstance(value, str) else _objects(value)
            return [_item(item) for item in items]
        case "pictures":
            return [{"role": "user", "content": body.get("prompt", "")}]
        case "google":
            return [_content(content) for content in _objects(body.get("contents"))]
        case _:
            return _objects(body.get("messages"))


def _item(item: dict[str, Any]) -> dict[str, Any]:
    kind = str(item.get("type", "message"))
    if kind == "message":
        content = item.get("content")
        return {"role": item.get("role"), "content": content if isinstance(content, str) else _texts(content)}
    if kind.endswith("_output"):
        output = item.get("output")
        return {"role": "tool", "content": output if isinstance(output, str) else _texts(output)}
    return {"role": "assistant", "content": ""}


def _texts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part["text"]} if "text" in part else part for part in _objects(content)]


def _content(content: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for part in _objects(content.get("parts")):
        answer = part.get("functionResponse")
        if isinstance(answer, dict):
            response = cast("dict[str, Any]", answer).get("response")
            parts.append({"type": "tool_result", "content": response if isinstance(response, str) else _output_text(response)})
        elif "text" in part:
            parts.append({"type": "text", "text": part["text"]})
    return {"role": "assistant" if content.get("role") == "model" else "user", "content": parts}


def _output_text(response: Any) -> str:
    """Return the text of a tool's output."""
    values = list(cast("dict[str, Any]", response).values()) if isinstance(response, dict) else [response]
    return "\n".join(value if isinstance(value, str) else json.dumps(value) for value in values)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)] if isinstance(value, list) else []
