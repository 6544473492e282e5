"""Answers in OpenAI chat completions (reference: OpenAI API, the chat completion object and its chunk).

Reasoning goes into `reasoning_content`, which DeepSeek introduced and most clients of this dialect read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moot.convert.callers.refusals import completion_error
from moot.convert.callers.telling import Change, Outcome, Piece
from moot.types.canonical import Json, JsonObject
from moot.types.usage import Usage

_REASONS = {"length": "length", "content-filter": "content_filter", "tool-calls": "tool_calls"}


@dataclass(frozen=True, slots=True)
class _Facts:
    id: str
    model: str
    created: int

    def chunk(self, delta: JsonObject, reason: str | None = None) -> JsonObject:
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model, "choices": [choice]}


class ChatAnswer:
    """Writer of the stream: the data of each frame, in order. The dialect's frames have no event names."""

    def __init__(self, id: str, model: str, created: int, *, usage: bool = False) -> None:
        self._facts = _Facts(f"chatcmpl-{id}", model, created)
        self._usage = usage
        self._calls: dict[int, int] = {}

    def begin(self) -> list[JsonObject]:
        return [self._facts.chunk({"role": "assistant", "content": ""})]

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]:
        return [self._facts.chunk(delta) for change in changes if (delta := self._delta(change))]

    def end(self, outcome: Outcome) -> list[JsonObject]:
        """Return the frames before `[DONE]`; for a failed run only the error."""
        if outcome.error is not None:
            return [completion_error(outcome.error)]
        frames = [self._facts.chunk({}, _reason(outcome, calls=bool(self._calls)))]
        if self._usage:
            last = self._facts.chunk({})
            frames.append({**last, "choices": [], "usage": _usage(outcome.usage)})
        return frames

    def _delta(self, change: Change) -> JsonObject:
        piece = change.piece
        if piece.kind == "call":
            return self._call(change)
        if change.what != "add":
            return {}
        return {"content" if piece.kind == "text" else "reasoning_content": change.text}

    def _call(self, change: Change) -> JsonObject:
        at = self._calls.setdefault(change.at, len(self._calls))
        match change.what:
            case "open":
                head: JsonObject = {"name": change.piece.name, "arguments": ""}
                return {"tool_calls": [{"index": at, "id": change.piece.id, "type": "function", "function": head}]}
            case "add":
                return {"tool_calls": [{"index": at, "function": {"arguments": change.text}}]}
            case _:
                return {}


def chat_completion(id: str, model: str, created: int, pieces: Sequence[Piece], outcome: Outcome) -> JsonObject:
    """Return the whole answer of a successful run."""
    text = "".join(piece.text for piece in pieces if piece.kind == "text")
    reasoning = "".join(piece.text for piece in pieces if piece.kind == "reasoning")
    calls: list[Json] = [_whole_call(piece) for piece in pieces if piece.kind == "call"]
    message: JsonObject = {"role": "assistant", "content": text or (None if calls else ""), "refusal": None}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    reason = _reason(outcome, calls=bool(calls))
    return {
        "id": f"chatcmpl-{id}",
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": _usage(outcome.usage),
    }


def _whole_call(piece: Piece) -> JsonObject:
    return {"id": piece.id, "type": "function", "function": {"name": piece.name, "arguments": piece.text}}


def _reason(outcome: Outcome, *, calls: bool) -> str:
    reason = _REASONS.get(outcome.reason, "stop")
    if calls and reason == "stop":
        return "tool_calls"
    return "stop" if reason == "tool_calls" and not calls else reason


def _usage(usage: Usage) -> JsonObject | None:
    """Return the usage, or None if it is unknown."""
    if usage.input is None and usage.output is None:
        return None
    sent, made = usage.input or 0, usage.output or 0
    return {
        "prompt_tokens": sent,
        "completion_tokens": made,
        "total_tokens": sent + made,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read or 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }
