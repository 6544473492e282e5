"""What was typed before, one file for each home, readable by its owner alone."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

__all__ = ["TypedHistory"]

_READ = 2_000_000
"""Bytes of the file's end that are looked at."""
_CHARACTERS = 20_000
"""Of one entry; what is longer is no line to come back to."""

log = logging.getLogger("moot.cli")


class TypedHistory(History):
    """A line of JSON for each entry. Several processes may append; a line that is broken is passed over."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Newest first, each text once."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _READ))
                lines = file.read().split(b"\n")
        except OSError:  # there is none yet, or none that we may read
            return
        seen: set[str] = set()
        for line in reversed(lines):
            text = _text(line)
            if text and text not in seen:
                seen.add(text)
                yield text

    def store_string(self, string: str) -> None:
        """Appends one entry."""
        if not string.strip() or len(string) > _CHARACTERS:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, json.dumps(string).encode() + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning("what was typed is not kept in %s: %s", self._path, error.strerror)


def _text(line: bytes) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
