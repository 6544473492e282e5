"""Patterns for all spellings of a string, in plain text and in base64, and validation of regular expressions. No I/O."""

from __future__ import annotations

import base64
import binascii
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html.entities import html5

from moot.errors import UsageError
from moot.types.maintenance import REDACTION_MARK

DEEP = 64
"""Maximum number of backslashes before a character, as added by six levels of nested JSON. Longer sequences would be slow to match."""
_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def spelled(string: str) -> str:
    """Return a pattern for the string in any spelling: plain, or escaped for JSON, URLs or HTML."""
    pieces: list[str] = []
    for run in re.findall(r"\\+|[^\\]", string, re.DOTALL):
        if run[0] == "\\":
            # an initial run is matched only from its start: matching from each position in a long run would take very long
            plain = rf"\\{{{len(run)},{len(run) * DEEP}}}" if pieces else rf"(?<!\\)\\{{{len(run)},}}"
            pieces.append(rf"(?:{plain}|(?:\\{{1,{DEEP}}}+u005[cC]|%5[cC]|&{_entity(run[0])}){{{len(run)}}})")
        else:
            pieces.append(character(run))
    return "".join(pieces)


@cache
def character(character: str) -> str:
    """Return a pattern for one character in any spelling. Each alternative starts with a different letter, so that most fail at once."""
    first, *more = (character.encode("utf-16-be", "surrogatepass")[at : at + 2].hex() for at in range(0, 4, 2))
    units = f"u{_either(first)}" + "".join(rf"\\{{1,{DEEP}}}+u{_either(unit)}" for unit in more if unit)
    percent = "".join(f"%{_either(f'{byte:02x}')}" for byte in character.encode("utf-8", "surrogatepass"))
    entity, plain = _entity(character), re.escape(character)
    behind = [units, f"u0026{entity}"]
    if character in _CONTROLS:
        behind.append(_CONTROLS[character])
    elif character in '"/':
        behind.append(plain)
    if character == "&":  # all its entities start with an ampersand
        return rf"(?:&{entity}|\\{{1,{DEEP}}}+(?:u0026{entity}|u0026)|{percent}|&)"
    return rf"(?:{plain}|\\{{1,{DEEP}}}+(?:{'|'.join(behind)})|{percent}|&{entity})"


def _entity(character: str) -> str:
    """Return a pattern for the text after the ampersand, which may itself be escaped."""
    number = ord(character)
    digits = _either(f"{number:x}")
    names = [name for name, value in html5.items() if value == character and name.endswith(";")]
    return f"(?:amp;){{0,3}}(?:{'|'.join([*names, f'#0{{0,7}}{number};', f'#[xX]0{{0,7}}{digits};'])})"


def _either(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


_LONGEST = 200
_WAYS = 10_000  # maximum number of ways to try a pattern at one position
_PIECE = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<repeat>[*+?]|\{\d{1,4}(?:,\d{0,4})?\})|(?P<open>\((?:\?:)?)|(?P<any>.)",
    re.DOTALL,
)


def bounded(pattern: str) -> str:
    """Return the pattern unchanged. Raise UsageError if it is invalid, matches the empty string, or could take too long to search."""
    if len(pattern) > _LONGEST:
        raise _refused(pattern, f"it is longer than {_LONGEST} characters")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise _refused(pattern, str(error)) from error
    if _ways(pattern) > _WAYS:
        raise _refused(pattern, "there are too many ways to match it; use narrower bounds")
    if compiled.fullmatch(""):
        raise _refused(pattern, "it matches the empty string")
    return pattern


def _ways(pattern: str) -> int:
    """Count the ways to match. Raise UsageError for unbounded repetitions, repeated groups and advanced syntax."""
    ways, before = 1, "("
    for match in _PIECE.finditer(pattern):
        piece = match[0]
        match match.lastgroup:
            case "repeat":
                ways *= _repeated(pattern, piece, before, match.start() + 1)
            case "escape" if piece[1].isdigit():
                raise _refused(pattern, "it has a backreference")
            case "open" if pattern.startswith("?", match.end()):
                raise _refused(pattern, "only characters, classes, (?:groups) and bounded repetitions are allowed")
            case _:
                ways *= 2 if piece == "|" else 1
        before = "repeat" if match.lastgroup == "repeat" else piece
    return ways


def _repeated(pattern: str, repeat: str, before: str, place: int) -> int:
    if before in ("repeat", ")"):
        raise _refused(pattern, f"a {'group' if before == ')' else 'repetition'} is repeated at character {place}")
    if repeat in "*+" or repeat.endswith(",}"):
        raise _refused(pattern, f"the repetition at character {place} has no bound", "Use {1,64} instead of +.")
    if repeat == "?":
        return 2
    least, _, most = repeat[1:-1].partition(",")
    return 1 + int(most or least) - int(least or 0)


def _refused(pattern: str, why: str, fix: str = "See docs/forgetting.md.") -> UsageError:
    return UsageError(f"Unsupported pattern {pattern!r}: {why}.", fix=fix)


