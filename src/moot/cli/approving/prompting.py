"""What a prompt is to the application that shows it: rows, keys, perhaps a line to be typed, and in the end an answer. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from moot.cli.approving.rows import Row
from moot.types.approval import Answer

__all__ = ["Line", "Prompt", "Wish"]


class Wish(Enum):
    """What the application must do for a prompt."""

    ANSWER = "answer"
    """Check `proposed`, and end with it when it can be given."""
    EXPLAIN = "explain"
    EDITOR = "editor"
    """The arguments in the person's own editor."""
    SHOW = "show"
    """Look at `text` as the call's arguments and show them."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line to be typed: what stands before it, what it begins with, what becomes of it, and what Up and Down put there."""

    label: str
    text: str
    entered: Callable[[str], None]
    choices: Sequence[str] = ()


class Prompt(ABC):
    """The state of one prompt."""

    def __init__(self) -> None:
        self.line: Line | None = None
        self.message = ""
        self.wish: Wish | None = None
        self.proposed: Answer | None = None
        self.text = ""

    @property
    @abstractmethod
    def title(self) -> Row: ...

    @abstractmethod
    def body(self) -> list[Row]:
        """Everything that is decided about; it may be longer than the screen."""

    @abstractmethod
    def keys(self) -> dict[str, str]:
        """Key → what it means, in the order they are shown."""

    @abstractmethod
    def choose(self, key: str) -> None:
        """One of `keys`."""

    def enter(self, text: str) -> None:
        """The typed line."""
        line, self.line = self.line, None
        if line is not None:
            line.entered(text)

    def leave_line(self) -> None:
        """Back to the keys."""
        self.line = None

    def propose(self, answer: Answer) -> None:
        self.proposed, self.wish = answer, Wish.ANSWER

    def edit_to(self, text: str) -> None:
        self.text, self.wish = text, Wish.SHOW
