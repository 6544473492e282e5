"""The prompt, stdin and attached files as the parts of one message."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

from moot.cli.output import Output
from moot.errors import UsageError
from moot.runtime.attaching import MAX_TEXT, as_text, attach, read_whole
from moot.types.canonical import JsonObject, loads_object
from moot.types.part import Part, text_part

PATIENCE = 3.0
"""Seconds without input on stdin before a hint is printed."""


def gather(prompt: str | None, files: Sequence[Path], output: Output, *, needed: bool = True) -> tuple[Part, ...]:
    """Return the parts of a message: files first, then the prompt followed by stdin.

    Raise UsageError if a file is missing or too large, or if `needed` and there is no prompt.
    """
    parts = [_file(path, output) for path in files]
    piped = _stdin(output, alone=prompt is None)
    text = "\n\n".join(piece for piece in (prompt, piped) if piece)
    if text.strip():
        parts.append(text_part(text))
    if not parts and needed:
        raise UsageError("No prompt given.", fix='Pass it as an argument, as in moot run "…", or on stdin.')
    return tuple(parts)


def read_schema(path: Path) -> JsonObject:
    """Read a JSON Schema from a file. Raise UsageError if it is not valid JSON."""
    try:
        return loads_object(read_whole(path, MAX_TEXT))
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not a JSON Schema: {error}") from error


def _stdin(output: Output, *, alone: bool) -> str:
    if sys.stdin.isatty():
        return ""
    descriptor = sys.stdin.fileno()
    pieces: list[bytes] = []
    size = 0
    if not alone and not select.select([descriptor], [], [], PATIENCE)[0]:
        output.say("moot: reading from stdin; use </dev/null if there is no input", "dim")
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_TEXT:
            raise UsageError(f"stdin is larger than {MAX_TEXT >> 20} MiB.", fix="Shorten it, or mention the file in the prompt.")
    return _text(b"".join(pieces), "stdin", output).removesuffix("\n")


def _file(path: Path, output: Output) -> Part:
    attached = attach(path)
    if attached.note:
        output.say(f"moot: {attached.note}", "yellow")
    return attached.part


def _text(data: bytes, where: str, output: Output) -> str:
    text, note = as_text(data, where)
    if note:
        output.say(f"moot: {note}", "yellow")
    return text
