"""Base class of the prompts: rows, keys, an optional text input and finally an answer. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from moot.cli.approving.rows import Row
from moot.types.approval import Answer

__all__ = ["Pending", "Prompt", "TextInput"]


class Pending(Enum):
    """An action that the application carries out for a prompt."""

    ANSWER = "answer"
    """Check `proposed`, and return it if it is valid."""
    EXPLAIN = "explain"
    """Ask a model to explain the call."""
    EDITOR = "editor"
    """Open the arguments in the user's editor."""
    SHOW = "show"
    """Show the call with `text` as its arguments."""


@dataclass(frozen=True, slots=True)
class TextInput:
    """A line that the user types: its label and initial text, what to do with it, and suggestions for Up and Down."""

    label: str
    text: str
    submitted: Callable[[str], None]
    suggestions: Sequence[str] = ()


class Prompt(ABC):
    """The state of one prompt."""

    def __init__(self) -> None:
        self.input: TextInput | None = None
        self.message = ""
        self.pending: Pending | None = None
        self.proposed: Answer | None = None
        self.text = ""

    @property
    @abstractmethod
    def title(self) -> Row: ...

    @abstractmethod
    def body(self) -> list[Row]:
        """Return everything that the user decides about. It may be longer than the screen."""

    @abstractmethod
    def keys(self) -> dict[str, str]:
        """Return the label of each key, in display order."""

    @abstractmethod
    def choose(self, key: str) -> None:
        """Handle one of `keys`."""

    def submit(self, text: str) -> None:
        """Handle the typed line."""
        line, self.input = self.input, None
        if line is not None:
            line.submitted(text)

    def propose(self, answer: Answer) -> None:
        self.proposed, self.pending = answer, Pending.ANSWER

    def preview_edit(self, text: str) -> None:
        self.text, self.pending = text, Pending.SHOW
