"""Creating backups: a snapshot of the database and other files in one compressed stream."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

import anyio
import zstandard
from anyio import to_thread

from moot import __version__
from moot.config.document import parse
from moot.config.secrets import MASK, secrets_of
from moot.config.tree import Node, Place
from moot.errors import Busy, ConfigError, MootError, StoreCorrupt, StoreError, StoreFull, UsageError
from moot.store.database.connection import checkpoints_path, connect
from moot.store.database.errors import FOREIGN_ERRORS, translate_error, translated_errors
from moot.store.database.locks import FORGETTING, FileLock, sync_folder
from moot.store.database.schema import version_of
from moot.store.database.writer import Writer
from moot.store.maintenance.backup.archive import (
    CHECKPOINTS,
    DATABASE,
    FOLDERS,
    MANIFEST,
    PLUGINS,
    VERSION,
    Copied,
    backed_up,
    forget,
    read,
    remember,
)
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.crash import point
from moot.types.ids import Clock
from moot.types.maintenance import Backup, ReportProgress


def without_secrets(data: bytes) -> bytes:
    """Return the text with each secret masked, or only a comment if it can't be parsed."""
    try:
        text = data.decode()
        tree = _plain(parse(text, Place("user", "config.yaml")))
    except (UnicodeDecodeError, ConfigError):
        return b"# the configuration was unreadable when this backup was made, so it is not included\n"
    for secret in secrets_of(cast("JsonObject", tree)):
        if "${" not in secret:
            text = text.replace(secret, MASK)
    return text.encode()


def _plain(node: Node) -> Json:
    if isinstance(node.value, dict):
        return {name: _plain(child) for name, child in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(child) for child in node.value]
    return node.text or cast("Json", node.value)


_LEVEL = 6
_PART, _COPY = ".moot-part", ".moot-copy"  # suffixes of files that exist only while a backup is written


@dataclass(frozen=True, slots=True)
class _Source:
    name: str
    path: Path | None = None
    data: bytes = b""


def write(database: Path, to: Path, made_at: int, *, secrets: bool, tell: ReportProgress) -> Backup:
    """Write a backup, which gets its final name after it is read back.

    Raise StoreFull, StoreError or StoreCorrupt if that fails. In this case, no file is left.
    """
    unfinished, copy, checkpoints = (to.with_name(f".{to.name}{ending}") for ending in (_PART, _COPY, f".checkpoints{_COPY}"))
    try:
        for ending in (_PART, _COPY):  # files of a killed process
            for path in to.parent.glob(f".*{ending}"):
                path.unlink(missing_ok=True)
        for path in (unfinished, copy, checkpoints):
            path.touch(mode=0o600)
        tell("Copying the database")
        schema = _snapshot(database, copy)
        if checkpoints_path(database).exists():
            _copy(checkpoints_path(database), checkpoints)
        point("backup.copied")
        _pack(database, (copy, checkpoints), unfinished, {"made_at": made_at, "schema": schema, "secrets": secrets}, tell)
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
        for path in (unfinished, copy, checkpoints):
            path.unlink(missing_ok=True)


def _copy(database: Path, copy: Path) -> None:
    with translated_errors(database), closing(connect(database)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))


def _snapshot(database: Path, copy: Path) -> int:
    _copy(database, copy)
    try:
        with closing(connect(copy)) as made:
            found, version = made.execute("PRAGMA integrity_check(1)").fetchone()[0], version_of(made)
    except FOREIGN_ERRORS as error:
        raise translate_error(error, database) from error
    if found != "ok":
        raise StoreCorrupt(f"Cannot back up the database {str(database)!r}: {found}.", fix="Run `moot doctor`.")
    return version


