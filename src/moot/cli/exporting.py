"""`moot export`: a conversation as a file of some format."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from moot.cli.opening import opened_at
from moot.cli.options import Out, Which
from moot.cli.output import Output
from moot.cli.parameters import Parameter
from moot.errors import MootError, UsageError
from moot.plugins import FORMATS
from moot.runtime.exporting import exported
from moot.types.canonical import Json, JsonObject
from moot.types.format import Format, Written


async def export(
    conversation: Which,
    /,
    *,
    format: Annotated[str, Parameter(name=("--format", "-f"), help="`recording` keeps everything; see docs/raw.md.")] = "recording",
    to: Annotated[Path | None, Parameter(name=("--output", "-o"), kind="file", help="The file to write; else it goes to stdout.")] = None,
    json: Annotated[bool, Parameter(name="--json", help="With -o: what went along, as one JSON document on stdout.")] = False,
    output: Out,
) -> None:
    """Writes a conversation as a file of a format; what can't go along is said."""
    if format not in FORMATS:
        raise UsageError(f"{FORMATS.unknown(format)}; known: {', '.join(FORMATS.names())}")
    if to is None and json:
        raise UsageError("--json tells of a file: name it with -o", fix=f"moot export {conversation} -o FILE --json")
    if to is None and output.stdout_terminal:
        raise UsageError("a recording is no text for a screen", fix=f"moot export {conversation} -o FILE")
    writer: Format = FORMATS.make(format)
    async with opened_at(conversation, output) as (engine, found):
        written = await exported(engine.store, found, writer)
    if to is None:
        sys.stdout.buffer.write(written.data)
        sys.stdout.buffer.flush()
        return
    _write(to, written.data)
    _tell(written, to, output, json=json)


def _write(path: Path, data: bytes) -> None:
    """The file whole under its name, or not at all; readable by nobody else, for conversations are private."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.touch(0o600, exist_ok=False)
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise MootError(f"can't write {str(path)!r}: {error.strerror}") from error


def _tell(written: Written, to: Path, output: Output, *, json: bool) -> None:
    fidelity = written.fidelity
    counts: dict[str, JsonObject] = {
        "kept": dict(fidelity.kept),
        "approximated": dict(fidelity.approximated),
        "lost": dict(fidelity.lost),
    }
    if json:
        document: dict[str, Json] = {"ok": True, "file": str(to), "bytes": len(written.data), "fidelity": {**counts}}
        output.json(document)
        return
    output.say(f"moot: wrote {to} ({len(written.data):,} bytes)")
    for word, things in counts.items():
        if things:
            output.say(f"  {word}: {', '.join(f'{count:,} {thing}' for thing, count in things.items())}", "dim")
