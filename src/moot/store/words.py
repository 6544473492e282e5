"""Text as the index of words sees it. Pure."""

from __future__ import annotations

import re
from unicodedata import normalize

__all__ = ["apart", "distinct", "folded", "is_cjk", "like_patterns", "phrase", "quoted", "spaced", "tokens"]

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_ASCII_TOKEN = re.compile(r"[a-z0-9]+")
_TOKEN = re.compile(r"(?:[^\W_][\u0300-\u036f]*)+")
_FOREIGN = re.compile("[^\x00-\x7f]+")
_LETTERS = bytes(byte if chr(byte).isalnum() else 0x20 for byte in range(128)).lower() + b" " * 128
"""What each byte of plain text is to words: a letter, or a space between two."""


def spaced(text: str) -> str:
    """The text with runs of Chinese, Japanese and Korean characters as overlapping pairs: they put no spaces between words."""
    if text.isascii():
        return text
    return _CJK_RUN.sub(lambda run: f" {' '.join(_pairs(run[0], last=True))} ", text)


def tokens(text: str) -> list[str]:
    """The words of a text in lower case, runs of characters without spaces as they are."""
    lowered = text.lower()
    return (_ASCII_TOKEN if lowered.isascii() else _TOKEN).findall(lowered)


def distinct(text: str) -> set[str]:
    """The same words, each once, in a fifth of the time."""
    if text.isascii():
        return set(text.encode().translate(_LETTERS).decode().split())
    pieces = text.split()
    words = set(" ".join([piece for piece in pieces if piece.isascii()]).encode().translate(_LETTERS).decode().split())
    words.update(*[tokens(piece) for piece in pieces if not piece.isascii()])
    return words


def is_cjk(text: str) -> bool:
    """Whether a character of a language without spaces occurs."""
    return not text.isascii() and _CJK_RUN.search(text) is not None


def phrase(term: str) -> str:
    """The term in the language of FTS5, as words that follow each other; a run of characters at its end may go on in the text."""
    runs = list(_CJK_RUN.finditer(term))
    last = runs[-1] if runs and not _TOKEN.search(term, runs[-1].end()) else None
    text = _CJK_RUN.sub(lambda run: f" {' '.join(_pairs(run[0], last=last is None or run.start() < last.start()) or [run[0]])} ", term)
    return f"{quoted(text.strip())}{' *' if last is not None and len(last[0]) == 1 else ''}"


def apart(term: str) -> list[str]:
    """The words of a term that may be found one by one: a run of characters has as many as it has pairs."""
    if not is_cjk(term):
        return [term]
    runs = [run[0] for run in _CJK_RUN.finditer(term)]
    words = [match[0] for match in _TOKEN.finditer(_CJK_RUN.sub(" ", term))]
    return [*words, *(pair for run in runs for pair in _pairs(run, last=False))] or runs


def quoted(text: str) -> str:
    """A string of FTS5's language: nothing in it is syntax."""
    return '"' + text.replace('"', '""') + '"'


def like_patterns(word: str) -> list[str]:
    """LIKE patterns (escaped by a backslash) for the word anywhere, in any case; LIKE itself knows the cases of ASCII only."""
    cases = [word] if word.isascii() else dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))
    return ["%" + re.sub(r"([\\%_])", r"\\\1", case) + "%" for case in cases]


def folded(text: str) -> str:
    """The text in lower case and without accents, every character at its place."""
    # letter by letter only what needs it: that takes ten times as long
    return (text if text.isascii() else _FOREIGN.sub(lambda run: run[0].translate(_FOLD), text)).lower()


def _pairs(run: str, *, last: bool) -> list[str]:
    pairs = [run[index : index + 2] for index in range(len(run) - 1)]
    return [*pairs, run[-1]] if last else pairs


class _Fold(dict[int, str]):
    """Character to folded character, as `str.translate` asks for it; each is worked out once."""

    def __missing__(self, character: int) -> str:
        own = chr(character)
        base = own if _CJK_RUN.match(own) else normalize("NFD", own)[0]
        lowered = base.lower()
        self[character] = found = lowered if len(lowered) == 1 else base
        return found


_FOLD = _Fold()
