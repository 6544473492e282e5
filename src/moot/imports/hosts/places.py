"""Places of agents' conversations below the home folder of another machine, and the files to copy from there.

The formats define the places. Program folders also contain keys and other secrets, so only files that a format names are copied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moot.formats.kit.bases import ManyFiles
from moot.imports.sources import Location, local_places
from moot.types.format import HasNeighbors, NamesFiles

_HOME = Path("/home-of-the-other-machine")
"""Stands for the other machine's home. It does not exist, so that no place depends on files on this machine."""
DATABASES = (".db", ".sqlite", ".sqlite3", ".vscdb")
LOGS = ("-wal", "-journal")
"""File name suffixes of the files that belong to a database."""
_WILD = re.compile(r"\*|\?|\[[^]/]+\]")


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder below the home of the other machine. `*` stands for any part of one name."""

    path: str
    names: tuple[str, ...] = ()
    """Patterns for the files in a folder, including the folders above them; see `PurePath.match`."""

    @property
    def expression(self) -> str:
        """A regular expression that matches the paths to copy: the location itself, and the files in it that the format names."""
        place, names = _expression(self.path), "|".join(map(_expression, self.names))
        return f"{place}|(?={place}/)(?:.*/)?(?:{names})" if names else place


@dataclass(slots=True)
class Places:
    """All places to look for."""

    all: Sequence[Place]
    _wanted: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        self._wanted = re.compile("|".join(place.expression for place in self.all) or "(?!)", re.DOTALL)

    def wants(self, path: str) -> bool:
        """Return whether to copy the file. A place that is a file is wanted, even if it has the suffix of a database's log."""
        return self._wants(path) or self._wants(database_of(path))

    def _wants(self, path: str) -> bool:
        return self._wanted.fullmatch(path) is not None


def remote_places(agents: Collection[str] = ()) -> Places:
    """Return the places of all agents, or of those with the given names."""
    found: dict[str, Place] = {}
    for location in local_places(_HOME, {}):
        if agents and location.format.name not in agents and location.program not in agents:
            continue
        for place in _places_of(location):
            names = (*found[place.path].names, *place.names) if place.path in found else place.names
            found[place.path] = Place(place.path, tuple(dict.fromkeys(names)))
    return Places(tuple(found.values()))


def database_of(path: str) -> str:
    """Return the database to which a log belongs, or the path itself if it is not a log."""
    bases = (path.removesuffix(end) for end in LOGS if path.endswith(end))
    return next((base for base in bases if base.endswith(DATABASES)), path)


def _places_of(location: Location) -> Iterator[Place]:
    format = location.format
    if _HOME not in location.place.parents:
        return
    files = format.files if isinstance(format, ManyFiles) else ()
    names = (*files, *(format.stored_files if isinstance(format, NamesFiles) else ()))
    for place in (location.place, *(format.neighbors(location.place) if isinstance(format, HasNeighbors) else ())):
        path = str(place.relative_to(_HOME))
        yield Place(path, names)
        if path.endswith(DATABASES):
            yield from (Place(f"{path}{end}") for end in LOGS)


def _expression(pattern: str) -> str:
    wild = {"*": "[^/]*", "?": "[^/]"}
    pieces = (re.escape(piece) for piece in _WILD.split(pattern))
    signs = (wild.get(found[0], found[0]) for found in _WILD.finditer(pattern))
    return "".join(piece + sign for piece, sign in zip(pieces, (*signs, ""), strict=True))
