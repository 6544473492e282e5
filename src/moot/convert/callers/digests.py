"""Recognition of the earlier answer that a request continues. Most dialects send the whole history without an id, so it is identified by
content: every message has a digest over itself and all messages before it.

The system prompt is excluded, because it often contains the time, as are white space and reasoning, which most callers don't send back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from moot.convert.callers.telling import Piece, pieces_of
from moot.types.canonical import Json, dumps
from moot.types.message import Message
from moot.types.part import Part, is_tool, text_of


@dataclass(frozen=True, slots=True)
class Digests:
    """The digests of a history."""

    each: list[str]
    """One per message; for an answer as it was given, without the outputs of its calls."""
    before: list[str]
    """One per message, over everything before it."""
    total: str


def digests(messages: Sequence[Message]) -> Digests:
    """Return the digests of the messages that a caller sent."""
    found: list[str] = []
    earlier: list[str] = []
    before = ""
    for message in messages:
        earlier.append(before)
        if message.role == "assistant":
            answer = answer_digest(before, pieces_of(message.parts, lambda _: True))
            found.append(answer)
            before = _digest(answer, *_outputs(message.parts))
        elif message.role == "user":
            before = _digest(before, *_said(message.parts))
            found.append(before)
        else:
            found.append(before)
    return Digests(found, earlier, before)


def answer_digest(before: str, pieces: Iterable[Piece]) -> str:
    """Return the digest of an answer after the history with the digest `before`."""
    answer = list(pieces)
    text = "".join(piece.text for piece in answer if piece.kind == "text")
    calls = [f"{piece.id} {piece.name}" for piece in answer if piece.kind == "call"]
    return _digest(before, "assistant", _plain(text), *calls)


def _said(parts: Sequence[Part]) -> list[str]:
    files = [str(part.get("url")) for part in parts if part.get("type") == "file"]
    data = [_json(part.get("data")) for part in parts if str(part.get("type")).startswith("data-")]
    return ["user", _plain(text_of([*parts])), *files, *data]


def _outputs(parts: Sequence[Part]) -> list[str]:
    """Return the outputs of the calls; empty if no call has one, which is the answer as given."""
    calls = [part for part in parts if is_tool(part) and ("output" in part or "errorText" in part)]
    return [f"{part.get('toolCallId')} {_json(part.get('output', part.get('errorText')))}" for part in calls]


def _json(value: Json) -> str:
    return dumps(value).decode()


def _plain(text: str) -> str:
    return "".join(text.split())


def _digest(before: str, *texts: str) -> str:
    hash = blake2b(before.encode(), digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "replace")
        hash.update(len(data).to_bytes(8) + data)
    return hash.hexdigest()
