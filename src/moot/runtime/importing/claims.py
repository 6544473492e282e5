"""Assignment of files below a folder to formats.

Files in a program's own location belong to its format. Otherwise formats are first asked about each folder, because some recognize sources
only by their folder structure; such a file must then be recognized individually, or by no other format. Unrecognized files are reported.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from moot.runtime.importing.reports import Report
from moot.types.format import Format, Placed, Split

__all__ = ["DEPTH", "Claim", "Claims", "all_in", "entries_of", "head_of", "knows"]

log = logging.getLogger("moot.importing")

DEPTH = 32
HEAD = 64 << 10
"""Number of bytes used to recognize a format."""
_BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Claim:
    """A source that one format reads."""

    path: Path
    format: Format
    problem: str = ""
    """Why it can't be read; empty if there is no problem."""


@dataclass(slots=True)
class Claims:
    """The sources below one folder, each once."""

    folder: Path
    formats: list[Format]
    """A single format is trusted, because the user named it."""
    data: Path
    """moot's own data folder, which is skipped."""
    report: Report
    _claimed: set[Path] = field(default_factory=set[Path])
    """Claimed files, and folders of which everything is claimed."""
    _by_location: dict[Path, Format] = field(default_factory=dict[Path, Format])
    """Files that a format claims by location but does not recognize individually."""
    _whole: dict[str, list[Path]] = field(default_factory=dict[str, list[Path]])
    """Format → folders in which it has claimed its files."""

    _exports: list[Path] = field(default_factory=list[Path])
    """Folders that are one source together with everything in them."""

    def all(self) -> Iterator[Claim]:
        """Yield sources in programs' standard locations, as if the folder were a home folder, then all other recognized sources."""
        for format in self.formats:
            for place in format.places(self.folder, {}) if isinstance(format, Placed) else ():
                if self._is_inside(place):
                    yield from all_in(place, format, self.data)
                    self._claimed.add(place)
        yield from self._search(self.folder, DEPTH)

    def _is_inside(self, place: Path) -> bool:
        """Return whether the location exists below the folder without a link on the way."""
        if self.folder not in place.parents or not _mode(place) or place in self._claimed:
            return False
        return not linked(place, self.folder)

    def _search(self, folder: Path, depth: int) -> Iterator[Claim]:
        if folder.resolve() == self.data or folder in self._claimed:
            return
        for format in self.formats:
            if knows(format, folder, b""):
                yield from self._folder(folder, format)
        try:
            entries = entries_of(folder)
        except OSError as error:
            self.report.fail(str(folder), "", f"can't open: {error.strerror}")
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
        claimed = [claim for claim in _kept_in(folder, format, self.data) if not self._has(claim.path)]
        known = {claim.path for claim in claimed if self._is_known(claim.path, format)}
        if any(path.parent == folder or path == folder for path in known):
            self._whole.setdefault(format.name, []).append(folder)
            self._exports += [] if isinstance(format, Split) else [folder]
        for claim in claimed:
            if claim.path in known:
                self._claimed.update((claim.path,) if isinstance(format, Split) else ())
                yield claim
            else:
                self._by_location.setdefault(claim.path, format)

    def _is_known(self, path: Path, format: Format) -> bool:
        if len(self.formats) == 1 or path.is_dir():
            return True
        try:
            return knows(format, path, head_of(path))
        except OSError:
            return False

    def _has(self, path: Path) -> bool:
        return any(one in self._claimed for one in (path, *path.parents))

    def _file(self, path: Path) -> Iterator[Claim]:
        claimed = self._by_location.get(path)
        try:
            head = head_of(path)
        except OSError as error:
            if claimed is not None:
                yield Claim(path, claimed)
            else:
                self.report.fail(str(path), "", f"can't open: {error.strerror}")
            return
        # a file that a format skipped in its own folder is not one of its sources, whatever it looks like
        found = [format for format in self.formats if knows(format, path, head) and not self._passed_over(path, format)]
        found = found or ([claimed] if claimed is not None else [])
        if not found:
            self._unclaimed(path)
            return
        self._claimed.add(path)
        yield Claim(
            path,
            found[0],
            f"matches several formats ({', '.join(one.name for one in found)}): specify one with -f" if len(found) > 1 else "",
        )

    def _passed_over(self, path: Path, format: Format) -> bool:
        return path not in self._by_location and any(folder in path.parents for folder in self._whole.get(format.name, ()))

    def _unclaimed(self, path: Path) -> None:
        """Report an unrecognized file, unless it belongs to a claimed source."""
        owners = (path.with_name(path.name.removesuffix(end)) for end in _BESIDE if path.name.endswith(end))
        if (
            len(self.formats) > 1
            and not any(one in self._claimed for one in owners)
            and not any(one in path.parents for one in self._exports)
        ):
            self.report.pass_over(str(path))


def knows(format: Format, path: Path, head: bytes) -> bool:
    """Return whether the format recognizes the source. Exceptions in a format count as no."""
    try:
        return format.sniff(path, head)
    except Exception as error:  # noqa: BLE001  a format may be anybody's
        log.warning("the format %r failed with %s: %s: %s", format.name, path, type(error).__name__, error)
        return False


def all_in(place: Path, format: Format, data: Path) -> Iterator[Claim]:
    """Yield the sources in a format's own location, and folders there that can't be opened. Yield nothing if it does not exist."""
    try:
        is_folder = stat.S_ISDIR(place.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Claim(place, format, f"can't open: {error.strerror}")
        return
    yield from _kept_in(place, format, data)
    for folder, problem in _closed(place) if is_folder else ():
        yield Claim(folder, format, f"can't open: {problem}")


def _kept_in(place: Path, format: Format, data: Path) -> Iterator[Claim]:
    if not isinstance(format, Split) or stat.S_ISREG(_mode(place)):
        yield Claim(place, format)
        return
    for path in format.sources(place):
        if data in path.resolve().parents or linked(path, place):
            continue
        try:
            mode = path.stat().st_mode
        except OSError as error:
            yield Claim(path, format, f"can't open: {error.strerror}")
            continue
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            yield Claim(path, format)


def linked(path: Path, folder: Path) -> bool:
    """Return whether there is a link between a folder and a path below it."""
    return any(stat.S_ISLNK(_mode(one, links=False)) for one in (path, *path.parents) if folder in one.parents)


def _mode(path: Path, *, links: bool = True) -> int:
    """Return the file mode, or 0 if the path is missing or not accessible."""
    try:
        return path.stat(follow_symlinks=links).st_mode
    except OSError:
        return 0


def _closed(folder: Path, depth: int = DEPTH) -> Iterable[tuple[Path, str]]:
    """Yield folders that can't be opened, with the reason."""
    try:
        below = [entry.name for entry in entries_of(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        yield folder, error.strerror or str(error)
        return
    for name in below if depth > 1 else ():
        yield from _closed(folder / name, depth - 1)


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries sorted by name. Raise OSError if the folder can't be opened."""
    return sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))


def head_of(path: Path) -> bytes:
    """Return the beginning of a file. Raise OSError if it can't be read."""
    with path.open("rb") as file:
        return file.read(HEAD)
