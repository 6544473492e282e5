"""Incremental parsing of Markdown that is still streaming, into complete blocks and the rest, which is still open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moot.markup.markdown import Block, References, add_definition, parse_blocks

HELD_ROWS = 50
"""Number of rows after which an unfinished table is shown."""
_OFTEN = 8000
"""Maximum size in characters of an open block that is parsed after each new line. Larger ones are parsed after growing by an eighth."""
_SHARE = 8
_LISTS = ("bullet_list", "ordered_list")
_UNDIVIDED = frozenset({"heading", "hr", "paragraph", "table"})
"""Kinds of blocks that can't contain a blank line."""
_MAY_CLOSE = re.compile(r"^ {0,3}(```|~~~)|[\r\0]", re.MULTILINE)
"""Matches text in a fenced code block that may end it, which only the parser can decide."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A top-level block, or a part of one: items of a list, lines of a code block, or rows of a table."""

    block: Block
    continued: bool = False
    """True if the block started in an earlier piece."""
    spaced: bool = False
    """True if a blank line comes before the piece."""
    number: int = 1
    """Number of the first item, for a list."""
    open: bool = False
    """True if more of the block may follow."""


@dataclass(frozen=True, slots=True)
class _Carried:
    """An open block whose start has already been returned."""

    kind: str
    markup: str = ""
    number: int = 1
    head: str = ""
    """Lines that are parsed again before the rest of the block: the opening fence, or the header of a table."""
    fence: Block | None = None
    """The block with the opening fence, if that is not indented; otherwise None."""


