"""What the rooms log, as lines for the person: warnings in one line, everything with its traces under MOOT_DEBUG=1."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from moot.cli.errors import debugging
from moot.cli.lines import Lines


class ToPeople(logging.Handler):
    """Writes records to stderr without control sequences and secrets."""

    def __init__(self, output: Lines) -> None:
        super().__init__(logging.DEBUG)
        self._output = output
        self._formatter = logging.Formatter("%(name)s: %(message)s")
        self._traces = debugging()

    def emit(self, record: logging.LogRecord) -> None:
        text = self._formatter.format(record) if self._traces else f"moot: {record.getMessage()}"
        self._output.say(text, "dim")


@contextmanager
def logging_to(output: Lines) -> Generator[None, None, None]:
    """Within, warnings and worse of moot's own reach the person; everything of everybody when debugging."""
    root, ours = logging.getLogger(), logging.getLogger("moot")
    before = root.handlers, root.level, ours.level
    root.handlers = [ToPeople(output)]
    root.setLevel(logging.DEBUG if debugging() else logging.CRITICAL)
    ours.setLevel(logging.DEBUG if debugging() else logging.WARNING)
    try:
        yield
    finally:
        root.handlers = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
