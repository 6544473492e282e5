"""Wire captures: lines `{dir, t, msg}` of both sides of a connection, for the translator of its protocol."""

from __future__ import annotations

from typing import Any

from moot.convert.acp import Acp
from moot.convert.claude_code import ClaudeCode
from moot.convert.codex_app_server import CodexAppServer
from moot.types.canonical import JsonObject, dumps, loads_exact
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.provider import Translator

_OURS = frozenset({"out", "client->agent", "sent", "send", ">"})
"""Names that captures use for the direction from moot to the agent."""


def message_in(line: JsonObject) -> JsonObject | None:
    """Return the message in a line of a wire capture, or None."""
    message = line.get("msg")
    return message if isinstance(message, dict) and isinstance(line.get("dir"), str) else None


def is_ours(line: JsonObject) -> bool:
    """Return True if moot sent the message."""
    return line.get("dir") in _OURS


class Wired:
    """Adapter of a translator to the lines of a wire capture; raw stays the line of the file."""

    def __init__(self, inner: Translator[Any]) -> None:
        self.name = f"{inner.name}-wire"
        self.version = inner.version
        self._inner = inner

    def open(self, options: ExchangeOptions) -> Any:
        return self._inner.open(options)

    def feed(self, state: Any, raw: Raw) -> tuple[Any, tuple[Chunk, ...]]:
        return self._inner.feed(state, _message(raw))

    def said(self, state: Any, raw: Raw) -> tuple[Any, tuple[Chunk, ...]]:
        """Implement `Hears`."""
        translate = getattr(self._inner, "said", None)
        return (state, ()) if translate is None else translate(state, _message(raw))

    def close(self, state: Any, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return self._inner.close(state, ended)


class ClaudeWire(Wired):
    """A wire capture of Claude Code's stream JSON in both directions."""

    def __init__(self) -> None:
        super().__init__(ClaudeCode())


class CodexWire(Wired):
    """A wire capture of the Codex app-server."""

    def __init__(self) -> None:
        super().__init__(CodexAppServer())


class AcpWire(Wired):
    """A wire capture of the Agent Client Protocol."""

    def __init__(self) -> None:
        super().__init__(Acp())


def _message(raw: Raw) -> Raw:
    try:
        line = loads_exact(raw.decode())
    except (ValueError, RecursionError):
        return raw  # the translator reports the problem
    message = message_in(line) if isinstance(line, dict) else None
    return raw if message is None else dumps(message) + b"\n"
