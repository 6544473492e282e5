"""Splitting of documents into chunks of similar length, at headings and paragraphs. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from moot.types.knowledge import Chunk, Section

WORDS = 300
"""Number of words after which a chunk ends with the current paragraph. Two characters of CJK text count as one word."""
CHARACTERS = 4000
"""Maximum length of a chunk, for texts without paragraphs."""
CHUNKS = 20_000
"""Maximum number of chunks per document."""

_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*\s*")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def chunks_of(sections: Iterable[Section], *, lines: bool) -> list[Chunk]:
    """Return the chunks of a document. If `lines` is set, the place of each chunk is the number of its first line."""
    found = (chunk for section in sections for chunk in _of_section(section, lines=lines))
    return [chunk for chunk, _ in zip(found, range(CHUNKS), strict=False)]


def _of_section(section: Section, *, lines: bool) -> Iterator[Chunk]:
    heading, first, kept, count = "", 1, list[str](), 0

    def chunk() -> Iterator[Chunk]:
        text = "\n".join(kept).strip()
        if text:
            yield Chunk(f"line {first}" if lines else section.place, heading, text)

    for number, line in enumerate(_lines(section.text), 1):
        title = _HEADING.fullmatch(line)
        length = sum(map(len, kept)) + len(line)
        if title is not None or length > CHARACTERS or (count >= WORDS and not line.strip()):
            yield from chunk()
            kept, count = [], 0
        if title is not None:
            heading = title[1][:200]
        if not kept:
            first = number
            if not line.strip():
                continue
        kept.append(line)
        count += len(line.split()) + len(_CJK.findall(line)) // 2
    yield from chunk()


def _lines(text: str) -> Iterator[str]:
    """Yield the lines. Lines longer than a chunk are split."""
    for line in text.split("\n"):
        yield line[:CHARACTERS]
        yield from (line[at : at + CHARACTERS] for at in range(CHARACTERS, len(line), CHARACTERS))
