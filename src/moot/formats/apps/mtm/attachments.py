"""Attachments of a prompt: pictures linked in its text, and snapshots of files and tool outputs."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from urllib.parse import quote

from moot.convert.files.attachments import file_text
from moot.formats.editors.folders import path_of
from moot.formats.kit.fields import obj, objects
from moot.formats.kit.files import read_inside
from moot.formats.kit.records import detect_media_type, file_of, media_type_of
from moot.types.canonical import Json, JsonObject
from moot.types.message import Part, text_part

_LINK = re.compile(r"!\[[^\]\n]{0,200}\]\((data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]+|file://[^)\s]+|https?://[^)\s]+)\)")
_PASTED = "mutsumi_images"
"""Name of the folder for pasted pictures, which Mutsumi creates inside the system's folder for temporary files."""
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
    path = Path(path_of(url))
    project = source.absolute().parent
    project = project.parent if project.name == ".mutsumi" else project
    folders = (Path(tempfile.gettempdir()) / _PASTED, project)
    data = next((data for folder in folders if (data := read_inside(path, inside=folder, limit=_LARGEST))), None)
    kind = detect_media_type(data or b"")
    return file_of(data, kind, path.name) if data is not None and kind.startswith("image/") else None


def read_snapshots(block: Json) -> tuple[list[Part], JsonObject]:
    """Return the snapshots of a prompt as files, and references to earlier snapshots as metadata."""
    parts: list[Part] = []
    earlier: list[Json] = []
    for one in objects(block, "files"):
        if isinstance(content := one.get("content"), str):
            parts.append(_attached(str(one.get("key", "")), content, {"version": one.get("version")}))
        else:
            earlier.append({"key": one.get("key"), "version": one.get("version")})
    for one in objects(block, "tools"):
        if isinstance(content := one.get("content"), str):
            parts.append(_attached(str(one.get("key", "")), content, {"arguments": one.get("argsText")}))
    return parts, {"context": earlier} if earlier else {}


def _attached(name: str, content: str, facts: JsonObject) -> Part:
    url = f"data:text/plain;charset=utf-8,{quote(content, safe='')}"
    return {"type": "file", "mediaType": "text/plain", "url": url, "filename": name, "providerMetadata": {"mutsumi": facts}}


def write_snapshots(parts: tuple[Part, ...], metadata: JsonObject) -> tuple[JsonObject | None, list[Part]]:
    """Return the snapshots to store with a prompt, or None, and the files that can't be stored because they are not text."""
    files: list[Json] = []
    tools: list[Json] = []
    left: list[Part] = []
    for part in parts:
        if part.get("type") != "file" or str(part.get("mediaType", "")).startswith("image/"):
            continue
        if (content := file_text(part)) is None:
            left.append(part)
            continue
        facts = obj(part, "providerMetadata", "mutsumi")
        key = str(part.get("filename") or "file")
        if isinstance(facts.get("arguments"), str):
            tools.append({"key": key, "argsText": facts["arguments"], "content": content})
        else:
            files.append({"key": key, "version": _version(facts.get("version")), "content": content})
    for one in objects(metadata, "context"):
        if isinstance(one.get("key"), str):
            files.append({"key": one["key"], "version": _version(one.get("version")), "content": None})
    return ({"files": files, "tools": tools} if files or tools else None), left


def _version(value: Json) -> int:
    return value if type(value) is int and value >= 1 else 1
