"""Write large files in a separate process with limits on time and size, so that a server can answer other requests in the meantime.

Redacting and writing a long conversation takes seconds and blocks the interpreter. The process reads a pickled order from stdin and writes
`READY`, the length of the pickled result, and the result itself to stdout. Then it ends. Small files are written in a thread, which is
faster.
"""

from __future__ import annotations

import os
import pickle
import sys
from asyncio import IncompleteReadError
from collections.abc import Sequence
from typing import BinaryIO

import anyio
import anyio.to_thread

from moot.errors import LimitReached, MootError
from moot.features.shares import RenderedFile, RenderOrder, render
from moot.guard.processes import Child, spawn

MIN_SIZE = 1 << 18
"""Minimum size of an order for which to start a process, in bytes."""
PROGRAM = ("-P", "-m", "moot.features.renderer")  # -P: don't import from the current directory
READY = b"ready"
"""Bytes that the process writes first, to show that it has started."""

_AT_ONCE = 2
_FIX = "Export it in the terminal with `moot export`, which has no limit."


class Renderer:
    """Writer of files for the clients of a server, two at a time. If a call is cancelled, its process is ended."""

    def __init__(self, *, seconds: float = 60.0, size: int = 256 << 20, worth: int = MIN_SIZE, program: Sequence[str] = PROGRAM) -> None:
        self._seconds = seconds
        self._size = size
        self._worth = worth
        self._program = program
        self._limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def render(self, order: RenderOrder) -> RenderedFile:
        """Write the file and return it. Raise LimitReached if the conversation is too large or writing takes too long."""
        data = await anyio.to_thread.run_sync(pickle.dumps, order)
        if len(data) > self._size:
            raise LimitReached(f"The conversation is {len(data) >> 20:,} MB; the limit is {self._size >> 20:,} MB.", fix=_FIX)
        if len(data) < self._worth:
            return await anyio.to_thread.run_sync(render, order)
        async with self._limiter:
            child = await spawn([sys.executable, *self._program], stdin="pipe", stderr="null")
            try:
                with anyio.fail_after(self._seconds):
                    answer = await self._answer(child, data)
                if answer is None:  # moot may be importable only through PYTHONPATH, which child processes don't inherit
                    return await anyio.to_thread.run_sync(render, order)
            except TimeoutError:
                raise LimitReached(f"Writing the conversation took longer than {self._seconds:g} seconds.", fix=_FIX) from None
            finally:
                await child.kill(0)
        result: RenderedFile | MootError = await anyio.to_thread.run_sync(pickle.loads, answer)
        if isinstance(result, MootError):
            raise result
        return result

    async def _answer(self, child: Child, order: bytes) -> bytes | None:
        """Return the result that the process wrote, or None if the process can't import moot."""
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            await child.stdout.readexactly(len(READY))
        except IncompleteReadError:
            return None
        try:
            child.stdin.write(len(order).to_bytes(8, "little"))
            child.stdin.write(order)
            await child.stdin.drain()
            size = int.from_bytes(await child.stdout.readexactly(8), "little")
            if size > self._size:
                raise LimitReached(f"The file would be {size >> 20:,} MB; the limit is {self._size >> 20:,} MB.", fix=_FIX)
            return await child.stdout.readexactly(size)
        except (ConnectionError, IncompleteReadError) as error:
            code = await child.wait()
            how = f"by signal {-code}" if code < 0 else f"with code {code}"
            raise MootError(f"The process that was writing the file ended {how}.", fix=_FIX) from error


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Process one order."""
    answers.write(READY)
    answers.flush()
    order: RenderOrder = pickle.loads(orders.read(int.from_bytes(orders.read(8), "little")))
    try:
        answer: RenderedFile | MootError = render(order)
    except MootError as error:
        answer = error
    data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    answers.write(len(data).to_bytes(8, "little"))
    answers.write(data)
    answers.flush()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # anything that a format prints must not be mixed with the answer
    serve(sys.stdin.buffer, answers)
