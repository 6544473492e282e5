"""What a person hands in: a prompt, stdin and files, as the parts of one message."""

from __future__ import annotations

import base64
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

from moot.cli.output import Output
from moot.errors import UsageError
from moot.types.canonical import JsonObject, loads_object
from moot.types.part import Part, text_part

MAX_TEXT = 10 * 1024 * 1024
MAX_MEDIA = 20 * 1024 * 1024
PATIENCE = 3.0
"""Seconds without a byte on stdin after which we say what we are waiting for."""

_MEDIA = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


def gather(prompt: str | None, files: Sequence[Path], output: Output) -> tuple[Part, ...]:
    """The parts: files first, then the prompt with stdin below it. Raises UsageError when there is nothing, too much, or no such file."""
    parts = [_file(path, output) for path in files]
    piped = _stdin(output, alone=prompt is None)
    text = "\n\n".join(piece for piece in (prompt, piped) if piece)
    if text.strip():
        parts.append(text_part(text))
    if not parts:
        raise UsageError("no prompt", fix='Give it as an argument, as in moot run "…", or on stdin.')
    return tuple(parts)


def read_schema(path: Path) -> JsonObject:
    """The JSON Schema in a file. Raises UsageError."""
    try:
        return loads_object(_read(path, MAX_TEXT))
    except ValueError as error:
        raise UsageError(f"{str(path)!r} holds no JSON Schema: {error}") from error


def _stdin(output: Output, *, alone: bool) -> str:
    if sys.stdin.isatty():
        return ""
    descriptor = sys.stdin.fileno()
    pieces: list[bytes] = []
    size = 0
    if not alone and not select.select([descriptor], [], [], PATIENCE)[0]:
        output.say("moot: waiting for stdin to end; give it </dev/null if there is nothing to come", "dim")
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_TEXT:
            raise UsageError(
                f"stdin holds more than {MAX_TEXT >> 20} MiB; no model reads that much", fix="Cut it, or name the file in the prompt."
            )
    return _text(b"".join(pieces), "stdin", output).removesuffix("\n")


def _file(path: Path, output: Output) -> Part:
    data = _read(path, MAX_MEDIA)
    media = next((media for head, media in _MEDIA if data.startswith(head)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        media = "image/webp"
    if media is not None:
        url = f"data:{media};base64,{base64.b64encode(data).decode()}"
        return {"type": "file", "mediaType": media, "filename": path.name, "url": url}
    if b"\0" in data:
        raise UsageError(f"{str(path)!r} is neither text, a picture (PNG, JPEG, GIF, WebP) nor a PDF")
    if len(data) > MAX_TEXT:
        raise UsageError(f"{str(path)!r} has more than {MAX_TEXT >> 20} MiB of text; no model reads that much")
    return text_part(f"{path}:\n\n{_text(data, str(path), output)}")


def _read(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot read {str(path)!r}: {reason}") from error
    if len(data) > limit:
        raise UsageError(f"{str(path)!r} is larger than {limit >> 20} MiB")
    return data


def _text(data: bytes, where: str, output: Output) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace")
        output.say(f"moot: {where} is not UTF-8 from byte {error.start} on; what could not be read became \ufffd", "yellow")
        return text
