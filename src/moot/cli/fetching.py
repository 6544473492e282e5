"""Downloading the weights of embedded models, with the user's consent."""

from __future__ import annotations

from pathlib import Path

from moot.cli.asking import confirm
from moot.cli.output import Output
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


async def fetch(name: str, home: Path, output: Output, *, consent: bool, source: Path | None = None) -> Path:
    """Download weights and return their path. `source` is a local file to use instead.

    Raise UsageError if the user cannot be asked, Refused if they decline, and ProviderError if the download fails.
    """
    if source and (reason := _unreadable(source)):
        raise UsageError(f"Cannot read {str(source)!r}: {reason}.", fix="Pass the weights file to --from.")

    async def ask(offer: Offer) -> bool:
        for line in offer.lines():
            output.say(line)
        if consent:
            return True
        if not output.attended:
            words = " ".join(["moot models pull", name, *(["--from", str(source)] if source else []), "--yes-download"])
            raise UsageError(f"The weights of {name!r} are not installed, and downloading them needs consent.", fix=words)
        return await confirm("Download it?", output)

    bar = Bar(output)
    try:
        return await pull(name, home=home, consent=ask, progress=bar.show, source=source)
    finally:
        bar.close()


def _unreadable(path: Path) -> str:
    """Return why the file cannot be read, or an empty string if it can."""
    try:
        with path.open("rb"):
            return ""
    except OSError as error:
        return error.strerror or str(error)


class Bar:
    """Progress bar on stderr: redrawn on a terminal, one line per 10 % elsewhere."""

    WIDTH = 30

    def __init__(self, output: Output) -> None:
        self._output = output
        self._shown = -1
        self._open = False

    def show(self, done: int, total: int) -> None:
        """Update the bar. May be called often."""
        percent = done * 100 // total if total else 100
        terminal = self._output.stderr_terminal
        step = percent if terminal else percent // 10
        if step == self._shown:
            return
        self._shown = step
        filled = self.WIDTH * percent // 100
        if terminal:
            self._open = True
            self._output.redraw(f"[{'#' * filled}{'.' * (self.WIDTH - filled)}] {percent:3d} % of {total / 1e6:,.0f} MB")
        else:
            self._output.say(f"{percent} % of {total / 1e6:,.0f} MB")

    def close(self) -> None:
        """Move to the line after the bar."""
        if self._open:
            self._open = False
            self._output.redraw("", ended=True)
