"""The keys: one table, from which the bindings, /help and the guide are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from moot.cli.repl.composer import Composer

__all__ = ["KEYS", "LEADER", "Acts", "Key", "bindings", "know_more_keys", "table"]


class Acts(Protocol):
    """What keys do."""

    leading: bool
    """Whether Ctrl+X was pressed and its second key is awaited."""

    def act(self, name: str) -> None:
        """Does what the table calls by this name."""
        ...

    def focus(self, has: bool) -> None:
        """The window has gained or lost the focus."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """A row of the table."""

    shown: str
    words: str
    act: str
    keys: tuple[tuple[str, ...], ...]
    """As prompt-toolkit names them; any of them."""


KEYS = (
    Key("Enter", "send; while an answer comes: queue behind it", "enter", (("enter",),)),
    Key("Alt+Enter, Ctrl+J, \\ at the end", "a new line", "newline", (("escape", "enter"), ("c-j",))),
    Key("Esc", "stop the answer; what was said is kept", "stop", (("escape",),)),
    Key("Ctrl+C", "put the draft aside, else stop the answer, else (twice) leave", "cancel", (("c-c",),)),
    Key("Ctrl+D", "leave, when nothing is written", "end", (("c-d",),)),
    Key("Up", "in the first line: the queued prompt, what was put aside, what was typed before", "up", (("up",),)),
    Key("Down", "forward again", "down", (("down",),)),
    Key("Del", "when nothing is written: drop the queued prompt", "delete", (("delete",),)),
    Key("Ctrl+R", "search what was typed before", "search", (("c-r",),)),
    Key("Tab", "complete /commands and @files", "complete", (("tab",),)),
    Key("Shift+Tab", "next mode: ask, edits, plan, auto", "mode", (("s-tab",),)),
    Key("F2", "next of the models used last", "model", (("f2",),)),
    Key("Ctrl+G", "write in $EDITOR", "editor", (("c-g",),)),
    Key("Ctrl+O", "print what was folded last whole; again: what was folded before it", "unfold", (("c-o",),)),
    Key("Ctrl+L", "draw again", "redraw", (("c-l",),)),
    Key("Ctrl+Z", "suspend; fg goes on", "suspend", (("c-z",),)),
)

LEADER = (
    Key("Ctrl+X E", "write in $EDITOR", "editor", (("e",), ("c-e",))),
    Key("Ctrl+X S", "say it to the answer that is coming (steer)", "steer", (("s",), ("c-s",))),
    Key("Ctrl+X N", "new conversation", "new", (("n",),)),
    Key("Ctrl+X M", "choose a model", "models", (("m",),)),
    Key("Ctrl+X L", "choose a conversation", "conversations", (("l",),)),
)
"""Behind Ctrl+X."""

_FOCUS, _BLUR = Keys.F23, Keys.F24  # no keyboard of today has them


def know_more_keys() -> None:
    """Teaches prompt-toolkit what it does not know: focus reports, and Shift+Enter where a terminal tells it from Enter."""
    ANSI_SEQUENCES["\x1b[I"], ANSI_SEQUENCES["\x1b[O"] = _FOCUS, _BLUR
    for sequence in ("\x1b[27;2;13~", "\x1b[13;2u"):
        ANSI_SEQUENCES[sequence] = Keys.ControlJ


def table() -> list[tuple[str, str]]:
    """Keys and what they do, for people."""
    return [(key.shown, key.words) for key in (*KEYS, *LEADER)]


def bindings(acts: Acts, composer: Composer) -> KeyBindings:
    """All bindings of the composer; prompt-toolkit's own of Emacs lie below them."""
    made = KeyBindings()
    leading = Condition(lambda: acts.leading)
    for key in LEADER:
        _bind(made, key, acts, leading)
    for key in KEYS:
        _bind(made, key, acts, ~leading)

    @made.add("c-x", filter=~leading, eager=True)
    def _(event: KeyPressEvent) -> None:
        acts.leading = True

    @made.add(Keys.Any, filter=leading)
    @made.add("escape", filter=leading)
    @made.add("c-c", filter=leading)
    def _(event: KeyPressEvent) -> None:
        acts.leading = False

    @made.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        composer.paste(event.data)

    @made.add("backspace", filter=Condition(lambda: bool(composer.paste_before_cursor())))
    def _(event: KeyPressEvent) -> None:
        composer.delete_before_cursor(len(composer.paste_before_cursor()))

    @made.add(_FOCUS)
    def _(event: KeyPressEvent) -> None:
        acts.focus(True)

    @made.add(_BLUR)
    def _(event: KeyPressEvent) -> None:
        acts.focus(False)

    return made


def _bind(made: KeyBindings, key: Key, acts: Acts, when: Filter) -> None:
    for keys in key.keys:
        made.add(*keys, filter=when)(_doing(acts, key.act))


def _doing(acts: Acts, name: str) -> Callable[[KeyPressEvent], None]:
    def do(event: KeyPressEvent) -> None:
        acts.leading = False
        acts.act(name)

    return do
