"""What was found as lines of a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from moot.cli.screen.cells import cut, width_of
from moot.cli.welcome.finding import Found, Offered

__all__ = ["Line", "drawn", "listed", "wrapped"]

Line = tuple[str, str]
"""Text, and a style of `Lines.say`."""

WIDEST = 100
"""Columns; longer lines are hard to read."""
_PRIVATE = "No account, and nothing is sent before you choose. The model you choose is tried with one short question."


def drawn(found: Found, width: int) -> list[Line]:
    """The whole first screen, without the question's own line."""
    width = min(width - 1, WIDEST)
    lines: list[Line] = [*wrapped("moot: no model is chosen yet. What can be had here:", width, "bold"), ("", "")]
    lines += _offers(found.offered, width)
    notes: list[Line] = []
    if found.lacking:
        notes += wrapped(found.lacking, width, "dim")
    if found.agents:
        notes += wrapped(f"Also here: {', '.join(found.agents)}; moot run -a NAME. Each keeps its own model and login.", width, "dim")
    if notes:
        lines += [("", ""), *notes]
    lines += [("", ""), *wrapped(_question(found), width, ""), *wrapped(_PRIVATE, width, "dim")]
    return lines


def listed(names: Sequence[str], width: int) -> list[Line]:
    """Names with their numbers, as many on a line as there is room for."""
    numbered = [f"{number} {name}" for number, name in enumerate(names, 1)]
    column = max(map(width_of, numbered)) + 3
    each = max((min(width - 1, WIDEST) - 2) // column, 1)
    rows = [numbered[at : at + each] for at in range(0, len(numbered), each)]
    return [("  " + "".join(f"{name:<{column}}" for name in row).rstrip(), "") for row in rows]


def wrapped(text: str, width: int, style: str, indent: str = "") -> list[Line]:
    """The text in lines of at most so many columns."""
    room = max(width, 20)
    pieces = textwrap.wrap(text, room, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return [(cut(piece, room, mark="…"), style) for piece in pieces]


def _question(found: Found) -> str:
    first = f" Enter alone takes 1 ({found.offered[0].provider})." if found.offered else ""
    number = "Type a number, or paste" if found.offered else "Paste"
    return f"{number} an API key, and press Enter.{first} Esc, or s, decides later."


def _offers(offered: Sequence[Offered], width: int) -> Iterator[Line]:
    names = [one.provider for one in offered]
    models = [one.model or "its first model" for one in offered]
    name_width, model_width = max(map(width_of, names), default=0), max(map(width_of, models), default=0)
    details = max((width_of(one.detail) for one in offered), default=0)
    wide = 9 + name_width + model_width + details <= width
    for number, (one, model) in enumerate(zip(offered, models, strict=True), 1):
        name = one.provider + " " * (name_width - width_of(one.provider))
        if wide:
            yield f"{number:>3}  {name}  {model}{' ' * (model_width - width_of(model))}  {one.detail}", ""
        else:
            yield cut(f"{number:>3}  {one.provider}  {model}", width, mark="…"), ""
            yield from wrapped(one.detail, width, "dim", indent="     ")
