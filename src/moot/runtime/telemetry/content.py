"""The content of prompts, answers and tool calls as attributes, in the JSON form of the GenAI conventions. Used only if content is on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.guard.secrets import redact
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.message import Part, text_of

MOST_CHARACTERS = 32_768
"""Maximum number of characters of one text. Longer texts are cut."""


class Content:
    """Converts content to attributes, with secrets masked."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)

    def text(self, text: str) -> str:
        """Return the text, masked and cut."""
        cut = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} [truncated]"
        return redact(cut, self._secrets)

    def json(self, value: Json) -> str:
        """Return a value as JSON text, masked and cut."""
        return self.text(value if isinstance(value, str) else dumps(value).decode())

    def message(self, role: str, parts: Sequence[JsonObject], finish_reason: str = "") -> str:
        """Return a list of one message as JSON text."""
        end: JsonObject = {"finish_reason": finish_reason} if finish_reason else {}
        return dumps([{"role": role, "parts": list[Json](parts), **end}]).decode()

    def stored(self, role: str, parts: tuple[Part, ...], finish_reason: str = "") -> str:
        """Return the text of a stored message as a list of one message."""
        return self.message(role, [self.text_part(text_of(parts))], finish_reason)

    def text_part(self, text: str) -> JsonObject:
        return {"type": "text", "content": self.text(text)}


class Answer:
    """The content of one model call, collected from its chunks."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._texts: dict[tuple[str, str], list[str]] = {}
        self._calls: list[JsonObject] = []

    def add(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            kind = chunk["type"]
            if kind in ("text-delta", "reasoning-delta"):
                self._texts.setdefault((kind.partition("-")[0], str(chunk.get("id"))), []).append(str(chunk.get("delta", "")))
            elif kind == "tool-input-available":
                arguments = self._content.json(chunk.get("input"))
                call: JsonObject = {"type": "tool_call", "id": chunk.get("toolCallId"), "name": chunk.get("toolName")}
                self._calls.append({**call, "arguments": arguments})

    def message(self, finish_reason: str) -> str:
        """Return the answer as a list of one message."""
        parts: list[JsonObject] = [
            {"type": kind, "content": self._content.text("".join(deltas))} for (kind, _), deltas in self._texts.items()
        ]
        return self._content.message("assistant", [*parts, *self._calls], finish_reason)
