"""Presentations, one piece per slide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

from pptx import Presentation


def read(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the slides with their numbers, each with its notes."""
    for number, slide in enumerate(Presentation(BytesIO(data)).slides, 1):
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        yield f"slide {number}", "\n".join([*_texts(slide.shapes), notes.text if notes is not None else ""])


def _texts(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if shape.has_text_frame:
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            yield from (" | ".join(cell.text for cell in row.cells) for row in shape.table.rows)
        elif hasattr(shape, "shapes"):
            yield from _texts(shape.shapes)
