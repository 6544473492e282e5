"""The format of backups, and the registry of files with copies of store contents.

A backup is a tar of a home, compressed with zstd, whose last member describes the others. `moot.db` is a snapshot of the database,
`checkpoints.db` one of the files kept for undo, and `blobs/` has the large blobs; other files have the same paths as in a home. The
manifest is written last, because hashes are computed while writing: a backup without a manifest is truncated.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self, cast

import zstandard

from moot.errors import StoreCorrupt, UsageError
from moot.store.database.connection import Queries
from moot.store.database.transaction import Transaction
from moot.store.rows import parse_stored
from moot.types.maintenance import Backup, CopyKind, StoredCopy

VERSION = 1
DATABASE = "moot.db"
CHECKPOINTS = "checkpoints.db"
MANIFEST = "manifest.json"
PLUGINS = "plugins"
FOLDERS = ("agents", "skills", PLUGINS, "commands", "tools", "memory")
"""Folders of a home with files written by people."""
_NAME = re.compile(
    rf"{re.escape(DATABASE)}|{re.escape(CHECKPOINTS)}|blobs/[0-9a-f]{{2}}/[0-9a-f]{{64}}|config\.yaml|state/history\.jsonl|state/drafts/[\w.-]+"
    rf"|(?:{'|'.join(FOLDERS)})/.+"
)
_PIECE = 1 << 20
_LARGEST_MANIFEST = 1 << 28

_LARGEST_HEADER = 1 << 20  # maximum size of a tar header, because it is read into memory

Take = Callable[[str, IO[bytes]], None]
"""Callback that gets a member's name and its stream. It may read the stream."""


class Copied:
    """A stream that is hashed while it is read."""

    def __init__(self, source: IO[bytes]) -> None:
        self.size = 0
        self._source = source
        self._hash = hashlib.sha256()

    def read(self, count: int = -1) -> bytes:
        """Read like a file, and hash the data."""
        data = self._source.read(_PIECE if count < 0 else count)
        self._hash.update(data)
        self.size += len(data)
        return data

    @property
    def entry(self) -> tuple[int, str]:
        """The size and hash of the data read so far."""
        return self.size, self._hash.hexdigest()


def read(path: Path, take: Take | None = None) -> Backup:
    """Read and verify a whole backup and return its description. Raise UsageError if it isn't a backup, StoreCorrupt if it is damaged."""
    found: dict[str, tuple[int, str]] = {}
    manifest: Mapping[str, Any] | None = None
    strange = ""
    with _members(path) as members:
        for name, stream in members:
            if manifest is not None:
                raise _broken(path, f"{name!r} follows the manifest")
            if name == MANIFEST and stream is not None:
                manifest = _manifest(path, stream.read(_LARGEST_MANIFEST))
                continue
            if stream is None or not _is_name(name) or name in found:  # the manifest may reveal that a newer version of moot wrote it
                strange = strange or f"{name!r} {'is not a file' if stream is None else 'does not belong in it'}"
                continue
            copied = Copied(stream)
            if take is not None and not strange:
                take(name, cast("IO[bytes]", copied))
            while copied.read():
                pass
            found[name] = copied.entry
    if manifest is None:
        raise _broken(path, strange or "the manifest is missing")
    if strange:
        raise _broken(path, strange)
    wanted = {str(name): (int(entry[0]), str(entry[1])) for name, entry in manifest["files"].items()}
    if found != wanted:
        wrong = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
        raise _broken(path, f"{wrong[0]!r} does not match the manifest")
    return Backup(
        str(path),
        int(manifest["made_at"]),
        str(manifest["moot"]),
        int(manifest["schema"]),
        len(found),
        sum(size for size, _ in found.values()),
        path.stat().st_size,
        manifest.get("secrets") is True,
    )


@contextmanager
def _members(path: Path) -> Generator[Iterator[tuple[str, IO[bytes] | None]]]:
    """Yield the names and streams of the members, in order; the stream is None for anything but a plain file."""
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
            try:
                with tarfile.open(fileobj=plain, mode="r|", tarinfo=_Member) as archive:
                    yield (
                        (member.name, archive.extractfile(member) if member.isreg() and not member.issparse() else None)
                        for member in archive
                    )
            except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError, KeyError, TypeError) as error:
                raise _broken(path, f"{error}") from error
    except OSError as error:
        raise UsageError(f"Cannot read {str(path)!r}: {error.strerror or error}.") from error


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Raise ReadError if the header is too large."""
        found = super().frombuf(buf, encoding, errors)
        if not found.isreg() and found.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"header of {found.size:,} bytes is too large")
        return found


def _manifest(path: Path, data: bytes) -> Mapping[str, Any]:
    value: Any = parse_stored(data)
    if not isinstance(value, dict) or value.get("moot_backup") is None or not isinstance(value.get("files"), dict):  # pyright: ignore[reportUnknownMemberType]
        raise _broken(path, "the manifest is invalid")
    if value["moot_backup"] != VERSION:
        raise UsageError(f"{str(path)!r} was written by a newer version of moot in an unknown format.", fix="Upgrade moot.")
    return cast("Mapping[str, Any]", value)


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not any(part in ("", ".", "..") for part in name.split("/")) and "\0" not in name


def _broken(path: Path, why: str) -> StoreCorrupt:
    return StoreCorrupt(f"{str(path)!r} is not a complete backup: {why}.", fix="Use another backup. Nothing was changed.")


def remember(transaction: Queries, path: str, kind: CopyKind, made_at: int, size: int, conversation: str | None = None) -> None:
    """Register a file, replacing an earlier entry with the same path."""
    transaction.execute(
        "INSERT INTO written_file (path, kind, made_at, size, sha256, conversation) VALUES (?, ?, ?, ?, '', ?)"
        " ON CONFLICT (path) DO UPDATE SET kind = excluded.kind, made_at = excluded.made_at, size = excluded.size,"
        " conversation = excluded.conversation",
        (os.fsencode(path), kind, made_at, size, conversation),
    )


def forget(path: str, transaction: Transaction) -> None:
    """Remove the entry of a file that was not written."""
    transaction.execute("DELETE FROM written_file WHERE path = ? AND size = 0", (os.fsencode(path),))


def known(queries: Queries) -> list[StoredCopy]:
    """Return the registered files, oldest first."""
    rows: Any = queries.execute("SELECT path, kind, made_at, size, conversation FROM written_file ORDER BY made_at, path").fetchall()
    return [StoredCopy(os.fsdecode(path), *rest) for path, *rest in rows]


def backed_up(backup: Backup, transaction: Transaction) -> None:
    """Register a finished backup."""
    remember(transaction, backup.path, "backup", backup.made_at, backup.packed)
