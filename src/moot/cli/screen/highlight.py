"""Program text coloured line by line as it streams, with no look ahead: what spans lines is carried along."""

from __future__ import annotations

import re
from functools import cache

from moot.cli.screen.languages import Language, language
from moot.cli.screen.styles import ADDED, COMMENT, CONSTANT, KEYWORD, LINK, PLAIN, REMOVED, STRING, Line, Style

__all__ = ["Highlighter"]

LONGEST = 2000
"""A longer line is data, not something to read: it stays plain."""


class Highlighter:
    """The lines of one piece of code, in order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._language = language(name)
        self._until = ""
        """What ends the comment or string that we are in; empty = in neither."""
        self._style: Style = PLAIN

    def copy(self) -> Highlighter:
        """The same place in the code, to be gone on with apart."""
        twin = Highlighter(self._name)
        twin._until, twin._style = self._until, self._style
        return twin

    def line(self, text: str) -> Line:
        """The next line, coloured; its text is unchanged."""
        if self._name in ("diff", "patch"):
            return [(text, _diff_style(text))]
        if self._language is None or len(text) > LONGEST:
            return [(text, PLAIN)]
        pattern = _pattern(self._language)
        found: Line = []
        at = self._carried(text, found)
        while at < len(text):
            match = pattern.match(text, at)
            if match is None or match.end() == at:
                found.append((text[at], PLAIN))
                at += 1
                continue
            at = self._token(text, match, found)
        return found

    def _carried(self, text: str, found: Line) -> int:
        if not self._until:
            return 0
        end = text.find(self._until)
        at = len(text) if end < 0 else end + len(self._until)
        found.append((text[:at], self._style))
        if end >= 0:
            self._until = ""
        return at

    def _token(self, text: str, match: re.Match[str], found: Line) -> int:
        assert self._language is not None
        kind, token = match.lastgroup, match.group()
        if kind == "word":
            found.append((token, _word_style(self._language, token)))
        elif kind == "open":
            return self._enclose(text, match.start(), token, found)
        else:
            found.append((token, {"comment": COMMENT, "string": STRING, "number": CONSTANT, "sign": LINK}.get(kind or "", PLAIN)))
        return match.end()

    def _enclose(self, text: str, at: int, token: str, found: Line) -> int:
        assert self._language is not None
        ends = dict(self._language.enclosed)
        until, style = ends.get(token, token), COMMENT if token in ends else STRING
        end = text.find(until, at + len(token))
        stop = len(text) if end < 0 else end + len(until)
        found.append((text[at:stop], style))
        if end < 0:
            self._until, self._style = until, style
        return stop


def _word_style(known: Language, word: str) -> Style:
    if known.any_case:
        word = word.lower()
    if word in known.keywords:
        return KEYWORD
    return CONSTANT if word in known.constants else PLAIN


def _diff_style(text: str) -> Style:
    if text.startswith(("+++", "---", "@@", "diff ")):
        return COMMENT
    return {"+": ADDED, "-": REMOVED}.get(text[:1], PLAIN)


@cache
def _pattern(known: Language) -> re.Pattern[str]:
    opens = "|".join(re.escape(one) for one in (*known.long_quotes, *(begin for begin, _ in known.enclosed)))
    strings = "|".join(rf"{quote}(?:[^{quote}\\]|\\.)*{quote}?" for quote in known.quotes)
    parts = [
        rf"(?P<open>{opens})" if opens else "",
        rf"(?P<comment>(?:{'|'.join(re.escape(one) for one in known.comments)}).*)" if known.comments else "",
        rf"(?P<string>{strings})" if strings else "",
        r"(?P<number>\d[\w.]*)",
        rf"(?P<word>[^\W\d][\w{re.escape(known.extra)}]*)",
        r"(?P<space>\s+)",
        r"(?P<sign>[-+*/%=<>!&|^~?:@]+)" if not known.extra else "",
    ]
    return re.compile("|".join(part for part in parts if part), re.DOTALL)
