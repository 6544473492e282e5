"""What is looked for, in all its spellings, and what a text is without it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from moot.errors import UsageError
from moot.store.forgetting.encoded import Encoded
from moot.store.forgetting.patterns import bounded
from moot.store.forgetting.spelling import spelled
from moot.store.rows import kept
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.forgetting import MARK, Secret

__all__ = ["SHORTEST", "Needles"]

SHORTEST = 4
"""Characters: what is shorter stands in everything."""
_STRUCTURE = ("type", "state", "role")
"""Fields of a chunk or part that say what it is."""


class Needles:
    """Strings and bounded patterns to take out, and names of blobs that became others."""

    def __init__(self, secret: Secret, renamed: Mapping[str, str] | None = None) -> None:
        strings = tuple(dict.fromkeys(secret.strings))
        for string in strings:
            if len(string) < SHORTEST:
                raise UsageError(f"a string of {len(string)} characters stands everywhere; at least {SHORTEST} are wanted")
        if not strings and not secret.patterns:
            raise UsageError("what is to be redacted?", fix="moot redact STRING, or give it on stdin")
        self.secret = secret
        self._renamed = dict(renamed or {})
        plain = [spelled(string) for string in sorted(strings, key=len, reverse=True)]
        patterns = [f"(?:{bounded(pattern)})" for pattern in secret.patterns]
        self._found = re.compile("|".join([*plain, *patterns]))
        self._encoded = Encoded(strings, patterns)
        self._names = re.compile("|".join(self._renamed)) if self._renamed else None

    def with_names(self, renamed: Mapping[str, str]) -> Needles:
        """The same, with blobs that go by other names from now on."""
        return Needles(self.secret, renamed)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where they are, plainly or in base64; in order, none inside another."""
        found = [match.span() for match in self._found.finditer(text) if match.end() > match.start()]
        found += self._encoded.spans(text)
        found.sort()
        apart: list[tuple[int, int]] = []
        for start, end in found:
            if apart and start < apart[-1][1]:
                apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
            else:
                apart.append((start, end))
        return apart

    def within(self, data: bytes | None) -> bool:
        """Whether anything is to be changed in these bytes."""
        return data is not None and self.text(plain := data.decode("utf-8", "surrogateescape")) != plain

    def text(self, text: str) -> str:
        """The text without them."""
        if self._names is not None:
            text = self._names.sub(lambda match: self._renamed[match[0]], text)
        text = self._decoded(text)
        return self._taken_out(text)

    def bytes(self, data: bytes) -> bytes:
        """Any bytes without them."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def json(self, data: bytes, *, structured: bool = False) -> bytes:
        """Stored JSON without them; with `structured` it is a list of chunks or parts, which stay what they are."""
        if not self.within(data):
            return data
        try:
            value = kept(data)
        except ValueError:
            return self.bytes(data)
        if structured and isinstance(value, list):
            return dumps([self.piece(each) if isinstance(each, dict) else self.value(each) for each in value])
        return dumps(self.value(value))

    def piece(self, value: JsonObject) -> JsonObject:
        """A chunk or part without them."""
        return {name: each if name in _STRUCTURE else self.value(each) for name, each in value.items()}

    def value(self, value: Json) -> Json:
        """A JSON value without them, names of fields included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(name): self.value(each) for name, each in value.items()}
        if value is None or isinstance(value, bool):
            return value
        return MARK if self._found.search(dumps(value).decode()) else value

    def _decoded(self, text: str) -> str:
        """With each stretch of base64 that holds one of them written anew."""
        position, pieces = 0, list[str]()
        for start, end in self._encoded.spans(text):
            pieces += [text[position:start], self._encoded.without(text[start:end], self._taken_out)]
            position = end
        return "".join([*pieces, text[position:]]) if pieces else text

    def _taken_out(self, text: str) -> str:
        return self._found.sub(lambda match: MARK if match[0] else "", text)
