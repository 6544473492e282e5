"""Places of agents' conversations below the home folder of another machine, and the files to copy from there.

The places are those of the formats. Folders of programs also contain keys and other secrets, so only files with the names of conversations
are copied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from itertools import accumulate
from pathlib import Path, PurePosixPath

from moot.formats.kit.bases import ManyFiles
from moot.imports.sources import Location, local_places

_HOME = Path("/home-of-the-other-machine")
"""Stands for the other machine's home. It does not exist, so that no place depends on files of this machine."""
DATABASES = (".db", ".sqlite", ".sqlite3", ".vscdb")
LOGS = ("-wal", "-journal")
"""Ends of the names of files that belong to a database."""
_USUAL = ("*.jsonl", "*.json", *(f"*{end}" for end in DATABASES))
_SECRET = re.compile(r"auth|credential|secret|token|passw|api.?key|cookie|keychain|private|\.env|\.pem|settings|config", re.IGNORECASE)
"""Names of files that are copied only if a format names them."""
_COMMON: Mapping[str, tuple[str, ...]] = {
    "cherry": ("Data/cherrystudio.sqlite", "Data/agents.db", "agents.db", "cherrystudio.sqlite", "data/agents.db"),
    "clai": ("conversations/*.json", "conversations/*/*.json", "conversations/*/*/*.json"),
    "copilot-cli": ("workspace.yaml",),
    "cursor-ide": ("state.vscdb", "workspace.json"),
    "droid": ("*.settings.json",),
    "gemini": (".project_root",),
    "kiro-ide": ("?" * 32,),
    "tai": ("agent.db",),
    "talkcody": ("talkcody.db",),
    "vibe": ("CURRENT",),
}
"""Format → names of further files in its places, or of all files for the formats in `_EXACT`."""
_EXACT = frozenset({"aichat", "cherry", "clai", "cursor-ide", "tai", "talkcody"})
"""Formats whose places also contain the program's settings or files of other programs."""
_EDITOR = re.compile(r"(.*/User)/globalStorage/(?:emptyWindowChatSessions|([^/]*)/tasks)")
"""A place in an editor's `User` folder, which contains further files of the same format."""


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
    path = str(location.place.relative_to(_HOME))
    names = format.files if isinstance(format, ManyFiles) else ()
    yield Place(path, (*names, *_COMMON.get(format.name, ()), *(() if format.name in _EXACT else _USUAL)))
    if path.endswith(DATABASES):
        yield from (Place(f"{path}{end}") for end in LOGS)
    if (editor := _EDITOR.fullmatch(path)) is not None:
        user, extension = editor.groups()
        if extension:
            yield Place(f"{user}/globalStorage/{extension}/state/taskHistory.json")
        else:
            yield from (Place(f"{user}/workspaceStorage/*/chatSessions", names), Place(f"{user}/workspaceStorage/*/workspace.json"))
    if format.name == "kimi":
        yield Place(".kimi/kimi.json")
    if format.name == "opencode" and not location.program:
        yield from (Place(f"{Path(path).parent}/opencode-*.db{end}") for end in ("", *LOGS))
