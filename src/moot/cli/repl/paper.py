"""What a conversation looks like: finished text that is printed once, and the lines that still move."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from moot.cli.screen import Folded, Look, Transcript
from moot.errors import MootError
from moot.guard.terminal import clean
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import text_of
from moot.types.run import Run

__all__ = ["Paper"]

ECHOED_LINES = 20
"""Of a prompt; the rest of a longer one is counted."""

REMEMBERED = 50
"""Folded outputs that can still be printed whole."""

_STYLES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}
_TURNING = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_STILL = "*"


class Paper:
    """Text for a terminal; does no output."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._finished: list[str] = []
        self._answer: Transcript | None = None
        self._folded: deque[Folded] = deque(maxlen=REMEMBERED)
        self._began = 0.0
        self._waits_for = ""
        self._spoke = False

    def resize(self, width: int) -> None:
        """The terminal has so many columns now; what was printed stays as it is."""
        self.look = self.look.resized(width)
        if self._answer is not None:
            self._answer.resize(width)

    # ── what is finished ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, text: str, style: str = "") -> None:
        """Lines of moot's own, or untrusted ones: they are cleaned here."""
        self._put("".join(f"{self._styled(line, style)}\n" for line in clean(text).split("\n")))

    def failed(self, error: MootError) -> None:
        """What went wrong and what to do."""
        self.say(f"moot: {error.message}", "red")
        if error.fix:
            self.say(f"  {error.fix}")

    def prompted(self, text: str) -> None:
        """What the person said, set off from what answers it."""
        lines = clean(text).rstrip("\n").split("\n")
        shown = [self._styled(line, "bold") for line in lines[:ECHOED_LINES]]
        if len(lines) > ECHOED_LINES:
            shown.append(self._styled(f"… {len(lines) - ECHOED_LINES:,} more lines", "dim"))
        self._put(self._styled(self.sign, "cyan") + "\n  ".join(shown) + "\n\n")

    @property
    def sign(self) -> str:
        """What stands before what the person says."""
        return self.look.sign("› ", "> ")

    def message(self, message: Message) -> None:
        """A message from before, whole."""
        if message.role == "user" and (text := text_of(message.parts)):
            self.prompted(text)
            return
        answer = Transcript(self.look)
        answer.message(message)
        self._folded += answer.folded
        self._put(answer.take() + "\n")

    def unfold(self) -> None:
        """Prints what was folded last, whole; the next time, what was folded before it."""
        if self._answer is not None and self._answer.folded:
            self._folded += [one for one in self._answer.folded if one not in self._folded]
        if self._folded:
            self._put(self._folded.pop().draw(self.look) + "\n")
        else:
            self.say("nothing is folded", "dim")

    def take(self) -> str:
        """What is finished and was not taken yet; ends with a newline."""
        if self._answer is not None:
            self._put(self._answer.take())
        text, self._finished = "".join(self._finished), []
        return text

    # ── a run ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def waits(self, model: str | None) -> None:
        """A prompt is on its way to that model; None = it is not, after all."""
        if model is not None:
            self._waits_for, self._spoke, self._began = model, False, time.monotonic()
        elif self._answer is None:
            self._began = 0.0

    def began(self) -> None:
        """A run begins to be shown."""
        self._close()
        self._answer = Transcript(self.look)
        if not self._began:
            self._began = time.monotonic()

    def event(self, event: Event) -> None:
        """An event of the run that is shown."""
        if self._answer is None:
            self.began()
        assert self._answer is not None
        self._answer.feed(event)
        self._spoke = self._spoke or any(str(chunk.get("type", "")).endswith("-delta") for chunk in event.chunks)

    def ended(self, run: Run) -> float:
        """The run is over: everything of it is finished. Seconds that it took."""
        self._close()
        if run.status == "interrupted":
            self.say("the answer was interrupted; /retry takes it up again", "yellow")
        elif run.status == "waiting":
            self.say("the answer waits for your decision; /retry asks again", "yellow")
        self._put("\n")
        took, self._began = time.monotonic() - self._began if self._began else 0.0, 0.0
        return took

    def live(self, height: int) -> Sequence[str]:
        """What still moves, as lines with styles; nothing when nothing does."""
        if not self._began:
            return ()
        lines = self._answer.live(height - 1, time.time()) if self._answer is not None else []
        return [*lines, self._progress()]

    @property
    def moves(self) -> bool:
        """Whether a run is shown."""
        return bool(self._began)

    def _progress(self) -> str:
        passed = time.monotonic() - self._began
        sign = _TURNING[int(passed * 8) % len(_TURNING)] if self.look.motion and self.look.unicode else _STILL
        doing = "answering" if self._spoke else f"waiting for {clean(self._waits_for)}" if self._waits_for else "waiting"
        seconds = f" · {passed:.0f} s" if self.look.motion and passed >= 1 else ""
        words = f"{sign} {doing}{seconds} · Esc stops"
        return self._styled(words[: max(self.look.width - 1, 1)], "dim")

    def _close(self) -> None:
        if self._answer is not None:
            self._answer.end()
            self._put(self._answer.take())
            self._folded += [one for one in self._answer.folded if one not in self._folded]
            self._answer = None

    def _put(self, text: str) -> None:
        if text:
            self._finished.append(text)

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.look.colour and style and text else text
