"""The pipe to an agent: every line recorded before anything is done about it, requests of both sides, and the interrupt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

import anyio
from anyio.abc import TaskGroup

from moot.agents.outside.process import Program
from moot.agents.outside.rpc import METHOD_NOT_FOUND, Incoming, Rpc
from moot.agents.outside.turn import Turn
from moot.convert import acp
from moot.errors import ProviderError
from moot.types.canonical import Json, JsonObject

__all__ = ["Link", "Refuse", "Serve", "unknown"]

NOISE = 5_000
"""Lines that are no message after which an agent is taken to be broken: they would fill the log."""
INTERRUPT = 0.6
"""Seconds that an agent gets to end its answer when it is cancelled."""
QUIET, REPLAY = 0.3, 5.0
"""Seconds without a line after which a loaded session has told all of it again; at most so many are waited for that."""


class Refuse(Exception):
    """What we answer to a request that we don't carry out."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


Serve = Callable[[Incoming], Awaitable[Json]]
"""Carries out a request of the agent. Raises Refuse."""


class Link:
    """Speaks with one process for one exchange."""

    def __init__(self, program: Program, turn: Turn, serve: Serve) -> None:
        self._program = program
        self._turn = turn
        self._serve = serve
        self._rpc = Rpc(self._send)
        self._asked: list[Incoming] = []
        """Permissions that nobody has answered."""
        self._pumping = anyio.CancelScope(shield=True)
        self._over = False
        self._lines = 0
        self._news = anyio.Event()
        """Set and renewed with each read."""

    async def pump(self, group: TaskGroup) -> None:
        """Reads until the agent closes its stdout or `stop` is called. Not to be interrupted: what comes of a cancel is read too."""
        with self._pumping:
            try:
                async with aclosing(self._program.reads()) as reads:
                    async for lines in reads:
                        await self._turn.heard(*lines)
                        self._lines += len(lines)
                        for line in lines:
                            incoming = self._rpc.take(line)
                            if incoming is not None and incoming.asks:
                                group.start_soon(self._answer, incoming)
                        self._news.set()
                        self._news = anyio.Event()
                        if self.state.noise > NOISE:
                            raise ProviderError(
                                f"{self._program.argv[0]!r} writes to stdout what is no message: it is no ACP agent, or broken"
                            )
                error = self._program.died("ended before its answer was whole", await self._program.ended())
            except ProviderError as raised:
                error = raised
            self._over = True
            self._news.set()
            self._rpc.fail(error)

    def stop(self) -> None:
        """Ends `pump`."""
        self._pumping.cancel()

    @property
    def state(self) -> acp.State:
        """What the translator knows."""
        state = self._turn.state
        assert isinstance(state, acp.State)
        return state

    async def request(self, method: str, params: JsonObject, *, seconds: float | None = None) -> JsonObject:
        """The result. Raises RpcRefused; ProviderError when the agent is gone, or nothing came in time."""
        result = await self._rpc.request(method, params, seconds=seconds)
        return result if isinstance(result, dict) else {}

    async def quiet(self) -> None:
        """Returns when the agent has said nothing for a while: some answer `session/load` before they tell the session again."""
        with anyio.move_on_after(REPLAY):
            while not self._over:
                before = self._lines
                await anyio.sleep(QUIET)
                if self._lines == before:
                    return

    async def interrupt(self, session: str) -> None:
        """Has the agent end its answer, in its own way; returns when it has, or its time is over. Not to be interrupted."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(INTERRUPT):
            try:
                for asked in tuple(self._asked):  # the protocol wants these answered so
                    await self._rpc.reply(asked, {"outcome": {"outcome": "cancelled"}})
                await self._rpc.notify("session/cancel", {"sessionId": session})
                while not self._over and not self.state.stop:
                    await self._news.wait()
            except ProviderError:
                pass  # it is gone already

    async def _answer(self, incoming: Incoming) -> None:
        asks_a_person = incoming.method == "session/request_permission"
        if asks_a_person:
            self._asked.append(incoming)
        try:
            try:
                result = await self._serve(incoming)
            except Refuse as refusal:
                await self._rpc.refuse(incoming, refusal.code, refusal.message)
            else:
                if asks_a_person:
                    self._asked.remove(incoming)
                await self._rpc.reply(incoming, result)
        except ProviderError:
            pass  # it died while it waited; whoever reads its pipe says so

    async def _send(self, line: bytes) -> None:
        await self._turn.said(line)
        await self._program.write(line)


def unknown(incoming: Incoming) -> Refuse:
    """The answer to a method that we don't have."""
    return Refuse(METHOD_NOT_FOUND, f"Method not found: {incoming.method}")
