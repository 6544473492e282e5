"""Tool calls drawn as cards: title, state, duration and output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.cli.terminal.look import Look, tidy, tidy_line
from moot.cli.terminal.text import BAD, BOLD, DIM, GOOD, PLAIN, WARNING, Line, expanded, width_of, wrapped, wrapped_hard
from moot.cli.transcript.diffs import Margin, diff_lines, margin_of
from moot.plugins import Registry
from moot.tools.views import doing, done, output_text, reads
from moot.types.canonical import Json, dumps
from moot.types.tool import View

_INDENT: Line = [("  ", PLAIN)]
_LONG_LINE = 600
"""Maximum number of characters to show of each line of a folded body."""
_ROWS = 3
"""Maximum number of terminal rows per line of a folded body, on average."""


_DRAWING = Registry(
    "moot.drawing", {"code": "moot.cli.transcript.markdown_text:highlighted", "markdown": "moot.cli.transcript.markdown:draw_markdown"}
)
"""Import paths of functions that need large libraries, loaded when something is first drawn with them."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The number of lines shown at the start and the end of a body."""

    head: int
    tail: int


def body(view: View, look: Look, fold: Fold, more: str) -> tuple[list[Line], bool]:
    """Return the lines of the body, and True if some were omitted. `more` tells the user how to see the omitted lines."""
    text = tidy(look, view.body).strip("\n")
    if not text:
        return [], False
    lines = text.split("\n")
    hidden = len(lines) - fold.head - fold.tail
    folded = hidden > 1  # a note about one hidden line would take as much room as the line
    first, last = (lines[: fold.head], lines[len(lines) - fold.tail :]) if folded else (lines, [])
    cut = any(len(line) > _LONG_LINE for line in (*first, *last))
    margin = _margin(view, look, text)
    top = _drawn(view, look, _shortened(first), margin.piece(0, len(first)) if margin else None)
    bottom = _drawn(view, look, _shortened(last), margin.piece(len(lines) - fold.tail) if margin else None) if last else []
    if len(top) + len(bottom) > _ROWS * (fold.head + fold.tail):
        bottom = (bottom or top)[-max(fold.tail, 1) :]
        top, cut = top[: _ROWS * fold.head], True
    if not folded and not cut:
        return top, False
    what = f"{hidden:,} more lines" if folded else f"{len(text):,} characters in all"
    words = f"… {what}" + (f" · {more}" if more else "")
    return [*top, [*_INDENT, (look.sign(words, words.replace("…", "...").replace("·", "-")), DIM)], *bottom], True


def whole_body(view: View, look: Look) -> list[Line]:
    """Return all lines of the body."""
    text = tidy(look, view.body).strip("\n")
    return _drawn(view, look, text, _margin(view, look, text)) if text else []


def _margin(view: View, look: Look, text: str) -> Margin | None:
    return margin_of(text, gap=look.sign("⋮", "...")) if view.language == "diff" else None


def _shortened(lines: list[str]) -> str:
    return "\n".join(line if len(line) <= _LONG_LINE else line[:_LONG_LINE] + " ..." for line in lines)


def _drawn(view: View, look: Look, text: str, margin: Margin | None) -> list[Line]:
    if view.language == "markdown":
        narrow = look.resized(look.columns - 2)
        return [[*_INDENT, *line] for line in _DRAWING.load("markdown")(narrow, text)]
    if view.language == "diff":
        rows = diff_lines(text, margin=margin)
    elif view.language in ("", "text"):
        rows = [[(expanded(line), DIM)] for line in text.split("\n")]
    else:
        rows = _DRAWING.load("code")(text, view.language)
    return [line for row in rows for line in wrapped_hard(row, look.columns, _INDENT)]


State: TypeAlias = Literal["input", "running", "asked", "done", "failed", "denied", "open"]

