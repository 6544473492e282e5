"""Places of agents' conversations below the home folder of another machine, and the files to copy from there.

The places are those of the formats. Folders of programs also contain keys and other secrets, so only files with the names of conversations
are copied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from itertools import accumulate
from pathlib import Path, PurePosixPath

from moot.formats.kit.bases import ManyFiles
from moot.imports.sources import Location, local_places
from moot.types.format import HasNeighbors, NamesFiles

_HOME = Path("/home-of-the-other-machine")
"""Stands for the other machine's home. It does not exist, so that no place depends on files of this machine."""
DATABASES = (".db", ".sqlite", ".sqlite3", ".vscdb")
LOGS = ("-wal", "-journal")
"""Ends of the names of files that belong to a database."""
_USUAL = ("*.jsonl", "*.json", *(f"*{end}" for end in DATABASES))
_SECRET = re.compile(r"auth|credential|secret|token|passw|api.?key|cookie|keychain|private|\.env|\.pem|settings|config", re.IGNORECASE)
"""Names of files that are copied only if a format names them."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder below the home of the other machine. `*` stands for any part of one name."""

    path: str
    names: tuple[str, ...] = ()
    """Patterns of the files in a folder, with those of the folders above them; see `PurePath.match`."""


@dataclass(slots=True)
class Places:
    """All places to look for."""

    all: Sequence[Place]
    _exact: dict[str, list[Place]] = field(default_factory=dict[str, list[Place]])
    _patterns: list[tuple[re.Pattern[str], Place]] = field(default_factory=list[tuple[re.Pattern[str], Place]])

    def __post_init__(self) -> None:
        for place in self.all:
            if "*" in place.path:
                parts = "/".join(translate(part)[4:-3].replace(".*", "[^/]*") for part in place.path.split("/"))
                self._patterns.append((re.compile(parts), place))
            else:
                self._exact.setdefault(place.path, []).append(place)

    def wants(self, path: str) -> bool:
        """Return whether to copy the file. A file at a place itself is wanted, also with the ending of a database's log."""
        ends = (path.removesuffix(end) for end in LOGS if path.endswith(end))
        return self._wants(path) or any(base.endswith(DATABASES) and self._wants(base) for base in ends)

    def _wants(self, path: str) -> bool:
        name, whole = path.rpartition("/")[2], PurePosixPath(path)
        for above in accumulate(path.split("/"), lambda one, other: f"{one}/{other}"):
            for place in (*self._exact.get(above, ()), *(place for pattern, place in self._patterns if pattern.fullmatch(above))):
                if above == path or any(whole.match(pattern) for pattern in place.names if pattern not in _USUAL):
                    return True
                if not _SECRET.search(name) and any(whole.match(pattern) for pattern in place.names):
                    return True
        return False


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


def _places_of(location: Location) -> Iterator[Place]:
    format = location.format
    if _HOME not in location.place.parents:
        return
    files = format.files if isinstance(format, ManyFiles) else ()
    names = (*files, *(format.stored_files if isinstance(format, NamesFiles) else _USUAL))
    for place in (location.place, *(format.neighbors(location.place) if isinstance(format, HasNeighbors) else ())):
        path = str(place.relative_to(_HOME))
        yield Place(path, names)
        if path.endswith(DATABASES):
            yield from (Place(f"{path}{end}") for end in LOGS)
