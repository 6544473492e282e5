"""What there is to read: sources below the paths that a person names, and where programs on this machine keep theirs.

Only regular files are opened, links are followed nowhere but where a person has named one, and our own data is never touched.
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
"""How the files of programs begin that pack one file; each unpacks with `-dk`."""


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
    called: str = ""
    """What it is to be called, of one that lies at its path for a moment only and is not remembered; empty = its path."""

    @property
    def name(self) -> str:
        return self.called or str(self.path)

    def said(self, text: str) -> str:
        """The text, with what it is called where its path is named."""
        return text.replace(str(self.path), self.name)


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
        if packed := _packed(path):
            raise UsageError(
                f"{str(path)!r} is packed with {packed}, which no format reads",
                fix=f"unpack it first: {packed} -dk {shlex.quote(str(path))}",
            )
        raise UsageError(f"no format knows {str(path)!r}; known: {', '.join(FORMATS.names())}", fix="name one with -f")
    if len(found) > 1:
        raise UsageError(f"{str(path)!r} could be {' or '.join(format.name for format in found)}", fix="name one with -f")
    return found[0]


def _packed(path: Path) -> str:
    """The program that packed the file; empty = none that is known."""
    head = head_of(path) if path.is_file() else b""
    return next((program for begins, program in _PACKERS.items() if head.startswith(begins)), "")


def _named(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"{FORMATS.unknown(name)}; known: {', '.join(FORMATS.names())}")
    return FORMATS.make(name)


def _knowing(path: Path) -> list[Format]:
    """The formats that claim it. Raises UsageError when it can't be read."""
    try:
        head = b"" if path.is_dir() else head_of(path)
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error
    formats: list[Format] = [FORMATS.make(known) for known in FORMATS.names()]
    return [format for format in formats if knows(format, path, head)]


def mark_of(format: Format, path: Path) -> SourceMark:
    """The source as it stands; of a folder all that is in it. Raises OSError."""
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
            continue  # a database that has no log, or what is gone meanwhile
        size, modified = size + more.st_size, max(modified, more.st_mtime_ns)
    return SourceMark(format.name, format.version, str(path), size, modified, about.st_ino)


def sources_at(path: Path, name: str, data: Path, report: Report | None = None) -> Iterator[Source]:
    """The sources at or below a path that a person names; `report` is told what nobody knows. Raises UsageError when there can't be any.

    `data` is our own folder.
    """
    path = path.absolute()
    if not path.exists():
        raise UsageError(f"there is no {str(path)!r}", fix="moot import FILE")
    real = path.resolve()
    if real == data.resolve() or data.resolve() in real.parents:
        raise UsageError(f"{str(path)!r} is where moot keeps its own data", fix="moot export ID -f recording writes a file to bring in")
    if not path.is_dir():
        if not path.is_file():
            raise UsageError(f"{str(path)!r} is no regular file and no folder")
        yield _source(Claim(path, format_of(path, name)))
        return
    formats: list[Format] = [_named(name)] if name else [FORMATS.make(known) for known in FORMATS.names()]
    yield from map(_source, Claims(path, formats, data.resolve(), report or Report()).all())


def sources_here(home: Path, environ: Mapping[str, str], data: Path, name: str = "") -> Iterator[Source]:
    """What the programs whose formats are known keep on this machine, or only that one."""
    for format, place in places_here(home, environ, name):
        yield from (replace(_source(claim), placed=True) for claim in all_in(place, format, data.resolve()))


def places_here(home: Path, environ: Mapping[str, str], name: str = "") -> Iterator[tuple[Format, Path]]:
    """Each format that has a place of its own on a machine, with each of its places, whether there is anything or not."""
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
    """Regular files, as far as folders can be looked into."""
    with suppress(OSError):
        for entry in entries_of(folder):
            if entry.is_file(follow_symlinks=False):
                yield folder / entry.name
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                yield from _files(folder / entry.name, depth - 1)
