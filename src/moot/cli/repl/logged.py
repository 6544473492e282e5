"""Log messages shown as lines of the REPL, so that they don't disturb the screen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from moot.cli.errors import debugging
from moot.guard.secrets import redact

__all__ = ["log_to"]


class _LineHandler(logging.Handler):
    def __init__(self, say: Callable[[str], None], secrets: tuple[str, ...]) -> None:
        super().__init__(logging.INFO if debugging() else logging.WARNING)
        self._say, self._secrets = say, secrets

    def emit(self, record: logging.LogRecord) -> None:
        self._say(redact(f"moot: {record.getMessage()}", self._secrets))


@contextmanager
def log_to(say: Callable[[str], None], secrets: tuple[str, ...]) -> Generator[None, None, None]:
    """Pass warnings and errors to `say` within the block; when debugging, informational messages too."""
    root = logging.getLogger()
    handlers: list[logging.Handler] = [_LineHandler(say, secrets)]
    before, root.handlers = root.handlers, handlers
    try:
        yield
    finally:
        root.handlers = before
