"""The program that reads sources for another moot: orders on stdin, pieces on stdout behind `READY`, each with its length before it.

An order is a pickled Source. The answer is its pieces and then what went wrong, or None when the format can't be imported here. It ends
with its input, or as soon as nobody listens.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO

from moot.runtime.importing.pricing import Prices
from moot.runtime.importing.reading import Piece, read
from moot.runtime.importing.sources import Source

__all__ = ["READY", "serve"]

READY = b"ready"
"""What it says before anything else."""


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Works off the orders until there are no more. Raises BrokenPipeError when nobody listens."""
    prices = Prices()
    answers.write(READY)
    answers.flush()

    def say(said: Piece | str | None) -> None:
        data = _packed(said)
        answers.write(len(data).to_bytes(8, "little"))
        answers.write(data)
        answers.flush()

    while head := orders.read(8):
        try:
            source: Source = pickle.loads(orders.read(int.from_bytes(head, "little")))
        except (ImportError, AttributeError):
            say(None)
        else:
            say(read(source, prices, say))


def _packed(said: Piece | str | None) -> bytes:
    if isinstance(said, Piece):
        said = replace(said, conversation=replace(said.conversation, entries=()))
    return pickle.dumps(said, pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a format prints must not stand between the pieces
    with suppress(BrokenPipeError):
        serve(sys.stdin.buffer, answers)
    os._exit(0)  # what is left in a buffer has nobody to read it
