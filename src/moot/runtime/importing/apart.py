"""Reading sources in a separate process, so that reading and storing use one core each. This is nearly twice as fast for large imports.

The process starts when it is first needed and reads one source at a time. The pipe limits how far it reads ahead. If it dies, only the
current source fails. If it can't start or does not know the format, sources are read in this process.
"""

from __future__ import annotations

import pickle
import sys
from asyncio import IncompleteReadError
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio

from moot.errors import Refused
from moot.guard.processes import Child, spawn
from moot.runtime.importing.reader import READY
from moot.runtime.importing.reading import Here, Piece, Reading, Send
from moot.runtime.importing.sources import Source

__all__ = ["PROGRAM", "WORTH", "Apart", "reading_of"]

WORTH = 16 << 20
"""Minimum total size in bytes of the sources for which a process is started."""
PROGRAM = ("-P", "-m", "moot.runtime.importing.reader")  # -P: don't import from the current directory


@asynccontextmanager
async def reading_of(sources: Iterable[Source], *, worth: int = WORTH) -> AsyncGenerator[Reading, None]:
    """Return a reader for the sources: a separate process if they are large."""
    if sum(source.mark.size for source in sources) < worth:
        yield Here()
        return
    apart = Apart()
    try:
        yield apart
    finally:
        await apart.close()


class Apart:
    """`Reading` in a separate process, one source at a time."""

    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        self._here = Here()
        self._program = program
        self._child: Child | None = None
        self._refused = False

    async def read(self, source: Source, send: Send) -> str:
        order = _order(source)
        child = await self._started() if order is not None else None
        if order is None or child is None:
            return await self._here.read(source, send)
        try:
            answer = await _pieces(child, order, send)
        except (ConnectionError, IncompleteReadError):
            code = await child.wait()
            await self.close()
            return f"the reader process ended {f'by signal {-code}' if code < 0 else f'with code {code}'}"
        except anyio.BrokenResourceError:
            await self.close()
            return "the reader was cancelled"
        except BaseException:
            await self.close()  # its remaining output belongs to no source
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
            except (Refused, IncompleteReadError):  # moot may be importable only through PYTHONPATH, which children don't get
                self._refused = True
                await self.close()
            except BaseException:
                await self.close()
                raise
        return self._child


def _order(source: Source) -> bytes | None:
    """Return the pickled source, or None if its format can't be pickled."""
    try:
        return pickle.dumps(source)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


async def _pieces(child: Child, order: bytes, send: Send) -> str | None:
    """Send all pieces and return the problem. Return None if the process does not know the format."""
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
