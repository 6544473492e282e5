"""Reader of sources in a separate process, so that reading and storing use one core each. Large imports are nearly twice as fast.

The process starts when it is first needed and reads one source at a time. The pipe limits how far it reads ahead. If it dies, only the
current source fails. If it can't start, or can't load the format, the source is read in the importing process instead.

Protocol: the child process writes `READY` to stdout. It then receives pickled sources and price settings on stdin, and writes their
entries in pickled batches, called pieces, to stdout. Each message is preceded by its length. The process exits when its stdin is closed.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
from asyncio import IncompleteReadError
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import BinaryIO

import anyio

from moot.errors import Refused
from moot.guard.processes import Child, spawn
from moot.imports.reader import Piece, Prices, PriceSettings, Send, SourceReader, ThreadReader, read
from moot.imports.sources import Source

MIN_SIZE = 16 << 20
"""Minimum total size in bytes of the sources for reading them in a separate process."""
PROGRAM = ("-P", "-m", "moot.imports.process")  # -P: don't import from the current directory


@asynccontextmanager
async def reader_for(
    sources: Iterable[Source], prices: PriceSettings | None = None, *, worth: int = MIN_SIZE
) -> AsyncGenerator[SourceReader, None]:
    """Provide a reader for the sources: a separate process if their total size is at least `worth` bytes, otherwise a thread."""
    if sum(source.mark.size for source in sources) < worth:
        yield ThreadReader(prices)
        return
    apart = ProcessReader(prices)
    try:
        yield apart
    finally:
        await apart.close()


class ProcessReader:
    """`SourceReader` that reads in a separate process, one source at a time."""

    def __init__(self, prices: PriceSettings | None = None, program: Sequence[str] = PROGRAM) -> None:
        self._prices = prices or PriceSettings()
        self._here = ThreadReader(prices)
        self._program = program
        self._child: Child | None = None
        self._refused = False

    async def read(self, source: Source, send: Send) -> str:
        try:
            order = pickle.dumps((source, self._prices))
        except (pickle.PicklingError, AttributeError, TypeError):  # a format that can't be pickled
            order = None
        child = await self._started() if order is not None else None
        if order is None or child is None:
            return await self._here.read(source, send)
        try:
            answer = await _pieces(child, order, send)
        except (ConnectionError, IncompleteReadError):
            code = await child.wait()
            await self.close()
            return f"The reader process ended {f'by signal {-code}' if code < 0 else f'with code {code}'}."
        except anyio.BrokenResourceError:
            await self.close()
            return "The reader was cancelled."
        except BaseException:
            await self.close()  # its remaining output must not be mistaken for that of the next source
            raise
        return await self._here.read(source, send) if answer is None else answer

    async def close(self) -> None:
        """Kill the process."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill(0)

    async def _started(self) -> Child | None:
        if self._child is None and not self._refused:
            try:
                self._child = await spawn([sys.executable, *self._program], stdin="pipe", stderr="null")
                assert self._child.stdout is not None
                await self._child.stdout.readexactly(len(READY))
            except (Refused, IncompleteReadError):  # moot may be importable only through PYTHONPATH, which child processes don't inherit
                self._refused = True
                await self.close()
            except BaseException:
                await self.close()
                raise
        return self._child


async def _pieces(child: Child, order: bytes, send: Send) -> str | None:
    """Let the process read a source, and send the entries. Return the problem, if any, or None if the process can't load the format."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(len(order).to_bytes(8, "little") + order)
    await child.stdin.drain()
    while True:
        size = int.from_bytes(await child.stdout.readexactly(8), "little")
        answer: Piece | str | None = pickle.loads(await child.stdout.readexactly(size))
        if not isinstance(answer, Piece):
            return answer
        await send(answer)


READY = b"ready"
"""First output of the child process, which shows that it has started."""


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Read the sources received on `orders` and write their entries to `answers` in batches, until `orders` ends.

    Raise BrokenPipeError if `answers` is closed.
    """
    prices: Prices | None = None
    answers.write(READY)
    answers.flush()

    def send_answer(answer: Piece | str | None) -> None:
        if isinstance(answer, Piece):
            answer = replace(answer, conversation=replace(answer.conversation, entries=()))
        data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        answers.write(len(data).to_bytes(8, "little"))
        answers.write(data)
        answers.flush()

    while head := orders.read(8):
        try:
            order: tuple[Source, PriceSettings] = pickle.loads(orders.read(int.from_bytes(head, "little")))
        except (ImportError, AttributeError):
            send_answer(None)
        else:
            source, settings = order
            prices = prices or Prices(settings)
            send_answer(read(source, prices, send_answer))


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 100)  # parsed records have no cycles, and traversing them again and again takes a tenth of the time
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a format prints goes to stderr, so that it does not mix with the pieces
    with suppress(BrokenPipeError):
        serve(sys.stdin.buffer, answers)
    os._exit(0)  # skip flushing: the pipe is closed
