"""The width of text in columns, and where it may be cut.

Widths are counted per character. A cluster that some terminals draw in fewer columns, such as a family emoji, counts in full: a line may
end early, but never runs over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from wcwidth import wcwidth

__all__ = ["clusters", "cut", "expanded", "width_of"]

_JOINER = "\u200d"
_SELECTOR = "\ufe0f"
# runs of characters that take one column each, for speed
_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u0391-\u03c9\u0410-\u044f\u2010-\u2027\u2190-\u2199\u2500-\u257f]*")


def width_of(text: str) -> int:
    """Return the columns of a text without newlines: the most that any terminal needs."""
    if text.isascii():
        return len(text)
    plain = _NARROW.match(text)
    begin = plain.end() if plain else 0
    return begin + sum(map(_columns, text[begin:]))


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    if character == _SELECTOR:
        return 1  # it makes the narrow character before it wide
    return max(wcwidth(character), 0)


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield the pieces of a text that must not be split, with their columns: a character with its marks and joined characters."""
    if text.isascii():
        yield from ((character, 1) for character in text)
        return
    begin = width = 0
    joined = True
    for at, character in enumerate(text):
        columns = _columns(character)
        if columns and not joined and character != _SELECTOR:
            yield text[begin:at], width
            begin, width = at, 0
        width += columns
        joined = character == _JOINER
    if begin < len(text):
        yield text[begin:], width


def cut(text: str, columns: int, *, mark: str) -> str:
    """Return the text, shortened and followed by the mark if it takes more columns than that."""
    if width_of(text) <= columns:
        return text
    room = columns - width_of(mark)
    if room < 0:
        return ""
    kept, taken = 0, 0
    for piece, width in clusters(text):
        if taken + width > room:
            break
        kept, taken = kept + len(piece), taken + width
    return text[:kept].rstrip(" ") + mark


def expanded(text: str) -> str:
    """Replace tabs with spaces, at tab stops of four."""
    return text.expandtabs(4) if "\t" in text else text
