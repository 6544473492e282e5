"""The composer: the text being written. Large pastes are shown as placeholders and sent in full."""

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
"""Larger pastes are shown as a placeholder."""

_UNENCODABLE = re.compile("[\ud800-\udfff]")


class Composer(Buffer):
    """A multi-line prompt-toolkit buffer."""

    def __init__(self, *, history: History, completer: Completer) -> None:
        super().__init__(history=history, completer=completer, complete_while_typing=True, multiline=True)
        self._pastes: dict[str, str] = {}

    def insert_text(self, data: str, overwrite: bool = False, move_cursor: bool = True, fire_event: bool = True) -> None:
        """Insert text. Invalid UTF-8 becomes U+FFFD."""
        super().insert_text(_UNENCODABLE.sub("\ufffd", data), overwrite, move_cursor, fire_event)

    def paste(self, data: str) -> None:
        """Insert pasted text. A paste never sends."""
        text = _UNENCODABLE.sub("\ufffd", data.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.count("\n") + 1
        if lines <= PASTE_LINES and len(text) <= PASTE_CHARACTERS:
            self.insert_text(text)
            return
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        number = f" #{len(self._pastes) + 1}" if self._pastes else ""
        placeholder = f"[pasted {size}{number}]"
        self._pastes[placeholder] = text
        self.insert_text(placeholder)

    def full_text(self) -> str:
        """Return the text to send, with all pastes in full."""
        text = self.text
        for placeholder, pasted in self._pastes.items():
            text = text.replace(placeholder, pasted, 1)
        return text

    def paste_before_cursor(self) -> str:
        """Return the paste placeholder that ends at the cursor; empty if there is none."""
        before = self.document.text_before_cursor
        return next((placeholder for placeholder in self._pastes if before.endswith(placeholder)), "")

    def replace(self, text: str, pastes: Mapping[str, str] | None = None) -> None:
        """Replace the whole text and move the cursor to its end."""
        self._pastes = dict(pastes or {})
        text = _UNENCODABLE.sub("\ufffd", text)
        self.set_document(Document(text, len(text)), bypass_readonly=True)

    def take(self) -> str:
        """Return the full text, clear the composer and append it to the history."""
        text = self.full_text()
        self.reset(append_to_history=True)
        self._pastes = {}
        return text

    def pastes(self) -> dict[str, str]:
        """Return the pastes that are still in the text, by placeholder."""
        return {placeholder: pasted for placeholder, pasted in self._pastes.items() if placeholder in self.text}
