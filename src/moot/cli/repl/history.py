"""Prompt history: one file per home, readable only by its owner."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

__all__ = ["PromptHistory"]

_READ_BYTES = 2_000_000
"""Number of bytes read from the end of the file."""
_MAX_CHARACTERS = 20_000
"""Longer entries are not saved."""

log = logging.getLogger("moot.cli")


class PromptHistory(History):
    """One JSON string per line. Several processes may append; invalid lines are skipped."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Yield the entries without duplicates, newest first."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _READ_BYTES))
                lines = file.read().split(b"\n")
        except OSError:  # missing or not readable
            return
        seen: set[str] = set()
        for line in reversed(lines):
            text = _text(line)
            if text and text not in seen:
                seen.add(text)
                yield text

    def store_string(self, string: str) -> None:
        """Append one entry."""
        if not string.strip() or len(string) > _MAX_CHARACTERS:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, json.dumps(string).encode() + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning("Cannot save the prompt history in %s: %s.", self._path, error.strerror)


def _text(line: bytes) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
