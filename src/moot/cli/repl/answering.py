"""Display of the current run, from sending its prompt until everything is in the scrollback."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moot.cli.repl.paper import Scrollback, new_transcript
from moot.guard.terminal import clean
from moot.types.event import Event
from moot.types.run import Run

if TYPE_CHECKING:
    from moot.cli.screen.transcript import Transcript

__all__ = ["RunDisplay"]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_NO_SPINNER = "*"


class RunDisplay:
    """Display of one run at a time. Finished text goes to the scrollback."""

    def __init__(self, scrollback: Scrollback) -> None:
        self._scrollback = scrollback
        self._transcript: Transcript | None = None
        self._started = 0.0
        self._waiting_for = ""
        self._has_output = False

    @property
    def active(self) -> bool:
        """Return True if a run is shown."""
        return bool(self._started)

    @property
    def elapsed(self) -> float:
        """Return the seconds since the run started; 0 if none is shown."""
        return time.monotonic() - self._started if self._started else 0.0

    def resize(self, width: int) -> None:
        """Use a new number of columns. Printed text is not changed."""
        self._scrollback.look = self._scrollback.look.resized(width)
        if self._transcript is not None:
            self._transcript.resize(width)

    def wait_for(self, model: str | None) -> None:
        """Show that a prompt was sent to the model; None takes that back."""
        if model is not None:
            self._waiting_for, self._has_output, self._started = model, False, time.monotonic()
        elif self._transcript is None:
            self._started = 0.0

    def start(self) -> None:
        """Start showing a run."""
        self._close()
        self._transcript = new_transcript(self._scrollback.look)
        if not self._started:
            self._started, self._has_output = time.monotonic(), False

    def feed(self, event: Event) -> None:
        """Show an event of the run."""
        if self._transcript is None:
            self.start()
        assert self._transcript is not None
        self._transcript.feed(event)
        self._has_output = self._has_output or any(str(chunk.get("type", "")).endswith("-delta") for chunk in event.chunks)

    def finish(self, run: Run) -> float:
        """Finish showing a run that has ended or waits. Return its duration in seconds."""
        self._close()
        if run.status == "interrupted":
            self._scrollback.say("Interrupted. /retry resumes the answer.", "yellow")
        elif run.status == "waiting":
            self._scrollback.say("Waiting for your approval. /retry asks again.", "yellow")
        self._scrollback.add("\n")
        elapsed, self._started = self.elapsed, 0.0
        return elapsed

    def expand(self) -> None:
        """Print the last folded output in full, including output of the current run."""
        if self._transcript is not None:
            self._scrollback.fold(self._transcript.folded)
        self._scrollback.expand()

    def take(self) -> str:
        """Return finished text that was not taken yet, including that of the current run."""
        if self._transcript is not None:
            self._scrollback.add(self._transcript.take())
        return self._scrollback.take()

    def live(self, height: int) -> Sequence[str]:
        """Return the unfinished lines, with styles, in at most `height` rows."""
        if not self._started:
            return ()
        lines = self._transcript.live(height - 1, time.time()) if self._transcript is not None else []
        return [*lines, self._progress()]

    def _progress(self) -> str:
        look, elapsed = self._scrollback.look, time.monotonic() - self._started
        sign = _SPINNER[int(elapsed * 8) % len(_SPINNER)] if look.motion and look.unicode else _NO_SPINNER
        state = "Answering" if self._has_output else f"Waiting for {clean(self._waiting_for)}" if self._waiting_for else "Waiting"
        seconds = f"{elapsed:.0f} s" if look.motion and elapsed >= 1 else ""
        words = look.sign(" · ", " - ").join(word for word in (f"{sign} {state}", seconds, "Esc to stop") if word)
        return self._scrollback.styled(words[: max(look.width - 1, 1)], "dim")

    def _close(self) -> None:
        if self._transcript is not None:
            self._transcript.end()
            self._scrollback.add(self._transcript.take())
            self._scrollback.fold(self._transcript.folded)
            self._transcript = None
