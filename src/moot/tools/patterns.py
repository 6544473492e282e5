"""Search for lines that match a pattern, in pure Python. It runs as a child process, because a malicious pattern could block moot.

`python -m moot.tools.patterns REQUEST` prints one JSON line per match: a list of path, line number and text. With the arguments
PATTERN FILE, it exits with 0 if the pattern occurs anywhere in the file, otherwise with 10.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from moot.errors import MootError
from moot.guard.paths import Paths
from moot.tools import texts
from moot.tools.walk import Glob, walk

NOT_FOUND = 10
"""Exit code if a pattern does not occur; 1 means an exception."""

FILE_BYTES = 10_485_760
"""Maximum size in bytes of a file that is searched. Larger files are skipped."""


@dataclass(frozen=True, slots=True)
class Request:
    roots: tuple[str, ...]
    directory: str
    path: str
    pattern: str
    glob: str
    ignore_case: bool
    limit: int


@dataclass(frozen=True, slots=True)
class Match:
    path: str
    """Path relative to the searched folder; empty if a single file is searched."""
    number: int
    text: str


def find(request: Request) -> Iterator[Match]:
    """Yield at most `limit` matches, ordered by path and line."""
    paths = Paths([Path(root) for root in request.roots], Path(request.directory))
    pattern = compiled(request.pattern, ignore_case=request.ignore_case)
    left = request.limit
    for path in _files(paths, request):
        data = b""
        # the file may have been removed or made unreadable since it was listed
        with suppress(MootError), paths.open_read(f"{request.path}/{path}" if path else request.path) as stream:
            data = stream.read(FILE_BYTES + 1)
        for number, text in enumerate(lines_of(data) if len(data) <= FILE_BYTES else (), 1):
            if pattern.search(text):
                yield Match(texts.printable(path), number, text)
                left -= 1
                if not left:
                    return


def is_expression(pattern: str) -> bool:
    """Return True if the pattern is a valid regular expression. If it is not, it is searched for as plain text."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def compiled(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    """Return the compiled pattern, escaped if it is not a valid regular expression."""
    return re.compile(pattern if is_expression(pattern) else re.escape(pattern), re.IGNORECASE if ignore_case else 0)


def lines_of(data: bytes) -> list[str]:
    """Return the lines without line endings. Return an empty list for a binary file."""
    encoding, mark = texts.encoding_of(data[:4], whole=False)
    if not mark and b"\0" in data:
        return []
    text = data[len(mark) :].decode(encoding if mark else "utf-8", "replace")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _files(paths: Paths, request: Request) -> Iterator[str]:
    if paths.kind(request.path) != "directory":
        yield ""
        return
    wanted = Glob(request.glob) if request.glob else None
    for path, entry in walk(paths, request.path):
        if entry.kind == "file" and (wanted is None or wanted(path)):
            yield path


def main(argument: str) -> None:
    """Print the matches of a request in JSON."""
    fields: dict[str, Any] = orjson.loads(argument)
    fields["roots"] = tuple(fields["roots"])
    request = Request(**fields)
    for match in find(request):
        sys.stdout.buffer.write(orjson.dumps([match.path, match.number, match.text]) + b"\n")
        sys.stdout.buffer.flush()


def occurs(pattern: str, file: str) -> bool:
    """Return True if the pattern occurs anywhere in the UTF-8 file."""
    return re.search(pattern, Path(file).read_bytes().decode()) is not None


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(0 if occurs(*sys.argv[1:]) else NOT_FOUND)
    main(sys.argv[1])
