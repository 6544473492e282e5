"""Writing a backup: a snapshot of the database and other files in one compressed stream. All functions block."""

from __future__ import annotations

import os
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import zstandard

from moot import __version__
from moot.errors import StoreCorrupt, StoreError, StoreFull
from moot.store.backing.config import without_secrets
from moot.store.backing.manifest import DATABASE, FOLDERS, MANIFEST, VERSION, Copied, read, stream_of
from moot.store.connect import connect
from moot.store.faults import FOREIGN, translated
from moot.store.locks import sync_folder
from moot.store.migrate import version_of
from moot.types.backup import Backup, Tell
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.crash import point

__all__ = ["write"]

_LEVEL = 6
_PART, _COPY = ".moot-part", ".moot-copy"
"""Suffixes of files that exist only while a backup is written."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to add to the backup."""

    name: str
    path: Path | None = None
    data: bytes = b""


def write(database: Path, to: Path, made_at: int, *, secrets: bool, tell: Tell) -> Backup:
    """Write a backup; it gets its name once it was read again. Raise StoreFull, StoreError or StoreCorrupt; nothing is left then."""
    unfinished, copy = to.with_name(f".{to.name}{_PART}"), to.with_name(f".{to.name}{_COPY}")
    try:
        for ending in (_PART, _COPY):  # files of a killed process
            for path in to.parent.glob(f".*{ending}"):
                path.unlink(missing_ok=True)
        for path in (unfinished, copy):
            path.touch(mode=0o600)
        tell("Copying the database")
        schema = _snapshot(database, copy)
        point("backup.copied")
        _pack(database, copy, unfinished, {"made_at": made_at, "schema": schema, "secrets": secrets}, tell)
        tell("Verifying the backup")
        read(unfinished)
        unfinished.replace(to)
        sync_folder(to.parent)
        point("backup.written")
        return read(to)
    except OSError as error:
        raise StoreFull(
            f"Cannot write the backup {str(to)!r}: {error.strerror}. It was not created.", fix="Free space on that disk."
        ) from error
    finally:
        for path in (unfinished, copy):
            path.unlink(missing_ok=True)


def _snapshot(database: Path, copy: Path) -> int:
    """Copy a snapshot of the database without free pages and return its schema version."""
    try:
        connection = connect(database)
        try:
            connection.execute("VACUUM INTO ?", (str(copy),))
        finally:
            connection.close()
        made = connect(copy)
        try:
            found = made.execute("PRAGMA integrity_check(1)").fetchone()[0]
            version = version_of(made)
        finally:
            made.close()
    except FOREIGN as error:
        raise translated(error, database) from error
    if found != "ok":
        raise StoreCorrupt(f"Cannot back up the database {str(database)!r}: {found}.", fix="Run `moot doctor`.")
    return version


def _pack(database: Path, copy: Path, to: Path, facts: JsonObject, tell: Tell) -> None:
    home, files, done = database.parent.parent, dict[str, Json](), 0
    with to.open("wb") as file:
        compressor = zstandard.ZstdCompressor(level=_LEVEL, threads=1)
        with (
            compressor.stream_writer(file, closefd=False) as packed,
            tarfile.open(fileobj=cast("IO[bytes]", packed), mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for source in _sources(home, database, copy, secrets=facts["secrets"] is True):
                entry = _add(archive, source)
                files[source.name] = list[Json](entry)
                done += entry[0]
                tell(f"{len(files):,} files, {done / 1e6:,.0f} MB")
            manifest: JsonObject = {"moot_backup": VERSION, "moot": __version__, **facts, "files": files}
            _add(archive, _Source(MANIFEST, data=dumps(manifest)))
        file.flush()
        os.fsync(file.fileno())


def _add(archive: tarfile.TarFile, source: _Source) -> tuple[int, str]:
    """Add a file and return its size and hash."""
    member = tarfile.TarInfo(source.name)
    member.mode, member.mtime = 0o600, int(time.time())
    with source.path.open("rb") if source.path is not None else stream_of(source.data) as stream:
        member.size = os.fstat(stream.fileno()).st_size if source.path is not None else len(source.data)
        copied = Copied(stream)
        archive.addfile(member, cast("IO[bytes]", copied))
    if copied.size != member.size:
        raise StoreError(f"{str(source.path)!r} changed while it was being backed up.", fix="Try again.")
    return copied.entry


def _sources(home: Path, database: Path, copy: Path, *, secrets: bool) -> Iterator[_Source]:
    yield _Source(DATABASE, copy)
    connection = connect(copy)
    try:
        names = [str(row[0]) for row in connection.execute("SELECT sha256 FROM blob WHERE data IS NULL ORDER BY sha256")]
    finally:
        connection.close()
    for name in names:
        path = database.parent / "blobs" / name[:2] / name
        if path.exists():  # a missing one is reported by `moot verify`, before and after
            yield _Source(f"blobs/{name[:2]}/{name}", path)
    config = home / "config.yaml"
    if config.is_file():
        yield _Source("config.yaml", data=config.read_bytes() if secrets else without_secrets(config.read_bytes()))
    for folder in FOLDERS:
        yield from (_Source(f"{folder}/{path.relative_to(home / folder).as_posix()}", path) for path in _files(home / folder))
    history = home / "state" / "history.jsonl"
    if history.is_file():
        yield _Source("state/history.jsonl", data=history.read_bytes())  # other processes append to it
    yield from (_Source(f"state/drafts/{path.name}", data=path.read_bytes()) for path in _files(home / "state" / "drafts"))


def _files(folder: Path) -> list[Path]:
    """Return the plain files in the folder and its subfolders, without following links."""
    found = [Path(place) / name for place, _, names in os.walk(folder) for name in names if not name.startswith(".")]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())
