"""Gemini's activity in a Google Takeout."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.plugins import FORMATS
from moot.types.format import WholeConversation
from moot.types.message import text_of

HEADER = '<div class="header-cell"><p class="mdl-typography--title">Gemini Apps<br></p></div>'


def page(folder: Path, *cells: str) -> Path:
    path = folder / "MyActivity.html"
    content = '<div class="content-cell mdl-typography--body-1">'
    entries = [f'<div class="outer-cell mdl-cell"><div>{HEADER}{content}{cell}</div></div></div>\n' for cell in cells]
    path.write_text(f"<html><body>{''.join(entries)}</body></html>")
    return path


def read(path: Path) -> list[WholeConversation]:
    assert FORMATS.make("takeout").sniff(path, path.read_bytes())
    return [one.whole() for one in FORMATS.make("takeout").read(path)]


def texts(found: WholeConversation) -> list[str]:
    return [text_of(one.parts) for one in found.messages]


def test_each_prompt_with_its_answer_is_a_conversation(tmp_path: Path) -> None:
    answer = "<p>Two <b>steps</b>:</p><ol><li>Open</li><li>Run<pre><code>ls -l\n</code></pre></li></ol>"
    cells = [
        f"Prompted How?<br>On Linux &amp; BSD<br>Jan 2, 2025, 3:04:05\u202fPM CET<br>{answer}",
        "Prompted Why?<br>Jan 2, 2025, 12:00:00\u202fAM UTC<br><p>Because.</p>",
    ]
    first, second = read(page(tmp_path, *cells))
    assert texts(first) == ["How?\nOn Linux & BSD", "Two **steps**:\n\n1. Open\n2. Run\n\n```\nls -l\n\n```"]
    assert (first.messages[0].created_at, second.messages[0].created_at) == (1735826645000, 1735776000000)
    assert texts(second) == ["Why?", "Because."]


def test_ids_depend_on_the_time_and_not_on_the_position(tmp_path: Path) -> None:
    cells = [f"Prompted {words}<br>Jan 2, 2025, 3:04:05 PM UTC<br><p>Yes.</p>" for words in ("one", "two")]
    before = [one.conversation.source_id for one in read(page(tmp_path, *cells))]
    assert len(set(before)) == 2
    after = read(page(tmp_path, "Prompted new<br>Jan 3, 2025, 3:04:05 PM UTC<br><p>Yes.</p>", *cells))
    assert [one.conversation.source_id for one in after][1:] == before


def test_entries_that_are_not_prompts_are_records(tmp_path: Path) -> None:
    cells = ["Prompted one<br>Jan 2, 2025, 3:04:05 PM UTC<br><p>Yes.</p>", "Gave feedback: Good<br>Jan 1, 2025, 3:04:05 PM UTC<br>"]
    (found,) = read(page(tmp_path, *cells))
    assert (texts(found), found.fidelity.kept["records"], found.fidelity.lost) == (["one", "Yes."], 1, {})


@pytest.mark.parametrize(("when", "exact"), [("Jan 2, 2025, 3:04:05 PM XYZT", True), ("02.01.2025, 15:04:05 MEZ", False)])
def test_a_time_in_an_unknown_form_is_not_counted_as_kept(tmp_path: Path, when: str, exact: bool) -> None:
    (found,) = read(page(tmp_path, f"Eingegebener Prompt: eins<br>{when}<br><p>Ja.</p>"))
    assert texts(found)[1] == "Ja."
    assert (bool(found.messages[0].created_at), found.fidelity.kept.get("times", 0)) == (exact, 0)


def test_an_entry_without_a_time_is_reported(tmp_path: Path) -> None:
    cells = ["Prompted one<br>Jan 2, 2025, 3:04:05 PM UTC<br><p>Yes.</p>", "Prompted two<br><p>No time.</p>"]
    (found,) = read(page(tmp_path, *cells))
    assert found.fidelity.lost == {"records": 1}


def test_other_activity_is_not_claimed(tmp_path: Path) -> None:
    path = page(tmp_path, "Watched a video<br>Jan 2, 2025, 3:04:05 PM UTC<br>")
    assert not FORMATS.make("takeout").sniff(path, path.read_bytes().replace(b"Gemini Apps", b"YouTube"))
