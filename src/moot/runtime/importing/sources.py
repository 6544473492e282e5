"""What there is to read: sources below the paths that a person names, and where programs on this machine keep theirs.

Only regular files are opened, links are followed nowhere but where a person has named one, and our own data is never touched.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from moot.errors import UsageError
from moot.plugins import FORMATS
from moot.types.format import Format, Placed, Split
from moot.types.imports import SourceMark

__all__ = ["Places", "Source", "format_of", "mark_of", "places_here", "sources_at", "sources_here"]

HEAD = 64 << 10
"""Bytes by which a format knows its files."""
_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Source:
    """Something that one format reads in one go."""

    path: Path
    """Absolute."""
    format: Format
    mark: SourceMark
    placed: bool = False
    """It lies where its program keeps it on this machine."""
    problem: str = ""
    """Why it can't be read; empty = nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look: called anew each time, in a worker thread."""

    roots: Callable[[], Iterable[Path]]
    """Files and folders that are watched, whether there is anything yet or not."""
    sources: Callable[[], Iterable[Source]]
    """All that can be read there now."""


def format_of(path: Path, name: str = "") -> Format:
    """The format of that name, else the one that knows the source. Raises UsageError."""
    if name:
        return _named(name)
    found = _knowing(path)
    if not found:
        raise UsageError(f"no format knows {str(path)!r}; known: {', '.join(FORMATS.names())}", fix="name one with -f")
    if len(found) > 1:
        raise UsageError(f"{str(path)!r} could be {' or '.join(format.name for format in found)}", fix="name one with -f")
    return found[0]


def _named(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"{FORMATS.unknown(name)}; known: {', '.join(FORMATS.names())}")
    return FORMATS.make(name)


def _knowing(path: Path) -> list[Format]:
    """The formats that claim it. Raises UsageError when it can't be read."""
    try:
        head = b"" if path.is_dir() else _head(path)
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error
    formats: list[Format] = [FORMATS.make(known) for known in FORMATS.names()]
    return [format for format in formats if format.sniff(path, head)]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def mark_of(format: Format, path: Path) -> SourceMark:
    """The source as it stands; of a folder all that is in it. Raises OSError."""
    about = path.stat()
    size, modified = about.st_size, about.st_mtime_ns
    beside: Iterable[Path] = [path.with_name(f"{path.name}-wal")]
    if stat.S_ISDIR(about.st_mode):
        size, beside = 0, _files(path)
    for file in beside:
        try:
            more = file.stat(follow_symlinks=False)
        except OSError:
            continue  # a database that has no log, or what is gone meanwhile
        size, modified = size + more.st_size, max(modified, more.st_mtime_ns)
    return SourceMark(format.name, format.version, str(path), size, modified, about.st_ino)


def sources_at(path: Path, name: str, data: Path) -> Iterator[Source]:
    """The sources at or below a path that a person names. Raises UsageError when there can't be any: `data` is our own folder."""
    path = path.absolute()
    if not path.exists():
        raise UsageError(f"there is no {str(path)!r}", fix="moot import FILE")
    real = path.resolve()
    if real == data.resolve() or data.resolve() in real.parents:
        raise UsageError(f"{str(path)!r} is where moot keeps its own data", fix="moot export ID -f recording writes a file to bring in")
    if not path.is_dir():
        if not path.is_file():
            raise UsageError(f"{str(path)!r} is no regular file and no folder")
        yield _source(path, format_of(path, name))
        return
    format = _named(name) if name else None
    yield from _below(path, format, data.resolve(), _DEPTH)


def sources_here(home: Path, environ: Mapping[str, str], data: Path, name: str = "") -> Iterator[Source]:
    """What the programs whose formats are known keep on this machine, or only that one."""
    for format, place in places_here(home, environ, name):
        if place.is_dir():
            yield from (source for source in _of_folder(place, format, data.resolve(), placed=True))
        elif place.is_file():
            yield _source(place, format, placed=True)


def places_here(home: Path, environ: Mapping[str, str], name: str = "") -> Iterator[tuple[Format, Path]]:
    """Each format that has a place of its own on a machine, with each of its places, whether there is anything or not."""
    formats: list[Format] = [_named(name)] if name else [FORMATS.make(known) for known in FORMATS.names()]
    for format in formats:
        if isinstance(format, Placed):
            for place in dict.fromkeys(format.places(home, environ)):
                yield format, place.absolute()


def _source(path: Path, format: Format, *, placed: bool = False) -> Source:
    try:
        return Source(path, format, mark_of(format, path), placed)
    except OSError as error:
        return Source(path, format, SourceMark(format.name, format.version, str(path), 0, 0, 0), placed, f"{error.strerror}")


def _below(folder: Path, format: Format | None, data: Path, depth: int) -> Iterator[Source]:
    """Sources of a folder and its folders: those of a format, or whatever any format knows."""
    claimed = [format] if format is not None and format.sniff(folder, b"") else _knowing(folder) if format is None else []
    if claimed:
        yield from _of_folder(folder, claimed[0], data)
        return
    for entry in _entries(folder):
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            if depth > 1 and path.resolve() != data:
                yield from _below(path, format, data, depth - 1)
        elif entry.is_file(follow_symlinks=False):
            yield from _known(path, format)


def _known(path: Path, format: Format | None) -> Iterator[Source]:
    try:
        found = _knowing(path) if format is None else [format] if format.sniff(path, _head(path)) else []
    except (UsageError, OSError):
        return  # somebody else's; what can't be read can't be known either
    if len(found) == 1:
        yield _source(path, found[0])
    elif found:
        problem = f"it could be {' or '.join(one.name for one in found)}: name one with -f"
        yield Source(path, found[0], SourceMark(found[0].name, found[0].version, str(path), 0, 0, 0), problem=problem)


def _of_folder(folder: Path, format: Format, data: Path, *, placed: bool = False) -> Iterator[Source]:
    if not isinstance(format, Split):
        yield _source(folder, format, placed=placed)
        return
    for path in format.sources(folder):
        if data not in path.resolve().parents and not path.is_symlink() and (path.is_file() or path.is_dir()):
            yield _source(path, format, placed=placed)


def _files(folder: Path, depth: int = _DEPTH) -> Iterator[Path]:
    for entry in _entries(folder):
        if entry.is_file(follow_symlinks=False):
            yield folder / entry.name
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _files(folder / entry.name, depth - 1)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """By name; none where it can't be looked into."""
    try:
        return sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return []
