"""The run that is being shown: from the moment its prompt is sent until everything of it is on paper."""

from __future__ import annotations

import time
from collections.abc import Sequence

from moot.cli.repl.paper import Paper
from moot.cli.screen import Transcript
from moot.guard.terminal import clean
from moot.types.event import Event
from moot.types.run import Run

__all__ = ["Answering"]

_MOVING = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_STILL = "*"


class Answering:
    """One run at a time; what is finished of it goes to the paper."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._answer: Transcript | None = None
        self._began = 0.0
        self._waits_for = ""
        self._spoke = False

    @property
    def moves(self) -> bool:
        """Whether a run is shown."""
        return bool(self._began)

    @property
    def seconds(self) -> float:
        """How long the run takes already; 0 when none is shown."""
        return time.monotonic() - self._began if self._began else 0.0

    def resize(self, width: int) -> None:
        """The terminal has so many columns now; what was printed stays as it is."""
        self._paper.look = self._paper.look.resized(width)
        if self._answer is not None:
            self._answer.resize(width)

    def waits(self, model: str | None) -> None:
        """A prompt is on its way to that model; None = it is not, after all."""
        if model is not None:
            self._waits_for, self._spoke, self._began = model, False, time.monotonic()
        elif self._answer is None:
            self._began = 0.0

    def began(self) -> None:
        """A run begins to be shown."""
        self._close()
        self._answer = Transcript(self._paper.look)
        if not self._began:
            self._began, self._spoke = time.monotonic(), False

    def event(self, event: Event) -> None:
        """An event of the run that is shown."""
        if self._answer is None:
            self.began()
        assert self._answer is not None
        self._answer.feed(event)
        self._spoke = self._spoke or any(str(chunk.get("type", "")).endswith("-delta") for chunk in event.chunks)

    def ended(self, run: Run) -> float:
        """The run is over, or left to wait: everything of it is finished. Seconds that it took."""
        self._close()
        if run.status == "interrupted":
            self._paper.say("the answer was interrupted; /retry takes it up again", "yellow")
        elif run.status == "waiting":
            self._paper.say("the answer waits for your decision; /retry asks again", "yellow")
        self._paper.put("\n")
        took, self._began = self.seconds, 0.0
        return took

    def unfold(self) -> None:
        """As `Paper.unfold`, with what the run has folded by now."""
        if self._answer is not None:
            self._paper.fold(self._answer.folded)
        self._paper.unfold()

    def take(self) -> str:
        """As `Paper.take`, with what is finished of the run."""
        if self._answer is not None:
            self._paper.put(self._answer.take())
        return self._paper.take()

    def live(self, height: int) -> Sequence[str]:
        """What still moves, as lines with styles; nothing when nothing does."""
        if not self._began:
            return ()
        lines = self._answer.live(height - 1, time.time()) if self._answer is not None else []
        return [*lines, self._progress()]

    def _progress(self) -> str:
        look, passed = self._paper.look, time.monotonic() - self._began
        sign = _MOVING[int(passed * 8) % len(_MOVING)] if look.motion and look.unicode else _STILL
        doing = "answering" if self._spoke else f"waiting for {clean(self._waits_for)}" if self._waits_for else "waiting"
        seconds = f"{passed:.0f} s" if look.motion and passed >= 1 else ""
        words = look.sign(" · ", " - ").join(word for word in (f"{sign} {doing}", seconds, "Esc stops") if word)
        return self._paper.styled(words[: max(look.width - 1, 1)], "dim")

    def _close(self) -> None:
        if self._answer is not None:
            self._answer.end()
            self._paper.put(self._answer.take())
            self._paper.fold(self._answer.folded)
            self._answer = None
