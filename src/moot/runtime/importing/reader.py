"""The reader process: orders on stdin, pieces on stdout after `READY`, each preceded by its length.

An order is a pickled Source. The response is its pieces, then the problem, or None if the format can't be imported here. The process ends
with its input or when its output is closed.
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
"""First bytes of the output."""


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Process orders until the input ends. Raise BrokenPipeError if the output is closed."""
    prices = Prices()
    answers.write(READY)
    answers.flush()

    def send_answer(answer: Piece | str | None) -> None:
        data = _packed(answer)
        answers.write(len(data).to_bytes(8, "little"))
        answers.write(data)
        answers.flush()

    while head := orders.read(8):
        try:
            source: Source = pickle.loads(orders.read(int.from_bytes(head, "little")))
        except (ImportError, AttributeError):
            send_answer(None)
        else:
            send_answer(read(source, prices, send_answer))


def _packed(answer: Piece | str | None) -> bytes:
    if isinstance(answer, Piece):
        answer = replace(answer, conversation=replace(answer.conversation, entries=()))
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a format's prints must not mix with the pieces
    with suppress(BrokenPipeError):
        serve(sys.stdin.buffer, answers)
    os._exit(0)  # skip flushing: the pipe is closed
