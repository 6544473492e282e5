"""Web pages, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from moot.tools.html import to_markdown


def read(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the page as one piece without a place."""
    yield "", to_markdown(data.decode("utf-8", "replace"))
