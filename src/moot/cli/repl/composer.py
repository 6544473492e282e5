"""The text that is being written: large pastes shown as one word and sent whole, nothing in it that can't be encoded."""

from __future__ import annotations

import re
from collections.abc import Mapping

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

__all__ = ["Composer"]

PASTE_LINES = 12
PASTE_CHARACTERS = 2_000
"""What is pasted and larger than this is shown as one word."""

_UNENCODABLE = re.compile("[\ud800-\udfff]")


class Composer(Buffer):
    """A prompt-toolkit buffer of several lines."""

    def __init__(self, *, history: History, completer: Completer) -> None:
        super().__init__(history=history, completer=completer, complete_while_typing=True, multiline=True)
        self._pastes: dict[str, str] = {}

    def insert_text(self, data: str, overwrite: bool = False, move_cursor: bool = True, fire_event: bool = True) -> None:
        """As `Buffer.insert_text`; bytes that were no UTF-8 become U+FFFD."""
        super().insert_text(_UNENCODABLE.sub("\ufffd", data), overwrite, move_cursor, fire_event)

    def paste(self, data: str) -> None:
        """Takes pasted text; it never sends."""
        text = _UNENCODABLE.sub("\ufffd", data.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.count("\n") + 1
        if lines <= PASTE_LINES and len(text) <= PASTE_CHARACTERS:
            self.insert_text(text)
            return
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        number = f" #{len(self._pastes) + 1}" if self._pastes else ""
        word = f"[pasted {size}{number}]"
        self._pastes[word] = text
        self.insert_text(word)

    def whole(self) -> str:
        """What is sent: the text with everything that was pasted."""
        text = self.text
        for word, pasted in self._pastes.items():
            text = text.replace(word, pasted, 1)
        return text

    def paste_before_cursor(self) -> str:
        """The word of the paste that ends at the cursor; empty when there is none."""
        before = self.document.text_before_cursor
        return next((word for word in self._pastes if before.endswith(word)), "")

    def put(self, text: str, pastes: Mapping[str, str] | None = None) -> None:
        """Replaces everything, the cursor at the end."""
        self._pastes = dict(pastes or {})
        text = _UNENCODABLE.sub("\ufffd", text)
        self.set_document(Document(text, len(text)), bypass_readonly=True)

    def take(self) -> str:
        """The whole text; the composer is empty afterwards, and its history has it."""
        whole = self.whole()
        self.reset(append_to_history=True)
        self._pastes = {}
        return whole

    def pastes(self) -> dict[str, str]:
        """Those that are still in the text, by the word that stands for each."""
        return {word: pasted for word, pasted in self._pastes.items() if word in self.text}
