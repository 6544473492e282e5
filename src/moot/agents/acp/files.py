"""Files read and written for an agent, with the same guard as for moot's own tools. Synchronous: for a worker thread."""

from __future__ import annotations

from itertools import islice

from moot.agents.acp.link import Refuse
from moot.agents.outside.rpc import INTERNAL, INVALID_PARAMS
from moot.errors import MootError, NotFound
from moot.guard.paths import Paths

NOT_FOUND = -32002
LARGEST = 10_000_000
"""Maximum number of bytes of a file that is read."""


def read_text(paths: Paths, path: str, line: int, limit: int | None) -> str:
    """Return the text, or `limit` lines of it starting at line `line`, from 1. Raise Refuse."""
    try:
        with paths.open_read(path) as stream:
            data = stream.read(LARGEST + 1)
    except NotFound as error:
        raise Refuse(NOT_FOUND, f"Resource not found: {path}") from error
    except MootError as error:
        raise Refuse(INVALID_PARAMS, error.message) from error
    except OSError as error:
        raise Refuse(INTERNAL, f"{path}: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise Refuse(INVALID_PARAMS, f"{path} has more than {LARGEST} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refuse(INVALID_PARAMS, f"{path} is not UTF-8 text") from error
    if line <= 1 and limit is None:
        return text
    first = max(line, 1) - 1
    return "".join(islice(text.splitlines(keepends=True), first, None if limit is None else first + limit))


def write_text(paths: Paths, path: str, content: str) -> None:
    """Replace the file's content atomically; missing folders are created. Raise Refuse."""
    try:
        with paths.open_write(path) as stream:
            stream.write(content.encode("utf-8", "replace"))
    except MootError as error:
        raise Refuse(INVALID_PARAMS, error.message) from error
    except OSError as error:
        raise Refuse(INTERNAL, f"{path}: {error.strerror or error}") from error
