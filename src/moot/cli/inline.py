"""Small prompt-toolkit applications, drawn below the terminal's content and erased when they end."""

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
"""Seconds to wait after Esc for the rest of a key sequence. Longer delays make leaving feel slow."""


def application(
    layout: Layout,
    keys: KeyBindings,
    styles: Mapping[str, str],
    terminal: Vt100_Output,
) -> Application[Any]:
    """Return an application that draws on the given output without clearing the screen."""
    # Cursor position reports are not needed. A terminal that doesn't answer them causes a warning, a slow one stray input.
    terminal.enable_cpr = False
    result: Application[Any] = Application(
        layout=layout,
        key_bindings=keys,
        style=Style.from_dict(dict(styles)),
        erase_when_done=True,
        full_screen=False,
        mouse_support=False,
        input=create_input(sys.stdin),
        output=terminal,
    )
    result.ttimeoutlen = result.timeoutlen = ESCAPE_SECONDS
    return result


def depth(colour: bool) -> ColorDepth:
    """Return the depth for the terminal's sixteen colours, or for none."""
    return ColorDepth.DEPTH_4_BIT if colour else ColorDepth.DEPTH_1_BIT


def fragments(lines: Iterable[Sequence[tuple[str, str]]]) -> StyleAndTextTuples:
    """Convert lines of (class, text) pairs to prompt-toolkit fragments."""
    result: StyleAndTextTuples = []
    for number, line in enumerate(lines):
        if number:
            result.append(("", "\n"))
        result += [(f"class:{style}" if style else "", text) for style, text in line]
    return result


def bind(keys: KeyBindings, names: Sequence[str], act: Callable[[], None], *, when: Filter | bool = True, eager: bool = False) -> None:
    """Bind each of the keys to the callback."""

    def handle(_: KeyPressEvent) -> None:
        act()

    for name in names:
        keys.add(name, filter=when, eager=eager)(handle)


def bind_usual(keys: KeyBindings) -> None:
    """Bind the usual terminal keys: Ctrl+Z suspends, Ctrl+L redraws."""

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        event.app.renderer.erase()
