"""Lossless decoding and encoding of text files, which keeps encoding, byte order mark and line endings. Also diffs of texts."""

from __future__ import annotations

import codecs
import difflib
from dataclasses import dataclass

SNIFFED = 8192
"""Number of bytes that are checked for binary content."""
LATIN = "latin-1"

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"))


@dataclass(frozen=True, slots=True)
class Text:
    """A text file's content, encoding and byte order mark."""

    text: str
    """The content, with the file's line endings."""
    encoding: str
    mark: bytes = b""
    """The byte order mark, if any."""

    def encode(self, text: str) -> bytes:
        """Encode another text in the same way. Raise UnicodeEncodeError if the encoding can't represent it."""
        return self.mark + text.encode(self.encoding)

    @property
    def newline(self) -> str:
        """The file's most common line ending; LF if it has none."""
        return "\r\n" if self.text.count("\r\n") * 2 > self.text.count("\n") else "\n"


def encoding_of(head: bytes, *, whole: bool) -> tuple[str, bytes]:
    """Return the detected encoding and the byte order mark. The encoding is Latin-1 if the bytes are not valid UTF-8.

    With `whole`, `head` is the entire file, so an incomplete character at its end makes it invalid UTF-8.
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, mark
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=whole)
    except UnicodeDecodeError:
        return LATIN, b""
    return "utf-8", b""


def is_binary(head: bytes) -> bool:
    """Return True if the first bytes are not text in any supported encoding."""
    marked = any(head.startswith(mark) for mark, _ in _MARKS)
    return b"\0" in head[:SNIFFED] and not marked


def picture_type(head: bytes) -> str:
    """Return the media type of an image in a format that models accept; empty for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _PICTURES if head.startswith(magic)), "")


def decode(data: bytes) -> Text:
    """Decode a file into text that encodes to the same bytes. Raise UnicodeDecodeError for invalid UTF-16."""
    encoding, mark = encoding_of(data, whole=True)
    body = data[len(mark) :]
    if encoding == "utf-8" and mark:
        try:
            return Text(body.decode(), encoding, mark)
        except UnicodeDecodeError:  # a mark before text that is not UTF-8 is treated as text
            return Text(data.decode(LATIN), LATIN)
    return Text(body.decode(encoding), encoding, mark)


def note(encoding: str, mark: bytes) -> str:
    """Return a note about the encoding for the model; empty for UTF-8 without a byte order mark."""
    if encoding == LATIN:
        return "not UTF-8; read as Latin-1"
    return f"{encoding.upper()} with a byte order mark" if mark else ""


def printable(name: str) -> str:
    """Return a file name as text, with bytes that are not UTF-8 replaced by U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


DIFF_CHARACTERS = 12_000
"""Maximum number of characters in a diff, which is stored with the call's output."""
_COMPARED_LINES = 4000
"""Maximum number of lines in texts that are compared, because comparing takes quadratic time."""


def unified(path: str, before: str, after: str) -> str:
    """Return the unified diff; empty if the texts are equal. For very long texts, return only their lengths."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _COMPARED_LINES:
        return f"--- {path}\n+++ {path}\n({len(old):,} lines become {len(new):,})"
    diff = "\n".join(difflib.unified_diff(old, new, path, path, lineterm=""))
    return diff if len(diff) <= DIFF_CHARACTERS else diff[:DIFF_CHARACTERS] + "\n… (cut)"
