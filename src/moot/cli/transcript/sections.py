"""The sections that a run is drawn in: text, reasoning, tool calls and notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from moot.cli.terminal.look import Look, Tidy, tidy, tidy_line
from moot.cli.terminal.text import BOLD, DIM, ITALIC, Line, Style, Wrap, expanded, width_of, wrapped, wrapped_hard
from moot.cli.transcript.tool_cards import Call, Folded, elapsed, spinner
from moot.plugins import Registry
from moot.types.tree import SUMMARY_TITLE

if TYPE_CHECKING:
    from moot.cli.transcript.markdown import Markdown

_DRAWING = Registry("moot.drawing", {"markdown": "moot.cli.transcript.markdown:Markdown"})
"""Import paths, loaded when the first answer is drawn, because these modules need large libraries."""
_REASONING_LINES = 3
"""Maximum number of lines shown while the model is reasoning."""


def preload() -> None:
    """Import the libraries that draw an answer, except those for tables and code."""
    _DRAWING.load("markdown")


class Piece(Protocol):
    """One section of a run, drawn as lines."""

    @property
    def kind(self) -> str:
        """The kind of section. A blank line separates sections of different kinds."""
        ...

    @property
    def over(self) -> bool:
        """True if the next `take` returns the last lines."""
        ...

    def take(self) -> list[Line]:
        """Return the lines finished since the last call."""
        ...

    def live(self, now: int) -> list[Line]:
        """Return the unfinished lines as they look at this time, in µs since the epoch (0 if unknown)."""
        ...

    def resize(self, look: Look) -> None:
        """Use another width from here on."""
        ...


class Text:
    """Text from the model."""

    kind = "text"

    def __init__(self, look: Look) -> None:
        self.over = False
        self._markdown: Markdown = _DRAWING.load("markdown")(look)

    def feed(self, text: str) -> None:
        self._markdown.feed(text)

    def end(self) -> None:
        if not self.over:
            self.over = True
            self._markdown.end()

    def take(self) -> list[Line]:
        return self._markdown.take()

    def live(self, now: int) -> list[Line]:
        return [] if self.over else self._markdown.live()

    def resize(self, look: Look) -> None:
        self._markdown.resize(look)


class _Whole:
    """A section whose lines are all complete from the start."""

    over = True

    def __init__(self, kind: str, lines: list[Line]) -> None:
        self.kind = kind
        self._lines = lines

    def take(self) -> list[Line]:
        lines, self._lines = self._lines, []
        return lines

    def live(self, now: int) -> list[Line]:
        return []

    def resize(self, look: Look) -> None:
        return


class Note(_Whole):
    """A short message about the run, wrapped to the width."""

    def __init__(self, look: Look, text: str, style: Style, *, kind: str = "note", margin: str = "") -> None:
        super().__init__(
            kind, wrapped([(tidy_line(look, text), style)], look.columns, [(margin, 0)] if margin else None, [(margin + "  ", 0)])
        )


class Typed(_Whole):
    """A prompt, exactly as typed."""

    def __init__(self, look: Look, text: str) -> None:
        sign = look.sign("› ", "> ")
        lines: list[Line] = []
        for line in tidy(look, text).strip("\n").split("\n"):
            lines += wrapped_hard([(expanded(line), BOLD)], look.columns, [("  " if lines else sign, BOLD)])
        super().__init__("typed", lines)


class Reasoning:
    """The model's reasoning: its last lines while it streams, and a one-line summary afterwards."""

    kind = "reasoning"

    def __init__(self, look: Look, started: int, remember: Callable[[Folded], None], more: str) -> None:
        self.over = False
        self._look = look
        self._started = started
        self._ended = 0
        self._tidy = Tidy(look)
        self._pieces: list[str] = []
        self._wrap = Wrap(look.columns, [("  ", 0)], [("  ", 0)])
        self._tail: list[Line] = []
        self._words = 0
        self._remember = remember
        self._more = more

    def feed(self, text: str) -> None:
        if not (text := self._tidy.feed(text)):
            return
        self._pieces.append(text)
        first, *others = text.split("\n")
        self._wrap.add(first, DIM | ITALIC)
        for line in others:
            self._wrap.newline()
            self._wrap.add(line, DIM | ITALIC)
        if self._wrap.taken:
            self._tail = [*self._tail, *self._wrap.taken][-_REASONING_LINES:]
            self._wrap.taken.clear()

    def end(self, at: int) -> None:
        if not self.over:
            self.over = True
            self._ended = at

    def take(self) -> list[Line]:
        text = "".join(self._pieces)
        if not self.over or not text.strip():
            return []
        self._pieces = []
        look = self._look
        length = self._ended - self._started if self._started and self._ended else 0
        title = "thought" + (f" for {elapsed(length)}" if length >= 100_000 else "")
        count = len(text.split())
        words = f"{look.sign('✻', '~')} {title} ({count:,} {'word' if count == 1 else 'words'})"
        words += f" {look.sign('·', '-')} {self._more}" if self._more else ""
        self._remember(Folded(0, title, lambda wide: _reasoning_text(wide, words, text)))
        return [[(look.cut(words, look.columns), DIM)]]

    def live(self, now: int) -> list[Line]:
        if self.over or not self._pieces:
            return []
        look = self._look
        copy = self._wrap.copy()
        copy.end()
        sign = spinner(look, now) if look.motion and now else look.sign("✻", "~")
        time = f" {elapsed(now - self._started)}" if now and self._started else ""
        lines = [line for line in (*self._tail, *copy.taken) if sum(width_of(text.strip()) for text, _ in line)]
        return [[(f"{sign} thinking{time}", DIM)], *lines[-_REASONING_LINES:]]

    def resize(self, look: Look) -> None:
        self._look = look
        self._wrap, self._tail = Wrap(look.columns, [("  ", 0)], [("  ", 0)]), []


