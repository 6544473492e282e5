"""Documents are read by a worker process, with their places. Malicious ones end with an error, never with the process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from document_files import archive, book, pdf, sheet, slides, word
from lanes import sandbox
from moot.config.settings import Settings
from moot.convert.files.attachments import kind_of
from moot.errors import LimitReached, MootError, Refused
from moot.knowledge.documents import MAX_BYTES, DocumentReader
from moot.types.knowledge import Section
from moot.types.sandbox import MECHANISMS

pytestmark = pytest.mark.anyio


@pytest.fixture
def reader(tmp_path: Path) -> DocumentReader:
    return DocumentReader(lambda: Settings(tmp_path / "home", sandbox=sandbox()), lambda: MECHANISMS)


async def test_every_format_is_read_with_its_places(reader: DocumentReader):
    async def read(kind: str, data: bytes) -> list[tuple[str, str]]:
        return [(section.place, section.text.strip()) for section in (await reader.sections(f"x.{kind}", data, kind))[0]]

    assert await read("pdf", pdf(["first", "second"])) == [("page 1", "first"), ("page 2", "second")]
    pages = await read("docx", word("one", "two", heading="Title", break_before=2))
    assert [place for place, _ in pages] == ["page 1", "page 2"]
    assert pages[0][1].split() == ["#", "Title", "one"] and pages[1][1] == "two"
    assert await read("docx", word("no pages")) == [("", "no pages")]
    assert (await read("pptx", slides("Plan", "End")))[1] == ("slide 2", "End\n\nnotes of End")
    assert await read("xlsx", sheet("Sales", [["Region", "Sum"], [None, None], ["North", 12]])) == [
        ("sheet Sales, row 1", "Region | Sum\nNorth | 12")
    ]
    assert await read("epub", book(["<p>One</p>", "<p>Two</p>"])) == [("chapter 1", "One"), ("chapter 2", "Two")]
    assert await read("html", b"<h1>Head</h1><script>bad()</script><p>text</p>") == [("", "# Head\n\ntext")]


async def test_the_text_for_a_prompt_has_places_and_is_kept(reader: DocumentReader):
    data = pdf(["first", "second"])
    text = await reader.text("x.pdf", data, "pdf")
    assert text == "[page 1]\nfirst\n\n[page 2]\nsecond"
    assert await reader.text("x.pdf", data, "pdf") is text


EXTERNAL = '<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/hostname">]><package><manifest>&x;</manifest></package>'
LAUGHS = "<!DOCTYPE p [<!ENTITY a '{}'>{}]><package>&h;</package>".format(
    "ha" * 100, "".join(f"<!ENTITY {name} '{f'&{before};' * 20}'>" for before, name in zip("abcdefg", "bcdefgh", strict=True))
)
HOSTILE = {
    "empty": ("pdf", b""),
    "damaged PDF": ("pdf", b"%PDF-1.4 nonsense"),
    "truncated PDF": ("pdf", pdf(["text"] * 5)[:300]),
    "PDF whose pages are a cycle": ("pdf", pdf(["text"]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]")),
    "not an archive": ("docx", b"PK\x03\x04 nonsense"),
    "archive without content": ("pptx", archive({"x": "y"})),
    "archive that unpacks to too much": ("xlsx", archive({f"{at}": bytes(40 << 20) for at in range(8)})),
    "archive with too many entries": ("docx", archive({f"{at}": b"" for at in range(10_001)})),
    "external entity": ("epub", book(["x"], package=EXTERNAL)),
    "billion laughs": ("epub", book(["x"], package=LAUGHS)),
    "a sheet with an entity bomb": ("xlsx", archive({"[Content_Types].xml": LAUGHS, "xl/workbook.xml": LAUGHS})),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.slow
async def test_hostile_documents_are_refused_with_a_reason(reader: DocumentReader, name: str):
    kind, data = HOSTILE[name]
    with pytest.raises(MootError) as caught:
        await reader.sections("x", data, kind)
    assert "'x' can't be read" in caught.value.message
    assert await reader.sections("y", pdf(["still works"]), "pdf") == ([Section("page 1", "still works")], False)


async def test_a_document_that_takes_too_long_is_given_up(tmp_path: Path):
    hasty = DocumentReader(lambda: Settings(tmp_path / "home", sandbox=sandbox()), lambda: MECHANISMS, seconds=0.01)
    with pytest.raises(LimitReached, match="took longer than"):
        await hasty.sections("x.pdf", pdf(["text"]), "pdf")


async def test_too_large_documents_are_not_read(reader: DocumentReader):
    with pytest.raises(LimitReached, match="larger than 64 MiB"):
        await reader.sections("x.pdf", bytes(MAX_BYTES + 1), "pdf")


async def test_without_a_required_sandbox_nothing_is_read(tmp_path: Path):

    reader = DocumentReader(lambda: Settings(tmp_path / "home", sandbox=replace(sandbox(), required=True)), lambda: ())
    with pytest.raises(Refused, match="requires a sandbox"):
        await reader.sections("x.pdf", pdf(["text"]), "pdf")


def test_formats_are_known_by_media_type_and_by_name():
    assert kind_of("REPORT.PDF") == "pdf" and kind_of("x", "application/epub+zip") == "epub"
    assert kind_of("notes.md") == kind_of("x.zip") == kind_of("page.html", "text/html") == ""
