"""The connection to an agent: every line is recorded before it is handled; requests of both sides, and interrupts."""

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

NOISE = 5_000
"""Number of lines that are not messages after which an agent counts as broken: they would fill the log."""
INTERRUPT = 0.6
"""Seconds that an agent has to end its answer when it is cancelled."""
QUIET, REPLAY = 0.3, 5.0
"""Seconds of silence after which the replay of a loaded session is over, and the maximum time to wait for it."""


class Refuse(Exception):
    """The error response to a request that moot refuses."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


Serve = Callable[[Incoming], Awaitable[Json]]
"""Handler of an agent's request. It may raise Refuse."""


class Link:
    """The connection to one process for one exchange."""

    def __init__(self, program: Program, turn: Turn, serve: Serve) -> None:
        self._program = program
        self._turn = turn
        self._serve = serve
        self._rpc = Rpc(self._send)
        self._permissions: list[Incoming] = []
        """Unanswered permission requests."""
        self._pumping = anyio.CancelScope(shield=True)
        self._over = False
        self._lines = 0
        self._news = anyio.Event()
        """Set and replaced with each read."""

    async def pump(self, group: TaskGroup) -> None:
        """Read until the agent closes its stdout or `stop` is called. Shielded from cancellation, to read what follows a cancel."""
        with self._pumping:
            try:
                async with aclosing(self._program.reads()) as reads:
                    async for lines in reads:
                        await self._turn.record_received(*lines)
                        self._lines += len(lines)
                        for line in lines:
                            incoming = self._rpc.take(line)
                            if incoming is not None and incoming.asks:
                                group.start_soon(self._answer, incoming)
                        self._news.set()
                        self._news = anyio.Event()
                        if self.state.noise > NOISE:
                            raise ProviderError(
                                f"{self._program.argv[0]!r} writes lines to stdout that are not messages: it is broken or not an ACP agent"
                            )
                error = self._program.died("exited before its answer was complete", await self._program.ended())
            except ProviderError as raised:
                error = raised
            self._over = True
            self._news.set()
            self._rpc.fail(error)

    def stop(self) -> None:
        """End `pump`."""
        self._pumping.cancel()

    @property
    def state(self) -> acp.State:
        """Return the translator's state."""
        state = self._turn.state
        assert isinstance(state, acp.State)
        return state

    async def request(self, method: str, params: JsonObject, *, seconds: float | None = None) -> JsonObject:
        """Return the result. Raise RpcRefused, or ProviderError if the agent is gone or did not answer in time."""
        result = await self._rpc.request(method, params, seconds=seconds)
        return result if isinstance(result, dict) else {}

    async def quiet(self) -> None:
        """Wait until the agent is silent for a while: some answer `session/load` before they replay the session."""
        with anyio.move_on_after(REPLAY):
            while not self._over:
                before = self._lines
                await anyio.sleep(QUIET)
                if self._lines == before:
                    return

    async def interrupt(self, session: str) -> None:
        """Ask the agent to end its answer. Return when it has, or its time is over. Shielded from cancellation."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(INTERRUPT):
            try:
                for request in tuple(self._permissions):  # the protocol requires this answer
                    await self._rpc.reply(request, {"outcome": {"outcome": "cancelled"}})
                await self._rpc.notify("session/cancel", {"sessionId": session})
                while not self._over and not self.state.stop:
                    await self._news.wait()
            except ProviderError:
                pass  # it has already exited

    async def _answer(self, incoming: Incoming) -> None:
        asks_a_person = incoming.method == "session/request_permission"
        if asks_a_person:
            self._permissions.append(incoming)
        try:
            try:
                result = await self._serve(incoming)
            except Refuse as refusal:
                await self._rpc.refuse(incoming, refusal.code, refusal.message)
            else:
                if asks_a_person:
                    self._permissions.remove(incoming)
                await self._rpc.reply(incoming, result)
        except ProviderError:
            pass  # it died while waiting; the reader of its stdout reports that

    async def _send(self, line: bytes) -> None:
        await self._turn.record_sent(line)
        await self._program.write(line)


def unknown(incoming: Incoming) -> Refuse:
    """Return the response to an unknown method."""
    return Refuse(METHOD_NOT_FOUND, f"Method not found: {incoming.method}")
