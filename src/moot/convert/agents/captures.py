"""Translators for captures of a connection in both directions:
the output of `acpx --format json`, and wire captures whose lines are `{dir, t, msg}`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

from moot.convert.agents import acp
from moot.convert.agents.acp import Acp
from moot.convert.agents.acp_calls import id_of, message_of
from moot.convert.agents.claude_code import ClaudeCode
from moot.convert.agents.codex import CodexAppServer
from moot.convert.vendor import as_object, as_text
from moot.types.canonical import JsonObject, dumps, loads_exact
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.provider import Translator

Side = Literal["client", "agent"]

_OF_AGENT = ("session/update", "session/request_permission", "fs/", "terminal/", "elicitation/", "mcp/connect", "mcp/disconnect")
"""Prefixes of the methods that an agent calls. All other methods of the protocol are called by the client."""
_OF_CLIENT = ("initialize", "authenticate", "logout", "session/", "providers/", "nes/", "document/")
_ANSWERS = frozenset({"outcome", "content", "terminalId", "output", "exitStatus", "exitCode", "signal", "action"})
"""Fields that occur only in a client's responses."""

PendingRequests = tuple[tuple[Side, str], ...]
"""Requests that have no response yet, for each sender."""


class AcpxState(NamedTuple):
    acp: acp.State
    asked: PendingRequests = ()


class Acpx:
    """Translator for output of `acpx --format json`, which does not mark the sender of a message."""

    name = "acpx"
    version = 2

    def __init__(self) -> None:
        self._acp = Acp()

    def open(self, options: ExchangeOptions) -> AcpxState:
        return AcpxState(self._acp.open(options))

    def feed(self, state: AcpxState, raw: Raw) -> tuple[AcpxState, tuple[Chunk, ...]]:
        side, pending = side_of(state.asked, message_of(raw) or {})
        inner, chunks = (self._acp.said if side == "client" else self._acp.feed)(state.acp, raw)
        return AcpxState(inner, pending), chunks

    def close(self, state: AcpxState, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return self._acp.close(state.acp, ended)


def side_of(asked: PendingRequests, message: JsonObject) -> tuple[Side, PendingRequests]:
    """Return the sender of a message, and the requests that are still unanswered after it.

    Both sides number their requests from 0, so a response's id may be ambiguous. In that case, the fields of the response decide.
    """
    id, method = id_of(message), message.get("method")
    if method is not None:
        name = as_text(method)  # unknown methods count as the agent's
        side: Side = "agent" if name.startswith(_OF_AGENT) or not name.startswith(_OF_CLIENT) else "client"
        return side, (*asked, (side, id)) if "id" in message else asked
    askers = [side for side, other in asked if other == id]
    result = message.get("result")
    client_only = result in (None, {}) or bool(_ANSWERS & as_object(result).keys())
    side = "client" if (askers and "client" not in askers) or (len(askers) > 1 and client_only) else "agent"
    asker: Side = "client" if side == "agent" else "agent"
    at = next((at for at, other in enumerate(asked) if other == (asker, id)), None)
    return side, asked if at is None else (*asked[:at], *asked[at + 1 :])


_OURS = frozenset({"out", "client->agent", "sent", "send", ">"})
"""Names that captures use for the direction from moot to the agent."""


def message_in(line: JsonObject) -> JsonObject | None:
    """Return the message in a line of a wire capture, or None."""
    message = line.get("msg")
    return message if isinstance(message, dict) and isinstance(line.get("dir"), str) else None


def is_outgoing(line: JsonObject) -> bool:
    """Return True if moot sent the message."""
    return line.get("dir") in _OURS


class CaptureAdapter:
    """Adapter with which a translator can read the lines of a wire capture. The stored raw bytes are still the lines of the file."""

    _inner: ClassVar[Translator[Any]]

    def __init__(self) -> None:
        self.name = f"{self._inner.name}-wire"
        self.version = self._inner.version

    def open(self, options: ExchangeOptions) -> Any:
        return self._inner.open(options)

    def feed(self, state: Any, raw: Raw) -> tuple[Any, tuple[Chunk, ...]]:
        return self._inner.feed(state, _message(raw))

    def said(self, state: Any, raw: Raw) -> tuple[Any, tuple[Chunk, ...]]:
        """Implement `ReadsSentLines`."""
        translate = getattr(self._inner, "said", None)
        return (state, ()) if translate is None else translate(state, _message(raw))

    def close(self, state: Any, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return self._inner.close(state, ended)


class ClaudeWire(CaptureAdapter):
    """Adapter for wire captures of Claude Code's stream JSON in both directions."""

    _inner = ClaudeCode()


class CodexWire(CaptureAdapter):
    """Adapter for wire captures of the Codex app-server."""

    _inner = CodexAppServer()


class AcpWire(CaptureAdapter):
    """Adapter for wire captures of the Agent Client Protocol."""

    _inner = Acp()


def _message(raw: Raw) -> Raw:
    try:
        line = loads_exact(raw.decode())
    except (ValueError, RecursionError):
        return raw  # the translator reports the problem
    message = message_in(line) if isinstance(line, dict) else None
    return raw if message is None else dumps(message) + b"\n"
