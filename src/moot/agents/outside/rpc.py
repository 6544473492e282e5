"""JSON-RPC over lines, in both directions, without I/O: received lines are passed in, and lines to send go to a callback."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from moot.convert.vendor import as_object
from moot.errors import ProviderError
from moot.types.canonical import Json, JsonObject, dumps, loads

METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL = -32601, -32602, -32603

_WORDS = 500
"""Maximum number of characters of the other side's error message to include in an error."""


class RpcRefused(ProviderError):
    """An error response from the other side."""

    def __init__(self, method: str, error: Json) -> None:
        details: JsonObject = error if isinstance(error, dict) else {"message": str(error)}
        words = str(details.get("message", ""))[:_WORDS]
        super().__init__(f"{method} was refused: {words or 'no reason given'}", kind="protocol")
        self.rpc_code = code if isinstance(code := details.get("code"), int) else 0
        self.data = details.get("data")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message from the other side: a request, which must be answered, or a notification."""

    method: str
    params: JsonObject
    id: Json = None
    """None for a notification."""
    asks: bool = False
    """True for a request, False for a notification."""


@dataclass(slots=True)
class _Pending:
    method: str
    done: anyio.Event
    result: Json = None
    error: ProviderError | None = None


class Rpc:
    """One connection. `send` is called with a complete line, which the caller records before writing it."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], *, envelope: JsonObject | None = None) -> None:
        """`envelope` contains the first fields of each sent message. None means `{"jsonrpc": "2.0"}`, which Codex does not accept."""
        self._send = send
        self._envelope: JsonObject = {"jsonrpc": "2.0"} if envelope is None else envelope
        self._pending: dict[int, _Pending] = {}
        self._last = 0
        self._failed: ProviderError | None = None

    async def request(self, method: str, params: Json = None, *, seconds: float | None = None) -> Json:
        """Send a request and return the result.
        Raise RpcRefused for an error response, ProviderError if the connection ends or after `seconds`.
        """
        if self._failed is not None:
            raise self._failed
        self._last += 1
        id, pending = self._last, _Pending(method, anyio.Event())
        self._pending[id] = pending
        try:
            await self._say({"id": id, "method": method, **_params(params)})
            with anyio.move_on_after(seconds):
                await pending.done.wait()
        finally:
            del self._pending[id]
        if not pending.done.is_set():
            raise ProviderError(f"No response to {method} within {seconds:g} s.", kind="timeout")
        if pending.error is not None:
            raise pending.error
        return pending.result

    async def notify(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        await self._say({"method": method, **_params(params)})

    async def reply(self, to: Incoming, result: Json) -> None:
        """Answer a request."""
        await self._say({"id": to.id, "result": result})

    async def refuse(self, to: Incoming, code: int, message: str) -> None:
        """Answer a request with an error."""
        await self._say({"id": to.id, "error": {"code": code, "message": message}})

    def take(self, line: bytes) -> Incoming | None:
        """Return the request or notification in a line.
        Deliver a response to its waiting request and return None; also return None for other lines.
        """
        try:
            message = loads(line)
        except ValueError:
            return None  # noise: some programs print diagnostics to stdout instead of stderr
        if not isinstance(message, dict):
            return None
        method = message.get("method")
        if isinstance(method, str):
            return Incoming(method, as_object(message.get("params")), message.get("id"), "id" in message)
        self._answered(message)
        return None

    def _answered(self, message: JsonObject) -> None:
        id = message.get("id")
        if isinstance(id, str) and id.isdecimal() and len(id) < 16:  # some answer request 2 with the id "2"
            id = int(id)
        pending = self._pending.get(id) if isinstance(id, int) else None
        if pending is None or pending.done.is_set():
            return
        if "error" in message:
            pending.error = RpcRefused(pending.method, message["error"])
        else:
            pending.result = message.get("result")
        pending.done.set()

    def fail(self, error: ProviderError) -> None:
        """End the connection: all pending and later requests raise this error."""
        self._failed = error
        for pending in self._pending.values():
            if not pending.done.is_set():
                pending.error = error
                pending.done.set()

    async def _say(self, message: JsonObject) -> None:
        await self._send(dumps({**self._envelope, **message}) + b"\n")


def _params(params: Json) -> JsonObject:
    return {} if params is None else {"params": params}
