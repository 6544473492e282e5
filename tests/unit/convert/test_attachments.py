"""Local files as parts of a prompt."""

from __future__ import annotations

import pytest

from moot.convert.files.attachments import file_text, label_of, local_file, prompt_text, readable_prompt, with_texts
from moot.convert.history import estimate
from moot.convert.ui_message import problem_of
from moot.types.message import Part, text_part


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("src/b.py", "text/x-python"),
        ("notes.md", "text/markdown"),
        ("a.ts", "text/plain"),
        ("data.json", "text/plain"),
        ("Makefile", "text/plain"),
    ],
)
def test_a_text_file_has_a_text_type_whatever_its_name(path: str, media_type: str) -> None:
    part = local_file("é = 1\n".encode(), path)
    assert (part["mediaType"], file_text(part), problem_of(part)) == (media_type, "é = 1\n", "")
    assert prompt_text(part) == f"{path}:\n\né = 1\n"


def test_only_local_text_files_become_text() -> None:
    picture = local_file(b"\x89PNG", "p.png", "image/png")
    uploaded: Part = {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain,hi"}
    old = text_part("b.py:\n\nx = 1")
    assert with_texts([picture, uploaded, old]) == (picture, uploaded, old)


def test_a_person_reads_names_and_sizes_instead_of_content() -> None:
    part = local_file(b"x = 1\n", "src/b.py")
    assert label_of(part) == "b.py, text/x-python, 6 bytes"
    assert readable_prompt([part, text_part("what?")]) == "[b.py, text/x-python, 6 bytes]\nwhat?"


def test_a_text_file_counts_as_many_tokens_as_its_text() -> None:
    part = local_file(b"word " * 40_000, "long.txt")
    assert estimate([part]) == estimate(with_texts([part])) > 40_000
