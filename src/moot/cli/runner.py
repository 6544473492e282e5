"""Run commands, with logging configured and with an event loop if they need one."""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio

from moot.cli.arguments.signatures import Call
from moot.cli.commands.maintenance.logs import FileHandler, file_of, level_of
from moot.cli.console.lines import Lines, debugging
from moot.cli.console.output import Output
from moot.config.home import home_of
from moot.guard.secrets import redact
from moot.guard.terminal import clean


class StderrHandler(logging.Handler):
    """Log handler for stderr that removes control sequences and masks secrets."""

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
    """Configure logging for the duration of the block.

    Warnings and errors of moot go to stderr; with MOOT_DEBUG=1, all records of all packages do. Records of moot at or above the level in
    MOOT_LOG (default: info) go to the log file.
    """
    root, ours = logging.getLogger(), logging.getLogger("moot")
    before = root.handlers, root.level, ours.handlers, ours.level
    people = StderrHandler(output, logging.DEBUG if debugging() else logging.WARNING)
    kept = FileHandler(file_of(home_of(os.environ)), level_of(os.environ), lambda text: redact(clean(text), output.secrets))
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


def perform(call: Call) -> Any:
    """Run the command and return its result."""
    output = Output()
    with logging_to(output):
        if not inspect.iscoroutinefunction(call.command):
            return call.run(output)
        return anyio.run(call.run, output, backend_options={"use_uvloop": sys.platform != "win32"})
