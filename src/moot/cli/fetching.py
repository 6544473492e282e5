"""An embedded model's weights brought here: what is fetched, from whom, and whether the person wants it."""

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
    """Whether an embedded model's weights are known and not here."""
    return name in MANIFEST and path_of(name, home) is None


async def provide(name: str, home: Path, output: Output, *, consent: bool) -> None:
    """Fetches what is missing. Raises as `fetch`, and ProviderError where the model could not run: nobody is to fetch it for nothing."""
    if is_missing(name, home):
        check_machine(MANIFEST[name].size)
        await fetch(name, home, output, consent=consent)


async def fetch(name: str, home: Path, output: Output, *, consent: bool, source: Path | None = None, verbose: bool = False) -> Path:
    """Where the weights lie now. Raises UsageError when nobody can be asked, Refused when the person said no, ProviderError.

    `source` is a file of the person's own, used instead of the manifest's sources.
    """
    if source and (reason := _unreadable(source)):
        raise UsageError(f"cannot read {str(source)!r}: {reason}", fix="--from takes the file of the weights")

    async def ask(offer: Offer) -> bool:
        for line in offer.lines(verbose=verbose):
            output.say(line)
        if consent:
            return True
        if not output.attended:
            words = " ".join(["moot models pull", name, *(["--from", str(source)] if source else []), "--yes-download"])
            raise UsageError(f"the weights of {name!r} are not here, and nobody can be asked", fix=words)
        return await confirm("Fetch it?", output)

    bar = Bar(output)
    try:
        return await pull(name, home=home, consent=ask, progress=bar.show, source=source)
    finally:
        bar.close()


def _unreadable(path: Path) -> str:
    """Why a file can't be read; empty when it can."""
    try:
        with path.open("rb"):
            return ""
    except OSError as error:
        return error.strerror or str(error)


class Bar:
    """Progress on stderr: one line that is redrawn on a terminal, a line for each tenth elsewhere."""

    WIDTH = 30

    def __init__(self, output: Output) -> None:
        self._output = output
        self._shown = -1
        self._open = False

    def show(self, done: int, total: int) -> None:
        """Called as often as one likes."""
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
        """Leaves the line as it is."""
        if self._open:
            self._open = False
            self._output.redraw("", ended=True)
