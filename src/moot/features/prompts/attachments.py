"""Attach files to a prompt, given their paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

from moot.convert.files.attachments import MEDIA_TYPES, kind_of, local_file
from moot.convert.files.media_types import SOUND_FORMATS, attached_sound
from moot.errors import NotFound, UsageError
from moot.guard.paths import Paths
from moot.guard.roots import folders
from moot.types.message import Part

MAX_TEXT = 10 * 1024 * 1024
MAX_MEDIA = 20 * 1024 * 1024
MAX_NAMES = 200
"""Maximum number of names to list for a folder."""

_RANGE = re.compile(r"(.+)#(\d{1,9})(?:-(\d{1,9}))?")
_TRAILING = ".,;:!?)]}>"

_MEDIA = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


Check: TypeAlias = Callable[[str, str], None]
"""A function that is called with the name of a tool and a path. It raises Refused if the tool may not read the path."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A message part, and a note for the user."""

    part: Part
    note: str = ""


def attach(path: Path) -> Attached:
    """Return an image, a recording, a document or a text file as a file part. Raise UsageError for other files. This function blocks."""
    return attached(read_whole(path, MAX_MEDIA), str(path))


def attached(data: bytes, path: str) -> Attached:
    """Return the content of a file as a file part. Raise UsageError if it is not an image, a recording, a document or text."""
    if media := media_of(data):
        return Attached(local_file(data, path, media))
    if data.startswith(b"PK") and (kind := kind_of(Path(path).name)):
        return Attached(local_file(data, path, MEDIA_TYPES[kind]))
    if (sound := attached_sound(data, path)) is not None:
        return Attached(local_file(data, path, sound.media_type))
    if b"\0" in data:
        known = f"text, an image (PNG, JPEG, GIF, WebP), a document (PDF, DOCX, XLSX, PPTX, EPUB) or a recording ({SOUND_FORMATS})"
        raise UsageError(f"Cannot attach {path!r}: it is not {known}.")
    if len(data) > MAX_TEXT:
        raise UsageError(f"{path!r} has more than {MAX_TEXT >> 20} MiB of text, which is too much for any model.")
    text, note = as_text(data, path)
    return Attached(local_file(text.encode(), path), note)


def media_of(data: bytes) -> str:
    """Determine the media type of an image or a PDF from its first bytes. Return an empty string for other data."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media for head, media in _MEDIA if data.startswith(head)), "")


def read_whole(path: Path, limit: int, opened: Callable[[], AbstractContextManager[BinaryIO]] | None = None) -> bytes:
    """Return the bytes of a file. Raise UsageError if the file can't be read or is larger than `limit`.

    `opened` is called to open the file instead of `path.open`.
    """
    try:
        with opened() if opened is not None else path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"Cannot read {str(path)!r}: {reason}.") from error
    if len(data) > limit:
        raise UsageError(f"{str(path)!r} is larger than {limit >> 20} MiB.")
    return data


def as_text(data: bytes, where: str) -> tuple[str, str]:
    """Decode a text. Also return a note if some bytes are not UTF-8, otherwise an empty string."""
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        note = f"{where} is not valid UTF-8 from byte {error.start} on; invalid bytes were replaced by \ufffd."
        return data.decode("utf-8", "replace"), note


# ── files named in a prompt ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def paths_of(directory: str, allowed: Sequence[str] = ()) -> Paths:
    """Return the paths that can be mentioned in a conversation: those that its tools may read."""
    return Paths(folders(allowed) or (Path(directory),), Path(directory))


def mentioned(name: str, paths: Paths, check: Check, *, quoted: bool = False) -> Attached | None:
    """Return the file, the lines (`name#10-20`), or the names in the folder that a prompt mentions,
    or None if there is no such file. This function blocks.

    Punctuation after an unquoted name is ignored.
    Raise Refused for a file that may not be read, and UsageError for a file that can't be sent.
    """
    found = _first(paths, [name] if quoted else [name, name.rstrip(_TRAILING)])
    return None if found is None else _part(paths, check, *found)


def _first(paths: Paths, spellings: Sequence[str]) -> tuple[str, int, int] | None:
    """Return the path, first line and last line (0 for the whole file) of the first spelling for which a file exists."""
    for spelling in dict.fromkeys(spellings):
        match = _RANGE.fullmatch(spelling)
        for path, first, last in [(spelling, 0, 0), *([(match[1], int(match[2]), int(match[3] or match[2]))] if match else [])]:
            try:
                paths.stat(path)
            except NotFound:
                continue
            return path, first, last
    return None


def _part(paths: Paths, check: Check, path: str, first: int, last: int) -> Attached:
    if paths.kind(path) == "directory":
        check("list_files", path)
        names = [f"{entry.name}/" if entry.kind == "directory" else entry.name for entry in paths.listdir(path, MAX_NAMES)]
        part = local_file("\n".join(names).encode("utf-8", "replace"), path, "text/plain")
        return Attached({**part, "filename": f"{part['filename']}/"})
    check("read_file", path)
    real = paths.resolve(path)
    data = read_whole(real, MAX_MEDIA, partial(paths.open_read, path))
    if not first:
        return attached(data, str(real))
    text, note = as_text(data, path)
    lines = text.removesuffix("\n").split("\n")
    if first > len(lines) or last < first:
        count = "1 line" if len(lines) == 1 else f"{len(lines):,} lines"
        missing = f"line {first} doesn't exist" if last == first else f"lines {first} to {last} don't exist"
        raise UsageError(f"{path!r} has {count}; {missing}.")
    last = min(last, len(lines))
    return Attached(local_file("\n".join(lines[first - 1 : last]).encode(), path, lines=(first, last)), note)
