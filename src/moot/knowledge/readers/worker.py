"""The worker process that reads one document: `main()` with the format's name, the document on stdin and JSON on stdout."""

from __future__ import annotations

import os
import resource
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO

from moot.plugins.registry import attribute
from moot.types.canonical import Json, dumps

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 60
CHARACTERS = 8_000_000
"""Maximum length of a document's text. The rest is left out."""
UNPACKED_BYTES = 300 << 20
ENTRIES = 10_000

_READERS = {name: f"moot.knowledge.readers.{name}:read" for name in ("docx", "epub", "html", "pdf", "pptx", "xlsx")}


def main() -> None:
    """Read the document from stdin and write its text to stdout."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output printed by libraries must not mix with the answer
    answers.write(dumps(_answer(sys.argv[1], sys.stdin.buffer.read())))
    answers.close()
    os._exit(0)  # freeing a large document takes time


def _answer(kind: str, data: bytes) -> dict[str, Json]:
    try:
        _check_archive(data)
        return _sections(attribute(_READERS[kind])(data))
    except MemoryError:
        return {"problem": f"reading it takes more than {MEMORY_BYTES >> 20:,} MiB of memory"}
    except RecursionError:
        return {"problem": "it is nested too deeply"}
    except Exception as error:  # noqa: BLE001  libraries raise anything for damaged documents
        return {"problem": f"it is damaged or not supported ({type(error).__name__}: {' '.join(str(error).split())[:200]})"}


def _sections(pieces: Iterator[tuple[str, str]]) -> dict[str, Json]:
    found: list[Json] = []
    left = CHARACTERS
    for place, text in pieces:
        clean = text.encode("utf-8", "replace").decode().replace("\0", "")
        if clean.strip():
            found.append([place, clean[:left]])
            left -= len(clean)
        if left <= 0:
            break
    return {"sections": found, "cut": left <= 0}


def _check_archive(data: bytes) -> None:
    """Raise ValueError if an archive is encrypted or unpacks to too much data."""
    if not data.startswith(b"PK"):
        return
    with zipfile.ZipFile(BytesIO(data)) as archive:
        entries = archive.infolist()
    if len(entries) > ENTRIES or sum(entry.file_size for entry in entries) > UNPACKED_BYTES:
        raise ValueError("the archive unpacks to too much data")
    if any(entry.flag_bits & 1 for entry in entries):
        raise ValueError("the archive is encrypted")
