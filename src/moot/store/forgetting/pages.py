"""Redaction of shared pages, also where HTML elements or Markdown characters separate the letters of a match. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from moot.store.forgetting.needles import SHORTEST, Needles
from moot.types.forgetting import MARK

__all__ = ["without"]

_ELEMENT = re.compile(r"<[^>]*>")
_PIECE = re.compile(r"(?P<element><[^>]*>)|(?P<entity>&#?\w{1,32};)|(?P<letter>.)", re.DOTALL)
_BARE = dict.fromkeys(map(ord, " \t\r\n*_~`\\"))
"""Characters that Markdown may consume, and whitespace, which a page may change."""


def without(needles: Needles, page: bytes) -> bytes:
    """Redact a page, both in its source and in its visible text."""
    source = needles.text(page.decode("utf-8", "surrogateescape"))
    shown = html.unescape(_ELEMENT.sub("", source))
    bare = [re.escape(wanted) for string in needles.secret.strings if len(wanted := string.translate(_BARE)) >= SHORTEST]
    wanted = re.compile("|".join(sorted(bare, key=len, reverse=True))) if bare else None
    if needles.spans(shown) or (wanted is not None and wanted.search(shown.translate(_BARE))):
        source = _read_without(needles, wanted, source)
    return source.encode("utf-8", "surrogateescape")


def _read_without(needles: Needles, wanted: re.Pattern[str] | None, source: str) -> str:
    read = list(_letters(source))
    spans = needles.spans("".join(letter for letter, *_ in read))
    if wanted is not None:
        places = [place for place, (letter, *_) in enumerate(read) if ord(letter) not in _BARE]
        text = "".join(read[place][0] for place in places)
        spans += [(places[match.start()], places[match.end() - 1] + 1) for match in wanted.finditer(text)]
    return _replaced(source, read, spans)


def _letters(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield the visible letters of a page with their positions in the source."""
    for match in _PIECE.finditer(source):
        if match.lastgroup != "element":
            for letter in html.unescape(match[0]) if match.lastgroup == "entity" else match[0]:
                yield letter, match.start(), match.end()


def _replaced(source: str, read: Sequence[tuple[str, int, int]], spans: Sequence[tuple[int, int]]) -> str:
    """Put the mark at the start of each span; elements inside it stay."""
    pieces, position = list[str](), 0
    for first, stop in sorted(spans):
        mark = MARK
        for _, start, end in read[first:stop]:
            if start >= position:
                pieces += [source[position:start], mark]
                position, mark = end, ""
    return "".join([*pieces, source[position:]])
