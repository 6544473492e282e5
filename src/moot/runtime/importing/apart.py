"""Sources read by a process of its own, so that reading and storing each have a core: with much to read that is nearly twice as fast.

The process is started when it is first needed and reads one source at a time. What it says comes over a pipe, which is full before it is
far ahead. A reader that dies costs the source that it was at; one that can't be started, or does not know the format, is done without.
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
"""Bytes from which on it is worth the start of a process."""
PROGRAM = ("-P", "-m", "moot.runtime.importing.reader")  # -P: nothing in the folder where we stand may be imported in place of moot


@asynccontextmanager
async def reading_of(sources: Iterable[Source], *, worth: int = WORTH) -> AsyncGenerator[Reading, None]:
    """Who reads these sources: a process of its own when there is much in them."""
    if sum(source.mark.size for source in sources) < worth:
        yield Here()
        return
    apart = Apart()
    try:
        yield apart
    finally:
        await apart.close()


class Apart:
    """`Reading` in a process of its own; one source at a time."""

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
            said = await _pieces(child, order, send)
        except (ConnectionError, IncompleteReadError):
            code = await child.wait()
            await self.close()
            return f"the process that read it ended {f'by signal {-code}' if code < 0 else f'with code {code}'}"
        except anyio.BrokenResourceError:
            await self.close()
            return "nobody wants to know any more"
        except BaseException:
            await self.close()  # what it says next belongs to nothing
            raise
        return await self._here.read(source, send) if said is None else said

    async def close(self) -> None:
        """Ends the process, whatever it is at."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill(0)

    async def _started(self) -> Child | None:
        if self._child is None and not self._refused:
            try:
                self._child = await spawn([sys.executable, *self._program], stdin="pipe", stderr="null")
                assert self._child.stdout is not None
                await self._child.stdout.readexactly(len(READY))
            except (Refused, IncompleteReadError):  # where moot itself is found by what no child of ours is told, as PYTHONPATH
                self._refused = True
                await self.close()
            except BaseException:
                await self.close()
                raise
        return self._child


def _order(source: Source) -> bytes | None:
    """None for a source whose format is made of what only this process has."""
    try:
        return pickle.dumps(source)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


async def _pieces(child: Child, order: bytes, send: Send) -> str | None:
    """What went wrong, once all pieces are handed over; None when it does not know the format."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(len(order).to_bytes(8, "little") + order)
    await child.stdin.drain()
    while True:
        size = int.from_bytes(await child.stdout.readexactly(8), "little")
        said: Piece | str | None = pickle.loads(await child.stdout.readexactly(size))
        if not isinstance(said, Piece):
            return said
        await send(said)
