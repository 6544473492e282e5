"""What the rooms log while a screen is drawn: lines among the others, never across them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from moot.cli.errors import debugging
from moot.guard.secrets import redact

__all__ = ["logging_into"]


class _ToPaper(logging.Handler):
    def __init__(self, say: Callable[[str], None], secrets: tuple[str, ...]) -> None:
        super().__init__(logging.INFO if debugging() else logging.WARNING)
        self._say, self._secrets = say, secrets

    def emit(self, record: logging.LogRecord) -> None:
        self._say(redact(f"moot: {record.getMessage()}", self._secrets))


@contextmanager
def logging_into(say: Callable[[str], None], secrets: tuple[str, ...]) -> Generator[None, None, None]:
    """Within, warnings and worse of moot's own are said; when debugging, also what is only information."""
    root = logging.getLogger()
    handlers: list[logging.Handler] = [_ToPaper(say, secrets)]
    before, root.handlers = root.handlers, handlers
    try:
        yield
    finally:
        root.handlers = before
