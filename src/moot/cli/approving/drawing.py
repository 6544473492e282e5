"""A prompt as lines that fit a screen; what does not fit can be scrolled to. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from moot.cli.approving.prompting import Prompt
from moot.cli.approving.rows import Row, Spans, drawn, spelled
from moot.cli.screen.cells import width_of

__all__ = ["Glance", "draw"]

TYPED_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Glance:
    """A look at the prompt: how large the screen is, where in the body it stands, how much time is left, what was typed."""

    width: int
    rows: int
    top: int
    left: int | None
    typed: str


def draw(prompt: Prompt, glance: Glance) -> tuple[list[Spans], int]:
    """The lines, and the first line of the body that is among them."""
    width = max(glance.width, 8)
    head, body = drawn([prompt.title], width), drawn(prompt.body(), width)
    foot = _foot(prompt, glance, width)
    room = glance.rows - len(head) - len(foot) - 1
    if len(body) <= room:
        return [*head, *body, *foot], 0
    room = max(1, room - len(_where(0, room, len(body), width)))
    top = min(glance.top, len(body) - room)
    return [*head, *body[top : top + room], *_where(top, room, len(body), width), *foot], top


def _where(top: int, room: int, lines: int, width: int) -> list[Spans]:
    return drawn(
        [Row(f"lines {top + 1:{len(str(lines))}}-{top + room:{len(str(lines))}} of {lines}; PgDn: more", "warn", prose=True)], width
    )


def _foot(prompt: Prompt, glance: Glance, width: int) -> list[Spans]:
    rows: list[Row] = []
    if prompt.message:
        rows += [Row(line, "warn", indent=1, prose=True) for line in spelled(prompt.message)]
    if glance.typed:
        shown = " ".join(spelled(glance.typed.replace("\n", " ")))
        rows.append(Row(f"typed, and no answer: {shown[-TYPED_CHARACTERS:]}", "dim", indent=1))
    left = f" · expires in {glance.left // 60}:{glance.left % 60:02}" if glance.left is not None else ""
    if prompt.line is not None:
        more = " · arrows: other patterns" if len(prompt.line.choices) > 1 else ""
        return [*drawn([*rows, Row(f"Enter takes it · Esc goes back{more}{left}", "dim", indent=1, prose=True)], width)]
    return [
        *drawn(rows, width),
        *_keys(prompt.keys(), width),
        *drawn([Row(f"Esc leaves it waiting · Ctrl+C stops the run{left}", "dim", indent=1, prose=True)], width),
    ]


def _keys(keys: dict[str, str], width: int) -> list[Spans]:
    """`[y] once  [n] no`, as many on a line as fit."""
    lines: list[Spans] = []
    used = width
    for key, words in keys.items():
        text = f" {words}" if words else ""
        columns = width_of(text) + 5
        if used + columns > width:
            if columns > width:
                first, *rest = drawn([Row(f"[{key}]{text}", indent=1, prose=True)], width)
                lines += [first, *rest]
                used = width
                continue
            lines.append([])
            used = 0
        lines[-1] += [("", " "), ("key", f"[{key}]"), ("", f"{text} ")]
        used += columns
    return lines
