"""Word documents, one piece per page. Pages are known only if the program that saved the document marked them."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from docx import Document
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

_RENDERED, _BREAK, _KIND = qn("w:lastRenderedPageBreak"), qn("w:br"), qn("w:type")


def read(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the pages with their numbers, and headings in Markdown. Yield one piece without a place if no page breaks are marked."""
    document = Document(BytesIO(data))
    body: Any = document.element
    rendered = next(body.iter(_RENDERED), None) is not None
    page, lines = 1, list[str]()
    for block in document.iter_inner_content():
        breaks = _breaks(block, rendered) if isinstance(block, Paragraph) else 0
        if breaks:
            yield f"page {page}", "\n".join(lines)
            page, lines = page + breaks, []
        lines += _table(block) if isinstance(block, Table) else [_line(block)]
    yield f"page {page}" if page > 1 else "", "\n".join(lines)


def _breaks(paragraph: Paragraph, rendered: bool) -> int:
    element: Any = paragraph._element  # pyright: ignore[reportPrivateUsage]  breaks have no public name here
    if rendered:
        return sum(1 for _ in element.iter(_RENDERED))
    return sum(found.get(_KIND) == "page" for found in element.iter(_BREAK))


def _line(paragraph: Paragraph) -> str:
    style = (paragraph.style.name or "") if paragraph.style is not None else ""
    level = style.removeprefix("Heading ") if style.startswith("Heading ") else ""
    return f"{'#' * int(level) if level.isdigit() else ''} {paragraph.text}".strip() + "\n"


def _table(table: Table) -> list[str]:
    return [" | ".join(cell.text for cell in row.cells) for row in table.rows]
