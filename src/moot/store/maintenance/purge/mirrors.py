"""Mirrors, the folders with copies of other machines' files, and deletion of purged conversations from them. Originals are not changed.

A list in each mirror names the files and folders that contained nothing but purged conversations, so that they are not fetched again. The
list is stored before the copies are deleted.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any

from moot.config.home import write_atomically
from moot.config.settings import mirror_of
from moot.convert.imports import key_at_host, path_at_host
from moot.errors import Busy, HostError
from moot.store.database.connection import Queries
from moot.store.database.locks import FileLock, sync_folder
from moot.types.maintenance import FileOutcome

_PURGED = "purged.json"
_SOURCES = (
    "SELECT no, host, json_extract(CAST(origin AS TEXT), '$.path'), json_extract(CAST(origin AS TEXT), '$.source_id') FROM conversation"
    " WHERE host <> ''"
    " UNION ALL SELECT conversation, substr(path, 1, instr(path, ':~/') - 1), path, source_id FROM import_alias"
    " WHERE instr(path, ':~/') > 1"
)
_LOGS = ("-wal", "-shm", "-journal")
_FOLDERS_OF_ALL = ("Library/Application Support/", ".local/share/", "AppData/")
"""Folders with a folder for each program."""
_DATABASES = (".db", ".sqlite", ".sqlite3", ".vscdb")
_ENDINGS = re.compile(r"\.(?:(?:messages|settings|meta|conversation)\.json|jsonl(?:\.zst)?|json|txt|yaml|md|chat)")
"""Suffixes of session files. The files of one session differ only in their suffix."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LONG = 8
"""Minimum length of the ids that files are searched for."""
_WORD = re.compile(rb"[\w-]{%d,}" % _LONG)
_READ = 64 << 20
_NEAR = 3
"""Maximum number of folders between a session's own folder and its files."""


@dataclass(slots=True)
class MirroredSources:
    """The sources of conversations to purge on one machine. All paths are relative to the home folder there."""

    host: str
    purged: dict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))
    """Path → ids of the sessions in it."""
    kept: set[str] = field(default_factory=set[str])
    """Sources of other conversations."""
    folders: set[str] = field(default_factory=set[str])
    """Folders that contain sources of other conversations."""

    def is_own(self, path: PurePosixPath) -> bool:
        """Return True if no other conversation is known to come from a file or folder."""
        return str(path) not in self.kept and str(path) not in self.folders


def mirrored_sources(queries: Queries, conversations: Collection[int]) -> list[MirroredSources]:
    """Return the sources on other machines that these conversations were imported from."""
    found: dict[str, MirroredSources] = {}
    rows: Any = queries.execute(_SOURCES).fetchall()
    for no, host, shown, source_id in rows:
        path = str(shown or "").removeprefix(path_at_host(host, ""))
        if not path or path == shown or ".." in PurePosixPath(path).parts or path.startswith("/"):
            continue
        sources = found.setdefault(host, MirroredSources(host))
        if no in conversations:
            sources.purged[path].add(str(source_id or "").removeprefix(key_at_host(host, "")))
        else:
            sources.kept.add(path)
            sources.folders.update(map(str, PurePosixPath(path).parents))
    return [sources for sources in found.values() if sources.purged]


def take_mirror(mirror: Path) -> ExitStack | None:
    """Lock a mirror until the returned context ends.

    Return None if it is already locked. Partial files left by an interrupted synchronization are deleted at the beginning and at the end.
    """
    lock = FileLock(mirror / "lock")
    if not lock.take(wait=False):
        return None
    stack = ExitStack()
    stack.callback(lock.release)
    stack.callback(_delete_parts, mirror)
    _delete_parts(mirror)
    return stack


def _delete_parts(mirror: Path) -> None:
    for part in mirror.glob("part[0-9]*"):
        part.unlink(missing_ok=True)


def lock_mirrors(hosts: Iterable[str], data: Path) -> ExitStack:
    """Lock several mirrors, so that nothing is fetched into them. Raise Busy if one is being synchronized."""
    with ExitStack() as stack:
        for host in hosts:
            if not mirror_of(data, host).is_dir():
                continue
            taken = take_mirror(mirror_of(data, host))
            if taken is None:
                raise Busy(f"Conversations from {host} are being synchronized.", fix="Try again when 'moot sync' is done.")
            stack.enter_context(taken)
        return stack.pop_all()


def delete_mirrored(found: Collection[MirroredSources], data: Path, *, dry_run: bool = False) -> list[FileOutcome]:
    """Delete the copies of these sources and of the files that belong to them. Blocks. Except for a dry run, the mirrors must be locked."""
    outcomes: list[FileOutcome] = []
    for sources in found:
        mirror = mirror_of(data, sources.host)
        if not mirror.is_dir():
            continue
        home = mirror / "home"
        whole = {path: [*_named_after(path, ids, sources, home)] for path, ids in sources.purged.items()}
        if not dry_run:
            _remember(mirror, (str(place) for places in whole.values() for place in places))
        own = {file for places in whole.values() for file in _files(home, places)}
        shared = {
            *(
                file
                for path, places in whole.items()
                if not places
                for file in _files(home, _files_beside(PurePosixPath(path), sources, home))
            ),
            *_naming(home, sources, own),
        }
        for file in sorted(own | shared):
            again = "where the original remains" if file in own else "which is fetched again, because it may contain other conversations"
            if not dry_run:
                file.unlink(missing_ok=True)
            outcomes.append(FileOutcome(str(file), "deleted", f"a copy of a file of {sources.host}, {again}"))
    return outcomes


