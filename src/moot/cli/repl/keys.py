"""The keys of the REPL: one table for the bindings, `/keys` and the documentation, and the handler of key presses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from moot.cli.repl.composer import CommandCompletion, Composer
from moot.types.run import OnBusy


@dataclass(frozen=True, slots=True)
class Key:
    """A row of the table."""

    shown: str
    description: str
    action: str
    keys: tuple[tuple[str, ...], ...]
    """Alternative key sequences, as prompt-toolkit names them."""


KEYS = (
    Key("Enter", "Send, or run the selected command; queue while an answer is running", "enter", (("enter",),)),
    Key("Alt+Enter, Ctrl+J, \\ at the end", "New line", "newline", (("escape", "enter"), ("c-j",))),
    Key("Esc", "Stop the answer; queued prompts return to the input line", "stop", (("escape",),)),
    Key("Esc Esc", "Rewind to an earlier prompt if nothing is typed and no answer is running", "stop", ()),
    Key("Ctrl+C", "Set the draft aside, stop, or (twice) exit", "cancel", (("c-c",),)),
    Key("Ctrl+D", "Exit if nothing is typed; asks if an answer is running", "end", (("c-d",),)),
    Key("Up", "Go back to the queued prompt, draft or history", "up", (("up",),)),
    Key("Down", "Go forward in the history", "down", (("down",),)),
    Key("Del", "Remove the queued prompt if nothing is typed", "delete", (("delete",),)),
    Key("Ctrl+R", "Search the history", "search", (("c-r",),)),
    Key("Tab", "Complete /commands and @files", "complete", (("tab",),)),
    Key("Shift+Tab", "Switch mode: ask, edits, plan", "next_mode", (("s-tab",),)),
    Key("F2", "Switch to the next recently used model", "next_model", (("f2",),)),
    Key("Ctrl+G", "Edit in $EDITOR", "editor", (("c-g",),)),
    Key("Ctrl+O", "Print folded output in full, last one first", "expand", (("c-o",),)),
    Key("Ctrl+L", "Redraw the screen", "redraw", (("c-l",),)),
    Key("Ctrl+Z", "Suspend; fg resumes", "suspend", (("c-z",),)),
)

LEADER = (
    Key("Ctrl+X E", "Edit in $EDITOR", "editor", (("e",), ("c-e",))),
    Key("Ctrl+X S", "Steer: add the text to the running answer", "steer", (("s",), ("c-s",))),
    Key("Ctrl+X N", "New conversation", "new", (("n",),)),
    Key("Ctrl+X M", "Choose a model", "models", (("m",),)),
    Key("Ctrl+X L", "Choose a conversation", "conversations", (("l",),)),
)
"""Second keys after Ctrl+X."""

_FOCUS, _BLUR = Keys.F23, Keys.F24  # no keyboard has these keys


def register_sequences() -> None:
    """Add the sequences that prompt-toolkit lacks: focus reports, and Shift+Enter as some terminals send it."""
    ANSI_SEQUENCES["\x1b[I"], ANSI_SEQUENCES["\x1b[O"] = _FOCUS, _BLUR
    for sequence in ("\x1b[27;2;13~", "\x1b[13;2u"):
        ANSI_SEQUENCES[sequence] = Keys.ControlJ


def table() -> list[tuple[str, str]]:
    """Return the keys and their descriptions."""
    return [(key.shown, key.description) for key in (*KEYS, *LEADER)]


def bindings(actions: KeyHandler, composer: Composer) -> KeyBindings:
    """Return the bindings of the composer. prompt-toolkit's Emacs bindings apply to all other keys."""
    keys = KeyBindings()
    leading = Condition(lambda: actions.leading)
    for key in (*LEADER, *KEYS):
        for sequence in key.keys:
            keys.add(*sequence, filter=leading if key in LEADER else ~leading)(partial(actions.press, key.action))

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

    def __init__(self, composer: Composer, actions: ReplActions) -> None:
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
            is_idle = not (self._composer.text or self._actions.busy or self._actions.queued)
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