def _pack(database: Path, copies: tuple[Path, Path], to: Path, facts: JsonObject, tell: ReportProgress) -> None:
    home, files, done = database.parent.parent, dict[str, Json](), 0
    with to.open("wb") as file:
        compressor = zstandard.ZstdCompressor(level=_LEVEL, threads=1)
        with (
            compressor.stream_writer(file, closefd=False) as packed,
            tarfile.open(fileobj=cast("IO[bytes]", packed), mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for source in _sources(home, database, copies, secrets=facts["secrets"] is True):
                entry = _add(archive, source)
                files[source.name] = list[Json](entry)
                done += entry[0]
                tell(f"{len(files):,} files, {done / 1e6:,.0f} MB")
            manifest: JsonObject = {"moot_backup": VERSION, "moot": __version__, **facts, "files": files}
            _add(archive, _Source(MANIFEST, data=dumps(manifest)))
        file.flush()
        os.fsync(file.fileno())


def _add(archive: tarfile.TarFile, source: _Source) -> tuple[int, str]:
    member = tarfile.TarInfo(source.name)
    member.mode, member.mtime = 0o600, int(time.time())
    with source.path.open("rb") if source.path is not None else io.BytesIO(source.data) as stream:
        member.size = os.fstat(stream.fileno()).st_size if source.path is not None else len(source.data)
        copied = Copied(stream)
        archive.addfile(member, cast("IO[bytes]", copied))
    if copied.size != member.size:
        raise StoreError(f"{str(source.path)!r} changed while it was being backed up.", fix="Try again.")
    return copied.entry


def _sources(home: Path, database: Path, copies: tuple[Path, Path], *, secrets: bool) -> Iterator[_Source]:
    copy, checkpoints = copies
    yield _Source(DATABASE, copy)
    if checkpoints.stat().st_size:
        yield _Source(CHECKPOINTS, checkpoints)
    with closing(connect(copy)) as connection:
        names = [str(row[0]) for row in connection.execute("SELECT sha256 FROM blob WHERE data IS NULL ORDER BY sha256")]
    for name in names:
        path = database.parent / "blobs" / name[:2] / name
        if path.exists():  # `moot verify` reports missing files, both before and after a backup
            yield _Source(f"blobs/{name[:2]}/{name}", path)
    config = home / "config.yaml"
    if config.is_file():
        yield _Source("config.yaml", data=config.read_bytes() if secrets else without_secrets(config.read_bytes()))
    for folder in FOLDERS:
        yield from (
            _Source(f"{folder}/{path.relative_to(home / folder).as_posix()}", path)
            for path in _files(home / folder, hidden=folder == PLUGINS)
        )
    history = home / "state" / "history.jsonl"
    if history.is_file():
        yield _Source("state/history.jsonl", data=history.read_bytes())  # other processes append to the file
    yield from (_Source(f"state/drafts/{path.name}", data=path.read_bytes()) for path in _files(home / "state" / "drafts"))


def _files(folder: Path, *, hidden: bool = False) -> list[Path]:
    """Return the plain files in the folder and its subfolders, without following links. With `hidden`, subfolders include hidden files."""
    walked = ((Path(place), name) for place, _, names in os.walk(folder) for name in names)
    found = [place / name for place, name in walked if not name.startswith(".") or (hidden and place != folder)]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def silent(_words: str) -> None:
    """Show no progress."""


@asynccontextmanager
async def alone(state: Path, turn: anyio.Lock) -> AsyncGenerator[None, None]:
    """Wait until no other purge, redaction or backup is running in this process. Raise Busy if one is running in another process."""
    lock = FileLock(state / FORGETTING)
    async with turn:
        if not await to_thread.run_sync(partial(lock.take, wait=False)):
            raise Busy("Another process is purging, redacting or backing up data.", fix="Try again when it has finished.")
        try:
            yield
        finally:
            lock.release()


class BackupCreator:
    """The implementation of `Backups` for one store."""

    def __init__(self, writer: Writer, path: Path, clock: Clock, turn: anyio.Lock) -> None:
        self._writer = writer
        self._path = path
        self._clock = clock
        self._turn = turn

    async def back_up(self, to: Path, *, secrets: bool = False, tell: ReportProgress | None = None) -> Backup:
        made_at = self._clock.now() // 1000
        target = await to_thread.run_sync(_target, to, made_at)
        async with alone(self._path.parent.parent / "state", self._turn):
            # registered before the file exists: purges can't reach an unregistered backup
            await self._writer.write(partial(remember, path=str(target), kind="backup", made_at=made_at, size=0), sync=True)
            try:
                backup = await to_thread.run_sync(partial(write, self._path, target, made_at, secrets=secrets, tell=tell or silent))
            except MootError:
                await self._writer.write(partial(forget, str(target)))
                raise
            await self._writer.write(partial(backed_up, backup), sync=True)
        return backup


def _target(to: Path, made_at: int) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(made_at / 1000))
    to = to.expanduser().absolute()
    target = to / f"moot-{stamp}.backup" if to.is_dir() else to
    if target.exists():
        raise UsageError(f"{str(target)!r} already exists.", fix="Choose another file, or a folder.")
    if not target.parent.is_dir():
        raise UsageError(f"The folder {str(target.parent)!r} does not exist.", fix="Create it first.")
    return target
