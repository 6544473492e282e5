"""File parts: attached local files, their content, and the text that is sent to a model for them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import cache
from mimetypes import MimeTypes
from pathlib import PurePath
from urllib.parse import unquote_to_bytes

from moot.types.canonical import Json, JsonObject
from moot.types.chunk import OURS
from moot.types.message import Part, text_of, text_part

HEAD = "head"
"""Name of the metadata field with the start of a client's `data:` URL, up to its content."""
REFERENCED = "referenced"
"""Name of the metadata field that is true if the text of the prompt refers to the file."""
TYPED = "typed"
"""Name of the metadata field with the text that a person typed, if it differs from the text that is sent."""


MEDIA_TYPES = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "epub": "application/epub+zip",
}
"""Media type of each document format that is not text."""


def kind_of(name: str, media_type: str = "") -> str:
    """Determine the format of a document from its media type or its name. Return an empty string for text and unknown formats."""
    suffix = name.rpartition(".")[2].lower()
    return next((kind for kind, known in MEDIA_TYPES.items() if media_type == known), suffix if suffix in MEDIA_TYPES else "")


def local_file(data: bytes, path: str, media_type: str = "", lines: tuple[int, int] | None = None) -> Part:
    """Return a local file, or a range of its lines, as a file part with path and size.
    If no media type is given, the file must be UTF-8 text.
    """
    media_type = media_type or _text_type(path)
    about: JsonObject = {"path": path, "size": len(data), **({"lines": [*lines]} if lines is not None else {})}
    return {
        "type": "file",
        "mediaType": media_type,
        "filename": PurePath(path).name,
        "url": f"data:{media_type};base64,{base64.b64encode(data).decode()}",
        "providerMetadata": {OURS: about},
    }


def pasted_file(data: bytes, name: str, media_type: str) -> Part:
    """Return content that is not in a local file, such as a picture from the clipboard, as a file part."""
    part = local_file(data, name, media_type)
    return {**part, "providerMetadata": {OURS: {"size": len(data)}}}


def _text_type(path: str) -> str:
    guessed = _types().guess_type(path)[0] or ""
    return guessed if guessed.startswith("text/") else "text/plain"


@cache
def _types() -> MimeTypes:
    """Return Python's built-in media types without those of the system, so that a file has the same type on every machine."""
    types = MimeTypes()
    types.add_type("text/markdown", ".md")  # missing in older versions of Python
    return types


def with_texts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts to send to a model: local text files become text that starts with the path; other parts are unchanged."""
    return tuple(text_part(text) if (text := prompt_text(part)) is not None else part for part in parts)


def prompt_text(part: Part) -> str | None:
    """Return the text that is sent to a model for a local text file, or None for any other part."""
    if part.get("type") != "file" or not isinstance(facts_of(part).get("path"), str) or (text := file_text(part)) is None:
        return None
    return f"{place_of(part)}:\n\n{text}"


def place_of(part: Part) -> str:
    """Return the path of a local file, with the range of lines if the part contains only some of them."""
    about = facts_of(part)
    path, lines = about.get("path"), about.get("lines")
    return f"{path}, lines {lines[0]} to {lines[1]}" if isinstance(lines, list) and len(lines) == 2 else str(path)


def label_of(part: Part) -> str:
    """Return a readable label of a file part: its name, its media type and, if known, its size."""
    about = facts_of(part)
    lines, size = about.get("lines"), about.get("size")
    name = str(part.get("filename") or "file")
    if isinstance(lines, list) and len(lines) == 2:
        name += f" (lines {lines[0]} to {lines[1]})"
    sized = [f"{size:,} {'byte' if size == 1 else 'bytes'}"] if isinstance(size, int) else []
    return ", ".join([name, str(part.get("mediaType") or "unknown"), *sized])


def readable_prompt(parts: Sequence[Part]) -> str:
    """Return a prompt for display: a line for each attached file, followed by the text."""
    labels = [f"[{label_of(part)}]" for part in parts if part.get("type") == "file"]
    return "\n".join(filter(None, [*labels, text_of([*parts])]))


def typed_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts of a prompt as a person typed it: without the files that the text refers to, and before macros were replaced."""
    return tuple(_typed(part) for part in parts if not is_referenced(part))


def typed_text(parts: Sequence[Part]) -> str:
    """Return the text of a prompt as a person typed it, for editing."""
    return text_of(typed_parts(parts))


def is_referenced(part: Part) -> bool:
    """Return True for a file that the text of the prompt refers to."""
    return facts_of(part).get(REFERENCED) is True


def _typed(part: Part) -> Part:
    typed = facts_of(part).get(TYPED)
    if part.get("type") != "text" or not isinstance(typed, str):
        return part
    return {**{name: value for name, value in part.items() if name != "providerMetadata"}, "text": typed}


def with_facts(part: Part, facts: JsonObject) -> Part:
    """Return the part with these facts added to moot's metadata."""
    metadata = part.get("providerMetadata")
    return {**part, "providerMetadata": {**(metadata if isinstance(metadata, dict) else {}), OURS: {**facts_of(part), **facts}}}


def facts_of(part: Part) -> JsonObject:
    """Return moot's metadata for a part, such as the `path`, `size` (in bytes) and `lines` of a file."""
    metadata = part.get("providerMetadata")
    about = metadata.get(OURS) if isinstance(metadata, dict) else None
    return about if isinstance(about, dict) else {}


def with_detail(parts: Sequence[Part], detail: Json) -> tuple[Part, ...]:
    """Return the parts with this detail for each image that has none. A `detail` that is not a text changes nothing."""
    if not isinstance(detail, str):
        return tuple(parts)
    return tuple({**part, "detail": detail} if _is_image(part) and "detail" not in part else part for part in parts)


def _is_image(part: Part) -> bool:
    return part.get("type") == "file" and str(part.get("mediaType", "")).startswith("image/")


def decode_data_url(part: Part) -> bytes | None:
    """Return the content of a file part's `data:` URL, or None if it has no valid one."""
    head, comma, body = str(part.get("url", "")).partition(",")
    if not comma or not head.startswith("data:"):
        return None
    try:
        return base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        return None


def file_text(part: Part) -> str | None:
    """Return the content of a file part that contains UTF-8 text, or None for any other part."""
    if not str(part.get("mediaType", "")).startswith("text/") or (data := decode_data_url(part)) is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
