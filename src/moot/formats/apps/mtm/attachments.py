"""Attachments of a prompt: pictures linked in its text, and snapshots of files and tool outputs."""

from __future__ import annotations

import base64
import re
import tempfile
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from moot.formats.kit.files import read_inside
from moot.formats.kit.records import detect_media_type, media_type_of
from moot.formats.kit.steps import file_text
from moot.types.canonical import Json, JsonObject
from moot.types.message import Part, text_part

__all__ = ["read_snapshots", "with_pictures", "write_snapshots"]

_LINK = re.compile(r"!\[[^\]\n]{0,200}\]\((data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]+|file://[^)\s]+|https?://[^)\s]+)\)")
_PASTED = "mutsumi_images"
"""The editor's folder for pasted pictures, inside the folder for temporary files."""
_LARGEST = 20 << 20


def with_pictures(parts: list[Part], source: Path) -> tuple[list[Part], int]:
    """Return the parts with each linked picture as a separate part, and the number of pictures that were not found."""
    found: list[Part] = []
    missing = 0
    for part in parts:
        text, at = part.get("text"), 0
        if not isinstance(text, str):
            found.append(part)
            continue
        for link in _LINK.finditer(text):
            picture = _picture(link[1], source)
            if picture is None:
                missing += 1
                continue
            found += [text_part(text[at : link.start()])] if link.start() > at else []
            found.append(picture)
            at = link.end()
        found += [text_part(text[at:])] if at < len(text) else []
    return found, missing


def _picture(url: str, source: Path) -> Part | None:
    """Return the linked picture. Files are read only if they were pasted or are in the notebook's own project."""
    if url.startswith("data:"):
        return {"type": "file", "mediaType": media_type_of(url), "url": url}
    if not url.startswith("file:"):
        return {"type": "file", "mediaType": "image/*", "url": url}
    path = Path(unquote(urlsplit(url).path))
    project = source.absolute().parent
    project = project.parent if project.name == ".mutsumi" else project
    data = next((data for place in (Path(tempfile.gettempdir()) / _PASTED, project) if (data := _read(path, place))), None)
    kind = detect_media_type(data or b"")
    if data is None or not kind.startswith("image/"):
        return None
    return {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{base64.b64encode(data).decode()}", "filename": path.name}


def _read(path: Path, folder: Path) -> bytes | None:
    return read_inside(path, inside=folder, limit=_LARGEST)


def read_snapshots(block: Json) -> tuple[list[Part], JsonObject]:
    """Return the snapshots of a prompt as files, and references to earlier snapshots as metadata."""
    files, tools = (block.get("files"), block.get("tools")) if isinstance(block, dict) else (None, None)
    parts: list[Part] = []
    earlier: list[Json] = []
    for one in files if isinstance(files, list) else []:
        if isinstance(one, dict) and isinstance(content := one.get("content"), str):
            parts.append(_attached(str(one.get("key", "")), content, {"version": one.get("version")}))
        elif isinstance(one, dict):
            earlier.append({"key": one.get("key"), "version": one.get("version")})
    for one in tools if isinstance(tools, list) else []:
        if isinstance(one, dict) and isinstance(content := one.get("content"), str):
            parts.append(_attached(str(one.get("key", "")), content, {"arguments": one.get("argsText")}))
    return parts, {"context": earlier} if earlier else {}


def _attached(name: str, content: str, facts: JsonObject) -> Part:
    url = f"data:text/plain;charset=utf-8,{quote(content, safe='')}"
    return {"type": "file", "mediaType": "text/plain", "url": url, "filename": name, "providerMetadata": {"mutsumi": facts}}


def write_snapshots(parts: tuple[Part, ...], metadata: JsonObject) -> tuple[JsonObject | None, list[Part]]:
    """Return the snapshots to store with a prompt, or None, and the files that are not text and can't be stored."""
    files: list[Json] = []
    tools: list[Json] = []
    left: list[Part] = []
    for part in parts:
        if part.get("type") != "file" or str(part.get("mediaType", "")).startswith("image/"):
            continue
        if (content := file_text(part)) is None:
            left.append(part)
            continue
        facts = _own(part)
        key = str(part.get("filename") or "file")
        if isinstance(facts.get("arguments"), str):
            tools.append({"key": key, "argsText": facts["arguments"], "content": content})
        else:
            files.append({"key": key, "version": _version(facts.get("version")), "content": content})
    earlier = metadata.get("context")
    for one in earlier if isinstance(earlier, list) else []:
        if isinstance(one, dict) and isinstance(one.get("key"), str):
            files.append({"key": one["key"], "version": _version(one.get("version")), "content": None})
    return ({"files": files, "tools": tools} if files or tools else None), left


def _own(part: Part) -> JsonObject:
    metadata = part.get("providerMetadata")
    own = metadata.get("mutsumi") if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else {}


def _version(value: Json) -> int:
    return value if type(value) is int and value >= 1 else 1