def _reasoning_text(look: Look, title: str, text: str) -> str:
    rows = [row for line in text.strip("\n").split("\n") for row in wrapped([(line, DIM)], look.columns, [("  ", 0)], [("  ", 0)])]
    return "".join(look.painted(line) + "\n" for line in [[(title, DIM)], *rows])


_SUMMARY_LINES = 3


class Summary:
    """A divider with the first lines of a summary."""

    kind = "head"

    def __init__(self, look: Look, lines: Sequence[str], remember: Callable[[Folded], None]) -> None:
        self.over = True
        self._look = look
        self._lines = lines
        self._remember = remember

    def take(self) -> list[Line]:
        look, text = self._look, tidy(self._look, "\n".join(self._lines))
        title = f"{look.sign('──', '--')} {SUMMARY_TITLE}"
        left = len(self._lines) - _SUMMARY_LINES
        if left > 0:
            self._remember(Folded(0, SUMMARY_TITLE, lambda wide: _reasoning_text(wide, title, text)))
        more = f"  {look.sign('…', '...')} {left:,} more {'line' if left == 1 else 'lines'}"
        shown = [f"  {line}" for line in text.split("\n")[:_SUMMARY_LINES]]
        return [[(look.cut(line, look.columns), DIM)] for line in [title, *shown, *([more] if left > 0 else [])]]

    def live(self, now: int) -> list[Line]:
        return []

    def resize(self, look: Look) -> None:
        self._look = look


class _Calls:
    """A section for one or several tool calls."""

    kind = "call"

    def __init__(self, look: Look, remember: Callable[[Folded], None], reveal: Callable[[int], str]) -> None:
        self._look = look
        self._remember = remember
        self._reveal = reveal
        self._taken = False

    def resize(self, look: Look) -> None:
        self._look = look

    def _card(self, call: Call) -> list[Line]:
        lines, folded = call.lines(self._look, self._reveal(call.number))
        if folded:
            self._fold(call)
        return lines

    def _fold(self, call: Call) -> None:
        self._remember(Folded(call.number, tidy_line(self._look, call.view().title), call.whole))


