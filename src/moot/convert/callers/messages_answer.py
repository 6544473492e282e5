"""Answers in Anthropic messages (reference: Claude API, messages and streaming messages).

Blocks of this dialect are sequential: changes of another block wait until the open one has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.convert.callers.refusals import message_error
from moot.convert.callers.telling import Change, Outcome, Piece
from moot.types.canonical import Json, JsonObject, loads
from moot.types.usage import Usage

_REASONS = {"length": "max_tokens", "content-filter": "refusal", "tool-calls": "tool_use"}


class MessagesAnswer:
    """Writer of the stream: the data of each frame, whose `type` is its event's name."""

    def __init__(self, id: str, model: str, *, thinking: bool) -> None:
        self._id = id
        self._model = model
        self._thinking = thinking
        self._pending: dict[int, list[Change]] = {}
        """Changes of pieces that are not open yet, by piece."""
        self._current: int | None = None
        self._blocks = 0
        self._calls = False

    def begin(self) -> list[JsonObject]:
        head = message_answer(self._id, self._model, (), Outcome(), thinking=False)
        head |= {"stop_reason": None}
        return [{"type": "message_start", "message": head}]

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]:
        frames: list[JsonObject] = []
        for change in changes:
            if change.piece.kind == "reasoning" and not self._thinking:
                continue
            self._calls = self._calls or change.piece.kind == "call"
            self._pending.setdefault(change.at, []).append(change)
            frames += self._flush()
        return frames

    def end(self, outcome: Outcome) -> list[JsonObject]:
        """Return the end of a message; for a failed run only the error."""
        if outcome.error is not None:
            return [message_error(outcome.error)]
        delta: JsonObject = {"stop_reason": _reason(outcome, calls=self._calls), "stop_sequence": None}
        return [{"type": "message_delta", "delta": delta, "usage": _usage(outcome.usage)}, {"type": "message_stop"}]

    def _flush(self) -> list[JsonObject]:
        """Return the frames that can be sent: of the open block, and of the next ones once it has ended."""
        frames: list[JsonObject] = []
        while self._pending:
            if self._current is None:
                self._current = min(self._pending)
            ready = self._pending.pop(self._current, [])
            for change in ready:
                frames += self._frames(change)
            if not ready or ready[-1].what != "close":
                break
            self._current = None
            self._blocks += 1
        return frames

    def _frames(self, change: Change) -> list[JsonObject]:
        at, piece = self._blocks, change.piece
        match change.what:
            case "open":
                return [{"type": "content_block_start", "index": at, "content_block": _opened(piece)}]
            case "add":
                return [{"type": "content_block_delta", "index": at, "delta": _delta(piece, change.text)}]
            case "close":
                return [*self._proof(piece), {"type": "content_block_stop", "index": at}]

    def _proof(self, piece: Piece) -> list[JsonObject]:
        name, value = piece.proof
        if name != "signature":
            return []
        return [{"type": "content_block_delta", "index": self._blocks, "delta": {"type": "signature_delta", "signature": value}}]


def message_answer(id: str, model: str, pieces: Sequence[Piece], outcome: Outcome, *, thinking: bool) -> JsonObject:
    """Return the whole answer of a successful run. `thinking` means that the caller asked for it."""
    shown = [piece for piece in pieces if thinking or piece.kind != "reasoning"]
    content: list[Json] = [_block(piece) for piece in shown]
    return {
        "id": f"msg_{id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": _reason(outcome, calls=any(piece.kind == "call" for piece in pieces)),
        "stop_sequence": None,
        "usage": _usage(outcome.usage),
    }


def _redacted(piece: Piece) -> bool:
    return piece.proof[0] == "redactedData"


def _opened(piece: Piece) -> JsonObject:
    match piece.kind:
        case "text":
            return {"type": "text", "text": ""}
        case "reasoning" if _redacted(piece):
            return _block(piece)
        case "reasoning":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "call":
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}


def _delta(piece: Piece, text: str) -> JsonObject:
    match piece.kind:
        case "text":
            return {"type": "text_delta", "text": text}
        case "reasoning":
            return {"type": "thinking_delta", "thinking": text}
        case "call":
            return {"type": "input_json_delta", "partial_json": text}


def _block(piece: Piece) -> JsonObject:
    match piece.kind:
        case "text":
            return {"type": "text", "text": piece.text}
        case "reasoning" if _redacted(piece):
            return {"type": "redacted_thinking", "data": piece.proof[1]}
        case "reasoning":
            return {"type": "thinking", "thinking": piece.text, "signature": piece.proof[1]}
        case "call":
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": _input(piece.text)}


def _input(text: str) -> Json:
    """Return the arguments as an object, which this dialect requires. Invalid JSON is wrapped, so that nothing is lost."""
    try:
        value = loads(text or "{}")
    except ValueError:
        return {"unreadable": text}
    return value if isinstance(value, dict) else {"unreadable": value}


def _reason(outcome: Outcome, *, calls: bool) -> str:
    reason = _REASONS.get(outcome.reason, "end_turn")
    if calls and reason == "end_turn":
        return "tool_use"
    return "end_turn" if reason == "tool_use" and not calls else reason


def _usage(usage: Usage) -> JsonObject:
    """Return the usage, with input excluding cached tokens. Unknown counts are 0, because this dialect has no null."""
    read, written = usage.cache_read or 0, usage.cache_write or 0
    return {
        "input_tokens": max((usage.input or 0) - read - written, 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": usage.output or 0,
    }
