"""Finished text on its way into the scrollback: moot's own words, what the person said, messages from before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from moot.cli.screen import Folded, Look, Transcript
from moot.cli.screen.look import tidy
from moot.convert.given import origin_words
from moot.errors import MootError
from moot.guard.terminal import clean
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.part import text_of

__all__ = ["Paper"]

ECHOED_LINES = 20
"""Of a prompt; the rest of a longer one is counted."""
REMEMBERED = 50
"""Folded outputs that can still be printed whole."""

_ASCII = str.maketrans({"·": "-", "…": "...", "→": "->", "›": ">"})
_STYLES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}


class Paper:
    """Text for a terminal; does no output."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._finished: list[str] = []
        self._folded: deque[Folded] = deque(maxlen=REMEMBERED)

    @property
    def sign(self) -> str:
        """What stands before what the person says."""
        return self.look.sign("› ", "> ")

    def put(self, text: str) -> None:
        """Terminal text that is fit to be printed; ends with a newline."""
        if text:
            self._finished.append(text)

    def say(self, text: str, style: str = "") -> None:
        """Lines of moot's own, or untrusted ones: they are cleaned here."""
        self.put("".join(f"{self.styled(line, style)}\n" for line in self.fit(text).split("\n")))

    def failed(self, error: MootError) -> None:
        """What went wrong and what to do."""
        self.say(f"moot: {error.message}", "red")
        self.say(f"  {error.fix}\n" if error.fix else "")

    def fit(self, text: str) -> str:
        """Untrusted text as this terminal may have it; our own signs are spelled in ASCII where it has nothing else."""
        return clean(text) if self.look.unicode else tidy(self.look, text.translate(_ASCII))

    def prompted(self, text: str) -> None:
        """What the person said, set off from what answers it."""
        lines = self.fit(text).rstrip("\n").split("\n")
        shown = [self.styled(line, "bold") for line in lines[:ECHOED_LINES]]
        if len(lines) > ECHOED_LINES:
            shown.append(self.styled(self.fit(f"… {len(lines) - ECHOED_LINES:,} more lines"), "dim"))
        self.put(self.styled(self.sign, "cyan") + "\n  ".join(shown) + "\n\n")

    def opened(self, conversation: Conversation) -> None:
        """Where a conversation came from, before what was said in it."""
        if conversation.came_from:
            self.say(f"{origin_words(conversation)}\n", "dim")

    def message(self, message: Message) -> None:
        """A message from before, whole."""
        if message.role == "user" and (text := text_of(message.parts)):
            self.prompted(text)
            return
        drawn = Transcript(self.look)
        drawn.message(message)
        self.fold(drawn.folded)
        self.put(drawn.take() + "\n")

    def fold(self, folded: Iterable[Folded]) -> None:
        """What was not shown whole."""
        self._folded += [one for one in folded if one not in self._folded]

    def unfold(self) -> None:
        """Prints what was folded last, whole; the next time, what was folded before it."""
        if self._folded:
            self.put(self._folded.pop().draw(self.look) + "\n")
        else:
            self.say("nothing is folded", "dim")

    def take(self) -> str:
        """What is finished and was not taken yet; ends with a newline."""
        text, self._finished = "".join(self._finished), []
        return text

    def styled(self, text: str, style: str) -> str:
        """The text in one of a few styles, where there is colour."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.look.colour and style and text else text
