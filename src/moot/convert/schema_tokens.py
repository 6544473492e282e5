"""Upper estimate of a text's tokens, for models whose tokenizer is not available; and truncation to a number of tokens."""

from __future__ import annotations

import re

_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]|[ \t]+|\n+|[^\x00-\x7f]|.", re.DOTALL)
# letters that tokenizers split: long words, clusters, rare pairs
_ODD = re.compile(r"[bcdfghjklmnpqrstvwxz]{4}|[aeiouy]{4}|[jqxz][^aeiou]|.{13}", re.IGNORECASE)
_CUT = "\n[… cut …]\n"


def tokens(text: str) -> int:
    """Return an upper estimate: about 1.6 times the truth for prose and code, 1.0 for noise (measured on Qwen2.5 and SmolLM2)."""
    return sum(_piece(match[0]) for match in _PIECES.finditer(text))


def cut(text: str, limit: int) -> str:
    """Return the text if it has at most `limit` tokens, else its beginning and a quarter of its end, with the gap marked."""
    if tokens(text) <= limit:
        return text
    room = limit - tokens(_CUT)
    if room <= 0:
        return ""
    tail = _take(text[::-1], room // 4)[::-1]
    return _take(text, room - room // 4) + _CUT + tail


def _piece(piece: str) -> int:
    first = piece[0]
    if first in " \t\n":
        return 0 if piece == " " else 1 + len(piece) // 8
    if not first.isascii():
        return len(piece.encode("utf-8", "replace"))
    if not first.isalpha():
        return 1
    if _ODD.search(piece) or (len(piece) > 1 and piece.isupper()):
        return (3 * len(piece) + 3) // 4
    return 1 + (len(piece) - 1) // 3


def _take(text: str, limit: int) -> str:
    spent = 0
    for match in _PIECES.finditer(text):
        spent += _piece(match[0])
        if spent > limit:
            return text[: match.start()]
    return text
