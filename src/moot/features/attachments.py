"""Attaching files to a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moot.convert.files.attachments import MEDIA_TYPES, kind_of, local_file
from moot.errors import UsageError
from moot.types.message import Part

MAX_TEXT = 10 * 1024 * 1024
MAX_MEDIA = 20 * 1024 * 1024

_MEDIA = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


@dataclass(frozen=True, slots=True)
class Attached:
    """A message part, and a note for the user."""

    part: Part
    note: str = ""


def attach(path: Path) -> Attached:
    """Return an image, a document or a text file as a file part. Raise UsageError for other files. Blocks."""
    data = read_whole(path, MAX_MEDIA)
    media = next((media for head, media in _MEDIA if data.startswith(head)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        media = "image/webp"
    if media is not None:
        return Attached(local_file(data, str(path), media))
    if data.startswith(b"PK") and (kind := kind_of(path.name)):
        return Attached(local_file(data, str(path), MEDIA_TYPES[kind]))
    if b"\0" in data:
        known = "text, an image (PNG, JPEG, GIF, WebP), or a document (PDF, DOCX, XLSX, PPTX, EPUB)"
        raise UsageError(f"Cannot attach {str(path)!r}: it is not {known}.")
    if len(data) > MAX_TEXT:
        raise UsageError(f"{str(path)!r} has more than {MAX_TEXT >> 20} MiB of text, which is too much for any model.")
    text, note = as_text(data, str(path))
    return Attached(local_file(text.encode(), str(path)), note)


def read_whole(path: Path, limit: int) -> bytes:
    """Return the bytes of a file. Raise UsageError if it can't be read or is larger than `limit`."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"Cannot read {str(path)!r}: {reason}.") from error
    if len(data) > limit:
        raise UsageError(f"{str(path)!r} is larger than {limit >> 20} MiB.")
    return data


def as_text(data: bytes, where: str) -> tuple[str, str]:
    """Return the text, and a note about bytes that are not UTF-8, or an empty string."""
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        note = f"{where} is not valid UTF-8 from byte {error.start} on; invalid bytes were replaced by \ufffd."
        return data.decode("utf-8", "replace"), note
