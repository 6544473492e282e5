"""Discovery of sources, which are files or folders with conversations to import.

Files in a program's standard location are read with that program's format. Elsewhere, the formats first examine each folder, because
some recognize their files only by the folder structure. A file found this way is used if its format also recognizes the file itself, or
if no other format does. Unrecognized files are reported. Only regular files are opened. Symbolic links are followed only if the user
named them, and moot's own data is never read.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from moot.errors import UsageError
from moot.formats.kit.files import HEAD
from moot.imports.report import Report
from moot.plugins import FORMATS
from moot.types.format import Format, HasCompanions, HasLocations, HasProjectFile, HasVariants, MultiSource
from moot.types.imports import SourceMark

log = logging.getLogger("moot.importing")

DEPTH = 32
_BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Claim:
    """A file or folder found by a search, and the format that reads it."""

    path: Path
    format: Format
    problem: str = ""
    """Reason why the file or folder can't be read; empty if there is no problem."""


@dataclass(slots=True)
class Claims:
    """A search for the sources below one folder. Each source is found only once."""

    folder: Path
    formats: list[Format]
    """Formats to search for. A single format was chosen by the user, so it need not recognize each file."""
    data: Path
    """moot's own data folder, which is skipped."""
    report: Report
    _claimed: set[Path] = field(default_factory=set[Path])
    """Files that were already found, and folders that were already searched completely."""
    _by_location: dict[Path, Format] = field(default_factory=dict[Path, Format])
    """File → format that claims it because of its folder, but does not recognize the file itself."""
    _whole: dict[str, list[Path]] = field(default_factory=dict[str, list[Path]])
    """Format name → folders that the format recognized and whose files it has listed."""

    _exports: list[Path] = field(default_factory=list[Path])
    """Folders that are a single source, including all files in them."""

    def all(self) -> Iterator[Claim]:
        """Yield sources in programs' standard locations, as if the folder were a home folder, then all other recognized sources."""
        for format in self.formats:
            for place in format.places(self.folder, {}) if isinstance(format, HasLocations) else ():
                # only locations that exist and are not reached through a symbolic link
                is_inside = self.folder in place.parents and _mode(place) and place not in self._claimed
                if is_inside and not linked(place, self.folder):
                    yield from claims_in(place, format, self.data)
                    self._claimed.add(place)
        yield from self._search(self.folder, DEPTH)

    def _search(self, folder: Path, depth: int) -> Iterator[Claim]:
        if folder.resolve() == self.data or folder in self._claimed:
            return
        for format in self.formats:
            if recognizes(format, folder, b""):
                yield from self._folder(folder, format)
        try:
            entries = directory_entries(folder)
        except OSError as error:
            self.report.fail(str(folder), "", f"Can't open it: {error.strerror}.")
            return
        for entry in entries:
            path = folder / entry.name
            if path in self._claimed:
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth > 1:
                    yield from self._search(path, depth - 1)
            elif entry.is_file(follow_symlinks=False):
                yield from self._file(path)

    def _folder(self, folder: Path, format: Format) -> Iterator[Claim]:
        """Yield the sources of a format that recognizes the folder as a whole."""
        claimed = [claim for claim in _sources_in(folder, format, self.data) if self._claimed.isdisjoint((claim.path, *claim.path.parents))]
        known = {claim.path for claim in claimed if self._is_known(claim.path, format)}
        if any(path.parent == folder or path == folder for path in known):
            self._whole.setdefault(format.name, []).append(folder)
            self._exports += [] if isinstance(format, MultiSource) else [folder]
        for claim in claimed:
            if claim.path in known:
                self._claimed.update((claim.path,) if isinstance(format, MultiSource) else ())
                yield claim
            else:
                self._by_location.setdefault(claim.path, format)

    def _is_known(self, path: Path, format: Format) -> bool:
        if len(self.formats) == 1 or path.is_dir():
            return True
        try:
            return recognizes(format, path, read_head(path))
        except OSError:
            return False

    def _file(self, path: Path) -> Iterator[Claim]:
        claimed = self._by_location.get(path)
        try:
            head = read_head(path)
        except OSError as error:
            if claimed is not None:
                yield Claim(path, claimed)
            else:
                self.report.fail(str(path), "", f"Can't open it: {error.strerror}.")
            return
        # if a format recognized the folder but did not list this file, the file is not one of its sources, even if it looks like one
        skipping = {name for name, folders in self._whole.items() if claimed is None and not set(folders).isdisjoint(path.parents)}
        found = [format for format in self.formats if recognizes(format, path, head) and format.name not in skipping]
        found = found or ([claimed] if claimed is not None else [])
        if not found:
            self._unclaimed(path)
            return
        self._claimed.add(path)
        names = ", ".join(one.name for one in found)
        yield Claim(path, found[0], f"The file matches several formats: {names}. Specify one with -f." if len(found) > 1 else "")

    def _unclaimed(self, path: Path) -> None:
        """Report an unrecognized file, unless it belongs to a claimed source."""
        owners = (path.with_name(path.name.removesuffix(end)) for end in _BESIDE if path.name.endswith(end))
        if (
            len(self.formats) > 1
            and not any(one in self._claimed for one in owners)
            and not any(one in path.parents for one in self._exports)
        ):
            self.report.pass_over(str(path))


