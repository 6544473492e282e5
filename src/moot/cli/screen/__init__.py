"""Runs and stored messages drawn for a terminal.

`Transcript` turns events into lines: `feed` it events, print what `take` returns once, and redraw what `live` returns. It does no I/O and
has no clock. All text that is drawn is untrusted and cleaned first (`look.tidy`); the only control sequences are SGR (`styles`).
"""

from moot.cli.screen.cards import Folded
from moot.cli.screen.look import Look
from moot.cli.screen.terminal import look_of
from moot.cli.screen.transcript import Transcript

__all__ = ["Folded", "Look", "Transcript", "look_of"]
