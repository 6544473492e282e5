"""PDF, one piece per page."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

from pypdf import PdfReader


def read(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the pages with their numbers."""
    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise ValueError("the document is encrypted")
    for number, page in enumerate(reader.pages, 1):
        yield f"page {number}", page.extract_text()
