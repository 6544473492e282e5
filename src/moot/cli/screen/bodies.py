"""The body of a tool card: an output, a diff or code, folded when it is long."""

from __future__ import annotations

from dataclasses import dataclass

from moot.cli.screen.cells import expanded
from moot.cli.screen.diffs import diff_lines
from moot.cli.screen.look import Look, tidy
from moot.cli.screen.styles import DIM, PLAIN, Line
from moot.cli.screen.wrapping import wrapped_hard
from moot.plugins import Registry
from moot.types.tool import View

__all__ = ["Fold", "body", "whole_body"]

_INDENT: Line = [("  ", PLAIN)]
_LONG_LINE = 600
"""Characters of one line shown in a folded body."""
_ROWS = 3
"""Terminal rows that a line may take on average."""


_DRAWING = Registry("moot.drawing", {"code": "moot.cli.screen.code:highlighted", "markdown": "moot.cli.screen.markdown:draw_markdown"})
"""Imports of large libraries, made when something is drawn with them."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The number of lines shown at the start and the end of a body."""

    head: int
    tail: int


def body(view: View, look: Look, fold: Fold, more: str) -> tuple[list[Line], bool]:
    """Return the lines of the body, and whether some were left out. `more` tells the user how to see them."""
    text = tidy(look, view.body).strip("\n")
    if not text:
        return [], False
    lines = text.split("\n")
    hidden = len(lines) - fold.head - fold.tail
    folded = hidden > 1  # a line that says "1 more line" takes as much room as that line
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
    """Return all lines of the body."""
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
        return [[*_INDENT, *line] for line in _DRAWING.load("markdown")(narrow, text)]
    if view.language == "diff":
        rows = diff_lines(text)
    elif view.language in ("", "text"):
        rows = [[(expanded(line), DIM)] for line in text.split("\n")]
    else:
        rows = _DRAWING.load("code")(text, view.language)
    return [line for row in rows for line in wrapped_hard(row, look.columns, _INDENT)]
