"""Draw untrusted Markdown while it streams: finished lines, which never change, and a preview of the unfinished rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from moot.cli.terminal.look import Look, Tidy, tidy, tidy_line
from moot.cli.terminal.text import (
    BOLD,
    DIM,
    HEADING,
    UNDERLINE,
    WARNING,
    Line,
    Style,
    expanded,
    line_width,
    narrowed,
    wrapped,
    wrapped_hard,
)
from moot.cli.transcript.markdown_text import inline_pieces, styled
from moot.cli.transcript.tables import TableCells, draw_table, natural_widths
from moot.markup.code import StreamHighlighter
from moot.markup.markdown import Block
from moot.markup.stream import HELD_ROWS, MarkdownStream, Piece, is_closed

_APART = frozenset({"heading", "hr", "fence", "code_block", "table"})
"""Blocks that always get a blank line around them."""
_CONTAINERS = frozenset({"blockquote", "bullet_list", "footnote_reference", "ordered_list"})
"""Blocks whose first parts can be finished before the block is complete."""
_REUSABLE = frozenset({"heading", "hr", "paragraph", "table"})
"""Blocks that look the same before and after they are complete."""
_LARGE = 8000
"""Maximum number of characters of an unfinished block. Of a larger block, only the end is shown, as plain text."""
_TAIL = 4000
_MAY_CHANGE = re.compile(r"[\[<>|&\\`]|://|www\.|@|\n\s*(=+|-+)\s*$")
"""Matches text that can change how earlier words of the same paragraph are drawn if Markdown's marks are kept."""


