"""The keys of the REPL: one table for the bindings, `/keys` and the documentation, and the handler of key presses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, vi_insert_mode, vi_replace_mode
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from moot.cli.repl.composer import CommandCompletion, Composer
from moot.types.run import OnBusy
from moot.types.shortcuts import ACTIONS, ESCAPE_TWICE, LEADER, label

_FOCUS, _BLUR = Keys.F23, Keys.F24  # no keyboard has these keys


def register_sequences() -> None:
    """Add the sequences that prompt-toolkit lacks: focus reports, and Shift+Enter as some terminals send it."""
    ANSI_SEQUENCES["\x1b[I"], ANSI_SEQUENCES["\x1b[O"] = _FOCUS, _BLUR
    for sequence in ("\x1b[27;2;13~", "\x1b[13;2u"):
        ANSI_SEQUENCES[sequence] = Keys.ControlJ


def table(chords: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return the keys and their descriptions."""
    more = {"newline": ("\\ at the end",)}
    rows = [(", ".join((*map(label, chords[name]), *more.get(name, ()))), words) for name, (_, words) in ACTIONS.items()]
    return [(keys, words) for keys, words in rows if keys]


def leader_hint(chords: Mapping[str, Sequence[str]]) -> str:
    """Return the second keys after Ctrl+X, in one line."""
    seconds = [(chord.removeprefix(f"{LEADER} "), name) for name, own in chords.items() for chord in own if chord.startswith(f"{LEADER} ")]
    return f"{label(LEADER)}: {' · '.join(f'{key} {name}' for key, name in seconds)}"


_NAMES = {"esc": "escape", "del": "delete", "space": " "}
_MERGED = frozenset("mijh")
"""Letters that a terminal sends as another key if Ctrl is pressed."""


def _sequences(chord: str) -> list[tuple[str, ...]]:
    """Return the key sequences of a chord, as prompt-toolkit names them. After Ctrl+X, Ctrl may stay pressed."""
    first, _, second = chord.partition(" ")
    if second:
        return [(second,), *([(f"c-{second}",)] if second not in _MERGED and second.isalpha() else [])]
    *modifiers, key = first.split("+")
    name = _NAMES.get(key, key)
    name = f"c-{'@' if key == 'space' else name}" if "ctrl" in modifiers else f"s-{name}" if "shift" in modifiers else name
    return [("escape", name) if "alt" in modifiers else (name,)]


def bindings(actions: KeyHandler, composer: Composer, chords: Mapping[str, Sequence[str]]) -> KeyBindings:
    """Return the bindings of the composer. prompt-toolkit's Emacs or Vi bindings apply to all other keys."""
    keys = KeyBindings()
    leading = Condition(lambda: actions.leading)
    typing = vi_insert_mode | vi_replace_mode  # there, Esc leaves the mode
    for name, own in chords.items():
        for chord in own:
            if chord == ESCAPE_TWICE:  # the handler of Esc recognizes it
                continue
            when = leading if chord.startswith(f"{LEADER} ") else ~leading & ~typing if chord == "esc" else ~leading
            for sequence in _sequences(chord):
                keys.add(*sequence, filter=when)(partial(actions.press, name))

    @keys.add("c-x", filter=~leading, eager=True)
    def _(event: KeyPressEvent) -> None:
        actions.leading = True

    @keys.add(Keys.Any, filter=leading)
    @keys.add("escape", filter=leading)
    @keys.add("c-c", filter=leading)
    def _(event: KeyPressEvent) -> None:
        actions.leading = False

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        composer.paste(event.data)

    @keys.add(_FOCUS)
    def _(event: KeyPressEvent) -> None:
        actions.focused = True

    @keys.add(_BLUR)
    def _(event: KeyPressEvent) -> None:
        actions.focused = False

    return keys


EXIT_SECONDS = 2.0
"""Time within which a second Ctrl+C exits."""
REWIND_SECONDS = 1.0
"""Time within which a second Esc opens the list of prompts to rewind to."""


class ReplActions(Protocol):
    """Actions of the REPL other than editing text."""

    @property
    def queued(self) -> int:
        """Return the number of queued prompts."""
        ...

    @property
    def busy(self) -> bool: ...

    def send(self, text: str, on_busy: OnBusy) -> None: ...

    def do(self, name: str) -> None:
        """Run an action of `ReplScreen` by name, such as interrupt, edit_queued or next_mode."""


