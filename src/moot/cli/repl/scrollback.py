"""Text for the scrollback, and the display of the current run."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from moot.cli.terminal.look import Look, tidy
from moot.cli.terminal.prompts.rows import wrap_words
from moot.cli.terminal.text import width_of
from moot.convert.files.attachments import readable_prompt
from moot.convert.serialization import describe_origin
from moot.errors import MootError
from moot.guard.terminal import clean
from moot.plugins.registry import attribute
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run
from moot.types.tree import summaries_of

if TYPE_CHECKING:
    from moot.cli.transcript.run import Transcript
    from moot.cli.transcript.tool_cards import Folded

_TRANSCRIPT = "moot.cli.transcript.run:Transcript"
"""Import path, loaded for the first message, so that the first prompt does not wait for Markdown."""

MAX_ECHOED_LINES = 20
"""Maximum number of lines of a prompt that are shown."""
MAX_FOLDED = 50
"""Number of most recent folded outputs that can be expanded."""

_ASCII = str.maketrans({"·": "-", "…": "...", "→": "->", "›": ">"})
_STYLES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}


class Scrollback:
    """Collects text for the terminal; writes nothing itself."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._finished: list[str] = []
        self._folded: deque[Folded] = deque(maxlen=MAX_FOLDED)

    @property
    def sign(self) -> str:
        """Return the mark shown before a prompt."""
        return self.look.sign("› ", "> ")

    def add(self, text: str) -> None:
        """Add text that is safe to print and ends with a newline."""
        if text:
            self._finished.append(text)

    def say(self, text: str, style: str = "") -> None:
        """Add lines of text. Untrusted text is cleaned here."""
        lines = [piece for line in self.fit(text).split("\n") for piece in _columns(line, self.look.columns)]
        self.add("".join(f"{self.styled(line, style)}\n" for line in lines))

    def failed(self, error: MootError) -> None:
        """Add an error and its fix."""
        self.say(f"moot: {error.message}", "red")
        self.say(f"  {error.fix}\n" if error.fix else "")

    def fit(self, text: str) -> str:
        """Return untrusted text in a form that this terminal can show. Without Unicode, moot's own symbols become ASCII."""
        return clean(text) if self.look.unicode else tidy(self.look, text.translate(_ASCII))

    def prompted(self, text: str) -> None:
        """Add a prompt from the user."""
        lines = self.fit(text).rstrip("\n").split("\n")
        shown = [self.styled(line, "bold") for line in lines[:MAX_ECHOED_LINES]]
        if len(lines) > MAX_ECHOED_LINES:
            shown.append(self.styled(self.fit(f"… {len(lines) - MAX_ECHOED_LINES:,} more lines"), "dim"))
        self.add(self.styled(self.sign, "cyan") + "\n  ".join(shown) + "\n\n")

    def message(self, message: Message) -> None:
        """Add an existing message."""
        if message.role == "user" and (text := readable_prompt(message.parts)):
            self.prompted(text)
            if not (summaries := summaries_of(message)):
                return
            message = replace(message, parts=summaries)
        transcript: Transcript = attribute(_TRANSCRIPT)(self.look)
        transcript.message(message)
        text = transcript.take()  # this folds reasoning and summaries
        self.fold(transcript.folded)
        self.add(text + "\n")

    def fold(self, folded: Iterable[Folded]) -> None:
        """Remember outputs that were shown folded."""
        self._folded += [one for one in folded if one not in self._folded]

    def expand(self) -> None:
        """Print the last folded output in full; the next call prints the one before it."""
        if self._folded:
            self.add(self._folded.pop().draw(self.look) + "\n")
        else:
            self.say("There is no folded output.", "dim")

    def take(self) -> str:
        """Return finished text that has not been taken yet. It ends with a newline."""
        text, self._finished = "".join(self._finished), []
        return text

    def styled(self, text: str, style: str) -> str:
        """Return the text in a style, if there is colour."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.look.colour and style and text else text


_TABLE = re.compile(r"(\s*\S.*?\s{2,})(\S.*)")


def _columns(line: str, width: int) -> list[str]:
    """Return a line of a table with its last column wrapped; other lines unchanged, because they may be copied."""
    match = _TABLE.fullmatch(line) if width_of(line) > width else None
    if match is None or width_of(match[1]) > width // 2:
        return [line]
    indent = width_of(match[1])
    first, *more = wrap_words(match[2], width - indent)
    return [f"{match[1]}{first}", *(" " * indent + piece for piece in more)]


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
        """Show that a prompt was sent to the model. None undoes this, because nothing was sent."""
        if model is not None:
            self._waiting_for, self._has_output, self._started = model, False, time.monotonic()
        elif self._transcript is None:
            self._started = 0.0

    def start(self, resumed: Message | None = None) -> None:
        """Start showing a run. `resumed` is its answer so far, whose unfinished tool calls get their output now."""
        self._close()
        transcript: Transcript = attribute(_TRANSCRIPT)(self._scrollback.look)
        if resumed is not None:
            transcript.resume(resumed)
        self._transcript = transcript
        if not self._started:
            self._started, self._has_output = time.monotonic(), False

    def leave(self) -> None:
        """Stop showing the run, which continues. Its output so far stays."""
        self._close()
        self._started = 0.0

    def feed(self, event: Event) -> None:
        """Show an event of the run."""
        if self._transcript is None:
            self.start()
        assert self._transcript is not None
        self._transcript.feed(event)
        self._has_output = self._has_output or any(str(chunk.get("type", "")).endswith("-delta") for chunk in event.chunks)

    def finish(self, run: Run) -> float:
        """Finish showing a run that has ended or is waiting. Return its duration in seconds."""
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
        """Return finished text that has not been taken yet, including text from the current run."""
        if self._transcript is not None:
            self._scrollback.add(self._transcript.take())
        return self._scrollback.take()

    def live(self, height: int) -> Sequence[str]:
        """Return the unfinished lines, with styles, in at most `height` rows."""
        if not self._started:
            return ()
        lines = self._transcript.live(height - 1, time.time()) if self._transcript is not None else []
        look, elapsed = self._scrollback.look, time.monotonic() - self._started
        sign = _SPINNER[int(elapsed * 8) % len(_SPINNER)] if look.motion and look.unicode else _NO_SPINNER
        state = "Answering" if self._has_output else f"Waiting for {clean(self._waiting_for)}" if self._waiting_for else "Waiting"
        seconds = f"{elapsed:.0f} s" if look.motion and elapsed >= 1 else ""
        words = look.sign(" · ", " - ").join(word for word in (f"{sign} {state}", seconds, "Esc to stop") if word)
        return [*lines, self._scrollback.styled(words[: max(look.width - 1, 1)], "dim")]

    def _close(self) -> None:
        if self._transcript is not None:
            self._transcript.end()
            self._scrollback.add(self._transcript.take())
            self._scrollback.fold(self._transcript.folded)
            self._transcript = None


class ScrollbackView:
    """The part of a conversation's display that is the same on every terminal."""

    def __init__(self, scrollback: Scrollback, display: RunDisplay) -> None:
        self._scrollback, self._display = scrollback, display

    def prompted(self, text: str) -> None:
        self._scrollback.prompted(text)
        self.changed()

    def opened(self, conversation: Conversation) -> None:
        if conversation.came_from:
            self._scrollback.say(f"{describe_origin(conversation)}\n", "dim")
        self.changed()

    def message(self, message: Message) -> None:
        self._scrollback.message(message)
        self.changed()

    def started(self, run: str, resumed: Message | None = None) -> None:
        self._display.start(resumed)
        self.changed()

    def left(self) -> None:
        self._display.leave()
        self.changed()

    def event(self, event: Event) -> None:
        self._display.feed(event)
        self.changed()

    def failed(self, error: MootError) -> None:
        self._scrollback.failed(error)
        self.changed()

    def notice(self, text: str) -> None:
        self._scrollback.say(f"{text}\n", "dim")
        self.changed()

    def changed(self) -> None:
        """Request a redraw. Do nothing here; views that draw frames override it."""
