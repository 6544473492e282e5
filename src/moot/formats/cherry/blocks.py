"""Blocks of version 1 as parts."""

from __future__ import annotations

from collections.abc import Iterator

from moot.types.canonical import Json, JsonObject, dumps
from moot.types.part import Part, text_part

__all__ = ["parts_of_blocks"]

_DATA = {"translation": "data-translation", "code": "data-code", "compact": "data-compact", "error": "data-error", "video": "data-video"}
_ABOUT = ("id", "messageId", "createdAt", "updatedAt", "status", "type")
_PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}


def parts_of_blocks(blocks: Json) -> list[Part]:
    """Return the parts of the blocks in order. Unknown blocks are kept as data."""
    found: list[Part] = []
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict):
            found += _parts(block)
    return found


def _parts(block: JsonObject) -> Iterator[Part]:
    kind, content = block.get("type"), block.get("content")
    match kind:
        case "main_text":
            if isinstance(content, str) and content:
                yield text_part(content)
        case "thinking":
            yield {"type": "reasoning", "text": str(content or ""), "state": "done"}
        case "tool":
            yield _tool(block)
        case "image" | "file":
            yield _file(block, is_picture=kind == "image")
        case "citation":
            yield from _sources(block)
        case "unknown":
            return
        case _:
            data: JsonObject = {name: value for name, value in block.items() if name not in _ABOUT}
            yield {"type": _DATA.get(str(kind), "data-block"), "data": data if kind in _DATA else block}


def _tool(block: JsonObject) -> Part:
    metadata = block.get("metadata")
    answer = metadata.get("rawMcpToolResponse") if isinstance(metadata, dict) else None
    raw = answer if isinstance(answer, dict) else {}
    tool = raw.get("tool")
    about = tool if isinstance(tool, dict) else {}
    content = block.get("content")
    arguments = block.get("arguments") if block.get("arguments") is not None else raw.get("arguments")
    part: Part = {"type": "dynamic-tool", "toolName": str(block.get("toolName") or about.get("name") or "unknown")}
    part |= {"toolCallId": str(block.get("toolId") or raw.get("toolCallId") or block.get("id") or "call"), "input": arguments}
    output = raw.get("response") if raw.get("response") is not None else content
    if (isinstance(content, dict) and content.get("isError") is True) or raw.get("status") == "error":
        return {**part, "state": "output-error", "errorText": output if isinstance(output, str) else dumps(output).decode()}
    return {**part, "state": "input-available"} if output is None else {**part, "state": "output-available", "output": output}


def _file(block: JsonObject, *, is_picture: bool) -> Part:
    """Return a file part by URL. Local paths are not followed, so only Cherry Studio may be able to open it."""
    file = block.get("file")
    about = file if isinstance(file, dict) else {}
    fallback = "image/png" if is_picture else "application/octet-stream"
    kind = _PICTURES.get(str(about.get("ext") or "").lower(), fallback)
    url = block.get("url") or (f"file://{about['path']}" if about.get("path") else "")
    part: Part = {"type": "file", "mediaType": kind, "url": str(url)}
    return {**part, "filename": str(about["origin_name"])} if about.get("origin_name") else part


def _sources(block: JsonObject) -> Iterator[Part]:
    response = block.get("response")
    results = response.get("results") if isinstance(response, dict) else None
    sources = results.get("results") if isinstance(results, dict) else results
    for number, one in enumerate(sources if isinstance(sources, list) else [], 1):
        if isinstance(one, dict) and isinstance(url := one.get("url"), str):
            yield {"type": "source-url", "sourceId": f"{block.get('id')}-{number}", "url": url, "title": str(one.get("title") or "")}
    yield {"type": "data-citation", "data": block}
