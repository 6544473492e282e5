"""Small documents in each format, made by the libraries that read them; PDF by hand."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from io import BytesIO

import docx
import openpyxl
import pptx


def pdf(pages: Sequence[str]) -> bytes:
    """Return a PDF with one line of text per page."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {resources} /Contents {5 + 2 * at} 0 R >>")
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    data, places = b"%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF"
    return data + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def word(*paragraphs: str, heading: str = "", break_before: int = 0) -> bytes:
    """Return a Word document; `break_before` is the number of the paragraph that starts the second page."""
    document, file = docx.Document(), BytesIO()
    if heading:
        document.add_heading(heading, 1)
    for number, text in enumerate(paragraphs, 1):
        if number == break_before:
            document.add_page_break()
        document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


def slides(*titles: str) -> bytes:
    """Return a presentation."""
    presentation, file = pptx.Presentation(), BytesIO()
    for title in titles:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.notes_slide.notes_text_frame.text = f"notes of {title}"
    presentation.save(file)
    return file.getvalue()


def sheet(name: str, rows: Sequence[Sequence[object]]) -> bytes:
    """Return a spreadsheet."""
    book, file = openpyxl.Workbook(), BytesIO()
    book.active.title = name
    for row in rows:
        book.active.append(list(row))
    book.save(file)
    return file.getvalue()


def archive(entries: dict[str, str | bytes]) -> bytes:
    """Return a compressed ZIP archive."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return file.getvalue()


def book(chapters: Sequence[str], *, package: str = "") -> bytes:
    """Return an EPUB; `package` replaces its package document."""
    items = "".join(f'<item id="c{at}" href="c{at}.xhtml"/>' for at in range(len(chapters)))
    order = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    container = '<rootfiles><rootfile full-path="OPS/p.opf"/></rootfiles>'
    return archive(
        {
            "META-INF/container.xml": f'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">{container}</container>',
            "OPS/p.opf": package
            or f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{order}</spine></package>',
            **{f"OPS/c{at}.xhtml": f"<html><body>{text}</body></html>" for at, text in enumerate(chapters)},
        }
    )
