"""The bytes of a file as text and back again, to the byte: encoding, byte order mark and line endings are kept."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

__all__ = ["LATIN", "Text", "decode", "encoding_of", "is_binary", "note", "picture_type", "printable"]

SNIFFED = 8192
"""Bytes looked at to tell text from binary."""
LATIN = "latin-1"

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"))


@dataclass(frozen=True, slots=True)
class Text:
    """A text file: what it says, and how it says it."""

    text: str
    """Line endings as in the file."""
    encoding: str
    mark: bytes = b""
    """The byte order mark."""

    def encode(self, text: str) -> bytes:
        """Another text in the same dress. Raises UnicodeEncodeError when the encoding can't say it."""
        return self.mark + text.encode(self.encoding)

    @property
    def newline(self) -> str:
        """The line ending that most lines have; LF when there is none."""
        return "\r\n" if self.text.count("\r\n") * 2 > self.text.count("\n") else "\n"


def encoding_of(head: bytes, *, whole: bool) -> tuple[str, bytes]:
    """The encoding that the first bytes speak for, and the byte order mark; Latin-1 when they are no UTF-8.

    With `whole`, the head is the file, and a character cut at its end counts against UTF-8.
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
    """Whether these first bytes are no text in any encoding that we read."""
    marked = any(head.startswith(mark) for mark, _ in _MARKS)
    return b"\0" in head[:SNIFFED] and not marked


def picture_type(head: bytes) -> str:
    """The media type of a picture that models can see; empty for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _PICTURES if head.startswith(magic)), "")


def decode(data: bytes) -> Text:
    """All of a file as text that encodes back to the same bytes. Raises UnicodeDecodeError for broken UTF-16."""
    encoding, mark = encoding_of(data, whole=True)
    body = data[len(mark) :]
    if encoding == "utf-8" and mark:
        try:
            return Text(body.decode(), encoding, mark)
        except UnicodeDecodeError:  # a mark before text that is no UTF-8: the mark is text, too
            return Text(data.decode(LATIN), LATIN)
    return Text(body.decode(encoding), encoding, mark)


def note(encoding: str, mark: bytes) -> str:
    """What a reader must know of the encoding; empty for plain UTF-8."""
    if encoding == LATIN:
        return "not UTF-8; read as Latin-1"
    return f"{encoding.upper()} with a byte order mark" if mark else ""


def printable(name: str) -> str:
    """A file name as text: bytes that are no UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
