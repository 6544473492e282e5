"""Markdown inside a paragraph, as it streams: emphasis, code, links.

A mark is decided by what follows it, and no further than `REACH` characters: what is undecided is held back, all else is given out at
once and for ever. A mark without its partner within reach is only text. So the outcome depends on the text alone, never on its pieces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from moot.cli.screen.addresses import beside
from moot.cli.screen.styles import BOLD, CODE, DIM, ITALIC, LINK, STRIKE, Style

__all__ = ["REACH", "Sink", "Spans"]

REACH = 400
"""How far a mark is looked ahead for its partner."""
_LINK_REACH = 4000

_RUN = 100
"""Longer runs of one mark are taken apart."""

_PLAIN = re.compile(r"[^\\`*_~\[!<&\n]+")
_TICKS = re.compile(rf"`{{1,{_RUN}}}")
_MARKS = re.compile(rf"\*{{1,{_RUN}}}|_{{1,{_RUN}}}|~{{1,{_RUN}}}")
_SEARCHED = {mark: re.compile(rf"\\.|`{{1,{_RUN}}}|{re.escape(mark)}+", re.DOTALL) for mark in "*_~"}
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_LABEL = r"(?:[^\[\]\\\n]|\\[^\n]){0,400}"
_LINK = re.compile(
    rf"(!?)\[({_LABEL})\]\(\s{{0,9}}(?:<([^<>\n]{{1,1500}})>|([^\s()<>]{{1,1500}}(?:\([^\s()<>]{{0,200}}\)[^\s()<>]{{0,500}})?))"
    r"(?:\s{1,9}(?:\"([^\"\n]{0,200})\"|'([^'\n]{0,200})'))?\s{0,9}\)"
)
_LINK_BEGINS = re.compile(
    rf"!?(?:\[{_LABEL}(?:\\|\](?:\(\s{{0,9}}(?:<[^<>\n]{{0,1500}}>?|[^\s()<>]{{0,1500}}(?:\([^\s()<>]{{0,200}}\)?[^\s()<>]{{0,500}})?)"
    r"(?:\s{1,9}(?:\"[^\"\n]{0,200}\"?|'[^'\n]{0,200}'?)?)?\s{0,9})?)?)?"
)
_ADDRESS = re.compile(r"<((?:https?://|mailto:)[^\s<>]{1,1500})>|<br ?/?>", re.IGNORECASE)
_OPENERS = ("<https://", "<http://", "<mailto:")
_BREAKS = ("<br>", "<br/>", "<br />")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&nbsp;": " "}
_ENTITY = re.compile("|".join(_ENTITIES))
_ENTITY_BEGINS = re.compile(r"&(?:[a-z#0-9]{0,5})")
_LENGTHS: dict[int, Style] = {1: ITALIC, 2: BOLD, 3: BOLD | ITALIC}
_STYLES: dict[str, dict[int, Style]] = {"*": _LENGTHS, "_": _LENGTHS, "~": {2: STRIKE}}


class Sink(Protocol):
    """Takes the styled text."""

    def add(self, text: str, style: Style) -> None: ...

    def newline(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Open:
    """A span whose closing mark is known to come."""

    run: int
    """Where the closing run of marks begins."""
    mark: str
    length: int
    style: Style


class Spans:
    """One paragraph's text to styled pieces in a sink. `keep_marks`: for terminals without styles, where the marks say it."""

    def __init__(self, sink: Sink, style: Style = 0, *, keep_marks: bool = False) -> None:
        self._sink = sink
        self._base = style
        self._keep = keep_marks
        self._text = ""
        self._at = 0
        self._final = False
        self._open: list[_Open] = []
        self._before = " "
        """The character before the text."""
        self._none: dict[tuple[str, int], int] = {}
        """(mark, length) → up to where it is known that no such span closes."""

    def copy(self, sink: Sink) -> Spans:
        """The same place in the text, writing to another sink."""
        twin = Spans(sink, self._base, keep_marks=self._keep)
        twin._text, twin._at, twin._before = self._text, self._at, self._before
        twin._open, twin._none = [*self._open], dict(self._none)
        return twin

    def feed(self, text: str) -> None:
        """More of the paragraph; newlines stay line breaks."""
        self._text += text
        self._run()
        self._forget()

    def end(self) -> None:
        """The paragraph is over: what was held back is decided."""
        self._final = True
        self._run()

    # ── the way through the text ──────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while self._at < len(self._text):
            plain = _PLAIN.match(self._text, self._at)
            if plain:
                self._give(plain.group())
                self._at = plain.end()
            elif not self._special(self._text[self._at]):
                return

    def _special(self, character: str) -> bool:
        """Takes what begins with the character; False when that is not decided yet."""
        match character:
            case "\n":
                self._sink.newline()
                self._at += 1
                return True
            case "\\":
                return self._escape()
            case "`":
                return self._code()
            case "*" | "_" | "~":
                return self._mark()
            case "<":
                return self._address()
            case "&":
                return self._entity()
            case _:
                return self._link()

    def _forget(self) -> None:
        """Drops the text that is done with."""
        at = self._at
        if not at:
            return
        self._before = self._text[at - 1]
        self._text = self._text[at:]
        self._at = 0
        self._open = [_Open(span.run - at, span.mark, span.length, span.style) for span in self._open]
        self._none = {key: upto - at for key, upto in self._none.items() if upto > at}

    def _give(self, text: str, style: Style = 0) -> None:
        for span in self._open:
            style |= span.style
        self._sink.add(text, self._base | style)

    def _literal(self, text: str) -> bool:
        self._give(text)
        self._at += len(text)
        return True

    def _waits(self, reach: int) -> bool:
        """Whether what is missing may still come."""
        return not self._final and len(self._text) - self._at < reach

    # ── what begins with a special character ──────────────────────────────────────────────────────────────────────────────────

    def _escape(self) -> bool:
        if self._at + 1 == len(self._text) and not self._final:
            return False
        if self._text.startswith("\\\n", self._at):
            self._at += 1  # a line break that was asked for
            return True
        escaped = _ESCAPED.match(self._text, self._at)
        if escaped is None:
            return self._literal("\\")
        self._give(escaped.group(1))
        self._at = escaped.end()
        return True

    def _entity(self) -> bool:
        found = _ENTITY.match(self._text, self._at)
        if found:
            self._give(_ENTITIES[found.group()])
            self._at = found.end()
            return True
        return not self._unfinished(_ENTITY_BEGINS, 7) and self._literal("&")

    def _unfinished(self, beginning: re.Pattern[str], reach: int) -> bool:
        begun = beginning.match(self._text, self._at)
        return self._waits(reach) and begun is not None and begun.end() == len(self._text)

    def _code(self) -> bool:
        ticks = _run_of(_TICKS, self._text, self._at)
        begin = self._at + len(ticks)
        if begin == len(self._text) and len(ticks) < _RUN and not self._final:
            return False
        close = self._closing(begin, ticks)
        if close is None:
            return False
        if close < 0:
            return self._literal(ticks)
        inside = self._text[begin:close].replace("\n", " ")
        if inside.strip() and inside[0] == inside[-1] == " ":
            inside = inside[1:-1]
        self._give(f"{ticks}{inside}{ticks}" if self._keep else inside, CODE)
        self._at = close + len(ticks)
        return True

    def _closing(self, begin: int, ticks: str) -> int | None:
        """Where a run of just as many backticks begins; -1 = nowhere within reach; None = not known yet."""
        limit = begin + REACH
        for found in _TICKS.finditer(self._text, begin, min(limit + _RUN, len(self._text))):
            if found.start() >= limit:
                break
            if found.end() == len(self._text) and not self._final:
                return None
            if len(found.group()) == len(ticks):
                return found.start()
        return -1 if self._final or len(self._text) >= limit + _RUN else None

    def _address(self) -> bool:
        found = _ADDRESS.match(self._text, self._at)
        if found is None:
            return not self._address_begins() and self._literal("<")
        if found.group(1):
            self._give(found.group(1), LINK)
            self._give(beside(found.group(1), found.group(1)), DIM)
        else:
            self._sink.newline()
        self._at = found.end()
        return True

    def _address_begins(self) -> bool:
        begun = self._text[self._at : self._at + _LINK_REACH].lower()
        if not self._waits(1510) or any(character.isspace() or character in "<>" for character in begun[1:].removeprefix("br ")):
            return False
        return any(one.startswith(begun) for one in (*_OPENERS, *_BREAKS)) or begun.startswith(_OPENERS)

    def _link(self) -> bool:
        found = _LINK.match(self._text, self._at)
        if found is None:
            character = self._text[self._at]
            return not self._unfinished(_LINK_BEGINS, _LINK_REACH) and self._literal(character)
        picture, label, bracketed, bare, *_ = found.groups()
        address = bracketed or bare
        if picture:
            self._give("[image] ", DIM)
        inner = Spans(self._sink, self._style() | LINK, keep_marks=self._keep)
        inner.feed(label)
        inner.end()
        self._give(beside(label, address), DIM)
        title = found.group(5) or found.group(6)
        if title:
            self._give(f" “{title}”" if not title.isascii() else f' "{title}"', DIM)
        self._at = found.end()
        return True

    def _style(self) -> Style:
        style = self._base
        for span in self._open:
            style |= span.style
        return style

    # ── emphasis ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _mark(self) -> bool:
        run = _run_of(_MARKS, self._text, self._at)
        end = self._at + len(run)
        if end == len(self._text) and len(run) < _RUN and not self._final:
            return False
        if self._closes_here(run):
            return True
        style = _STYLES[run[0]].get(len(run), 0)
        if not style or not self._opens(run, end):
            return self._literal(run)
        close = self._partner(run, end)
        if close is None:
            return False
        if close < 0:
            return self._literal(run)
        if self._keep:
            self._give(run)
        self._open.append(_Open(close, run[0], len(run), style))
        self._at = end
        return True

    def _closes_here(self, run: str) -> bool:
        begin, left = self._at, len(run)
        while left and self._open and self._open[-1].run == begin and self._open[-1].mark == run[0]:
            span = self._open.pop()
            left -= span.length
            if self._keep:
                self._give(span.mark * span.length)
        if left == len(run):
            return False
        if left > 0:
            self._give(run[0] * left)
        self._at += len(run)
        return True

    def _opens(self, run: str, end: int) -> bool:
        after = self._text[end] if end < len(self._text) else " "
        return _flanks(run[0], outside=self._previous(self._at), inside=after)

    def _previous(self, at: int) -> str:
        return self._text[at - 1] if at else self._before

    def _partner(self, run: str, begin: int) -> int | None:
        """Where the span's closing run begins; -1 = nowhere within reach; None = not known yet."""
        limit = begin + REACH
        if self._open:
            around = self._open[-1]
            shared = self._text.startswith(run[0] * 3, around.run) and len(run) + around.length == 3
            limit = min(around.run + shared, limit)
        key = (run[0], len(run))
        found = self._search(run, max(begin, self._none.get(key, 0)), limit)
        if found == -1:
            self._none[key] = max(limit, self._none.get(key, 0))
        return found

    def _search(self, run: str, at: int, limit: int) -> int | None:
        wanted = _SEARCHED[run[0]]
        while (found := wanted.search(self._text, at, min(limit + _RUN, len(self._text)))) and found.start() < limit:
            at = found.end()
            if found.end() == len(self._text) and not self._final:
                return None
            if found.group()[0] == "`":
                close = self._closing(at, found.group())
                if close is None:
                    return None
                at = close + len(found.group()) if close >= 0 else at
            elif found.group()[0] == run[0] and len(found.group()) in _PARTNERS[len(run)] and self._ends(run[0], found.start(), at):
                return found.start()
        return -1 if self._final or at >= limit or len(self._text) >= limit + _RUN else None

    def _ends(self, mark: str, begin: int, end: int) -> bool:
        after = self._text[end] if end < len(self._text) else " "
        return _flanks(mark, outside=after, inside=self._previous(begin))


_PARTNERS = {1: (1, 3), 2: (2, 3), 3: (3,)}
"""Length of an opening run → lengths of runs that close it; one of three closes an inner and an outer span."""


def _flanks(mark: str, *, outside: str, inside: str) -> bool:
    if inside.isspace():
        return False
    if mark == "_" and outside.isalnum():
        return False  # snake_case
    return inside.isalnum() or outside.isspace() or not outside.isalnum()


def _run_of(pattern: re.Pattern[str], text: str, at: int) -> str:
    found = pattern.match(text, at)
    return found.group() if found else ""
