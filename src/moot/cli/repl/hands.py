"""What the keys do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from moot.cli.repl.composer import Composer
from moot.types.run import OnBusy

__all__ = ["LEAVING", "Deeds", "Hands"]

LEAVING = 2.0
"""Seconds within which a second Ctrl+C leaves."""


class Deeds(Protocol):
    """What can be done beside writing."""

    @property
    def queued(self) -> int:
        """Prompts that stand behind the live answer."""
        ...

    @property
    def answering(self) -> bool: ...

    def send(self, text: str, on_busy: OnBusy) -> None: ...

    def do(self, name: str) -> None:
        """By name: interrupt, take_back, drop, forget_edit, mode, model, editor and the others of `Desk`."""
        ...


class Hands:
    """Implements `keys.Acts`."""

    def __init__(self, composer: Composer, deeds: Deeds) -> None:
        self.leading = False
        self.focused: bool | None = None
        """None = the terminal does not tell."""
        self.note = ""
        self._composer, self._deeds = composer, deeds
        self.stash = ""
        """What Ctrl+C put aside."""
        self._pressed_at = 0.0
        """When Ctrl+C said that another one leaves; 0 = it did not."""
        self._own: dict[str, Callable[[], None]] = {
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
        """As `keys.Acts.act`."""
        if name != "cancel":
            self.note = ""
        own = self._own.get(name)
        own() if own is not None else self._deeds.do(name)

    def focus(self, has: bool) -> None:
        """As `keys.Acts.focus`."""
        self.focused = has

    def tick(self) -> bool:
        """Forgets a first Ctrl+C in time; whether something changed."""
        if not self._pressed_at or time.monotonic() - self._pressed_at < LEAVING:
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
            self._deeds.send(self._composer.take(), on_busy)

    def _stop(self) -> None:
        if self._composer.complete_state is not None:
            self._composer.cancel_completion()
        else:
            self._deeds.do("interrupt")

    def _cancel(self) -> None:
        if self._composer.text:
            self.stash = self._composer.whole()
            self._composer.put("")
            self._deeds.do("forget_edit")
            self.note = "put aside; Up brings it back"
        elif self._pressed_at and time.monotonic() - self._pressed_at < LEAVING:
            self._deeds.do("leave")
        else:
            self._pressed_at = time.monotonic()
            self.note = "stopping; Ctrl+C again leaves" if self._deeds.answering else "Ctrl+C again leaves"
            self._deeds.do("interrupt")

    def _end(self) -> None:
        if self._composer.text:
            self._composer.delete()
        else:
            self._deeds.do("leave")

    def _up(self) -> None:
        composer = self._composer
        if composer.text or composer.complete_state is not None:
            composer.auto_up()
        elif self._deeds.queued:
            self._deeds.do("take_back")
        elif self.stash:
            composer.put(self.stash)
            self.stash = ""
        else:
            composer.auto_up()

    def _delete(self) -> None:
        if self._composer.text:
            self._composer.delete()
        elif self._deeds.queued:
            self._deeds.do("drop")

    def _complete(self) -> None:
        if self._composer.complete_state is not None:
            self._composer.complete_next()
        else:
            self._composer.start_completion(select_first=False, insert_common_part=True)
