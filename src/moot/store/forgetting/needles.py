"""What is looked for, in all its spellings, and what a text is without it. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import cast

from moot.errors import UsageError
from moot.store.forgetting.patterns import bounded
from moot.store.rows import kept
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.forgetting import MARK, Secret

__all__ = ["SHORTEST", "Needles"]

SHORTEST = 4
"""Characters: what is shorter stands in everything."""
_B64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_BASE64_FROM = 6
"""Bytes of a string from which on it is looked for in base64: of fewer, less than five letters are certain."""
_DEEP = 64
"""Backslashes that six levels of JSON in JSON make of one character; without a bound a long run of them would take for ever."""
_STRUCTURE = ("type", "state", "role")
"""Fields of a chunk or part that say what it is."""
_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


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
        spelled = [_spelled(string) for string in sorted(strings, key=len, reverse=True)]
        self._found = re.compile("|".join([*spelled, *(f"(?:{bounded(pattern)})" for pattern in secret.patterns)]))
        cores = [core for string in strings for core in _cores(string.encode("utf-8", "surrogatepass"))]
        self._encoded = re.compile("|".join(cores)) if cores else None
        self._names = re.compile("|".join(self._renamed)) if self._renamed else None

    def with_names(self, renamed: Mapping[str, str]) -> Needles:
        """The same, with blobs that go by other names from now on."""
        return Needles(self.secret, renamed)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where they are, plainly or in base64; in order, none inside another."""
        found = [match.span() for match in self._found.finditer(text) if match.end() > match.start()]
        if self._encoded is not None:
            found += [_around(text, *match.span()) for match in self._encoded.finditer(text)]
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
        if self._encoded is not None:
            text = self._decoded(text, self._encoded)
        return self._found.sub(lambda match: MARK if match[0] else "", text)

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

    def _decoded(self, text: str, encoded: re.Pattern[str]) -> str:
        """With each stretch of base64 that holds one of them written anew."""
        position, pieces = 0, list[str]()
        for match in encoded.finditer(text):
            start, end = _around(text, *match.span())
            if start < position:
                continue
            pieces += [text[position:start], self._recoded(text[start:end])]
            position = end
        return "".join([*pieces, text[position:]]) if pieces else text

    def _recoded(self, stretch: str) -> str:
        """What the base64 says without them, as base64; the mark where it can't be read."""
        flat = stretch.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            data = base64.b64decode(flat + "=" * (-len(flat) % 4), validate=True)
        except (binascii.Error, ValueError):
            return MARK
        text = data.decode("utf-8", "surrogateescape")
        changed = self._found.sub(lambda match: MARK if match[0] else "", text)
        if changed == text:  # the letters are there by chance, or the stretch begins in the middle
            return MARK
        anew = base64.b64encode(changed.encode("utf-8", "surrogateescape")).decode()
        return anew if stretch.endswith("=") or len(stretch) % 4 == 0 else anew.rstrip("=")


def _spelled(string: str) -> str:
    """A pattern for the string in any spelling: as it is, escaped in JSON however deep, in percent signs, or a mixture."""
    pieces: list[str] = []
    for run in re.findall(r"\\+|[^\\]", string, re.DOTALL):
        if run[0] == "\\":
            # a first run is looked for where it begins alone: from each place in a long one it would take for ever
            plain = rf"\\{{{len(run)},{len(run) * _DEEP}}}" if pieces else rf"(?<!\\)\\{{{len(run)},}}"
            pieces.append(rf"(?:{plain}|(?:\\{{1,{_DEEP}}}+u005[cC]|%5[cC]){{{len(run)}}})")
        else:
            pieces.append(_character(run))
    return "".join(pieces)


def _character(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    escaped = "".join(rf"\\{{1,{_DEEP}}}+u{_either(units[at : at + 2].hex())}" for at in range(0, len(units), 2))
    percent = "".join(f"%{_either(f'{byte:02x}')}" for byte in character.encode("utf-8", "surrogatepass"))
    plain = re.escape(character)
    if character in _CONTROLS:
        plain += rf"|\\{{1,{_DEEP}}}+{_CONTROLS[character]}"
    elif character in '"/':
        plain = rf"\\{{0,{_DEEP}}}+{plain}"
    return f"(?:{plain}|{escaped}|{percent})"


def _either(digits: str) -> str:
    """Hexadecimal digits in either case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _cores(data: bytes) -> list[str]:
    """Patterns for the letters of base64 that these bytes are certain to give, wherever they begin in it."""
    if len(data) < _BASE64_FROM:
        return []
    found: list[str] = []
    for shift in range(3):
        letters = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        whole = (shift + len(data)) * 8 // 6  # behind that the letters depend on what follows
        core = letters[-(-shift * 8 // 6) : whole]
        found.append(re.escape(core).replace(r"\+", "[+-]").replace("/", "[/_]"))
    return found


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """The whole stretch of base64 around a place in it."""
    first = start
    while first > 0 and ((text[first - 1].isalnum() and text[first - 1].isascii()) or text[first - 1] in "+/-_"):
        first -= 1
    match = _B64.match(text, end)
    return first, cast("re.Match[str]", match).end()
