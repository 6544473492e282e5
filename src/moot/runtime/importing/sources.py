"""Discovery of sources: below given paths, and in the standard locations of programs.

Only regular files are opened. Links are followed only if the user named them, and moot's own data is never read.
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from moot.errors import UsageError
from moot.plugins import FORMATS
from moot.runtime.importing.claims import DEPTH, Claim, Claims, all_in, entries_of, head_of, knows
from moot.runtime.importing.reports import Report
from moot.types.format import Format, Placed
from moot.types.imports import SourceMark

__all__ = ["Places", "Source", "format_of", "mark_of", "places_here", "sources_at", "sources_here"]


_PACKERS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2"}
"""Magic bytes of single-file compressors. Each unpacks with `-dk`."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source that one format reads."""

    path: Path
    """Absolute."""
    format: Format
    mark: SourceMark
    placed: bool = False
    """True if it is in its program's standard location on this machine."""
    problem: str = ""
    """Why it can't be read; empty if there is no problem."""
    called: str = ""
    """Display name of a temporary file, which is not remembered; empty to use its path."""

    @property
    def name(self) -> str:
        return self.called or str(self.path)

    def said(self, text: str) -> str:
        """Return the text with the display name in place of the path."""
        return text.replace(str(self.path), self.name)


@dataclass(frozen=True, slots=True)
class Places:
    """Locations to watch. The callables run in a worker thread and are called each time."""

    roots: Callable[[], Iterable[Path]]
    """Files and folders to watch, whether they exist or not."""
    sources: Callable[[], Iterable[Source]]
    """All sources that can currently be read there."""


def format_of(path: Path, name: str = "") -> Format:
    """Return the named format, or the one that recognizes the source. Raise UsageError if there is none."""
    if name:
        return _named(name)
    found = _knowing(path)
    if not found:
        if packed := _packed(path):
            raise UsageError(
                f"{str(path)!r} is compressed with {packed}, which no format reads.",
                fix=f"Unpack it first: {packed} -dk {shlex.quote(str(path))}",
            )
        raise UsageError(
            f"No format recognizes {str(path)!r}. Known formats: {', '.join(FORMATS.names())}.", fix="Specify the format with -f."
        )
    if len(found) > 1:
        raise UsageError(
            f"{str(path)!r} matches several formats: {', '.join(format.name for format in found)}.", fix="Specify the format with -f."
        )
    return found[0]


def _packed(path: Path) -> str:
    """Return the program that compressed the file, or an empty string."""
    head = head_of(path) if path.is_file() else b""
    return next((program for begins, program in _PACKERS.items() if head.startswith(begins)), "")


def _named(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"{FORMATS.unknown(name)}; known: {', '.join(FORMATS.names())}")
    return FORMATS.make(name)


def _knowing(path: Path) -> list[Format]:
    """Return the formats that recognize the source. Raise UsageError if it can't be read."""
    try:
        head = b"" if path.is_dir() else head_of(path)
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error
    formats: list[Format] = [FORMATS.make(known) for known in FORMATS.names()]
    return [format for format in formats if knows(format, path, head)]


def mark_of(format: Format, path: Path) -> SourceMark:
    """Return the current state of a source. Of a folder, all files in it count. Raise OSError if it can't be read."""
    about = path.stat()
    size, modified = about.st_size, about.st_mtime_ns
    real = path.resolve() if path.is_symlink() else path
    beside: Iterable[Path] = [real.with_name(f"{real.name}-wal")]
    if stat.S_ISDIR(about.st_mode):
        size, beside = 0, _files(path)
    for file in beside:
        try:
            more = file.stat(follow_symlinks=False)
        except OSError:
            continue  # a database without a log, or a file deleted in the meantime
        size, modified = size + more.st_size, max(modified, more.st_mtime_ns)
    return SourceMark(format.name, format.version, str(path), size, modified, about.st_ino)


def sources_at(path: Path, name: str, data: Path, report: Report | None = None) -> Iterator[Source]:
    """Yield the sources at or below a path. Unrecognized files are added to `report`. Raise UsageError if the path can't be a source.

    `data` is moot's own data folder.
    """
    path = path.absolute()
    if not path.exists():
        raise UsageError(f"{str(path)!r} does not exist.", fix="moot import FILE")
    real = path.resolve()
    if real == data.resolve() or data.resolve() in real.parents:
        raise UsageError(
            f"{str(path)!r} is moot's own data folder.", fix="Use moot export ID -f recording to write a file that can be imported."
        )
    if not path.is_dir():
        if not path.is_file():
            raise UsageError(f"{str(path)!r} is neither a regular file nor a folder.")
        yield _source(Claim(path, format_of(path, name)))
        return
    formats: list[Format] = [_named(name)] if name else [FORMATS.make(known) for known in FORMATS.names()]
    yield from map(_source, Claims(path, formats, data.resolve(), report or Report()).all())


def sources_here(home: Path, environ: Mapping[str, str], data: Path, name: str = "") -> Iterator[Source]:
    """Yield the sources of all known programs on this machine, or of one."""
    for format, place in places_here(home, environ, name):
        yield from (replace(_source(claim), placed=True) for claim in all_in(place, format, data.resolve()))


def places_here(home: Path, environ: Mapping[str, str], name: str = "") -> Iterator[tuple[Format, Path]]:
    """Yield each format with each of its standard locations, whether they exist or not."""
    formats: list[Format] = [_named(name)] if name else [FORMATS.make(known) for known in FORMATS.names()]
    for format in formats:
        if isinstance(format, Placed):
            for place in dict.fromkeys(format.places(home, environ)):
                yield format, place.absolute()


def _source(claim: Claim) -> Source:
    path, format, problem = claim.path, claim.format, claim.problem
    try:
        return Source(path, format, mark_of(format, path), problem=problem)
    except OSError as error:
        return Source(path, format, SourceMark(format.name, format.version, str(path), 0, 0, 0), problem=problem or f"{error.strerror}")


def _files(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Yield regular files, skipping folders that can't be opened."""
    with suppress(OSError):
        for entry in entries_of(folder):
            if entry.is_file(follow_symlinks=False):
                yield folder / entry.name
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                yield from _files(folder / entry.name, depth - 1)
