"""Redaction of a text in all its spellings. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from moot.errors import UsageError
from moot.store.forgetting.encoded import Encoded, merge_spans
from moot.store.forgetting.patterns import bounded
from moot.store.forgetting.spelling import spelled
from moot.store.rows import kept
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.forgetting import MARK, Secret

__all__ = ["SHORTEST", "Needles"]

SHORTEST = 4
"""Minimum length of a string in characters; shorter ones occur everywhere."""
_STRUCTURE = ("type", "state", "role")
"""Fields of a chunk or part that define its kind; never redacted."""


class Needles:
    """Redaction of strings and bounded patterns, and of the names of redacted blobs."""

    def __init__(self, secret: Secret, renamed: Mapping[str, str] | None = None) -> None:
        strings = tuple(dict.fromkeys(secret.strings))
        for string in strings:
            if len(string) < SHORTEST:
                raise UsageError(f"The string has {len(string)} characters and would match everywhere; at least {SHORTEST} are required.")
        if not strings and not secret.patterns:
            raise UsageError("Nothing to redact.", fix="Use `moot redact STRING`, or pass the string on stdin.")
        self.secret = secret
        self._renamed = dict(renamed or {})
        plain = [spelled(string) for string in sorted(strings, key=len, reverse=True)]
        patterns = [f"(?:{bounded(pattern)})" for pattern in secret.patterns]
        self._found = re.compile("|".join([*plain, *patterns]))
        self._encoded = Encoded(strings, patterns)
        self._names = re.compile("|".join(self._renamed)) if self._renamed else None

    def with_names(self, renamed: Mapping[str, str]) -> Needles:
        """Return a copy that also replaces the names of renamed blobs."""
        return Needles(self.secret, renamed)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the matches, plain or in base64, in order and without overlaps."""
        found = [match.span() for match in self._found.finditer(text) if match.end() > match.start()]
        return merge_spans([*found, *self._encoded.spans(text)])

    def within(self, data: bytes | None) -> bool:
        """Return True if these bytes would change."""
        return data is not None and self.text(plain := data.decode("utf-8", "surrogateescape")) != plain

    def text(self, text: str) -> str:
        """Redact a text."""
        if self._names is not None:
            text = self._names.sub(lambda match: self._renamed[match[0]], text)
        text = self._decoded(text)
        return self._redacted(text)

    def bytes(self, data: bytes) -> bytes:
        """Redact any bytes."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def json(self, data: bytes, *, structured: bool = False) -> bytes:
        """Redact stored JSON; with `structured`, it is a list of chunks or parts whose kinds are kept."""
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
        """Redact a chunk or part."""
        return {name: each if name in _STRUCTURE else self.value(each) for name, each in value.items()}

    def value(self, value: Json) -> Json:
        """Redact a JSON value, including field names."""
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
        """Redact inside each stretch of base64 that has a match."""
        position, pieces = 0, list[str]()
        for start, end in self._encoded.spans(text):
            pieces += [text[position:start], self._encoded.without(text[start:end], self._redacted)]
            position = end
        return "".join([*pieces, text[position:]]) if pieces else text

    def _redacted(self, text: str) -> str:
        return self._found.sub(lambda match: MARK if match[0] else "", text)
