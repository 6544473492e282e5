"""Attaching files to a prompt: given by path, or mentioned in its text as `@file`, or as `@SERVER:URI` for resources of MCP servers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from moot.convert.files.attachments import MEDIA_TYPES, kind_of, local_file
from moot.errors import NotFound, UsageError
from moot.guard.paths import Paths
from moot.guard.roots import folders
from moot.types.agent import McpServer
from moot.types.message import Part, text_part

if TYPE_CHECKING:
    from moot.mcp.servers import McpServers

MAX_TEXT = 10 * 1024 * 1024
MAX_MEDIA = 20 * 1024 * 1024
MAX_NAMES = 200
"""Maximum number of names listed for a folder."""

RESOURCE_SECONDS = 60.0
"""Time limit for reading one mentioned resource, including the start of its server."""

_MENTION = re.compile(r"""(?<![\w@/])@(?:"([^"\n]+)"|([^\s"'`@]+))""")
_RANGE = re.compile(r"(.+)#(\d+)(?:-(\d+))?")
_RESOURCE = re.compile(r"([^:\s]+):([A-Za-z][A-Za-z0-9+.-]*:.+)")
_TRAILING = ".,;:!?)]}>"

_MEDIA = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


@dataclass(frozen=True, slots=True)
class Attached:
    """A message part, and a note for the user."""

    part: Part
    note: str = ""


def attach(path: Path) -> Attached:
    """Return an image, a document or a text file as a file part. Raise UsageError for other files. Blocks."""
    data = read_whole(path, MAX_MEDIA)
    media = next((media for head, media in _MEDIA if data.startswith(head)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        media = "image/webp"
    if media is not None:
        return Attached(local_file(data, str(path), media))
    if data.startswith(b"PK") and (kind := kind_of(path.name)):
        return Attached(local_file(data, str(path), MEDIA_TYPES[kind]))
    if b"\0" in data:
        known = "text, an image (PNG, JPEG, GIF, WebP), or a document (PDF, DOCX, XLSX, PPTX, EPUB)"
        raise UsageError(f"Cannot attach {str(path)!r}: it is not {known}.")
    if len(data) > MAX_TEXT:
        raise UsageError(f"{str(path)!r} has more than {MAX_TEXT >> 20} MiB of text, which is too much for any model.")
    text, note = as_text(data, str(path))
    return Attached(local_file(text.encode(), str(path)), note)


def read_whole(path: Path, limit: int) -> bytes:
    """Return the bytes of a file. Raise UsageError if it can't be read or is larger than `limit`."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"Cannot read {str(path)!r}: {reason}.") from error
    if len(data) > limit:
        raise UsageError(f"{str(path)!r} is larger than {limit >> 20} MiB.")
    return data


def as_text(data: bytes, where: str) -> tuple[str, str]:
    """Return the text, and a note about bytes that are not UTF-8, or an empty string."""
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        note = f"{where} is not valid UTF-8 from byte {error.start} on; invalid bytes were replaced by \ufffd."
        return data.decode("utf-8", "replace"), note


# ── mentions ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Mentions:
    """The parts to send before the prompt, and notes for the user."""

    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()


def paths_of(directory: str, allowed: Sequence[str] = ()) -> Paths:
    """Return the paths that may be mentioned in a conversation: those that its tools may read."""
    return Paths(folders(allowed) or (Path(directory),), Path(directory))


@dataclass(frozen=True, slots=True)
class ResourceSource:
    """The MCP servers whose resources may be mentioned."""

    connections: McpServers | None = None
    """None = no resource can be read."""
    servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    """The configured servers by name."""
    directory: str = ""
    """Folder in which servers are started."""

    def named(self, spelling: str) -> tuple[McpServer, str] | None:
        """Return the server and the URI of `SERVER:URI`, or None for other texts."""
        match = _RESOURCE.fullmatch(spelling) if self.connections is not None else None
        server = self.servers.get(match[1]) if match else None
        return (server, match[2]) if match and server is not None and server.enabled else None


async def mentions_in(text: str, paths: Paths | None, source: ResourceSource) -> Mentions:
    """Return the files and resources mentioned in a prompt; without `paths`, only the resources. Raise MootError if one can't be sent."""
    parts: list[Part] = []
    spellings: set[str] = set()
    for quoted, bare in dict.fromkeys(_MENTION.findall(text)):
        if (found := source.named(quoted or bare.rstrip(_TRAILING))) is not None:
            spellings.add(quoted or bare)
            parts += await _resource(source, *found)
    files = Mentions()
    if paths is not None:
        files = await anyio.to_thread.run_sync(partial(read_mentions, text, paths, spellings))
    return Mentions((*files.parts, *parts), files.notes)


async def _resource(source: ResourceSource, server: McpServer, uri: str) -> list[Part]:
    assert source.connections is not None
    with anyio.move_on_after(RESOURCE_SECONDS):
        files = await source.connections.read(server, uri, source.directory)
        return [local_file(file.data, f"{server.name}:{file.name}", file.media_type) for file in files]
    raise UsageError(
        f"The MCP server {server.name!r} did not send {uri!r} within {RESOURCE_SECONDS:g} s.", fix=f"moot mcp test {server.name}"
    )


def read_mentions(text: str, paths: Paths, skipped: Collection[str] = ()) -> Mentions:
    """Return the files mentioned in a prompt. A mention that is not a file stays plain text. `skipped` are other mentions. Blocks.

    Raise Refused for a file that may not be read, and UsageError for one that cannot be sent.
    """
    parts: list[Part] = []
    notes: list[str] = []
    for quoted, bare in dict.fromkeys(_MENTION.findall(text)):
        if (quoted or bare) in skipped:
            continue
        found = _first(paths, [quoted] if quoted else [bare, bare.rstrip(_TRAILING)])
        if found is None:
            if "/" in bare or "." in bare.strip("."):
                notes.append(f"File {quoted or bare!r} not found; sent as text.")
            continue
        part, note = _part(paths, *found)
        parts.append(part)
        notes += [note] if note else []
    return Mentions(tuple(parts), tuple(notes))


def _first(paths: Paths, spellings: Sequence[str]) -> tuple[str, int, int] | None:
    """Return path, first and last line (0 for the whole file) of the first spelling that exists."""
    for spelling in dict.fromkeys(spellings):
        match = _RANGE.fullmatch(spelling)
        for path, first, last in [(spelling, 0, 0), *([(match[1], int(match[2]), int(match[3] or match[2]))] if match else [])]:
            try:
                paths.stat(path)
            except NotFound:
                continue
            return path, first, last
    return None


def _part(paths: Paths, path: str, first: int, last: int) -> tuple[Part, str]:
    if paths.kind(path) == "directory":
        names = [f"{entry.name}/" if entry.kind == "directory" else entry.name for entry in paths.listdir(path, MAX_NAMES)]
        return text_part(f"{path}:\n\n" + "\n".join(names)), ""
    with paths.open_read(path):  # raises Refused for a device or a pipe before anything is read
        real = paths.resolve(path)
    if not first:
        attached = attach(real)
        return attached.part, attached.note
    text, note = as_text(read_whole(real, MAX_MEDIA), path)
    lines = text.split("\n")
    if first > len(lines) or last < first:
        raise UsageError(f"{path!r} has {len(lines)} lines; lines {first}-{last} don't exist.")
    last = min(last, len(lines))
    return local_file("\n".join(lines[first - 1 : last]).encode(), path, lines=(first, last)), note
