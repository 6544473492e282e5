"""Reading a file or blob that a call names, up to a size limit."""

from __future__ import annotations

from moot.errors import MootError, NotFound
from moot.guard.paths import Paths
from moot.tools.basics import failed, guarded, paths_of, size_word, words
from moot.types.tool import ToolContext, ToolOutput

__all__ = ["read_source"]

_BLOB = "blob:"


async def read_source(path: str, context: ToolContext, limit: int) -> bytes | ToolOutput:
    """Return the content of a file or of `blob:<sha256>`, or a failed output if it can't be read or is larger than `limit`."""
    if not path.startswith(_BLOB):
        return await guarded(lambda: _read(paths_of(context), path, limit))
    try:
        data = await context.blobs.get(path.removeprefix(_BLOB), limit=limit + 1)
    except NotFound:
        return failed(f"{path!r} not found; use the name exactly as in the output")
    except MootError as error:
        return failed(words(error))
    return _bounded(path, data, limit)


def _read(paths: Paths, path: str, limit: int) -> bytes | ToolOutput:
    with paths.open_read(path) as stream:
        return _bounded(path, stream.read(limit + 1), limit)


def _bounded(path: str, data: bytes, limit: int) -> bytes | ToolOutput:
    return data if len(data) <= limit else failed(f"{path!r} is larger than {size_word(limit)}, the maximum for models")