class KeyHandler:
    """Handles key presses in the composer."""

    def __init__(self, composer: Composer, actions: ReplActions, chords: Mapping[str, Sequence[str]]) -> None:
        self._rewinds = ESCAPE_TWICE in chords["rewind"]
        self.leading = False
        """True after Ctrl+X, until the second key is pressed."""
        self.focused: bool | None = None
        """True if the terminal is focused; None if it does not report that."""
        self.note = ""
        self._composer, self._actions = composer, actions
        composer.on_text_changed.add_handler(self._forget_note)
        composer.on_paste_removed = lambda: self._show("Pasted text removed. Press Ctrl+_ to restore it.")
        self.stash = ""
        """Text set aside with Ctrl+C."""
        self._pressed_at = 0.0
        """Time of the first Ctrl+C; 0 if there was none."""
        self._escaped_at = 0.0
        """Time of an Esc that had nothing to stop; 0 if another key was pressed since."""
        self._handlers: dict[str, Callable[[], object]] = {
            "enter": self._enter,
            "steer": lambda: self._send("steer"),
            "newline": lambda: composer.newline(copy_margin=False),
            "stop": self._stop,
            "cancel": self._cancel,
            "end": lambda: composer.delete() if composer.text else actions.do("leave"),
            "up": self._up,
            "down": self._down,
            "delete": self._delete,
            "complete": lambda: (
                composer.complete_next()
                if composer.complete_state is not None
                else composer.start_completion(select_first=False, insert_common_part=True)
            ),
        }

    def press(self, name: str, event: KeyPressEvent) -> None:
        """Run the action for a pressed key."""
        self.leading = False
        self.act(name)

    def act(self, name: str) -> None:
        """Run the action with this name in the table."""
        if name != "cancel":
            self.note = ""
        if name != "stop":
            self._escaped_at = 0.0
        handler = self._handlers.get(name)
        handler() if handler is not None else self._actions.do(name)

    def _show(self, note: str) -> None:
        self.note = note

    def _forget_note(self, changed: Buffer) -> None:
        self.note, self._escaped_at = "", 0.0

    def tick(self) -> bool:
        """Forget the first Ctrl+C after a while. Return True if that changed the screen."""
        if not self._pressed_at or time.monotonic() - self._pressed_at < EXIT_SECONDS:
            return False
        self._pressed_at, self.note = 0.0, ""
        return True

    def _enter(self) -> None:
        composer = self._composer
        if (chosen := composer.highlighted()) is not None:
            is_typed = composer.text == f"/{chosen.text}"
            composer.apply_completion(chosen)
            if isinstance(chosen, CommandCompletion) and chosen.needs_more and not is_typed:
                composer.insert_text(" ")
            elif isinstance(chosen, CommandCompletion):
                self._send("queue")
        elif composer.document.current_line_before_cursor.endswith("\\") and composer.document.is_cursor_at_the_end_of_line:
            composer.delete_before_cursor()
            composer.newline(copy_margin=False)
        else:
            self._send("queue")

    def _send(self, on_busy: OnBusy) -> None:
        if self._composer.text.strip():
            self._actions.send(self._composer.take(), on_busy)

    def _stop(self) -> None:
        if self._composer.complete_state is not None:
            self._composer.cancel_completion()
        elif self._escaped_at and time.monotonic() - self._escaped_at < REWIND_SECONDS:
            self._escaped_at = 0.0
            self._actions.do("rewind")
        else:
            is_idle = self._rewinds and not (self._composer.text or self._actions.busy or self._actions.queued)
            self._escaped_at = time.monotonic() if is_idle else 0.0
            self._actions.do("interrupt")

    def _cancel(self) -> None:
        if self._composer.text:
            self.stash = self._composer.full_text()
            self._composer.replace("")
            self._actions.do("cancel_edit")
            self.note = "Draft set aside. Press Up to restore it."
        elif self._pressed_at and time.monotonic() - self._pressed_at < EXIT_SECONDS:
            self._actions.do("exit")
        else:
            self._pressed_at = time.monotonic()
            self.note = "Stopping. Press Ctrl+C again to exit." if self._actions.busy else "Press Ctrl+C again to exit."
            self._actions.do("interrupt")

    def _up(self) -> None:
        composer = self._composer
        if composer.text or composer.complete_state is not None:
            composer.auto_up()
        elif self._actions.queued:
            self._actions.do("edit_queued")
        elif self.stash:
            composer.replace(self.stash)
            self.stash = ""
        else:
            composer.auto_up()

    def _down(self) -> None:
        composer, state = self._composer, self._composer.complete_state
        if state is not None and state.complete_index is None and composer.highlighted() is not None:
            composer.complete_next()  # select the entry that is highlighted already
        composer.auto_down()

    def _delete(self) -> None:
        if self._composer.text:
            self._composer.delete()
        elif self._actions.queued:
            self._actions.do("drop_queued")
