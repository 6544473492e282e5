"""`acpx --format json`: both directions of an ACP connection on one stdout, so the sender of each line is determined first."""

from __future__ import annotations

from typing import Literal, NamedTuple

from moot.convert import acp
from moot.convert._acp_wire import id_of, message_of
from moot.convert._vendor import as_object, as_text
from moot.convert.acp import Acp
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions

Side = Literal["client", "agent"]

_OF_AGENT = ("session/update", "session/request_permission", "fs/", "terminal/", "elicitation/", "mcp/connect", "mcp/disconnect")
"""Prefixes of the methods that an agent calls; all other methods of the protocol are the client's."""
_OF_CLIENT = ("initialize", "authenticate", "logout", "session/", "providers/", "nes/", "document/")
_ANSWERS = frozenset({"outcome", "content", "terminalId", "output", "exitStatus", "exitCode", "signal", "action"})
"""Fields that occur only in a client's responses."""

Asked = tuple[tuple[Side, str], ...]
"""Requests without a response, by sender."""


class State(NamedTuple):
    acp: acp.State
    asked: Asked = ()


class Acpx:
    """The ACP translator for such captures."""

    name = "acpx"
    version = 1

    def __init__(self) -> None:
        self._acp = Acp()

    def open(self, options: ExchangeOptions) -> State:
        return State(self._acp.open(options))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        side, pending = side_of(state.asked, message_of(raw) or {})
        inner, chunks = (self._acp.said if side == "client" else self._acp.feed)(state.acp, raw)
        return State(inner, pending), chunks

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return self._acp.close(state.acp, ended)


def side_of(asked: Asked, message: JsonObject) -> tuple[Side, Asked]:
    """Return the sender of a message, and the requests that then wait for a response.

    Both sides number their requests from 0, so a response's id may be ambiguous. Then its fields decide.
    """
    id, method = id_of(message), message.get("method")
    if method is not None:
        side: Side = "agent" if _by_agent(as_text(method)) else "client"
        return side, (*asked, (side, id)) if "id" in message else asked
    askers = [side for side, other in asked if other == id]
    side = "client" if (askers and "client" not in askers) or (len(askers) > 1 and _answers(message.get("result"))) else "agent"
    asker: Side = "client" if side == "agent" else "agent"
    at = next((at for at, other in enumerate(asked) if other == (asker, id)), None)
    return side, asked if at is None else (*asked[:at], *asked[at + 1 :])


def _answers(result: Json) -> bool:
    """Return True if only a client sends such a result."""
    return result in (None, {}) or bool(_ANSWERS & as_object(result).keys())


def _by_agent(method: str) -> bool:
    """Return True if the method is one that agents call; unknown methods count as the agent's."""
    return method.startswith(_OF_AGENT) or not method.startswith(_OF_CLIENT)
