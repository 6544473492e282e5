"""Finished text for the scrollback: notices, prompts and existing messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moot.cli.screen.look import Look, tidy
from moot.convert.given import origin_words
from moot.errors import MootError
from moot.guard.terminal import clean
from moot.plugins.registry import attribute
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.part import text_of

if TYPE_CHECKING:
    from moot.cli.screen.cards import Folded
    from moot.cli.screen.transcript import Transcript

__all__ = ["Scrollback", "new_transcript"]

_TRANSCRIPT = "moot.cli.screen.transcript:Transcript"
"""Loaded by path for the first message: the first prompt does not wait for Markdown."""

MAX_ECHOED_LINES = 20
"""Lines of a prompt that are shown."""
MAX_FOLDED = 50
"""Number of folded outputs that can still be expanded."""

_ASCII = str.maketrans({"·": "-", "…": "...", "→": "->", "›": ">"})
_STYLES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}


class Scrollback:
    """Collects text for the terminal; does no output itself."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._finished: list[str] = []
        self._folded: deque[Folded] = deque(maxlen=MAX_FOLDED)

    @property
    def sign(self) -> str:
        """Return the mark before a prompt."""
        return self.look.sign("› ", "> ")

    def add(self, text: str) -> None:
        """Add text that is safe to print and ends with a newline."""
        if text:
            self._finished.append(text)

    def say(self, text: str, style: str = "") -> None:
        """Add lines of text. Untrusted text is cleaned here."""
        self.add("".join(f"{self.styled(line, style)}\n" for line in self.fit(text).split("\n")))

    def failed(self, error: MootError) -> None:
        """Add an error and its fix."""
        self.say(f"moot: {error.message}", "red")
        self.say(f"  {error.fix}\n" if error.fix else "")

    def fit(self, text: str) -> str:
        """Return untrusted text as this terminal can show it; without Unicode, our symbols become ASCII."""
        return clean(text) if self.look.unicode else tidy(self.look, text.translate(_ASCII))

    def prompted(self, text: str) -> None:
        """Add a prompt of the user."""
        lines = self.fit(text).rstrip("\n").split("\n")
        shown = [self.styled(line, "bold") for line in lines[:MAX_ECHOED_LINES]]
        if len(lines) > MAX_ECHOED_LINES:
            shown.append(self.styled(self.fit(f"… {len(lines) - MAX_ECHOED_LINES:,} more lines"), "dim"))
        self.add(self.styled(self.sign, "cyan") + "\n  ".join(shown) + "\n\n")

    def opened(self, conversation: Conversation) -> None:
        """Add the origin of an imported conversation."""
        if conversation.came_from:
            self.say(f"{origin_words(conversation)}\n", "dim")

    def message(self, message: Message) -> None:
        """Add an existing message."""
        if message.role == "user" and (text := text_of(message.parts)):
            self.prompted(text)
            return
        transcript = new_transcript(self.look)
        transcript.message(message)
        self.fold(transcript.folded)
        self.add(transcript.take() + "\n")

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
        """Return finished text that was not taken yet. It ends with a newline."""
        text, self._finished = "".join(self._finished), []
        return text

    def styled(self, text: str, style: str) -> str:
        """Return the text in a style, if there is colour."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.look.colour and style and text else text


def new_transcript(look: Look) -> Transcript:
    """Return an empty transcript."""
    transcript: Transcript = attribute(_TRANSCRIPT)(look)
    return transcript
