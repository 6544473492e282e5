"""What stands below a card's title: the text of an output, a diff, code; folded when it is long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moot.cli.screen.cells import expanded
from moot.cli.screen.diffs import diff_lines
from moot.cli.screen.highlight import Highlighter
from moot.cli.screen.look import Look, tidy
from moot.cli.screen.markdown import drawn
from moot.cli.screen.styles import DIM, PLAIN, Line
from moot.cli.screen.wrapping import wrapped_hard
from moot.types.tool import View

__all__ = ["Fold", "body", "whole_body"]

_INDENT: Line = [("  ", PLAIN)]
_LONG_LINE = 600
"""Characters of one line that a folded body shows."""
_ROWS = 3
"""Rows of the terminal that a line may take, on average."""


@dataclass(frozen=True, slots=True)
class Fold:
    """How much of a body is shown: its first and its last lines."""

    head: int
    tail: int


def body(view: View, look: Look, fold: Fold, more: str) -> tuple[list[Line], bool]:
    """The lines below a title, and whether some were left out; `more` says how to see them."""
    text = tidy(look, view.body).strip("\n")
    if not text:
        return [], False
    lines = text.split("\n")
    hidden = len(lines) - fold.head - fold.tail
    folded = hidden > 1  # a line that says "1 more line" could as well be that line
    first, last = (lines[: fold.head], lines[len(lines) - fold.tail :]) if folded else (lines, [])
    cut = any(len(line) > _LONG_LINE for line in (*first, *last))
    top, bottom = _drawn(view, look, _shortened(first)), _drawn(view, look, _shortened(last)) if last else []
    if len(top) + len(bottom) > _ROWS * (fold.head + fold.tail):
        bottom = (bottom or top)[-max(fold.tail, 1) :]
        top, cut = top[: _ROWS * fold.head], True
    if not folded and not cut:
        return top, False
    what = f"{hidden:,} more lines" if folded else f"{len(text):,} characters in all"
    return [*top, _folded(look, what, more), *bottom], True


def whole_body(view: View, look: Look) -> list[Line]:
    """All the lines below a title."""
    text = tidy(look, view.body).strip("\n")
    return _drawn(view, look, text) if text else []


def _shortened(lines: list[str]) -> str:
    return "\n".join(line if len(line) <= _LONG_LINE else line[:_LONG_LINE] + " ..." for line in lines)


def _folded(look: Look, what: str, more: str) -> Line:
    words = f"… {what}" + (f" · {more}" if more else "")
    return [*_INDENT, (look.sign(words, words.replace("…", "...").replace("·", "-")), DIM)]


def _drawn(view: View, look: Look, text: str) -> list[Line]:
    if view.language == "markdown":
        narrow = look.resized(look.columns - 2)
        return [[*_INDENT, *line] for line in drawn(narrow, text)]
    styled: Callable[[str], Line]
    if view.language == "diff":
        rows = diff_lines(text)
    else:
        styled = Highlighter(view.language).line if view.language not in ("", "text") else _plain
        rows = [styled(expanded(line)) for line in text.split("\n")]
    return [line for row in rows for line in wrapped_hard(row, look.columns, _INDENT)]


def _plain(line: str) -> Line:
    return [(line, DIM)]
