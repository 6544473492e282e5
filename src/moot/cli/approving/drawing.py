"""Layout of a prompt on the screen; a long body can be scrolled. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from moot.cli.approving.prompting import Prompt
from moot.cli.approving.rows import Row, Spans, render, visible_line, visible_lines
from moot.cli.picking.drawing import flow
from moot.cli.screen.cells import width_of

__all__ = ["Viewport", "draw"]

TYPED_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Viewport:
    """The visible part of a prompt."""

    width: int
    rows: int
    top: int
    """First visible line of the body."""
    left: int | None
    """Seconds until the approval expires; None if it never does."""
    typed: str
    """Text that was typed and is not an answer."""


def draw(prompt: Prompt, viewport: Viewport) -> tuple[list[Spans], int]:
    """Return the lines, and the index of the first visible line of the body."""
    width = max(viewport.width, 8)
    head, body = render([prompt.title], width), render(prompt.body(), width)
    foot = _foot(prompt, viewport, width)
    room = viewport.rows - len(head) - len(foot) - 1
    if len(body) <= room:
        return [*head, *body, *foot], 0
    room = max(1, room - len(_position(0, room, len(body), width)))
    top = min(viewport.top, len(body) - room)
    return [*head, *body[top : top + room], *_position(top, room, len(body), width), *foot], top


def _position(top: int, room: int, lines: int, width: int) -> list[Spans]:
    return render(
        [Row(f"lines {top + 1:{len(str(lines))}}-{top + room:{len(str(lines))}} of {lines}; PgDn: more", "warn", prose=True)], width
    )


def _foot(prompt: Prompt, viewport: Viewport, width: int) -> list[Spans]:
    rows: list[Row] = []
    if prompt.message:
        rows += [Row(line, "warn", indent=1, prose=True) for line in visible_lines(prompt.message)]
    if viewport.typed:
        shown = visible_line(viewport.typed)
        rows.append(Row(f"not an answer, kept for the composer: {shown[-TYPED_CHARACTERS:]}", "dim", indent=1))
    left = f" · expires in {viewport.left // 60}:{viewport.left % 60:02}" if viewport.left is not None else ""
    if prompt.input is not None:
        more = " · Up/Down other patterns" if len(prompt.input.suggestions) > 1 else ""
        return render([*rows, Row(f"Enter confirm · Esc back{more}{left}", "dim", indent=1, prose=True)], width)
    return [
        *render(rows, width),
        *_keys(prompt.keys(), width),
        *render([Row(f"Esc decide later · Ctrl+C stop the run{left}", "dim", indent=1, prose=True)], width),
    ]


def _keys(keys: dict[str, str], width: int) -> list[Spans]:
    """Return lines such as `[y] yes  [n] no`, with as many keys on a line as fit."""
    lines: list[Spans] = []
    short: list[Spans] = []
    for key, words in keys.items():
        text = f" {words}" if words else ""
        if width_of(text) + 5 <= width:
            short.append([("", " "), ("key", f"[{key}]"), ("", f"{text} ")])
        else:
            lines += [*flow(short, width, width_of), *render([Row(f"[{key}]{text}", indent=1, prose=True)], width)]
            short = []
    return lines + flow(short, width, width_of)