_SIGNS: dict[State, tuple[str, str, int]] = {
    "input": ("·", ".", DIM),
    "running": ("●", "*", WARNING),
    "asked": ("?", "?", WARNING | BOLD),
    "done": ("✓", "+", GOOD),
    "failed": ("✗", "x", BAD),
    "denied": ("⊘", "-", WARNING),
    "open": ("○", "o", WARNING),
}
_WORDS: dict[State, str] = {"failed": "failed", "denied": "denied", "open": "no outcome", "asked": "waiting for an answer"}
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINNER_PLAIN = "|/-\\"
_FRAMES = 10
"""Spinner frames per second."""

_FOLDS = {"diff": Fold(40, 8)}
_FOLDS_BY_TOOL = {"shell": Fold(4, 6)}
_FOLD = Fold(6, 2)
_LIVE_LINES = 3
"""Maximum number of output lines shown for a running call."""
_INNER_LINES = 6
"""Maximum number of lines shown for a sub-agent's calls and texts."""
_MEASURED_FROM = 100_000
"""Minimum duration to show, in µs."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Output that was not shown in full."""

    number: int
    """The number of the call, as in the hint next to it; 0 for reasoning."""
    title: str
    """Title of the call, safe to print."""
    draw: Callable[[Look], str]
    """Return the full text for a terminal, ending in a newline."""


