"""Files mentioned in a prompt as `@file`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moot.convert.files.attachments import local_file
from moot.errors import NotFound, UsageError
from moot.features.attachments import MAX_MEDIA, as_text, attach, read_whole
from moot.guard.paths import Paths
from moot.guard.roots import folders
from moot.types.message import Part, text_part

MAX_NAMES = 200
"""Largest number of names listed for a folder."""

_MENTION = re.compile(r"""(?<![\w@/])@(?:"([^"\n]+)"|([^\s"'`@]+))""")
_RANGE = re.compile(r"(.+)#(\d+)(?:-(\d+))?")
_TRAILING = ".,;:!?)]}>"


@dataclass(frozen=True, slots=True)
class Mentions:
    """The parts to send before the prompt, and notes for the user."""

    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()


def paths_of(directory: str, allowed: Sequence[str] = ()) -> Paths:
    """Return the paths that may be mentioned in a conversation: those that its tools may read."""
    return Paths(folders(allowed) or (Path(directory),), Path(directory))


def read_mentions(text: str, paths: Paths) -> Mentions:
    """Return the files mentioned in a prompt. A mention that is not a file stays plain text. Blocking.

    Raise Refused for a file that may not be read, and UsageError for one that cannot be sent.
    """
    parts: list[Part] = []
    notes: list[str] = []
    for quoted, bare in dict.fromkeys(_MENTION.findall(text)):
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
    """Return path, first line and last line (0 for the whole file) of the first spelling whose file exists; None if none does."""
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
