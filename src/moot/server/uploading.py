"""Files that are sent: kept below `state/uploads` for as long as their import takes, and called by their own names only."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import anyio
import anyio.to_thread

from moot.errors import StoreError
from moot.guard.terminal import clean

__all__ = ["Upload", "clear_uploads", "upload"]

_LONGEST = 200
"""Bytes of a name: file systems take 255."""
_ALONE = ("of", "its", "own")
"""Folders around a file, so deep that a format which looks around for what belongs to its source finds nobody else's."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent."""

    folder: Path
    """Gone with it."""
    file: Path
    """In a folder that is named after what it holds: some formats take a folder's name for the conversation's id."""
    name: str

    def said(self, text: str) -> str:
        """The text with the file's own name where it names the place that it lies at."""
        return text.replace(str(self.file), self.name)

    async def drop(self) -> None:
        """Removes it, whatever comes."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(partial(shutil.rmtree, self.folder, ignore_errors=True))


async def upload(home: Path, name: str, body: AsyncIterable[bytes]) -> Upload:
    """The body as a file; nothing is left when it does not come to its end. Raises StoreError."""
    place = _uploads(home)
    await anyio.Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, dir=place)))
    kept = Upload(folder, folder / "coming", _named(name))
    try:
        digest = hashlib.sha256()
        async with await anyio.open_file(kept.file, "xb") as file:
            async for piece in body:
                digest.update(piece)
                await file.write(piece)
        own = folder.joinpath(*_ALONE, digest.hexdigest()[:32])
        await anyio.Path(own).mkdir(parents=True)
        await anyio.Path(kept.file).rename(own / kept.name)
    except OSError as error:
        await kept.drop()
        raise StoreError(f"can't keep {kept.name!r}: {error.strerror}", fix="free some space") from error
    except BaseException:
        await kept.drop()
        raise
    return Upload(folder, own / kept.name, kept.name)


def clear_uploads(home: Path) -> None:
    """Removes what a server that was killed has left. For whoever serves the home alone."""
    shutil.rmtree(_uploads(home), ignore_errors=True)


def _uploads(home: Path) -> Path:
    return home / "state" / "uploads"


def _named(name: str) -> str:
    """The last part of what it is called; of a name that is too long its end, which says what it is."""
    last = PurePosixPath(clean(name).replace("\\", "/")).name
    cut = last.encode()[-_LONGEST:].decode("utf-8", "ignore")
    return cut if cut.strip(". ") else "upload"