class Markdown:
    """A streamed Markdown text. Finished lines never change, and their words do not depend on how the text was split into chunks."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._tidy = Tidy(look)
        self._stream = MarkdownStream()
        self._state: _State = _State()
        self._lines: list[Line] = []
        self._printed = 0
        """Number of points in the open block whose lines have been printed. See `_Drawing.stable`."""
        self._printed_lines = 0
        """Number of printed lines of the open paragraph."""
        self._next_look: Look | None = None
        """The look to use for the next block, after a resize."""
        self._in_table = False
        """True if the block that `live` showed last is a table."""
        self._whole: tuple[Piece, _Drawing] | None = None
        """The drawing of the open block, if it can be reused when the block is complete."""
        self._live_key: tuple[str, Look, int, int] | None = None
        self._live_lines: list[Line] = []

    def feed(self, text: str) -> None:
        """Add text."""
        self._stream.feed(self._tidy.feed(text))

    def end(self) -> None:
        """Finish the text."""
        self._stream.feed(self._tidy.end())
        for piece in self._stream.end():
            self._finish(piece)

    def resize(self, look: Look) -> None:
        """Use another width from here on, or from the next block on if lines of the open paragraph have already been printed."""
        if self._printed_lines:
            self._next_look = look
        else:
            self._look = look

    def take(self) -> list[Line]:
        """Return the lines that have been finished since the last call."""
        closed, opened = self._stream.advance()
        for piece in closed:
            self._finish(piece)
        if opened is not None and opened.block.kind in _CONTAINERS:
            drawing = self._drawn(opened)
            if drawing.stable > self._printed:
                self._lines += drawing.lines[drawing.start(self._printed) : drawing.start(drawing.stable)]
                self._printed = drawing.stable
        elif not (self._look.colour or self._look.motion):
            # without colours and redrawing, print the complete lines of an open paragraph now
            rest = self._stream.rest()
            if len(rest) == 1 and rest[0].block.kind == "paragraph" and not _MAY_CHANGE.search(self._stream.pending):
                complete = self._drawn(rest[0]).lines[self._printed_lines : -1]
                self._lines += complete
                self._printed_lines += len(complete)
        lines, self._lines = self._lines, []
        return lines

    def live(self) -> list[Line]:
        """Return the unfinished rest as it would be drawn if the text ended here."""
        if len(self._stream.pending) > _LARGE:
            tail = tidy(self._look, self._stream.pending[-_TAIL:])
            return [line for one in tail.split("\n") for line in wrapped([(expanded(one), 0)], self._look.columns)]
        # rows of a table are shown only when they are complete
        rows = self._stream.pending.rpartition("\n")[0]
        key = (rows if self._in_table and not rows.endswith("\n") else self._stream.pending, self._look, self._printed, self._printed_lines)
        if key == self._live_key:
            return self._live_lines
        lines: list[Line] = []
        state = self._state
        printed, skipped = self._printed, self._printed_lines
        for piece in self._stream.rest():
            drawing = self._known(piece) if state is self._state else None
            if drawing is None:
                drawing = _Drawing(self._look, replace(state), piece, live=True)
                if state is self._state and piece.block.kind in _REUSABLE:
                    self._whole = piece, drawing
            lines += drawing.lines[max(drawing.start(printed), skipped) :]
            state, printed, skipped = drawing.state, 0, 0
        self._in_table = state.last == "table"
        self._live_key, self._live_lines = key, lines
        return lines

    def _drawn(self, piece: Piece) -> _Drawing:
        drawing = _Drawing(self._look, replace(self._state), piece)
        self._state.fences = drawing.state.fences
        return drawing

    def _finish(self, piece: Piece) -> None:
        drawing = self._known(piece) or _Drawing(self._look, self._state, piece)
        self._state, self._whole = drawing.state, None
        self._lines += drawing.lines[max(drawing.start(self._printed), self._printed_lines) :]
        self._printed = self._printed_lines = 0
        if self._next_look is not None:
            self._look, self._next_look = self._next_look, None
        self._state.fences = []

    def _known(self, piece: Piece) -> _Drawing | None:
        """Return the drawing of this piece that `live` has made for the same look, or None."""
        return self._whole[1] if self._whole and self._whole[0] is piece and self._whole[1].look is self._look else None


def draw_markdown(look: Look, text: str) -> list[Line]:
    """Return the lines of a complete Markdown text."""
    markdown = Markdown(look)
    markdown.feed(text)
    markdown.end()
    return markdown.take()


@dataclass(slots=True)
class _State:
    """State that is carried from one piece to the next. Copies share the highlighters."""

    last: str = ""
    """Kind of the leaf that was drawn last."""
    widths: list[int] = field(default_factory=list[int])
    """Natural widths of the columns of the open table."""
    code: StreamHighlighter = field(default_factory=partial(StreamHighlighter, ""))
    """Highlighter of the open top-level code block."""
    fences: list[StreamHighlighter] = field(default_factory=list[StreamHighlighter])
    """Highlighters of the code blocks inside the open block, in order."""


@dataclass(slots=True)
class _Container:
    """A list item, quote or footnote around the lines."""

    mark: Line
    """Text before its first line."""
    rest: Line
    """Text before its other lines."""
    shown: bool = False


class _Drawing:
    """The lines of one piece, with the blank line before it."""

    def __init__(self, look: Look, state: _State, piece: Piece, *, live: bool = False) -> None:
        self.lines: list[Line] = []
        self.stable = 0
        """Number of points whose lines will not change when more text arrives."""
        self.look = look
        self.state = state
        self._live = live
        self._points: list[int] = []
        """The number of lines up to each point, which is the end of a nested block or code line.
        How many points there are does not depend on the width.
        """
        self._containers: list[_Container] = []
        self._fences = 0
        block = piece.block
        if block.kind in ("bullet_list", "ordered_list"):
            self._list(block, piece.number, spaced=piece.spaced, is_open=piece.open)
        elif piece.continued and block.kind == "table":
            self._table(block, continued=True)
        elif piece.continued:
            self._fence(block, self.state.code, opening=False)
        else:
            self._gap(block.kind, spaced=piece.spaced)
            self._block(block, is_open=piece.open)

    def start(self, point: int) -> int:
        """Return the number of lines up to a point. Point 0 is the start."""
        return self._points[min(point, len(self._points)) - 1] if point and self._points else 0

    def _gap(self, kind: str, *, spaced: bool) -> None:
        if self.state.last and (spaced or kind in _APART or self.state.last in _APART):
            self.lines.append(narrowed(self._indent(shown=True), self.look.columns))

    # ── blocks ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _block(self, block: Block, *, is_open: bool) -> None:
        if is_open:
            self.stable = len(self._points)
        match block.kind:
            case "bullet_list" | "ordered_list":
                self._list(block, int(block.token.attrGet("start") or 1), spaced=False, is_open=is_open)
            case "blockquote":
                bar: Line = [(self.look.sign("│ ", "| "), DIM)]
                self._contain(_Container(bar, bar), block.children, is_open=is_open)
            case "footnote_reference":
                mark: Line = [(tidy_line(self.look, f"[^{block.token.meta['label']}]:") + " ", DIM)]
                self._contain(_Container(mark, [("  ", 0)]), block.children, is_open=is_open)
            case _:
                self._leaf(block, is_open=is_open)
                self.state.last = block.kind

    def _leaf(self, block: Block, *, is_open: bool) -> None:
        match block.kind:
            case "paragraph":
                self._paragraph(inline_pieces(self.look, block.inline))
            case "heading":
                level = int(block.token.tag[1:])
                style: Style = BOLD | (HEADING if level < 3 else 0) | (UNDERLINE if level == 1 else 0)
                mark: Line = [] if self.look.colour else [("#" * level + " ", 0)]
                self._paragraph([*mark, *inline_pieces(self.look, block.inline, style)])
            case "hr":
                self._alone()
                indent = narrowed(self._indent(), self.look.columns)
                self.lines.append([*indent, (self.look.sign("─", "-") * (self.look.columns - line_width(indent)), DIM)])
            case "fence" if self._containers and block.token.markup:
                self._nested_fence(block, is_open=is_open)
            case "fence" | "code_block":
                self._alone()
                self.state.code = StreamHighlighter(_language(block))
                self._fence(block, self.state.code)
            case "table":
                self._alone()
                self._table(block, continued=False)
            case "definition":
                meta = block.token.meta
                self._paragraph([(tidy_line(self.look, f"[{meta['label']}]: {meta['url']}"), DIM)])
            case _:
                self._paragraph([(tidy(self.look, block.token.content), 0)])

    def _paragraph(self, pieces: Line) -> None:
        first, rest = self._opening(), self._indent()
        line: Line = []
        for text, style in [*pieces, ("\n", 0)]:
            head, *others = text.split("\n")
            line.append((head, style))
            for other in others:
                self.lines += wrapped(line, self.look.columns, first, rest)
                first, line = rest, [(other, style)]

    # ── containers ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _list(self, block: Block, number: int, *, spaced: bool, is_open: bool) -> None:
        depth = sum(bool(one.rest) and one.rest[0][0].isspace() for one in self._containers)
        for at, item in enumerate(block.children):
            self._gap("", spaced=item.spaced if at else spaced)
            ordered = f"{number + at}{block.token.markup}" if block.kind == "ordered_list" else ""
            self._contain(self._item(item, ordered, depth), item.children, is_open=is_open and item is block.children[-1])
            self._points.append(len(self.lines))

    def _item(self, item: Block, ordered: str, depth: int) -> _Container:
        sign = ordered or self.look.sign("•◦▪"[depth % 3], "-")
        style = 0 if ordered else DIM
        box = next((token.content for child in item.children[:1] for token in child.inline[:1] if token.type == "html_inline"), "")
        if box:
            done = "checked=" in box
            style = DIM if done else WARNING
            sign = self.look.sign("☑" if done else "☐", f"{sign} [{'x' if done else ' '}]")
        rest = " " * (len(ordered or "-") + 1)
        return _Container([(f"{sign} ".ljust(len(rest)), style)], [(rest, 0)])

    def _contain(self, container: _Container, children: Sequence[Block], *, is_open: bool) -> None:
        self._containers.append(container)
        if is_open:
            self.stable = len(self._points)
        for at, child in enumerate(children):
            if at:
                self._gap(child.kind, spaced=child.spaced)
            self._block(child, is_open=is_open and at == len(children) - 1)
            self._points.append(len(self.lines))
        if not container.shown:
            self.lines.append(narrowed(self._opening(), self.look.columns))
            self.state.last = "paragraph"
        self._containers.pop()

    def _opening(self) -> Line:
        """Return the text before the first line of a block: the marks of containers that have not been shown yet, and the indent."""
        line = [piece for one in self._containers for piece in (one.rest if one.shown else one.mark)]
        for one in self._containers:
            one.shown = True
        return line

    def _indent(self, *, shown: bool = False) -> Line:
        return [piece for one in self._containers if one.shown or not shown for piece in one.rest]

    def _alone(self) -> None:
        """Put the list item's mark on its own line, if the block that follows cannot share a line with it."""
        if not all(one.shown for one in self._containers):
            mark = self._opening()
            if any(text.strip() for text, _ in mark):
                self.lines.append(narrowed(mark, self.look.columns))

    # ── code and tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _fence(self, block: Block, highlighter: StreamHighlighter, *, opening: bool = True) -> None:
        self._fence_mark(block, block.token.info, draw=opening)
        lines = self._source(block)
        found = [highlighter.peek(line) for line in lines] if self._live else highlighter.add(lines)
        self._code([styled(line) for line in found])
        self._fence_mark(block, "", draw=is_closed(block))

    def _nested_fence(self, block: Block, *, is_open: bool) -> None:
        self._alone()
        self._fence_mark(block, block.token.info, draw=True)
        lines = self._source(block)
        if self._fences == len(self.state.fences):
            self.state.fences = [*self.state.fences, StreamHighlighter(_language(block))]
        highlighter = self.state.fences[self._fences]
        self._fences += 1
        known = min(highlighter.count, len(lines)) if self._live else len(lines)
        found = [*highlighter.lines(lines[:known])[:known], *(highlighter.peek(line) for line in lines[known:])]
        for line in found:
            self._code([styled(line)])
            self._points.append(len(self.lines))
        if is_open:
            self.stable = len(self._points)
        self._fence_mark(block, "", draw=is_closed(block))

    def _source(self, block: Block) -> list[str]:
        content = block.token.content
        indent = "    " if block.kind == "code_block" else ""
        return [indent + expanded(tidy(self.look, line)) for line in content.removesuffix("\n").split("\n")] if content else []

    def _code(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self.lines += wrapped_hard(line, self.look.columns, self._indent())

    def _fence_mark(self, block: Block, info: str, *, draw: bool) -> None:
        """Add a fence line, but only on a terminal without colours to distinguish code from text."""
        if draw and block.token.markup and not self.look.colour:
            self.lines += wrapped_hard([(tidy_line(self.look, block.token.markup + info), DIM)], self.look.columns, self._indent())

    def _table(self, block: Block, *, continued: bool) -> None:
        head, *bodies = block.children
        header = [inline_pieces(self.look, cell.inline, BOLD) for cell in head.children[0].children]
        rows = [[inline_pieces(self.look, cell.inline) for cell in row.children] for body in bodies for row in body.children]
        alignment = [str(cell.token.attrGet("style") or "").rpartition(":")[2] for cell in head.children[0].children]
        if not continued:
            self.state.widths = natural_widths(TableCells(header, alignment, rows[:HELD_ROWS]))
        indent = narrowed(self._indent(), self.look.columns)
        cells = TableCells(header, alignment, rows)
        if rows or not continued:
            lines = draw_table(self.look, self.look.columns - line_width(indent), cells, self.state.widths, headed=not continued)
            self.lines += [[*indent, *line] for line in lines]


def _language(block: Block) -> str:
    return block.token.info.strip().partition(" ")[0] if block.kind == "fence" else ""
