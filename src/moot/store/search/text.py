"""Conversion of text to the form used by the full-text index. No I/O."""

from __future__ import annotations

import re
from unicodedata import normalize

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_ASCII_TOKEN = re.compile(r"[a-z0-9]+")
_TOKEN = re.compile(r"(?:[^\W_][\u0300-\u036f]*)+")
_ENCODED_LENGTH = 1024
_ENCODED = re.compile(rf"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{{{_ENCODED_LENGTH},}}")
"""Encoded data, such as an image in base64. It contains no words, but would fill the index with random letters."""
_FOREIGN = re.compile("[^\x00-\x7f]+")
_LETTERS = bytes(byte if chr(byte).isalnum() else 0x20 for byte in range(128)).lower() + b" " * 128
"""Maps each byte of ASCII text to a letter in lower case, or to a space between words."""


def spaced(text: str) -> str:
    """Replace runs of Chinese, Japanese and Korean characters, which are written without spaces, with overlapping pairs of characters."""
    if text.isascii():
        return text
    return _CJK_RUN.sub(lambda run: f" {' '.join(_pairs(run[0], last=True))} ", text)


def indexable(text: str) -> str:
    """Return the text as it is indexed: without encoded data, and `spaced`."""
    return spaced(_ENCODED.sub(" ", text) if _has_long_word(text) else text)


def _has_long_word(text: str) -> bool:
    """Return False if there is a space or line break in each stretch of `_ENCODED_LENGTH` characters. Much faster than `_ENCODED`."""
    step = _ENCODED_LENGTH // 2  # a longer word fills at least one of these pieces
    pieces = range(0, len(text) - step + 1, step)
    return any(text.find(" ", at, at + step) < 0 and text.find("\n", at, at + step) < 0 for at in pieces)


def tokens(text: str) -> list[str]:
    """Return the words of a text in lower case; runs of CJK characters are not split."""
    lowered = text.lower()
    return (_ASCII_TOKEN if lowered.isascii() else _TOKEN).findall(lowered)


def distinct(text: str) -> set[str]:
    """Return the words of a text as a set, in a fifth of the time that `tokens` needs."""
    if text.isascii():
        return set(text.encode().translate(_LETTERS).decode().split())
    pieces = set(text.split())
    words = set(" ".join([piece for piece in pieces if piece.isascii()]).encode().translate(_LETTERS).decode().split())
    words.update(*[tokens(piece) for piece in pieces if not piece.isascii()])
    return words


def is_cjk(text: str) -> bool:
    """Return True if the text contains Chinese, Japanese or Korean characters."""
    return not text.isascii() and _CJK_RUN.search(text) is not None


def phrase(term: str) -> str:
    """Return the term as an FTS5 phrase; a phrase that ends with CJK characters also matches if more CJK characters follow."""
    runs = list(_CJK_RUN.finditer(term))
    last = runs[-1] if runs and not _TOKEN.search(term, runs[-1].end()) else None
    text = _CJK_RUN.sub(lambda run: f" {' '.join(_pairs(run[0], last=last is None or run.start() < last.start()) or [run[0]])} ", term)
    return f"{quoted(text.strip())}{' *' if last is not None and len(last[0]) == 1 else ''}"


def apart(term: str) -> list[str]:
    """Return the separately searchable words of a term; a CJK run is split into pairs."""
    if not is_cjk(term):
        return [term]
    runs = [run[0] for run in _CJK_RUN.finditer(term)]
    words = [match[0] for match in _TOKEN.finditer(_CJK_RUN.sub(" ", term))]
    return [*words, *(pair for run in runs for pair in _pairs(run, last=False))] or runs


def quoted(text: str) -> str:
    """Quote a string for FTS5, so that nothing in it is syntax."""
    return '"' + text.replace('"', '""') + '"'


def like_patterns(word: str) -> list[str]:
    """Return LIKE patterns (escaped by backslash) for the word anywhere, in any case; LIKE ignores case only for ASCII."""
    cases = [word] if word.isascii() else dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))
    return ["%" + re.sub(r"([\\%_])", r"\\\1", case) + "%" for case in cases]


def folded(text: str) -> str:
    """Return the text in lower case and without accents, keeping all character positions."""
    # translate only characters that need it: per character it takes ten times as long
    return (text if text.isascii() else _FOREIGN.sub(lambda run: run[0].translate(_FOLD), text)).lower()


def _pairs(run: str, *, last: bool) -> list[str]:
    pairs = [run[index : index + 2] for index in range(len(run) - 1)]
    return [*pairs, run[-1]] if last else pairs


class _Fold(dict[int, str]):
    def __missing__(self, character: int) -> str:
        own = chr(character)
        base = own if _CJK_RUN.match(own) else normalize("NFD", own)[0]
        lowered = base.lower()
        self[character] = found = lowered if len(lowered) == 1 else base
        return found


_FOLD = _Fold()
