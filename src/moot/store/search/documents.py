"""The document and keywords that are indexed for a message. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from moot.convert.files.attachments import file_text
from moot.types.canonical import Json, dumps
from moot.types.message import Message, Part, is_tool, tool_name


@lru_cache(256)
def owner_fact(owner: str) -> str:
    """Return the keyword that identifies an owner in the index."""
    return f"owner{blake2b(owner.encode(), digest_size=8).hexdigest()}"


def conversation_fact(no: int) -> str:
    return f"conversation{no}"


def cost_fact(cost: int) -> str:
    """Return the keyword for the range that contains the cost. Each range is twice as large as the one before."""
    return f"cost{min(max(cost, 0).bit_length(), 63)}"


CHARACTERS = 64 << 20
"""Maximum length of each column of a message, which bounds the memory that indexing needs."""

_MARKS = re.compile("[\x00\x02\x03]")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """The indexed columns of a message."""

    text: str = ""
    tools: str = ""
    """Names, inputs and outputs of its tool calls."""
    reasoning: str = ""
    agent: str = ""
    model: str = ""
    facts: str = ""
    """Keywords in lower case without punctuation, which conditions search for. They always include `all`."""
    cost: int | None = None
    """Cost in nano-dollars. None means unknown, or that the message has no cost of its own."""


def document_of(message: Message, agent: str, model: str, facts: Iterable[str]) -> Document:
    """Return a message's document; the conversation's `agent` and `model` are used if the message has none."""
    has = set[str]()
    content, tools, reasoning = texts_of(message.parts, has)
    if "`" in content or "~~~" in content:
        has.update(("code",) if _FENCE.search(content) else ())
    if message.status == "failed":
        has.add("error")
    steps = [step for step in _list(message.metadata.get("steps")) if isinstance(step, dict)]
    cost = _cost(steps, message)
    own = (f"role{message.role}", f"status{message.status}", *(f"has{one}" for one in sorted(has)), *facts, "all")
    return Document(
        content,
        tools,
        reasoning,
        _own(message, "agent") or agent,
        " ".join(dict.fromkeys([*(str(step.get("model") or "") for step in steps), _own(message, "model")])).strip() or model,
        " ".join(own if cost is None else (*own, cost_fact(cost))),
        cost,
    )


def texts_of(parts: Iterable[Part], has: set[str] | None = None) -> tuple[str, str, str]:
    """Return the columns `text`, `tools` and `reasoning` of a message.

    Add its kinds of content to `has`: tools, images, errors and so on.
    """
    text, tools, reasoning = _Pieces(), _Pieces(), _Pieces()
    found = set[str]() if has is None else has
    for part in parts:
        _take(part, text, tools, reasoning, found)
    return text.joined(), tools.joined(), reasoning.joined()


class _Pieces:
    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        if text:
            self._pieces.append(text)

    def joined(self) -> str:
        pieces = self._pieces
        if not pieces:
            return ""
        text = (pieces[0] if len(pieces) == 1 else "\n".join(pieces))[:CHARACTERS]
        return _MARKS.sub(" ", text) if any(mark in text for mark in "\x00\x02\x03") else text


def _take(part: Part, text: _Pieces, tools: _Pieces, reasoning: _Pieces, has: set[str]) -> None:
    kind = part.get("type")
    if kind == "text":
        text.add(str(part.get("text", "")))
    elif kind == "reasoning":
        reasoning.add(str(part.get("text", "")))
        has.add("reasoning")
    elif kind == "file":
        has.add("image" if str(part.get("mediaType", "")).startswith("image/") else "file")
        text.add(str(part.get("filename") or ""))
        text.add(file_text(part) or "")
    elif kind in ("steering-message", "data-steering"):
        for inner in _list(part.get("parts")):
            if isinstance(inner, dict):
                _take(inner, text, tools, reasoning, has)
    elif is_tool(part):
        has.add("tool")
        if part.get("errorText") is not None:
            has.add("error")
        tools.add(tool_name(part))
        for value in (part.get("input"), part.get("output"), part.get("errorText")):
            tools.add("" if value is None else "\n".join(_texts(value)))


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield dumps(value).decode()


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _own(message: Message, name: str) -> str:
    value = message.metadata.get(name)
    return value if isinstance(value, str) else ""


def _cost(steps: list[dict[str, Json]], message: Message) -> int | None:
    costs = [step.get("cost") for step in steps] or [message.metadata.get("cost")]
    known = [cost for cost in costs if isinstance(cost, int) and not isinstance(cost, bool)]
    return sum(known) if known and len(known) == len(costs) else None