@dataclass(slots=True)
class Call:
    """A tool call in its current state."""

    id: str
    number: int
    name: str
    arguments: Json = None
    original: Json = None
    """The model's arguments, if the user has replaced them."""
    characters: int = 0
    """Length of the arguments while they are streaming, in characters."""
    state: State = "input"
    output: Json = None
    value: Json = None
    reason: str = ""
    waited: bool = False
    """True if the approval request was never answered."""
    began: int = 0
    """Start of the call in µs since the epoch; 0 if unknown."""
    ended: int = 0
    views: dict[str, View] = field(default_factory=dict[str, View])
    inner: list[Call | str] = field(default_factory=list["Call | str"])
    """Calls and texts from the sub-agent that the call started."""

    @property
    def over(self) -> bool:
        """True if the call has its final state."""
        return self.state in ("done", "failed", "denied", "open")

    @property
    def folds_away(self) -> bool:
        """True if only the title of the finished call is shown."""
        return self.state == "done" and reads(self.name)

    def edit(self, arguments: Json) -> None:
        """Replace the model's arguments with those of the user. The call runs with the user's arguments."""
        self.original, self.arguments, self.reason = self.arguments, arguments, "edited by you"
        self.views.clear()

    def view(self) -> View:
        """Return the tool's description of the call."""
        which = "done" if self.state in ("done", "failed") else "doing"
        if which not in self.views:
            made = doing(self.name, self.arguments)
            if which == "done":
                made = done(self.name, self.arguments, self.output, value=self.value, error=self.state == "failed")
            self.views[which] = made
        return self.views[which]

    def lines(self, look: Look, more: str) -> tuple[list[Line], bool]:
        """Return the card of a finished call, and True if part of the card was folded."""
        view = self.view()
        inside, cut = self._inside(look, more)
        head = [self.head(look, 0), *self._original(look), *inside]
        if self.folds_away or self.state == "denied":
            return head, cut or (bool(view.body) and self.folds_away)
        fold = _FOLDS_BY_TOOL.get(self.name) or _FOLDS.get(view.language, _FOLD)
        below, folded = body(view, look, fold, more)
        return [*head, *below], folded or bool(inside)

    def whole(self, look: Look) -> str:
        """Return the card in full, as terminal text."""
        return "".join(look.painted(line) + "\n" for line in self._whole(look))

    def _whole(self, look: Look) -> list[Line]:
        narrow = look.resized(look.columns - 2)
        inside: list[Line] = []
        for inner in self.inner:
            inside += inner._whole(narrow) if isinstance(inner, Call) else wrapped([(tidy_line(look, inner), DIM)], narrow.columns)
        return [self.head(look, 0), *self._original(look), *map(_indented, inside), *whole_body(self.view(), look)]

    def _inside(self, look: Look, more: str) -> tuple[list[Line], bool]:
        """Return a line for each call and each text of the sub-agent, and True if some were omitted."""
        lines = [_inner_line(inner, look, depth, 0) for depth, inner in self.below()]
        if len(lines) <= _INNER_LINES + 1:
            return lines, False
        words = f"… {len(lines) - _INNER_LINES:,} more" + (f" · {more}" if more else "")
        return [*lines[:_INNER_LINES], [*_INDENT, (look.sign(words, words.replace("…", "...").replace("·", "-")), DIM)]], True

    def below(self, depth: int = 1) -> Iterator[tuple[int, Call | str]]:
        """Yield the calls and texts from the sub-agent and from its own sub-agents, each with its nesting depth."""
        for inner in self.inner:
            yield depth, inner
            if isinstance(inner, Call):
                yield from inner.below(depth + 1)

    def _original(self, look: Look) -> list[Line]:
        if self.original is None:
            return []
        title = doing(self.name, self.original).title
        if title == self.view().title:  # the difference is not in the title
            title = dumps(self.original).decode()
        words = f"instead of {tidy_line(look, title)}"
        return [[("  ", PLAIN), (look.cut(words, look.columns - 2), DIM)]]

    def live(self, look: Look, now: int) -> list[Line]:
        """Return the card of a running call; `now` is in µs since the epoch."""
        inside = list(self.below())[-_INNER_LINES:]
        lines = [self.head(look, now), *(_inner_line(inner, look, depth, now) for depth, inner in inside)]
        if self.state == "running" and self.output is not None:
            tail = output_text(self.output)[-1000:].rstrip("\n").split("\n")[-_LIVE_LINES:]
            lines += [[("  ", PLAIN), (look.cut(tidy_line(look, line), look.columns - 2), DIM)] for line in tail if line.strip()]
        return lines

    def head(self, look: Look, now: int) -> Line:
        """Return the title line."""
        fancy, plain, style = _SIGNS[self.state]
        sign = look.sign(fancy, plain)
        if self.state in ("input", "running") and look.motion and now:
            sign = spinner(look, now)
        view = View(self.name, f"{self.characters:,} characters" if self.characters else "") if self.state == "input" else self.view()
        length = (self.ended or now) - self.began if self.began and self.state not in ("input", "asked") else 0
        details = [
            tidy_line(look, view.detail),
            _WORDS["asked"] if self.waited else _WORDS.get(self.state, ""),
            tidy_line(look, self.reason),
            elapsed(length) if length >= _MEASURED_FROM else "",
        ]
        suffix = "".join(f" {look.sign('·', '-')} {word}" for word in details if word)
        room = look.columns - 2
        title = look.cut(tidy_line(look, view.title), max(room - width_of(suffix), room // 2))
        suffix = look.cut(suffix, room - width_of(title))
        return [(sign + " ", style), (title, BAD if self.state == "failed" else PLAIN), (suffix, DIM)]


def _inner_line(inner: Call | str, look: Look, depth: int, now: int) -> Line:
    margin = min(2 * depth, look.columns // 2)
    narrow = look.resized(look.columns - margin)
    line = inner.head(narrow, now) if isinstance(inner, Call) else [(look.cut(tidy_line(look, inner), narrow.columns), DIM)]
    return [(" " * margin, PLAIN), *line]


def _indented(line: Line) -> Line:
    return [*_INDENT, *line]


def elapsed(microseconds: int) -> str:
    """Format a duration: `0.4 s`, `12 s`, `3 min 05 s`."""
    tenths = microseconds // 100_000
    if tenths < 100:
        return f"{tenths / 10:.1f} s"
    seconds = tenths // 10
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


def spinner(look: Look, now: int) -> str:
    """Return the spinner frame for this time."""
    signs = look.sign(_SPINNER, _SPINNER_PLAIN)
    return signs[now * _FRAMES // 1_000_000 % len(signs)]