def is_purged(path: str, purged: AbstractSet[str]) -> bool:
    """Return True if a file, with or without its suffix, or a folder that contains it is in the list of purged files."""
    folder, slash, name = path.rpartition("/")
    return bool(purged) and not purged.isdisjoint((*_with_folders(path), f"{folder}{slash}{_base(name)}"))


def purged_paths(mirror: Path) -> set[str]:
    """Return the files and folders that contain nothing but purged conversations. Raise HostError if the list can't be read."""
    try:
        return set(json.loads((mirror / _PURGED).read_bytes()))
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, TypeError) as error:
        raise HostError(
            f"Can't read the list of purged files, {str(mirror / _PURGED)!r}: {error}.",
            fix="Delete the list. The purged files will then be fetched again.",
        ) from error


def _with_folders(path: str) -> Iterator[str]:
    return accumulate(path.split("/"), "{}/{}".format)


def _remember(mirror: Path, paths: Iterable[str]) -> None:
    before = purged_paths(mirror)
    after = before.union(paths)
    if after != before:
        write_atomically(mirror / _PURGED, json.dumps(sorted(after)).encode())
        sync_folder(mirror)


def _named_after(path: str, ids: Collection[str], sources: MirroredSources, home: Path) -> Iterator[PurePosixPath]:
    """Yield the files and folders that are named after the sessions and contain nothing else.

    Yield nothing if they may contain other sessions.
    """
    place = PurePosixPath(path)
    if path.endswith(_DATABASES) or not sources.is_own(place):
        return
    words = {word for id in ids for word in (id, *id.split("/")) if word}
    if _is_named(_base(place.name), words):
        yield place
        if sources.is_own(stem := place.with_name(_base(place.name))):
            yield stem  # for what appears later: a folder of sub-agents, or the file with another suffix
        yield from (one for one in _files_beside(place, sources, home) if one != place)
        return
    sessions = {word for id in ids for word in (id, id.partition("/")[0]) if word}
    for number, folder in enumerate([*place.parents][:_NEAR]):
        if _is_named(folder.name, sessions if number else words) and sources.is_own(folder):
            yield folder
            return


def _is_named(name: str, words: Iterable[str]) -> bool:
    """Return True if a name is that of a session: its id, or a prefix such as the time, followed by the id or its first part."""
    return any(
        name == word or (_UUID.fullmatch(word) is not None and name.endswith((f"-{word}", f"_{word}", f"-{word[:8]}", f"_{word[:8]}")))
        for word in words
    )


def _files_beside(path: PurePosixPath, sources: MirroredSources, home: Path) -> Iterator[PurePosixPath]:
    """Yield a source and everything that belongs to it: a database's logs, or files and a folder with the same name but another suffix."""
    try:
        names = sorted(one.name for one in (home / path).parent.iterdir())
    except OSError:
        return
    logs = {f"{path.name}{end}" for end in _LOGS}
    for name in names:
        one = path.with_name(name)
        belongs = name in logs if path.name.endswith(_DATABASES) else _base(name) == _base(path.name) and sources.is_own(one)
        if one == path or belongs:
            yield one


def _naming(home: Path, sources: MirroredSources, own: Iterable[Path]) -> Iterator[Path]:
    """Yield other files of the same program that contain a session's id or an id from the session's files.

    Skip sources of other conversations. Examples are session lists with titles, and logs that a session refers to by an id.
    """
    ids = {id.encode() for found in sources.purged.values() for id in found if len(id) >= _LONG}
    ids.update(id for file in own for id in _words(file) if _UUID.fullmatch(id.decode()))
    tops = {_top(path) for path in sources.purged if not path.endswith(_DATABASES)}
    for file in _files(home, sorted(tops)) if ids else ():
        path = file.relative_to(home).as_posix()
        is_source = not sources.kept.isdisjoint(_with_folders(path)) or path.endswith((*_DATABASES, *_LOGS))
        if not is_source and any(word in ids for word in _words(file)):
            yield file


def _top(path: str) -> PurePosixPath:
    """Return the folder of a program, such as `.codex/sessions` or `.local/share/goose`."""
    return PurePosixPath(*PurePosixPath(path).parts[: 3 if path.startswith(_FOLDERS_OF_ALL) else 2])


def _words(file: Path) -> Iterator[bytes]:
    """Yield everything in a file that could be an id. Very large files are not read."""
    with suppress(FileNotFoundError):  # a copy that runs meanwhile removes files that no longer exist on the other machine
        if not file.is_symlink() and file.stat().st_size <= _READ:
            yield from (found[0] for found in _WORD.finditer(file.read_bytes()))


def _base(name: str) -> str:
    """Return the name without the suffix of a session file."""
    return next((name[: end.start()] for end in _ENDINGS.finditer(name, 1) if end.end() == len(name)), name)


def _files(home: Path, places: Iterable[PurePosixPath]) -> Iterator[Path]:
    for place in places:
        top = home / place
        yield from (file for file in (top, *sorted(top.rglob("*"))) if file.is_file() or file.is_symlink())
