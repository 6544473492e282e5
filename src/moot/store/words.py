"""Text as the index sees it: what of a message is found, how a query is spelled, what of a hit is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moot.types.canonical import Json, dumps
from moot.types.part import Part, is_tool

__all__ = ["MESSAGE_CHARACTERS", "OUTPUT_BYTES", "Query", "found_text", "like_patterns", "parse", "snippet", "spaced"]

OUTPUT_BYTES = 4 << 10
"""Of each tool output."""
MESSAGE_CHARACTERS = 256 << 10
"""Of a message: one row must not hold up the writer for longer than a moment."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_WORD = re.compile(r"[^\W_]")
_MARKS = re.compile("[\x00\x02\x03]")
_TRIGRAM = 3
_AROUND = 80
_TERMS = 32


def found_text(parts: Iterable[Part]) -> str:
    """What a message is found by: its text and the beginning of each tool output; no reasoning."""
    text = "\n".join(_texts(parts))
    return _MARKS.sub(" ", text)[:MESSAGE_CHARACTERS]


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            yield str(part.get("text", ""))
        elif kind in ("steering-message", "data-steering"):
            inner = part.get("parts")
            yield from _texts(each for each in inner if isinstance(each, dict)) if isinstance(inner, list) else ()
        elif is_tool(part):
            for said in (part.get("output"), part.get("errorText")):
                if said is not None:
                    yield _first_bytes(said)


def _first_bytes(value: Json) -> str:
    data = value[:OUTPUT_BYTES].encode("utf-8", "replace") if isinstance(value, str) else dumps(value)
    return data[:OUTPUT_BYTES].decode("utf-8", "ignore")


def spaced(text: str) -> str:
    """The text with runs of Chinese, Japanese and Korean characters as overlapping pairs: they put no spaces between words."""
    if text.isascii():
        return text
    return _CJK_RUN.sub(lambda run: f" {' '.join(_pairs(run[0], last=True))} ", text)


def like_patterns(word: str) -> list[str]:
    """LIKE patterns (escaped by a backslash) for the word anywhere, in any case; LIKE itself knows the cases of ASCII only."""
    cases = [word] if word.isascii() else dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))
    return ["%" + re.sub(r"([\\%_])", r"\\\1", case) + "%" for case in cases]


def _pairs(run: str, *, last: bool) -> list[str]:
    pairs = [run[index : index + 2] for index in range(len(run) - 1)]
    return [*pairs, run[-1]] if last else pairs


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked, in the index's language."""

    terms: tuple[str, ...]
    """As they are looked for in a text: lower case."""
    words: str
    """For the index of words; empty = it can't answer."""
    substrings: str
    """For the index of substrings, which answers with too much; empty = it can't answer."""

    def inside(self, text: str) -> bool:
        """Whether all terms occur in the text, as parts of words too."""
        lowered = text.lower()
        return all(term in lowered for term in self.terms)


def parse(text: str) -> Query | None:
    """The query for terms that must all occur, whatever characters they are made of; None when there is nothing to look for."""
    terms = _MARKS.sub(" ", text.encode("utf-8", "replace").decode()).split()[:_TERMS]
    words = " AND ".join(_word(term) for term in terms if _WORD.search(term))
    long = all(len(term) >= _TRIGRAM for term in terms)
    pieces = dict.fromkeys(piece for term in terms for piece in _trigrams(term.lower()))  # each once: going over it again costs as much
    substrings = " AND ".join(_quoted(piece) for piece in pieces) if long else ""
    return Query(tuple(term.lower() for term in terms), words, substrings) if words or substrings else None


def _trigrams(term: str) -> list[str]:
    """Threes that cover the term. Looking for them anywhere and then at the text is twice as fast as looking for the term as a phrase."""
    return [term[start : start + _TRIGRAM] for start in range(0, len(term) - _TRIGRAM, _TRIGRAM)] + [term[-_TRIGRAM:]]


def _word(term: str) -> str:
    """A phrase of the words index; a lone character of a language without spaces stands at the start of some pair."""
    alone = _CJK_RUN.fullmatch(term) and len(term) == 1
    text = _CJK_RUN.sub(lambda run: f" {' '.join(_pairs(run[0], last=False) or [run[0]])} ", term)
    return f"{_quoted(text.strip())}{' *' if alone else ''}"


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def snippet(text: str, terms: tuple[str, ...]) -> str:
    """The text around the first match, on one line, matches between U+0002 and U+0003."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters change their length, and with it every position behind them
        lowered = text
    first = min((place for term in terms if (place := lowered.find(term)) >= 0), default=0)
    begin, end = max(first - _AROUND, 0), min(first + _AROUND + len(terms[0]), len(text))
    pieces: list[str] = []
    at = begin
    for start, stop in _spans(lowered[begin:end], terms):
        pieces += (text[at : begin + start], "\x02", text[begin + start : begin + stop], "\x03")
        at = begin + stop
    shown = " ".join(f"{''.join(pieces)}{text[at:end]}".split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


def _spans(text: str, terms: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where terms stand, in order; those that touch are one."""
    found: list[tuple[int, int]] = []
    for term in terms:
        place = text.find(term)
        while place >= 0:
            found.append((place, place + len(term)))
            place = text.find(term, place + len(term))
    if len(found) < 2:
        return found
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