def recognizes(format: Format, path: Path, head: bytes) -> bool:
    """Return whether the format recognizes the source. An exception in the format counts as False."""
    try:
        return format.sniff(path, head)
    except Exception as error:  # noqa: BLE001  a format may come from a plugin
        log.warning("the format %r failed to examine %s: %s: %s", format.name, path, type(error).__name__, error)
        return False


def claims_in(place: Path, format: Format, data: Path) -> Iterator[Claim]:
    """Yield the sources in a format's standard location, and a claim with a problem for each folder there that can't be opened.

    Yield nothing if the location does not exist.
    """
    try:
        is_folder = stat.S_ISDIR(place.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a path in a file of the program contains a NUL character
        return
    except OSError as error:
        yield Claim(place, format, f"Can't open it: {error.strerror}.")
        return
    yield from _sources_in(place, format, data)
    for folder, problem in _unreadable_folders(place) if is_folder else ():
        yield Claim(folder, format, f"Can't open it: {problem}.")


def _sources_in(place: Path, format: Format, data: Path) -> Iterator[Claim]:
    if not isinstance(format, MultiSource) or stat.S_ISREG(_mode(place)):
        yield Claim(place, format)
        return
    for path in format.sources(place):
        if data in path.resolve().parents or linked(path, place):
            continue
        try:
            mode = path.stat().st_mode
        except OSError as error:
            yield Claim(path, format, f"Can't open it: {error.strerror}.")
            continue
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            yield Claim(path, format)


def linked(path: Path, folder: Path) -> bool:
    """Return whether the path, or a folder between it and `folder`, is a symbolic link."""
    return any(stat.S_ISLNK(_mode(one, links=False)) for one in (path, *path.parents) if folder in one.parents)


def _mode(path: Path, *, links: bool = True) -> int:
    """Return the file mode, or 0 if the path is missing, not accessible or invalid."""
    try:
        return path.stat(follow_symlinks=links).st_mode
    except (OSError, ValueError):
        return 0


def _unreadable_folders(folder: Path, depth: int = DEPTH) -> Iterable[tuple[Path, str]]:
    """Yield folders that can't be opened, with the reason."""
    try:
        below = [entry.name for entry in directory_entries(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        yield folder, error.strerror or str(error)
        return
    for name in below if depth > 1 else ():
        yield from _unreadable_folders(folder / name, depth - 1)


def directory_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries sorted by name. Raise OSError if the folder can't be opened."""
    return sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))


def read_head(path: Path) -> bytes:
    """Return the beginning of a file. Raise OSError if it can't be read."""
    with path.open("rb") as file:
        return file.read(HEAD)


_PACKERS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2"}
"""Magic bytes → program that compressed the file. Each program decompresses it with `-dk`."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder to import, the format that reads it, and its current state."""

    path: Path
    """Absolute path."""
    format: Format
    mark: SourceMark
    placed: bool = False
    """True if it is in its program's standard location on this machine."""
    problem: str = ""
    """Reason why the source can't be read; empty if there is no problem."""
    program: str = ""
    """Name of the program that wrote it, if it is not the one that the format is named after."""
    host: str = ""
    """Name of the machine that the file was copied from; empty for a file on this machine."""
    called: str = ""
    """Display name of a temporary file or a copy; empty to show the path. A temporary file is not remembered as read."""

    @property
    def name(self) -> str:
        return self.called or str(self.path)

    def said(self, text: str) -> str:
        """Return the text with the display name in place of the path."""
        return text.replace(str(self.path), self.name)


@dataclass(frozen=True, slots=True)
class Places:
    """Locations to watch for sources. The callables run in a worker thread and are called again for each check."""

    roots: Callable[[], Iterable[Path]]
    """Files and folders to watch, whether they exist or not."""
    sources: Callable[[], Iterable[Source]]
    """All sources that can currently be read at these locations."""


def format_of(path: Path, name: str = "") -> Format:
    """Return the format called `name`, or without a name, the one that recognizes the source.

    Raise UsageError if no format or more than one matches.
    """
    if name:
        return _format_named(name)
    try:
        head = b"" if path.is_dir() else read_head(path)
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error
    found = [format for format in _formats() if recognizes(format, path, head)]
    if not found:
        if packed := next((program for begins, program in _PACKERS.items() if head.startswith(begins)), ""):
            raise UsageError(
                f"{str(path)!r} is compressed with {packed}, which moot can't read.",
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


def _format_named(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(FORMATS.unknown(name))
    return FORMATS.make(name)


def _formats(name: str = "") -> list[Format]:
    """Return the named format, or all of them."""
    return [_format_named(name)] if name else [FORMATS.make(known) for known in FORMATS.names()]


def mark_of(format: Format, path: Path) -> SourceMark:
    """Return the current state of a source with its companions. The state of a folder includes all files in it.

    Raise OSError if the source can't be read.
    """
    about = path.stat()
    size, modified = about.st_size, about.st_mtime_ns
    real = path.resolve() if path.is_symlink() else path
    beside: Iterable[Path] = [real.with_name(f"{real.name}-wal"), *(format.companions(path) if isinstance(format, HasCompanions) else ())]
    if stat.S_ISDIR(about.st_mode):
        size, beside = 0, _files(path)
    for file in beside:
        try:
            more = file.stat(follow_symlinks=False)
        except OSError:
            continue  # a database without a write-ahead log, a missing companion, or a file that was just deleted
        size, modified = size + more.st_size, max(modified, more.st_mtime_ns)
    return SourceMark(format.name, format.version, str(path), size, modified, about.st_ino)


def sources_at(path: Path, name: str, data: Path, report: Report | None = None) -> Iterator[Source]:
    """Yield the sources at or below a path. Unrecognized files are added to `report`. Raise UsageError if the path can't be a source.

    `data` is moot's own data folder.
    """
    path = path.absolute()
    if not path.exists():
        raise UsageError(f"{str(path)!r} does not exist.", fix="Check the path.")
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
    yield from map(_source, Claims(path, _formats(name), data.resolve(), report or Report()).all())


def local_sources(home: Path, environ: Mapping[str, str], data: Path, name: str = "") -> Iterator[Source]:
    """Yield the sources in the standard locations of all programs on this machine, or only those of the format `name`."""
    for format, place, program in local_places(home, environ, name):
        yield from (replace(_source(claim), placed=True, program=program) for claim in claims_in(place, format, data.resolve()))


def project_sources(folders: Iterable[str], known: Iterable[Path]) -> Iterator[Source]:
    """Yield the files that programs store in these folders, or in the repositories that contain them, except the `known` files."""
    seen = set(known)
    formats = [format for format in _formats() if isinstance(format, HasProjectFile)]
    for folder in (Path(folder) for folder in folders if folder.startswith("/")):
        repository = next((path for path in (folder, *folder.parents) if _mode(path / ".git")), folder)
        for path, format in ((place / format.project_file, format) for place in (folder, repository) for format in formats):
            if path not in seen and stat.S_ISREG(_mode(path, links=False)):
                seen.add(path)
                yield replace(_source(Claim(path, format)), placed=True)


class Location(NamedTuple):
    """A standard location of a program, and the format of the conversations there."""

    format: Format
    place: Path
    program: str = ""
    """Like `Source.program`."""


def local_places(home: Path, environ: Mapping[str, str], name: str = "") -> Iterator[Location]:
    """Yield each format with each of its standard locations, whether they exist or not. `name` limits them to one format."""
    for format in _formats(name):
        if isinstance(format, HasLocations):
            for place in dict.fromkeys(format.places(home, environ)):
                yield Location(format, place.absolute())
        if isinstance(format, HasVariants):
            for program, place in dict.fromkeys(format.variants(home, environ)):
                yield Location(format, place.absolute(), program)


def _source(claim: Claim) -> Source:
    path, format, problem = claim.path, claim.format, claim.problem
    try:
        return Source(path, format, mark_of(format, path), problem=problem)
    except OSError as error:
        return Source(path, format, SourceMark(format.name, format.version, str(path), 0, 0, 0), problem=problem or f"{error.strerror}")


def _files(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Yield regular files, skipping folders that can't be opened."""
    with suppress(OSError):
        for entry in directory_entries(folder):
            if entry.is_file(follow_symlinks=False):
                yield folder / entry.name
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                yield from _files(folder / entry.name, depth - 1)
