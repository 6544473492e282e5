"""File parts in requests: their kind, and placeholder text for those that a model can't take."""

from __future__ import annotations

import base64
import binascii
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from moot.types.model import Model
from moot.types.part import Part

Kind = Literal["image", "pdf", "audio", "text", "other"]

_TEXTS = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"})


class File(NamedTuple):
    kind: Kind
    media_type: str
    url: str
    name: str
    base64: str
    """The data of a `data:` URL; empty for a URL that the vendor fetches itself."""


def read(part: Part) -> File:
    """Parse a file part; nothing is fetched."""
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    data = ""
    if url.startswith("data:"):
        head, _, body = url[5:].partition(",")
        media_type = media_type or head.partition(";")[0]
        data = body if head.endswith(";base64") else base64.b64encode(unquote_to_bytes(body)).decode()
    return File(_kind(media_type), media_type or "application/octet-stream", url, str(part.get("filename") or ""), data)


def taken(file: File, model: Model) -> bool:
    """Return True if the model accepts files of that kind. Text is always sent, as text."""
    return file.kind == "text" or file.kind in model.modalities


def words(file: File) -> str:
    """Return the content of a text file; for any other file, text that says what was omitted."""
    if file.kind == "text" and file.base64:
        try:
            text = base64.b64decode(file.base64).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return f"[the file {file.name or file.media_type} can't be read]"
        return f"{file.name}:\n{text}" if file.name else text
    where = "" if file.url.startswith("data:") else f" at {file.url}"
    return f"[{file.name or 'a file'} ({file.media_type}){where}: not shown, this model does not take it]"


def _kind(media_type: str) -> Kind:
    kind = media_type.partition(";")[0].strip().lower()
    if kind.startswith("image/"):
        return "image"
    if kind == "application/pdf":
        return "pdf"
    if kind.startswith("audio/"):
        return "audio"
    return "text" if kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml")) else "other"
