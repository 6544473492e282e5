"""Small prompt-toolkit applications: they stand below what is in the terminal already, and are gone when they are over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Filter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

__all__ = ["application", "bind", "bind_usual", "depth", "fragments"]

ESCAPE_SECONDS = 0.05
"""How long an Esc waits for the rest of a key; longer and leaving feels slow."""


def application(
    layout: Layout,
    keys: KeyBindings,
    styles: Mapping[str, str],
    paper: Vt100_Output,
) -> Application[Any]:
    """An application that draws on `paper`; the terminal's screen is never cleared."""
    # where the cursor stands is nothing we need; a terminal that does not answer would get a warning, a slow one typed rubbish
    paper.enable_cpr = False
    made: Application[Any] = Application(
        layout=layout,
        key_bindings=keys,
        style=Style.from_dict(dict(styles)),
        erase_when_done=True,
        full_screen=False,
        mouse_support=False,
        input=create_input(sys.stdin),
        output=paper,
    )
    made.ttimeoutlen = made.timeoutlen = ESCAPE_SECONDS
    return made


def depth(colour: bool) -> ColorDepth:
    """The terminal's own sixteen colours, or none."""
    return ColorDepth.DEPTH_4_BIT if colour else ColorDepth.DEPTH_1_BIT


def fragments(lines: Iterable[Sequence[tuple[str, str]]]) -> StyleAndTextTuples:
    """Lines of (class, text) as prompt-toolkit takes them."""
    made: StyleAndTextTuples = []
    for number, line in enumerate(lines):
        if number:
            made.append(("", "\n"))
        made += [(f"class:{style}" if style else "", text) for style, text in line]
    return made


def bind(keys: KeyBindings, names: Sequence[str], act: Callable[[], None], *, when: Filter | bool = True, eager: bool = False) -> None:
    """Has each of the keys do it."""

    def handle(_: KeyPressEvent) -> None:
        act()

    for name in names:
        keys.add(name, filter=when, eager=eager)(handle)


def bind_usual(keys: KeyBindings) -> None:
    """What every program on a terminal heeds: Ctrl+Z suspends, Ctrl+L draws again."""

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        event.app.renderer.erase()
