"""Reading and checking `SKILL.md`."""

from __future__ import annotations

import pytest

from moot.skills.content import read_document
from moot.types.skill import SkillText

HEAD = "---\nname: pdf\ndescription: Fill in forms.\n"


def found(text: str, folder: str = "pdf", **more: bool) -> list[tuple[int, bool, str]]:
    return [(finding.line, finding.is_error, finding.text) for finding in read_document(text, folder, **more).findings]


def test_all_fields_are_read() -> None:
    text = read_document(
        f"{HEAD}license: MIT\ncompatibility: Needs qpdf\nallowed-tools: Bash(git:*) Read, Write\n"
        "metadata: {category: office, tags: 'a, b', icon: 📄, forked_from: forms, version: 1.0, owner: {name: x}}\n---\n\nDo it.\n",
        "pdf",
    )
    assert (text.name, text.description, text.license, text.compatibility) == ("pdf", "Fill in forms.", "MIT", "Needs qpdf")
    assert text.allowed_tools == ("Bash(git:*)", "Read", "Write")
    assert (text.category, text.tags, text.icon, text.forked_from) == ("office", ("a", "b"), "📄", "forms")
    assert text.metadata["version"] == "1.0" and text.metadata["owner"] == {"name": "x"}
    assert text.body == "Do it."


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("Just text.", 1, "must start with front matter"),
        ("", 1, "must start with front matter"),
        ("---\nname: pdf\n---\nx", 1, "'description' is missing"),
        ("---\ndescription: d\n---\nx", 1, "'name' is missing"),
        ("---\nname: PDF\ndescription: d\n---\nx", 2, "Invalid name"),
        ("---\nname: a--b\ndescription: d\n---\nx", 2, "Invalid name"),
        (f"---\nname: {'a' * 65}\ndescription: d\n---\nx", 2, "Invalid name"),
        ("---\nname: other\ndescription: d\n---\nx", 2, "differs from the folder's name"),
        (f"---\nname: pdf\n\ndescription: {'d' * 1025}\n---\nx", 4, "at most 1,024"),
        (f"---\nname: pdf\ndescription: d\ncompatibility: {'c' * 501}\n---\nx", 4, "at most 500"),
        ("---\nname: pdf\ndescription: d\nmetadata: text\n---\nx", 4, "must be a mapping"),
        ("---\nname: pdf\ndescription: !!python/object x\n---\nx", 3, "Tags such as"),
        ("---\nname: pdf\nname: pdf\ndescription: d\n---\nx", 3, "occurs twice"),
        ("---\nname: pdf\ndescription: d\n---\nGo\u200bod", 5, "U+200B"),
        ("---\nname: pdf\ndescription: d\n---\nx \u202e y", 5, "U+202E"),
        ("---\nname: pdf\ndescription: a\U000e0041\n---\nx", 3, "U+E0041"),
    ],
)
def test_each_violation_is_an_error_with_its_line(text: str, line: int, words: str) -> None:
    errors = [(at, said) for at, is_error, said in found(text) if is_error]
    assert [(at, words in said) for at, said in errors] == [(line, True)], errors


def test_comments_and_unknown_fields_are_only_warnings() -> None:
    text = f"{HEAD}hooks: x\n---\nDo it.\n<!-- and more -->\n"
    assert [(line, is_error) for line, is_error, _ in found(text)] == [(4, False), (7, False)]
    assert read_document(text, "pdf").findings[1].hides


def test_a_program_with_rules_of_its_own_may_leave_out_the_name() -> None:
    text = "---\ndescription: d\nargument-hint: x\n---\nDo it."
    assert found(text, lenient=True) == []
    assert read_document(text, "pdf", lenient=True).name == "pdf"


def test_tags_may_be_a_list() -> None:
    assert SkillText(metadata={"tags": ["a", "b"]}).tags == ("a", "b")
