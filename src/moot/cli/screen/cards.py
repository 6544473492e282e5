"""Tool calls drawn as cards: title, state, duration and output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.cli.screen.bodies import Fold, body, whole_body
from moot.cli.screen.cells import width_of
from moot.cli.screen.look import Look, tidy_line
from moot.cli.screen.styles import BAD, BOLD, DIM, GOOD, PLAIN, WARNING, Line
from moot.cli.screen.views import doing, done, output_text, reads
from moot.types.canonical import Json, dumps
from moot.types.tool import View

__all__ = ["Call", "Folded", "State", "elapsed", "spinner"]

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
_WORDS: dict[State, str] = {"failed": "failed", "denied": "denied", "open": "no outcome", "asked": "waits for an answer"}
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINNER_PLAIN = "|/-\\"
_FRAMES = 10
"""Frames of the spinner per second."""

_FOLDS = {"diff": Fold(40, 8)}
_FOLDS_BY_TOOL = {"shell": Fold(4, 6)}
_FOLD = Fold(6, 2)
_LIVE_LINES = 3
"""Lines shown of a running call's output."""
_MEASURED_FROM = 100_000
"""µs; shorter durations are not shown."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Output that was not shown in full."""

    number: int
    """The number of the call, as in the hint next to it; 0 for reasoning."""
    title: str
    """Cleaned."""
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
    """The arguments of the model, if the user replaced them."""
    characters: int = 0
    """Length of the arguments while they stream."""
    state: State = "input"
    output: Json = None
    value: Json = None
    reason: str = ""
    waited: bool = False
    """The approval request was never answered."""
    began: int = 0
    """µs since the epoch; 0 if unknown."""
    ended: int = 0
    views: dict[str, View] = field(default_factory=dict[str, View])

    @property
    def over(self) -> bool:
        """True if the call has its final state."""
        return self.state in ("done", "failed", "denied", "open")

    @property
    def folds_away(self) -> bool:
        """True if only the title of the finished call is shown."""
        return self.state == "done" and reads(self.name)

    def edit(self, arguments: Json) -> None:
        """Replace the model's arguments with those of the user, which are the ones that run."""
        self.original, self.arguments, self.reason = self.arguments, arguments, "edited by you"
        self.views.clear()

    def view(self) -> View:
        """Return the tool's description of the call."""
        return self._view("done" if self.state in ("done", "failed") else "doing")

    def _view(self, which: str) -> View:
        if which not in self.views:
            made = doing(self.name, self.arguments)
            if which == "done":
                made = done(self.name, self.arguments, self.output, value=self.value, error=self.state == "failed")
            self.views[which] = made
        return self.views[which]

    def lines(self, look: Look, more: str) -> tuple[list[Line], bool]:
        """Return the card of a finished call, and whether some of it was folded."""
        view = self.view()
        head = [self.head(look, 0), *self._original(look)]
        if self.folds_away or self.state == "denied":
            return head, bool(view.body) and self.folds_away
        fold = _FOLDS_BY_TOOL.get(self.name) or _FOLDS.get(view.language, _FOLD)
        below, folded = body(view, look, fold, more)
        return [*head, *below], folded

    def whole(self, look: Look) -> str:
        """Return the card in full, as terminal text."""
        lines = [self.head(look, 0), *self._original(look), *whole_body(self.view(), look)]
        return "".join(look.painted(line) + "\n" for line in lines)

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
        lines = [self.head(look, now)]
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
        details = [
            tidy_line(look, view.detail),
            _WORDS["asked"] if self.waited else _WORDS.get(self.state, ""),
            tidy_line(look, self.reason),
            self._time(now),
        ]
        suffix = "".join(f" {look.sign('·', '-')} {word}" for word in details if word)
        room = look.columns - 2
        title = look.cut(tidy_line(look, view.title), max(room - width_of(suffix), room // 2))
        suffix = look.cut(suffix, room - width_of(title))
        return [(sign + " ", style), (title, BAD if self.state == "failed" else PLAIN), (suffix, DIM)]

    def _time(self, now: int) -> str:
        if not self.began or self.state in ("input", "asked"):
            return ""
        length = (self.ended or now) - self.began
        return elapsed(length) if length >= _MEASURED_FROM else ""


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
    """Return the frame of the spinner at that time."""
    signs = look.sign(_SPINNER, _SPINNER_PLAIN)
    return signs[now * _FRAMES // 1_000_000 % len(signs)]
