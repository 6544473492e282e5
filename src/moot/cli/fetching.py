"""Downloading the weights of embedded models, with the user's consent."""

from __future__ import annotations

from pathlib import Path

from moot.cli.asking import confirm
from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.things import format_bytes
from moot.errors import UsageError
from moot.providers.local import check_machine
from moot.providers.weights.here import path_of
from moot.providers.weights.manifest import MANIFEST
from moot.providers.weights.pull import Offer, pull


def is_missing(name: str, home: Path) -> bool:
    """Return whether the weights of this embedded model are known but not installed."""
    return name in MANIFEST and path_of(name, home) is None


async def provide(name: str, home: Path, output: Output, *, consent: bool) -> None:
    """Download missing weights. Raise like `fetch`, and ProviderError if the model cannot run on this machine."""
    if is_missing(name, home):
        check_machine(MANIFEST[name].size)
        await fetch(name, home, output, consent=consent)


async def fetch(name: str, home: Path, output: Output, *, consent: bool, source: Path | None = None, verbose: bool = False) -> Path:
    """Download weights and return their path. `source` is a local file to use instead.

    Raise UsageError if the user cannot be asked, Refused if they decline, and ProviderError if the download fails.
    """
    if source and (reason := _unreadable(source)):
        raise UsageError(f"Cannot read {str(source)!r}: {reason}.", fix="Pass the weights file to --from.")

    async def ask(offer: Offer) -> bool:
        for line in offer.lines(verbose=verbose):
            output.say(line)
        if consent:
            return True
        if not output.attended:
            words = " ".join(["moot models pull", name, *(["--from", str(source)] if source else []), "--yes-download"])
            raise UsageError(f"The weights of {name!r} are not installed, and downloading them needs consent.", fix=words)
        return await confirm("Download it?", output)

    progress = Progress(output)

    def show(done: int, total: int) -> None:
        progress.show(f"{done / total if total else 1:.0%} of {format_bytes(total)}")

    try:
        return await pull(name, home=home, consent=ask, progress=show, source=source)
    finally:
        progress.close()


def _unreadable(path: Path) -> str:
    """Return why the file cannot be read, or an empty string if it can."""
    try:
        with path.open("rb"):
            return ""
    except OSError as error:
        return error.strerror or str(error)