class MarkdownStream:
    """A splitter of growing text into pieces. The content of the pieces does not depend on how the text was split into chunks.

    A block is complete when the next one starts. Some parts of top-level blocks are complete earlier: finished items of a list, finished
    lines of a fenced code block, and rows of a table with more than 50 rows.
    """

    def __init__(self) -> None:
        self._text = ""
        self._references: References = {}
        self._carried: _Carried | None = None
        self._spaced = False
        self._checked = 0
        """Number of characters in complete lines when they were last parsed."""
        self._opened: Piece | None = None
        """The open block as it was last parsed, if its kind is in `_UNDIVIDED`."""

    @property
    def pending(self) -> str:
        """The text that has not been returned yet."""
        return self._text

    def feed(self, text: str) -> None:
        """Add text."""
        self._text += text

    def advance(self) -> tuple[list[Piece], Piece | None]:
        """Return the pieces that have become complete, and the open block with its complete lines."""
        end = self._text.rfind("\n") + 1
        grown = end - self._checked
        if grown <= 0 or (end > _OFTEN and grown < end // _SHARE):
            return [], None
        if self._opened is not None and not self._text[self._checked : end].strip(" \t\n"):
            self._checked = end
            return [], None
        settled = self._settled()
        if settled:
            self._drop(self._checked, None)
            end = self._text.rfind("\n") + 1
        self._checked, self._opened = end, None
        if code := self._more_code(self._text[:end]):
            self._drop(end, self._carried)
            return [code], None
        pieces = self._pieces(self._text[:end], self._carried, spaced=self._spaced)
        if not pieces:
            self._cut(self._text.count("\n"), None)
            return settled, None
        at = _first_open(pieces)
        closed, opened = [*settled, *pieces[:at]], pieces[at] if at == len(pieces) - 1 else None
        line, carried = pieces[at].block.lines[0], None if at else self._carried
        if opened is not None:
            done, opened, line, carried = self._divided(opened, line, carried)
            closed += done
        for piece in closed:
            self._define(piece.block)
        self._cut(line, carried)
        if opened is None:
            return closed, None
        self._opened = opened if opened.block.kind in _UNDIVIDED else None
        return closed, replace(opened, open=True)

    def rest(self) -> list[Piece]:
        """Return the pieces that have not been returned as complete, as if the text ended here."""
        complete, tail = self._text[: self._checked], self._text[self._checked :]
        if self._opened is not None and not tail.strip(" \t\n"):
            return [self._opened]
        if settled := self._settled():
            return [*settled, *self._pieces(tail, None, spaced=_ends_blank(complete))]
        code = self._more_code(self._text)
        return [code] if code else self._pieces(self._text, self._carried, spaced=self._spaced)

    def end(self) -> list[Piece]:
        """Return the last pieces."""
        pieces, self._text, self._checked, self._opened = self.rest(), "", 0, None
        return pieces

    def _settled(self) -> list[Piece]:
        """Return the open block if no further text can change it."""
        opened = self._opened
        if opened is None or (opened.block.kind in ("paragraph", "table") and not _ends_blank(self._text[: self._checked])):
            return []
        return [opened]

    def _more_code(self, text: str) -> Piece | None:
        """Return the next part of a fenced code block that cannot have ended yet, without parsing; None if it may have ended."""
        fence = self._carried and self._carried.fence
        if fence is None or _MAY_CLOSE.search(text):
            return None
        if not (last := text[text.rfind("\n") + 1 :]).strip(" \t"):
            text = text.removesuffix(last)  # the parser drops spaces after the last line
        count = text.count("\n") + (text != "" and not text.endswith("\n"))
        return Piece(Block("fence", fence.token.copy(content=text), (0, 1 + count)), continued=True, spaced=self._spaced)

    def _pieces(self, text: str, carried: _Carried | None, *, spaced: bool) -> list[Piece]:
        head = carried.head if carried else ""
        blocks = parse_blocks(head + text, self._references)
        pieces = [Piece(block, spaced=block.spaced, number=int(block.token.attrGet("start") or 1)) for block in blocks]
        if pieces:
            first = pieces[0]
            if carried and carried.kind == first.block.kind and carried.markup == first.block.token.markup:
                pieces[0] = replace(first, continued=True, spaced=spaced, number=carried.number)
            else:
                pieces[0] = replace(first, spaced=spaced or first.spaced)
        return pieces

    def _divided(self, piece: Piece, line: int, carried: _Carried | None) -> tuple[list[Piece], Piece | None, int, _Carried | None]:
        """Return the complete part of an open block, its open part, the line where the open part starts, and the state to continue with."""
        block, markup = piece.block, piece.block.token.markup
        if block.kind in _LISTS and len(block.children) > 1:
            *items, last = block.children
            number = piece.number + len(items)
            done = replace(piece, block=replace(block, children=items))
            opened = replace(piece, block=replace(block, children=[last]), continued=True, spaced=last.spaced, number=number)
            return [done], opened, last.lines[0], _Carried(block.kind, markup, number)
        if block.kind == "fence" and markup:
            if is_closed(block):
                return [piece], None, block.lines[1], None
            if block.token.content:
                head = self._lines(block.lines[0], 1)
                fence = block if head.startswith(markup) else None
                return [piece], None, block.lines[1], _Carried("fence", markup, head=head, fence=fence)
        if block.kind == "table" and len(block.children) > 1 and (piece.continued or len(block.children[1].children) >= HELD_ROWS):
            return [piece], None, block.lines[1], _Carried("table", head=self._lines(block.lines[0], 2))
        return [], piece, line, carried

    def _lines(self, first: int, count: int) -> str:
        head = self._carried.head if self._carried else ""
        return "".join(f"{line}\n" for line in (head + self._text).split("\n", first + count)[first : first + count])

    def _cut(self, line: int, carried: _Carried | None) -> None:
        """Drop the lines before the given one. Its number includes the lines that are parsed again (`_Carried.head`)."""
        line -= self._carried.head.count("\n") if self._carried else 0
        if line > 0:
            self._drop(len(self._text) - len(self._text.split("\n", line)[line]), carried)
        self._carried = carried

    def _drop(self, end: int, carried: _Carried | None) -> None:
        """Drop the first `end` characters, which must end at a line boundary."""
        self._spaced = _ends_blank(self._text[:end])
        self._text = self._text[end:]
        self._checked -= end
        self._carried = carried

    def _define(self, block: Block) -> None:
        add_definition(block.token, self._references)
        for child in block.children:
            self._define(child)


def _ends_blank(lines: str) -> bool:
    """Return True if the last of the complete lines is blank."""
    return not lines[lines.rfind("\n", 0, -1) + 1 :].strip()


def is_closed(fence: Block) -> bool:
    """Return True if a fenced code block has its closing fence."""
    first, end = fence.lines
    content = fence.token.content
    return end - first - 1 > content.count("\n") + (content != "" and not content.endswith("\n"))


def _first_open(pieces: Sequence[Piece]) -> int:
    last = len(pieces) - 1
    if last and pieces[last].block.kind == "paragraph" and pieces[last - 1].block.kind == "definition" and not pieces[last].spaced:
        return last - 1  # the paragraph may turn out to be the definition's title
    return last
