"""Files of the web page, and the page that documents the API."""

from __future__ import annotations

import gzip
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_FOLDER = Path(__file__).parent

BUILT: Final = _FOLDER / "page"
"""Output folder of the `web/` build: `index.html`, `assets/` with hashed names, and other files."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; media-src 'self' blob:; worker-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of the page: only its own files and its own server. Styles are set as element properties, never in markup."""

FRAME_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Content-Security-Policy of files below `frames/`, which show model output in an isolated origin without network access."""

_OURS = ("/api", "/v1")
"""Path prefixes of the API, which never return the web page."""

_FORBIDDEN = ("..", "\\", "\0", ";", "//")
"""Character sequences that no valid path contains; they often occur in attacks."""

_FILES = ("assets/", "frames/")
"""Path prefixes that only contain files; other paths without a file return the web page."""

_PACKED = ("text/", "application/json", "application/javascript", "image/svg+xml", "application/wasm", "application/manifest+json")
_WORTH_PACKING = 1024

_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>moot</title>
<h1>moot is running, but the web page isn’t built</h1>
<p>In a checkout, run <code>make web</code> and reload. Installed wheels include the page.</p>
<p>The <a href="/docs">API</a> and the command line work without it.</p></html>
"""


@dataclass(frozen=True, slots=True)
class File:
    """A file with its response headers."""

    content: bytes
    headers: Mapping[str, str]
    packed: bytes | None = None
    """Content compressed with gzip, if worthwhile."""


class Pages:
    """ASGI application for requests without a route: files of the page, and the page itself for all other paths."""

    def __init__(self, built: Path = BUILT) -> None:
        self._built = built
        self._files: dict[str, Path] = {}
        """Files by URL path. Only these are ever opened, so no path can leave the folder."""
        self._read: dict[str, File] = {}
        self._state: object = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        path = scope["path"]
        if any(sequence in path for sequence in _FORBIDDEN):
            raise HTTPException(404)
        if scope["method"] not in ("GET", "HEAD") or path in _OURS or path.startswith(tuple(f"{ours}/" for ours in _OURS)):
            raise HTTPException(404)
        scope["moot.route"] = "(page)"
        file = await self._find(path)
        if file is None:
            raise HTTPException(404)
        request_headers, response = Headers(scope=scope), Response(file.content, headers=dict(file.headers))
        if (etag := file.headers.get("etag")) is not None and request_headers.get("if-none-match") == etag:
            response = Response(status_code=304, headers=dict(file.headers))
        elif file.packed is not None and "gzip" in request_headers.get("accept-encoding", ""):
            response = Response(file.packed, headers={**file.headers, "content-encoding": "gzip"})
        await response(scope, receive, send)

    async def _find(self, path: str) -> File | None:
        """Return the file at a path, or None if it is missing. For a path that doesn't look like a file's, return the web page."""
        state = await anyio.to_thread.run_sync(_state, self._built / "index.html")
        if state != self._state or state is None:
            self._state = state
            self._files = await anyio.to_thread.run_sync(_files, self._built)
            self._read = {}
        name = path.removeprefix("/")
        if name not in self._files:
            if "." in name.rpartition("/")[2] or name.startswith(_FILES):
                return None
            name = "index.html"
        if name not in self._files:
            return File(_MISSING.encode(), {"content-type": "text/html; charset=utf-8", "cache-control": "no-store"})
        if name not in self._read:
            self._read[name] = await anyio.to_thread.run_sync(_file, name, self._files[name])
        return self._read[name]


def is_built(built: Path = BUILT) -> bool:
    """Return True if the page has been built."""
    return (built / "index.html").is_file()


def _state(index: Path) -> tuple[int, int] | None:
    """Return a value that changes with every build, or None if there is no build."""
    try:
        found = index.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _files(built: Path) -> dict[str, Path]:
    documentation = {f"docs/{path.name}": path for path in (_FOLDER / "documentation").iterdir() if path.name != "index.html"}
    page = {
        path.relative_to(built).as_posix(): path
        for path in built.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(built).parts)
    }
    return page | documentation | {"docs": _FOLDER / "documentation" / "index.html"}


def _file(name: str, path: Path) -> File:
    content = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    keeping = "no-store" if kind == "text/html" else "no-cache"
    if name.startswith("assets/"):  # the name contains a hash of the content
        keeping = "public, max-age=31536000, immutable"
    packs = kind.startswith(_PACKED) and len(content) >= _WORTH_PACKING
    headers = {
        "content-type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
        "etag": f'"{blake2b(content, digest_size=12).hexdigest()}"',
        "cache-control": keeping,
        "content-security-policy": FRAME_POLICY if name.startswith("frames/") else POLICY,
        **({"x-frame-options": "SAMEORIGIN", "cross-origin-resource-policy": "cross-origin"} if name.startswith("frames/") else {}),
        **({"vary": "accept-encoding"} if packs else {}),
    }
    return File(content, headers, gzip.compress(content, 6, mtime=0) if packs else None)
