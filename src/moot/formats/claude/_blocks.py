"""Parts as blocks of Anthropic's API, limited to what the agent can send again."""

from __future__ import annotations

import base64
import binascii
import re

from moot.convert.claude_session import part_of
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.part import Part, is_tool, tool_name

__all__ = ["block_of", "call_id", "content_of", "output_of"]

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ID = re.compile(r"[^A-Za-z0-9_-]")
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def block_of(part: Part) -> JsonObject | None:
    """Return the block of an assistant part, or None if the API would reject it."""
    if is_tool(part):
        value = part.get("input")
        arguments: Json = value if isinstance(value, dict) else {} if value is None else {"input": value}
        return {"type": "tool_use", "id": call_id(part), "name": _ID.sub("_", tool_name(part))[:128] or "tool", "input": arguments}
    metadata = part.get("providerMetadata")
    own = metadata.get("anthropic") if isinstance(metadata, dict) else None
    facts: JsonObject = own if isinstance(own, dict) else {}
    match part.get("type"):
        case "text" if isinstance(text := part.get("text"), str) and text.strip():
            return {"type": "text", "text": text}
        case "reasoning" if facts.get("signature"):
            return {"type": "thinking", "thinking": part.get("text", ""), "signature": facts["signature"]}
        case "reasoning" if facts.get("redactedData"):
            return {"type": "redacted_thinking", "data": facts["redactedData"]}
        case _:
            return None


def call_id(part: Part) -> str:
    """Return the call id with only the characters that the API accepts."""
    return _ID.sub("_", str(part.get("toolCallId") or "")) or "call"


def content_of(parts: tuple[Part, ...]) -> str | list[Json]:
    """Return the content of a prompt. Unsupported files are replaced by a text."""
    texts = [part for part in parts if part.get("type") == "text"]
    if len(parts) == len(texts) == 1:
        return str(texts[0].get("text", ""))
    return [_block_of_content(part) for part in parts if part.get("type") in ("text", "file")]


def _block_of_content(part: Part) -> Json:
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text", "")}
    block = _file(part)
    if block is not None:
        return block
    name = str(part.get("filename") or "a file")
    return {"type": "text", "text": f"[{name} ({part.get('mediaType')}): not included]"}


def _file(part: Part) -> JsonObject | None:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    kind = "image" if media_type in _IMAGES else "document" if media_type in ("application/pdf", "text/plain") else ""
    name = part.get("filename")
    title: JsonObject = {"title": name} if isinstance(name, str) and kind == "document" else {}
    head, _, encoded = url.partition(";base64,")
    if kind and url.startswith(("http://", "https://")):
        return {"type": kind, "source": {"type": "url", "url": url}, **title}
    if not kind or head != f"data:{media_type}" or not encoded:
        return None
    if media_type == "text/plain":
        try:
            text = base64.b64decode(encoded, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
        return {"type": kind, "source": {"type": "text", "media_type": media_type, "data": text}, **title}
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": encoded}, **title}


def output_of(part: Part) -> tuple[JsonObject, JsonObject]:
    """Return the block with a call's output, and the fields of the output that the block can't express."""
    block: JsonObject = {"type": "tool_result", "tool_use_id": call_id(part)}
    state = part.get("state")
    if state == "output-available":
        output = part.get("output")
        content = _content(output)
        exact = (isinstance(output, str) and output == content) or _is_content(output)
        return {**block, "content": content}, {} if exact else {"output": output}
    if state == "output-denied":
        return {**block, "content": REFUSED, "is_error": True}, {"approval": part["approval"]} if "approval" in part else {}
    error = part.get("errorText")
    if not isinstance(error, str):
        return {**block, "content": "The call ended without an output.", "is_error": True}, {}
    return {**block, "content": error or "failed", "is_error": True}, {} if error and error == error.strip() else {"errorText": error}


def _is_content(output: Json) -> bool:
    """Return whether the output is a text followed by pictures, which can be read back unchanged."""
    pieces = output.get("value") if isinstance(output, dict) and output.get("type") == "content" and len(output) == 2 else None
    if not isinstance(pieces, list) or len(pieces) < 1:
        return False
    blocks = [_file(piece) if isinstance(piece, dict) else None for piece in pieces]
    first = pieces[0]
    is_text = isinstance(first, dict) and first.keys() == {"type", "text"}
    files = zip(pieces[is_text:], blocks[is_text:], strict=True)
    return len(pieces) > is_text and all(block is not None and part_of(block) == piece for piece, block in files)


def _content(output: Json) -> Json:
    if isinstance(output, str):
        return output
    pieces = output.get("value") if isinstance(output, dict) and output.get("type") == "content" else None
    if isinstance(pieces, list) and all(isinstance(piece, dict) for piece in pieces):
        return [_block_of_content(piece) for piece in pieces if isinstance(piece, dict) and piece.get("type") in ("text", "file")]
    return dumps(output).decode()
