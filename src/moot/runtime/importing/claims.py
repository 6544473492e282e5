"""Whose each thing below a folder is, where several programs may have kept theirs.

What lies where a program keeps it is that program's. Of the rest a folder is asked about first, for some formats know their sources by
how they lie together; each of them must then be known by itself, or nobody else may know it. What nobody knows is told of.
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
"""Bytes by which a format knows its files."""
_BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that one format reads in one go."""

    path: Path
    format: Format
    problem: str = ""
    """Why it can't be; empty = nothing speaks against it."""


@dataclass(slots=True)
class Claims:
    """Those below one folder, each once."""

    folder: Path
    formats: list[Format]
    """A single one is believed: a person has named it."""
    data: Path
    """Our own folder, which is passed over."""
    report: Report
    _taken: set[Path] = field(default_factory=set[Path])
    """Files that are claimed, and folders of which all is."""
    _listed: dict[Path, Format] = field(default_factory=dict[Path, Format])
    """What a format takes for its own by where it lies, and does not know by itself."""
    _whole: dict[str, list[Path]] = field(default_factory=dict[str, list[Path]])
    """Format → folders in which it has claimed what is its."""

    _exports: list[Path] = field(default_factory=list[Path])
    """Folders that are one source, with what lies in them besides."""

    def all(self) -> Iterator[Claim]:
        """What is kept where programs keep it, as if the folder were a person's home; then what else is known."""
        for format in self.formats:
            for place in format.places(self.folder, {}) if isinstance(format, Placed) else ():
                if self._is_inside(place):
                    yield from all_in(place, format, self.data)
                    self._taken.add(place)
        yield from self._below(self.folder, DEPTH)

    def _is_inside(self, place: Path) -> bool:
        """Whether it is there, below the folder, with no link on the way."""
        if self.folder not in place.parents or not _mode(place) or place in self._taken:
            return False
        return not linked(place, self.folder)

    def _below(self, folder: Path, depth: int) -> Iterator[Claim]:
        if folder.resolve() == self.data or folder in self._taken:
            return
        for format in self.formats:
            if knows(format, folder, b""):
                yield from self._together(folder, format)
        try:
            entries = entries_of(folder)
        except OSError as error:
            self.report.fail(str(folder), "", f"can't be looked into: {error.strerror}")
            return
        for entry in entries:
            path = folder / entry.name
            if path in self._taken:
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth > 1:
                    yield from self._below(path, depth - 1)
            elif entry.is_file(follow_symlinks=False):
                yield from self._file(path)

    def _together(self, folder: Path, format: Format) -> Iterator[Claim]:
        """What a format claims of a folder that it knows by what lies in it."""
        claimed = [claim for claim in _kept_in(folder, format, self.data) if not self._has(claim.path)]
        known = {claim.path for claim in claimed if self._is_known(claim.path, format)}
        if any(path.parent == folder or path == folder for path in known):
            self._whole.setdefault(format.name, []).append(folder)
            self._exports += [] if isinstance(format, Split) else [folder]
        for claim in claimed:
            if claim.path in known:
                self._taken.update((claim.path,) if isinstance(format, Split) else ())
                yield claim
            else:
                self._listed.setdefault(claim.path, format)

    def _is_known(self, path: Path, format: Format) -> bool:
        if len(self.formats) == 1 or path.is_dir():
            return True
        try:
            return knows(format, path, head_of(path))
        except OSError:
            return False

    def _has(self, path: Path) -> bool:
        return any(one in self._taken for one in (path, *path.parents))

    def _file(self, path: Path) -> Iterator[Claim]:
        listed = self._listed.get(path)
        try:
            head = head_of(path)
        except OSError as error:
            if listed is not None:
                yield Claim(path, listed)
            else:
                self.report.fail(str(path), "", f"can't be looked into: {error.strerror}")
            return
        # what a format has passed over in a folder of its own is none of its sources, whatever it looks like
        found = [format for format in self.formats if knows(format, path, head) and not self._passed_over(path, format)]
        found = found or ([listed] if listed is not None else [])
        if not found:
            self._unclaimed(path)
            return
        self._taken.add(path)
        yield Claim(path, found[0], f"it could be {' or '.join(one.name for one in found)}: name one with -f" if len(found) > 1 else "")

    def _passed_over(self, path: Path, format: Format) -> bool:
        return path not in self._listed and any(folder in path.parents for folder in self._whole.get(format.name, ()))

    def _unclaimed(self, path: Path) -> None:
        """Told of, but for what belongs to something that is claimed."""
        beside = (path.with_name(path.name.removesuffix(end)) for end in _BESIDE if path.name.endswith(end))
        if (
            len(self.formats) > 1
            and not any(one in self._taken for one in beside)
            and not any(one in path.parents for one in self._exports)
        ):
            self.report.pass_over(str(path))


def knows(format: Format, path: Path, head: bytes) -> bool:
    """Whether it says that it does. One that fails instead of saying no costs itself alone."""
    try:
        return format.sniff(path, head)
    except Exception as error:  # noqa: BLE001  a format may be anybody's
        log.warning("the format %r failed with %s: %s: %s", format.name, path, type(error).__name__, error)
        return False


def all_in(place: Path, format: Format, data: Path) -> Iterator[Claim]:
    """What a format has at a place of its own, and what there can't be looked into; nothing where there is nothing."""
    try:
        is_folder = stat.S_ISDIR(place.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Claim(place, format, f"can't be looked into: {error.strerror}")
        return
    yield from _kept_in(place, format, data)
    for folder, problem in _closed(place) if is_folder else ():
        yield Claim(folder, format, f"can't be looked into: {problem}")


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
            yield Claim(path, format, f"can't be looked into: {error.strerror}")
            continue
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            yield Claim(path, format)


def linked(path: Path, folder: Path) -> bool:
    """Whether a link lies on the way from the folder to what is below it."""
    return any(stat.S_ISLNK(_mode(one, links=False)) for one in (path, *path.parents) if folder in one.parents)


def _mode(path: Path, *, links: bool = True) -> int:
    """Of what is there; 0 where there is nothing, or nobody may look."""
    try:
        return path.stat(follow_symlinks=links).st_mode
    except OSError:
        return 0


def _closed(folder: Path, depth: int = DEPTH) -> Iterable[tuple[Path, str]]:
    """Folders that can't be looked into."""
    try:
        below = [entry.name for entry in entries_of(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        yield folder, error.strerror or str(error)
        return
    for name in below if depth > 1 else ():
        yield from _closed(folder / name, depth - 1)


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """By name. Raises OSError."""
    return sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))


def head_of(path: Path) -> bytes:
    """How a file begins. Raises OSError."""
    with path.open("rb") as file:
        return file.read(HEAD)