_FROM = 6  # minimum length in bytes of a string to find in base64; a shorter one determines fewer than five letters
_BREAK = (
    rf"[ \t]{{0,8}}(?:\r\n?|\n|\\{{1,{DEEP}}}+r(?:\\{{1,{DEEP}}}+n)?|\\{{1,{DEEP}}}+n|%0[dD]%0[aA]|%0[aA])"
    rf"(?:[ \t]|\\{{1,{DEEP}}}+t){{0,32}}"
)
"""A line break, in any escaped form; the next line may be indented."""
_PLUS, _SLASH = f"(?:-|{character('+')})", f"(?:_|{character('/')})"
_LETTERS = rf"(?:[A-Za-z0-9+/_-]++|\\{{1,{DEEP}}}+(?:/|u002[bBfF])|%2[bBfF])++"
_PAD = rf"(?:=|%3[dD]|\\{{1,{DEEP}}}+u003[dD])"
_ANY = r"[A-Za-z0-9+/_\\%-]"
_MORE = rf"(?:(?<={_ANY}{{32}}){_BREAK}(?={_ANY}{{4}}){_LETTERS}(?![ .,;:!?]))"
_STRETCH = re.compile(rf"(?<!\\)(?={_ANY}{{4}}){_LETTERS}{_MORE}*+{_PAD}{{0,2}}")
"""All lines but the last have at least 32 letters, so that words before or after base64 are not mistaken for it. A letter after a backslash
is the rest of an escape sequence."""
_LINES = re.compile(rf"(?:(?<!{_ANY})|(?<=\\[nrt]))(?={_ANY}{{32}}){_LETTERS}{_MORE}++{_PAD}{{0,2}}")
"""Matches only multi-line stretches, from their beginning: matching from every position in a long stretch would take very long."""
_LEAST = 16  # minimum number of letters in a stretch that is decoded for patterns
_LONG = 512  # letters from which patterns are found in any content; shorter stretches must decode to text, because ids look like base64
_BREAKS = re.compile(_BREAK)
_PLAIN = ((_BREAKS, ""), (re.compile(f"{_PAD}+$"), ""), (re.compile(_PLUS), "+"), (re.compile(_SLASH), "/"))


class Encoded:
    """Search and redaction of strings and patterns in base64."""

    def __init__(self, strings: Sequence[str], patterns: Sequence[str]) -> None:
        cores = [core for string in strings for core in _cores(string.encode("utf-8", "surrogatepass"))]
        self._cores = re.compile("|".join(cores)) if cores else None
        self._patterns = re.compile("|".join(patterns)) if patterns else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the stretches that contain a match, in order and without overlaps."""
        if self._patterns is None and not (self._cores and self._cores.search(text)) and _LINES.search(text) is None:
            return []
        cores = deque[tuple[int, int]]() if self._cores is None else deque(match.span() for match in self._cores.finditer(text))
        found: list[tuple[int, int]] = []
        for match in (_LINES if not cores and self._patterns is None else _STRETCH).finditer(text):
            while cores and cores[0][0] < match.start():
                found.append(cores.popleft())
            if (cores and cores[0][0] < match.end()) or self._spans_lines(match[0]) or self._matches(match[0]):
                found.append(match.span())
        return merge_spans([*found, *cores])

    def without(self, stretch: str, redact: Callable[[str], str]) -> str:
        """Return the redacted stretch as base64, or the mark if it can't be decoded."""
        data = _decoded(stretch)
        if data is None:
            return REDACTION_MARK
        text = data.decode("utf-8", "surrogateescape")
        changed = redact(text)
        if changed == text:  # matched by coincidence, or the stretch starts in the middle of the base64
            return REDACTION_MARK
        encoded = base64.b64encode(changed.encode("utf-8", "surrogateescape")).decode()
        return encoded if stretch.endswith("=") or len(_BREAKS.sub("", stretch)) % 4 == 0 else encoded.rstrip("=")

    def _spans_lines(self, stretch: str) -> bool:
        plain = _BREAKS.sub("", stretch)
        return self._cores is not None and plain != stretch and self._cores.search(plain) is not None

    def _matches(self, stretch: str) -> bool:
        if self._patterns is None or len(stretch) < _LEAST or (data := _decoded(stretch)) is None:
            return False
        text = data.decode("utf-8", "surrogateescape")
        is_text = len(stretch) >= _LONG or all(letter.isprintable() or letter in "\t\r\n" for letter in text)
        return is_text and any(match[0] for match in self._patterns.finditer(text))


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort the spans and merge those that overlap."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _decoded(stretch: str) -> bytes | None:
    for spelling, plain in _PLAIN:
        stretch = spelling.sub(plain, stretch)
    try:
        return base64.b64decode(stretch + "=" * (-len(stretch) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _cores(data: bytes) -> list[str]:
    """Return patterns for the base64 letters that these bytes always produce, one for each offset."""
    if len(data) < _FROM:
        return []
    found: list[str] = []
    for shift in range(3):
        letters = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        whole = (shift + len(data)) * 8 // 6  # later letters depend on the bytes that follow
        core = letters[-(-shift * 8 // 6) : whole]
        found.append("".join({"+": _PLUS, "/": _SLASH}.get(letter, letter) for letter in core))
    return found