class Card(_Calls):
    """One tool call, with the calls of its sub-agent inside. If `announces` is True, the start of each call is printed too."""

    def __init__(
        self, look: Look, call: Call, remember: Callable[[Folded], None], reveal: Callable[[int], str], *, announces: bool = False
    ) -> None:
        super().__init__(look, remember, reveal)
        self.call = call
        self._announces = announces
        self._announced = set[int]()

    @property
    def over(self) -> bool:
        return self.call.over and all(inner.over for _, inner in self.call.below() if isinstance(inner, Call))

    @property
    def taken(self) -> bool:
        """True if the finished card was printed; nothing can be added to it."""
        return self._taken

    def take(self) -> list[Line]:
        if self.over and not self._taken:
            self._taken = True
            return self._card(self.call)
        return self._announcements() if self._announces else []

    def _announcements(self) -> list[Line]:
        running = [(0, self.call), *((depth, inner) for depth, inner in self.call.below() if isinstance(inner, Call))]
        lines: list[Line] = []
        for depth, call in running:
            if call.state == "running" and call.number not in self._announced:
                self._announced.add(call.number)
                margin = "  " * depth
                title = self._look.cut(tidy_line(self._look, call.view().title), self._look.columns - 4 - len(margin))
                lines.append([(margin + self._look.sign("… ", "... "), DIM), (title, DIM)])
        return lines

    def live(self, now: int) -> list[Line]:
        return [] if self._taken else self.call.live(self._look, now)


class LateCard(Card):
    """A sub-agent's call that arrived after the sub-agent's card was printed. It is indented below a line with that card's title."""

    def __init__(self, look: Look, call: Call, remember: Callable[[Folded], None], reveal: Callable[[int], str], *, kind: str) -> None:
        super().__init__(look.resized(look.columns - 2), call, remember, reveal)
        self.kind = kind

    def take(self) -> list[Line]:
        return [[("  ", 0), *line] for line in super().take()]

    def live(self, now: int) -> list[Line]:
        return [[("  ", 0), *line] for line in super().live(now)]

    def resize(self, look: Look) -> None:
        super().resize(look.resized(look.columns - 2))


class Group(_Calls):
    """Consecutive calls of read-only tools, shown on one line."""

    def __init__(self, look: Look, remember: Callable[[Folded], None], reveal: Callable[[int], str]) -> None:
        super().__init__(look, remember, reveal)
        self.calls: list[Call] = []
        self.closed = False
        """True if no more calls can be added, because another section follows."""

    @property
    def over(self) -> bool:
        return self.closed and all(call.over for call in self.calls)

    def take(self) -> list[Line]:
        if not self.over or self._taken:
            return []
        self._taken = True
        folded = [call for call in self.calls if call.folds_away]
        lines = self._one_line(folded)
        for call in folded:
            self._fold(call)
        return [*lines, *(line for call in self.calls if not call.folds_away for line in self._card(call))]

    def _one_line(self, calls: list[Call]) -> list[Line]:
        if len(calls) < 2:
            return [call.head(self._look, 0) for call in calls]
        look = self._look
        titles: list[str] = []
        verb = ""
        for call in calls:
            title = tidy_line(look, call.view().title)
            first, _, rest = title.partition(" ")
            titles.append(f", {rest}" if rest and first == verb else f" {look.sign('·', '-')} {title}" if titles else title)
            verb = first
        head = calls[0].head(look, 0)
        return [[head[0], (look.cut("".join(titles), look.columns - 2), 0)]]

    def live(self, now: int) -> list[Line]:
        if self._taken:
            return []
        finished = [call for call in self.calls if call.folds_away]
        return [*self._one_line(finished), *(line for call in self.calls if not call.folds_away for line in call.live(self._look, now))]
