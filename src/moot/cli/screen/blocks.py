"""Markdown as it streams, to lines: which line belongs to which paragraph, list, quote, code or table.

A line of the text is held back until its beginning says what it is (`telling`), then its words flow on as they come. CommonMark with the
tables and task lists of GFM, without what a stream can't have: a line of `=` or `-` below a paragraph does not make it a heading
after the fact. Line breaks stay line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.cli.screen.cells import width_of
from moot.cli.screen.leaves import Code, Flow, Leaf
from moot.cli.screen.look import Look
from moot.cli.screen.styles import BOLD, DIM, HEADING, UNDERLINE, WARNING, Line
from moot.cli.screen.tables import Table, is_ruler
from moot.cli.screen.telling import Container, Told, decided, inside, tell

__all__ = ["Blocks"]

_SLICE = 4000
"""A longer line of code comes in slices."""
_APART = frozenset({"heading", "rule", "code", "table"})
"""Kinds with a blank line around them, whether or not the text has one."""
_TASK = re.compile(r"\[([ xX])\](?: +|$)")
_STATE = ("_line", "_flowing", "_sliced", "_blank", "_containers", "_shown", "_kind", "_last", "_fence", "_header")


class Blocks:
    """One Markdown document. `taken` has the lines that are finished; whoever reads them empties it."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._line = ""
        """Of the line that is not told yet."""
        self._flowing = False
        """The line was told, and its words go straight to the paragraph."""
        self._sliced = False
        """The line is code, and its beginning was given out."""
        self._blank = False
        """A blank line came since."""
        self._containers: tuple[Container, ...] = ()
        self._shown = 0
        """How many of the containers have shown their mark."""
        self._leaf: Leaf | None = None
        self._kind = ""
        """What the open leaf is: text, heading, code, indented, table; empty = none is open."""
        self._last = ""
        """What the last leaf was."""
        self._fence = ""
        self._header: Told | None = None
        """A row that is a table's header, if the next line is its ruler."""
        self.taken: list[Line] = []

    def copy(self) -> Blocks:
        """The same place in the document, to be gone on with apart; without what is finished."""
        twin = Blocks(self._look)
        for name in _STATE:
            setattr(twin, name, getattr(self, name))
        twin._leaf = self._leaf.copy() if self._leaf else None
        return twin

    def feed(self, text: str) -> None:
        """More of the document."""
        first, *others = text.split("\n")
        self._more(first)
        for piece in others:
            self._newline()
            self._more(piece)
        self._gather()

    def end(self) -> None:
        """The document is over: all of it is finished."""
        if self._line:
            self._newline()
        self._settle_header()
        self._close()
        self._drop(0)

    def resize(self, look: Look) -> None:
        """What is finished from here on fits another width."""
        self._look = look
        if self._leaf is not None:
            self._leaf.resize(look)

    # ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _more(self, piece: str) -> None:
        if not piece:
            return
        if self._flowing and isinstance(self._leaf, Flow):
            self._leaf.feed(piece.replace("\t", "    "))
            return
        self._line += piece
        if self._fence:
            self._slice()
        elif decided(self._line.replace("\t", "    "), ruler=self._header is not None):
            self._take(whole=False)
            self._flowing = True

    def _newline(self) -> None:
        if self._flowing:
            self._flowing = False
        elif self._fence:
            self._code_line()
        else:
            self._take(whole=True)

    def _take(self, *, whole: bool) -> None:
        line, self._line = self._line.replace("\t", "    "), ""
        told = tell(line, self._containers, whole=whole, paragraph=self._kind == "text" and not self._blank)
        if self._header is not None:
            header = self._header
            if told.kind == "row" and not told.added and told.kept == len(self._containers) and is_ruler(told.text):
                self._header = None
                self._begin_table(header, told.text)
                return
            self._settle_header()
            told = tell(line, self._containers, whole=whole, paragraph=self._kind == "text" and not self._blank)
        self._apply(told)

    def _apply(self, told: Told) -> None:
        match told.kind:
            case "blank":
                self._blank_line(told)
            case "text":
                self._text(told)
            case "heading":
                self._heading(told)
            case "rule":
                self._stand(told, "rule")
                width = self._look.columns - sum(width_of(text) for text, _ in self._indent())
                self.taken.append([*self._indent(), (self._look.sign("─", "-") * width, DIM)])
                self._kind = ""
            case "fence":
                self._begin_code(told)
            case "row":
                self._row(told)
            case "indented":
                if self._kind != "indented" or not self._same(told):
                    self._stand(told, "code")
                    self._leaf, self._kind = Code(self._look, self._indent(), ""), "indented"
                elif self._blank:
                    self._code().row("")
                self._blank = False
                self._code().row(told.text)

    def _same(self, told: Told) -> bool:
        return not told.added and told.kept == len(self._containers)

    # ── leaves ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _blank_line(self, told: Told) -> None:
        if self._kind in ("text", "heading", "table"):
            self._close()
        if told.added or told.kept < len(self._containers):
            self._close()
            self._enter(told)
        self._blank = self._blank or not told.added

    def _text(self, told: Told) -> None:
        if self._kind == "text" and self._same(told) and not self._blank and isinstance(self._leaf, Flow):
            self._leaf.feed("\n" + told.text)
            return
        self._close()
        self._enter(told)
        text = told.text
        task = _TASK.match(text) if told.added and told.added[-1].mark else None
        first = self._opening("text", task=task[1] if task else "")
        self._leaf, self._kind = Flow(self._look, first, self._indent()), "text"
        self._leaf.feed(text[task.end() :] if task else text)

    def _heading(self, told: Told) -> None:
        self._close()
        self._enter(told)
        first = self._opening("heading")
        level = len(told.mark)
        if not self._look.colour:
            first = [*first, (told.mark + " ", 0)]
        style = BOLD | (HEADING if level < 3 else 0) | (UNDERLINE if level == 1 else 0)
        self._leaf, self._kind = Flow(self._look, first, self._indent(), style), "heading"
        self._leaf.feed(told.text)

    def _stand(self, told: Told, kind: str) -> None:
        """Makes room for what has its lines for itself; the mark of an item that begins with it stands alone."""
        self._close()
        self._enter(told)
        waits = self._shown < len(self._containers)
        first = self._opening(kind)
        if waits and self._look.painted(first):
            self.taken.append(first)

    def _begin_code(self, told: Told) -> None:
        self._stand(told, "code")
        code = Code(self._look, self._indent(), told.language.lower())
        code.fence(told.text)
        self._leaf, self._kind, self._fence = code, "code", told.mark

    def _code(self) -> Code:
        assert isinstance(self._leaf, Code)
        return self._leaf

    def _slice(self) -> None:
        while len(self._line) > _SLICE:
            self._code().row(self._bare(self._line[:_SLICE]))
            self._line = self._line[_SLICE:]
            self._sliced = True

    def _code_line(self) -> None:
        line, self._line = self._line, ""
        if self._sliced:
            self._sliced = False
            self._code().row(line)
            return
        bare = self._bare(line)
        mark = bare.strip()
        quotes = sum(not one.mark for one in self._containers)
        if quotes and inside(line, [one for one in self._containers if not one.mark])[0] < quotes:
            self._close()  # the quote is over, and the code with it
            self._line = line
            self._newline()
        elif len(mark) >= len(self._fence) and not mark.strip(self._fence[0]):
            self._code().fence(bare)
            self._close()
        else:
            self._code().row(bare)

    def _bare(self, line: str) -> str:
        """A line of code without what its containers put before it, as far as it is there."""
        if self._sliced:
            return line
        for container in self._containers:
            if container.mark:
                indent = len(line) - len(line.lstrip(" "))
                line = line[min(container.content, indent) :]
            else:
                line = line[inside(line, [container])[1] :]
        return line

    def _row(self, told: Told) -> None:
        if isinstance(self._leaf, Table) and self._same(told) and not self._blank:
            self._leaf.row(told.text)
        else:
            self._header = told

    def _begin_table(self, header: Told, ruler: str) -> None:
        self._stand(header, "table")
        self._leaf, self._kind = Table(self._look, self._indent(), header.text, ruler), "table"

    def _settle_header(self) -> None:
        """What might have been a table's header is text after all."""
        if self._header is not None:
            header, self._header = self._header, None
            self._text(header)

    def _close(self) -> None:
        """The open leaf is over."""
        if self._leaf is not None:
            self._leaf.end()
            self._gather()
        self._leaf, self._kind, self._fence = None, "", ""

    def _gather(self) -> None:
        if self._leaf is not None and self._leaf.taken:
            self.taken += self._leaf.taken
            self._leaf.taken.clear()

    # ── containers ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _enter(self, told: Told) -> None:
        """Leaves the containers that a line does not stand in, and enters those that it opens."""
        self._drop(told.kept)
        self._containers += told.added

    def _drop(self, kept: int) -> None:
        if self._shown < len(self._containers) and kept < len(self._containers):
            self.taken.append(self._opening("text"))  # an item without any text
        self._containers = self._containers[:kept]
        self._shown = min(self._shown, kept)

    def _opening(self, kind: str, *, task: str = "") -> Line:
        """Puts a blank line where one belongs; what stands before the first line of the next leaf."""
        if self._last and (self._blank or kind in _APART or self._last in _APART):
            self.taken.append(self._before(self._containers[: self._shown]))
        first = self._before(self._containers[: self._shown])
        waiting = self._containers[self._shown :]
        for number, container in enumerate(waiting, self._shown):
            last = number + 1 == len(self._containers)
            first += self._mark(number, container, task if last else "")
        self._shown = len(self._containers)
        self._last, self._blank = kind, False
        return first

    def _indent(self) -> Line:
        return self._before(self._containers)

    def _before(self, containers: Sequence[Container]) -> Line:
        bar = (self._look.sign("│ ", "| "), DIM)
        return [(" " * _columns(one), 0) if one.mark else bar for one in containers]

    def _mark(self, number: int, container: Container, task: str) -> Line:
        if not container.mark:
            return [(self._look.sign("│ ", "| "), DIM)]
        depth = sum(bool(one.mark) for one in self._containers[:number])
        sign = container.mark if container.mark[0].isdigit() else self._look.sign("•◦▪"[depth % 3], "-")
        if task:
            sign = self._look.sign("☐" if task == " " else "☑", f"{sign} [{task.lower()}]")
        return [(f"{sign} ".ljust(_columns(container)), WARNING if task == " " else DIM if container.mark[0] in "-*+" else 0)]


def _columns(item: Container) -> int:
    return len(item.mark) + 1
