"""The pieces of an answer that a caller receives, and digests that identify an answer.

A caller receives text, reasoning and the calls to its own tools, but not calls to moot's tools. The text of each step is separated from
earlier text by an empty line.

In most dialects, a request contains the whole history but no id. The answer that the request continues is found by its content: every
message has a digest over itself and all messages before it. The digest excludes the system prompt, which often contains the time, and
white space and reasoning, which most callers don't send back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal, NamedTuple

from moot.convert.dialects.anthropic_stream import METADATA
from moot.convert.fold import in_history
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.exchange import Failure
from moot.types.message import Message, Part, is_tool, text_of, tool_name
from moot.types.usage import Usage

Kind = Literal["text", "reasoning", "call"]
IsCallerTool = Callable[[str], bool]
"""Return True if one of the caller's own tools has this name."""

APART = "\n\n"


class Piece(NamedTuple):
    """A unit of the answer: a text, a reasoning text or a call to one of the caller's tools."""

    kind: Kind
    text: str = ""
    """The text or, for a call, the arguments as JSON."""
    id: str = ""
    """The id of the call; empty for other kinds."""
    name: str = ""
    """The name of the called tool; empty for other kinds."""
    proof: tuple[str, str] = ("", "")
    """Name and value of the metadata (`signature` or `redactedData`) to send back with a reasoning text; both empty if it has none."""


class Change(NamedTuple):
    """A chunk's effect on the pieces."""

    what: Literal["open", "add", "close"]
    at: int
    """Index of the piece, from 0."""
    piece: Piece
    """The piece as it is when it opens or closes."""
    text: str = ""
    """The added text; empty for other changes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run."""

    reason: str = "stop"
    """One of `chunk.FINISH_REASONS`."""
    usage: Usage = field(default_factory=Usage)
    error: Failure | None = None


class PieceReader:
    """Converter of a run's chunks to changes, one chunk at a time. Unknown chunks are ignored."""

    def __init__(self, theirs: IsCallerTool) -> None:
        self._theirs = theirs
        self._pieces: list[Piece] = []
        self._texts: list[list[str]] = []
        self._open: dict[str, int | None] = {}
        """Index of the piece of each open part, keyed by kind and id; None if the part is still empty."""
        self._apart = False
        """True if an earlier step contained text and there has been no text since then."""

    def feed(self, chunk: Chunk) -> list[Change]:
        """Return the changes made by the chunk, in order."""
        kind = str(chunk.get("type"))
        part_kind, _, what = kind.rpartition("-")
        if part_kind in ("text", "reasoning"):
            return self._spoken("text" if part_kind == "text" else "reasoning", what, chunk)
        if kind.startswith("tool-input-"):
            return self._call(what, chunk)
        if kind in ("start-step", "data-attempt"):
            self._apart = any(piece.kind == "text" for piece in self._pieces)
        return []

    def close(self) -> list[Change]:
        """Close the pieces that were left open by a run. Return the changes."""
        still = [index for index in self._open.values() if index is not None]
        self._open.clear()
        return [self._closed(index) for index in still]

    def pieces(self) -> tuple[Piece, ...]:
        """Return all pieces so far."""
        return tuple(self._now(index) for index in range(len(self._pieces)))

    def _spoken(self, kind: Literal["text", "reasoning"], what: str, chunk: Chunk) -> list[Change]:
        key = f"{kind} {chunk.get('id')}"
        changes: list[Change] = []
        if what == "start":
            self._open[key] = None
        delta = chunk.get("delta")
        if what == "delta" and isinstance(delta, str) and delta:
            if kind == "text" and self._apart:
                delta, self._apart = APART + delta, False
            changes = self._said(key, Piece(kind), delta)
        proof = proof_of(chunk)
        if proof[0] and kind == "reasoning":
            changes += self._said(key, Piece(kind, proof=proof), "")
            index = self._open[key]
            assert index is not None
            self._pieces[index] = self._pieces[index]._replace(proof=proof)
        if what == "end" and (index := self._open.pop(key, None)) is not None:
            changes.append(self._closed(index))
        return changes

    def _said(self, key: str, piece: Piece, text: str) -> list[Change]:
        index, changes = self._open.get(key), list[Change]()
        if index is None:
            index = self._open[key] = len(self._pieces)
            self._pieces.append(piece)
            self._texts.append([])
            changes.append(Change("open", index, piece))
        if text:
            self._texts[index].append(text)
            changes.append(Change("add", index, self._pieces[index], text))
        return changes

    def _call(self, what: str, chunk: Chunk) -> list[Change]:
        id = str(chunk.get("toolCallId"))
        key = f"call {id}"
        if key not in self._open and (what == "delta" or chunk.get("providerExecuted") or not self._theirs(str(chunk.get("toolName")))):
            return []
        piece = Piece("call", id=id, name=str(chunk.get("toolName")))
        match what:
            case "start":
                return self._said(key, piece, "")
            case "delta":
                return self._said(key, piece, str(chunk.get("inputTextDelta", "")))
            case "available" | "error":
                changes = self._said(key, piece, "")
                index = self._open.pop(key)
                assert index is not None
                if not self._texts[index]:
                    self._open[key] = index
                    changes += self._said(key, piece, arguments(chunk.get("input")))
                    del self._open[key]
                return [*changes, self._closed(index)]
            case _:
                return []

    def _now(self, index: int) -> Piece:
        return self._pieces[index]._replace(text="".join(self._texts[index]))

    def _closed(self, index: int) -> Change:
        return Change("close", index, self._now(index))


