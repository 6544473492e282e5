"""Handling of key presses."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from moot.cli.repl.composer import Composer
from moot.types.run import OnBusy

__all__ = ["EXIT_SECONDS", "KeyHandler", "ReplActions"]

EXIT_SECONDS = 2.0
"""Time within which a second Ctrl+C exits."""


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
        ...


class KeyHandler:
    """Key presses while composing, with the interface `KeyActions`."""

    def __init__(self, composer: Composer, actions: ReplActions) -> None:
        self.leading = False
        self.focused: bool | None = None
        """True if the terminal is focused; None if it does not report that."""
        self.note = ""
        self._composer, self._actions = composer, actions
        self.stash = ""
        """Text put aside with Ctrl+C."""
        self._pressed_at = 0.0
        """Time of the first Ctrl+C; 0 if there was none."""
        self._handlers: dict[str, Callable[[], None]] = {
            "enter": self._enter,
            "steer": lambda: self._send("steer"),
            "newline": lambda: self._composer.newline(copy_margin=False),
            "stop": self._stop,
            "cancel": self._cancel,
            "end": self._end,
            "up": self._up,
            "down": self._composer.auto_down,
            "delete": self._delete,
            "complete": self._complete,
        }

    def act(self, name: str) -> None:
        if name != "cancel":
            self.note = ""
        handler = self._handlers.get(name)
        handler() if handler is not None else self._actions.do(name)

    def focus(self, has: bool) -> None:
        self.focused = has

    def tick(self) -> bool:
        """Forget the first Ctrl+C after a while. Return True if that changed the screen."""
        if not self._pressed_at or time.monotonic() - self._pressed_at < EXIT_SECONDS:
            return False
        self._pressed_at, self.note = 0.0, ""
        return True

    def _enter(self) -> None:
        composer = self._composer
        state = composer.complete_state
        if state is not None and state.current_completion is not None:
            composer.apply_completion(state.current_completion)
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
        else:
            self._actions.do("interrupt")

    def _cancel(self) -> None:
        if self._composer.text:
            self.stash = self._composer.full_text()
            self._composer.replace("")
            self._actions.do("cancel_edit")
            self.note = "Draft put aside. Press Up to restore it."
        elif self._pressed_at and time.monotonic() - self._pressed_at < EXIT_SECONDS:
            self._actions.do("exit")
        else:
            self._pressed_at = time.monotonic()
            self.note = "Stopping. Press Ctrl+C again to exit." if self._actions.busy else "Press Ctrl+C again to exit."
            self._actions.do("interrupt")

    def _end(self) -> None:
        if self._composer.text:
            self._composer.delete()
        else:
            self._actions.do("exit")

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

    def _delete(self) -> None:
        if self._composer.text:
            self._composer.delete()
        elif self._actions.queued:
            self._actions.do("drop_queued")

    def _complete(self) -> None:
        if self._composer.complete_state is not None:
            self._composer.complete_next()
        else:
            self._composer.start_completion(select_first=False, insert_common_part=True)
