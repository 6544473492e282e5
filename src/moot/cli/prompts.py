"""What a person hands in: a prompt, stdin and files, as the parts of one message."""

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
"""Seconds without a byte on stdin after which we say what we are waiting for."""


def gather(prompt: str | None, files: Sequence[Path], output: Output, *, needed: bool = True) -> tuple[Part, ...]:
    """The parts: files first, then the prompt with stdin below it.

    Raises UsageError when there is too much, no such file, or, unless it is not `needed`, nothing at all.
    """
    parts = [_file(path, output) for path in files]
    piped = _stdin(output, alone=prompt is None)
    text = "\n\n".join(piece for piece in (prompt, piped) if piece)
    if text.strip():
        parts.append(text_part(text))
    if not parts and needed:
        raise UsageError("no prompt", fix='Give it as an argument, as in moot run "…", or on stdin.')
    return tuple(parts)


def read_schema(path: Path) -> JsonObject:
    """The JSON Schema in a file. Raises UsageError."""
    try:
        return loads_object(read_whole(path, MAX_TEXT))
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
    attached = attach(path)
    if attached.note:
        output.say(f"moot: {attached.note}", "yellow")
    return attached.part


def _text(data: bytes, where: str, output: Output) -> str:
    text, note = as_text(data, where)
    if note:
        output.say(f"moot: {note}", "yellow")
    return text