def pieces_of(parts: Sequence[Part], theirs: IsCallerTool) -> tuple[Piece, ...]:
    """Return the pieces for a complete answer, given its stored parts. Abandoned attempts are left out."""
    pieces: list[Piece] = []
    apart = False
    for part in in_history(parts):
        kind, text = part.get("type"), str(part.get("text") or "")
        if kind == "step-start":
            apart = any(piece.kind == "text" for piece in pieces)
        elif kind == "text" and text:
            pieces.append(Piece("text", APART + text if apart else text))
            apart = False
        elif kind == "reasoning" and (text or proof_of(part)[0]):
            pieces.append(Piece("reasoning", text, proof=proof_of(part)))
        elif is_tool(part) and not part.get("providerExecuted") and theirs(tool_name(part)):
            value = part.get("input", part.get("rawInput"))
            pieces.append(Piece("call", arguments(value), str(part.get("toolCallId")), tool_name(part)))
    return tuple(pieces)


def arguments(value: Json) -> str:
    """Return a call's arguments as JSON text. Text, which may be invalid JSON, is returned unchanged."""
    if isinstance(value, str):
        return value
    return dumps({} if value is None else value).decode()


def proof_of(piece: Part | Chunk) -> tuple[str, str]:
    """Return the name and value of the signature or redacted data of a reasoning part. Both are empty if there is none."""
    metadata = piece.get("providerMetadata")
    details = metadata.get(METADATA) if isinstance(metadata, dict) else None
    made: JsonObject = details if isinstance(details, dict) else {}
    for name in ("signature", "redactedData"):
        if isinstance(value := made.get(name), str) and value:
            return name, value
    return "", ""


@dataclass(frozen=True, slots=True)
class Digests:
    """The digests of a history."""

    each: list[str]
    """One digest per message. The digest of an answer does not include the outputs of its calls."""
    before: list[str]
    """For each message, a digest over all messages before it."""
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
    data = [dumps(part.get("data")).decode() for part in parts if str(part.get("type")).startswith("data-")]
    return ["user", _plain(text_of([*parts])), *files, *data]


def _outputs(parts: Sequence[Part]) -> list[str]:
    """Return the outputs of the calls, or an empty list if no call has an output yet, as in a new answer."""
    calls = [part for part in parts if is_tool(part) and ("output" in part or "errorText" in part)]
    return [f"{part.get('toolCallId')} {dumps(part.get('output', part.get('errorText'))).decode()}" for part in calls]


def _plain(text: str) -> str:
    return "".join(text.split())


def _digest(before: str, *texts: str) -> str:
    hash = blake2b(before.encode(), digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "replace")
        hash.update(len(data).to_bytes(8) + data)
    return hash.hexdigest()
