"""Where what the rooms log goes: to the person as lines (with traces under MOOT_DEBUG=1), and to the log of the home."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager

from moot.cli.errors import debugging
from moot.cli.lines import Lines
from moot.cli.log_file import ToFile, file_of, level_of
from moot.config.home import home_of
from moot.guard.secrets import redact
from moot.guard.terminal import clean


class ToPeople(logging.Handler):
    """Writes records to stderr without control sequences and secrets."""

    def __init__(self, output: Lines, level: int) -> None:
        super().__init__(level)
        self._output = output
        self._formatter = logging.Formatter("%(name)s: %(message)s")
        self._traces = debugging()

    def emit(self, record: logging.LogRecord) -> None:
        text = self._formatter.format(record) if self._traces else f"moot: {record.getMessage()}"
        self._output.say(text, "dim")


@contextmanager
def logging_to(output: Lines) -> Generator[None, None, None]:
    """Within, warnings and worse of moot's own reach the person, everything of everybody when debugging; the log of the home gets
    moot's own from MOOT_LOG (info without it) on."""
    root, ours = logging.getLogger(), logging.getLogger("moot")
    before = root.handlers, root.level, ours.handlers, ours.level
    people = ToPeople(output, logging.DEBUG if debugging() else logging.WARNING)
    kept = ToFile(file_of(home_of(os.environ)), level_of(os.environ), lambda text: redact(clean(text), output.secrets))
    root.handlers = [people]
    root.setLevel(logging.DEBUG if debugging() else logging.CRITICAL)
    ours.handlers = [kept]
    ours.setLevel(min(people.level, kept.level))
    try:
        yield
    finally:
        root.handlers, ours.handlers = before[0], before[2]
        root.setLevel(before[1])
        ours.setLevel(before[3])
        kept.close()
