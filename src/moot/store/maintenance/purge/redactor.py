"""Redaction of texts and shared pages in all spellings. No I/O."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from moot.errors import UsageError
from moot.store.maintenance.purge.patterns import Encoded, bounded, merge_spans, spelled
from moot.store.rows import parse_stored
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.maintenance import REDACTION_MARK, Secret

SHORTEST = 4
"""Minimum length of a string in characters; shorter ones occur everywhere."""
_STRUCTURE = ("type", "state", "role")  # fields of a chunk or part that define its kind; never redacted


class Redactor:
    """A redactor of strings and bounded patterns, which also replaces the names of redacted blobs."""

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
        self._backslashes = sorted({count for string in strings if (count := _backslashes_at_end(string))})

    def with_names(self, renamed: Mapping[str, str]) -> Redactor:
        """Return a copy that also replaces the names of renamed blobs."""
        return Redactor(self.secret, renamed)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the matches, plain or in base64, in order and without overlaps."""
        found = [match.span() for match in self._found.finditer(text) if match.end() > match.start()]
        return merge_spans([*found, *self._encoded.spans(text)])

    def within(self, data: bytes | None) -> bool:
        """Return True if redaction would change these bytes."""
        return data is not None and self.text(plain := data.decode("utf-8", "surrogateescape")) != plain

    def text(self, text: str) -> str:
        """Redact a text."""
        if self._names is not None:
            text = self._names.sub(lambda match: self._renamed[match[0]], text)
        position, pieces = 0, list[str]()
        for start, end in self._encoded.spans(text):
            pieces += [text[position:start], self._encoded.without(text[start:end], self._redacted)]
            position = end
        text = "".join([*pieces, text[position:]]) if pieces else text
        return self._redacted(text)

    def bytes(self, data: bytes) -> bytes:
        """Redact any bytes."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def json(self, data: bytes, *, structured: bool = False) -> bytes:
        """Redact stored JSON; if `structured` is set, it is a list of chunks or parts whose kinds are kept."""
        if not self.within(data):
            return data
        try:
            value = parse_stored(data)
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
        return REDACTION_MARK if self._found.search(dumps(value).decode()) else value

    def _redacted(self, text: str) -> str:
        return self._found.sub(self._mark, text)

    def _mark(self, match: re.Match[str]) -> str:
        """Return the replacement.

        If a secret ends in a backslash, the backslashes after it are kept, because they may escape a quote in nested JSON.
        """
        if match[0] and self._backslashes and match.string.startswith('"', match.end()):
            run = _backslashes_at_end(match[0])
            for count in self._backslashes:
                level = (run // count).bit_length() - 1  # each level of JSON doubles them
                escape = run - (count << level) if level >= 0 else 0
                if escape and escape & (escape + 1) == 0:  # a quote has 2^n - 1 of them
                    return REDACTION_MARK + "\\" * escape
        return REDACTION_MARK if match[0] else ""


def _backslashes_at_end(text: str) -> int:
    return len(text) - len(text.rstrip("\\"))


_ELEMENT = re.compile(r"<[^>]*>")
_PIECE = re.compile(r"(?P<element><[^>]*>)|(?P<entity>&#?\w{1,32};)|(?P<letter>.)", re.DOTALL)
_BARE = dict.fromkeys(map(ord, " \t\r\n*_~`\\"))  # characters that Markdown may consume, and whitespace, which a page may change


def without(needles: Redactor, page: bytes) -> bytes:
    """Redact an HTML page, both in its source and in its visible text."""
    source = needles.text(page.decode("utf-8", "surrogateescape"))
    shown = html.unescape(_ELEMENT.sub("", source))
    bare = [re.escape(wanted) for string in needles.secret.strings if len(wanted := string.translate(_BARE)) >= SHORTEST]
    wanted = re.compile("|".join(sorted(bare, key=len, reverse=True))) if bare else None
    if needles.spans(shown) or (wanted is not None and wanted.search(shown.translate(_BARE))):
        read = list(_letters(source))
        spans = needles.spans("".join(letter for letter, *_ in read))
        if wanted is not None:
            places = [place for place, (letter, *_) in enumerate(read) if ord(letter) not in _BARE]
            text = "".join(read[place][0] for place in places)
            spans += [(places[match.start()], places[match.end() - 1] + 1) for match in wanted.finditer(text)]
        source = _replaced(source, read, spans)
    return source.encode("utf-8", "surrogateescape")


def _letters(source: str) -> Iterator[tuple[str, int, int]]:
    for match in _PIECE.finditer(source):
        if match.lastgroup != "element":
            for letter in html.unescape(match[0]) if match.lastgroup == "entity" else match[0]:
                yield letter, match.start(), match.end()


def _replaced(source: str, read: Sequence[tuple[str, int, int]], spans: Sequence[tuple[int, int]]) -> str:
    """Replace the text of each span with the mark. HTML elements inside a span are kept."""
    pieces, position = list[str](), 0
    for first, stop in sorted(spans):
        mark = REDACTION_MARK
        for _, start, end in read[first:stop]:
            if start >= position:
                pieces += [source[position:start], mark]
                position, mark = end, ""
    return "".join([*pieces, source[position:]])
