"""The approval prompt without a terminal: which keys are answers, and that nothing is hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.approvals.preview import call_rows
from moot.cli.approvals.prompts import ALONE, QUIET, CallPrompt, KeyGuard, Pending, QuestionPrompt
from moot.cli.approvals.screen import Viewport, draw
from moot.cli.terminal.prompts.rows import Row, render
from moot.cli.terminal.text import width_of
from moot.features.approvals import CallPreview, diff_of, preview_call
from moot.guard.terminal import visible_lines
from moot.types.approval import Answer, Approval, ApprovalPart
from moot.types.canonical import JsonObject, dumps

PART = ApprovalPart("git status -s", "ask", "mode ask", ("git status *", "git status -s"), True)


def prompt(*parts: ApprovalPart, command: str = "git status -s") -> CallPrompt:
    arguments = dumps({"command": command})
    approval = Approval("run/tool:1.0", "run", "call", "shell", arguments, b"", 0, parts=parts)
    return CallPrompt(approval, CallPreview(arguments, parts), "/work", "default · step 1")


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_is_an_answer_only_if_no_other_key_is_typed_around_it() -> None:
    guard = KeyGuard(0.0)
    guard.add("y", 0.39, "yn")
    assert guard.confirmed(9.0) is None
    guard.add("y", 0.39 + QUIET, "yn")
    assert guard.confirmed(0.39 + QUIET + ALONE / 2) is None
    assert guard.confirmed(0.39 + QUIET + ALONE) == "y"
    assert guard.confirmed(9.0) is None
    assert guard.typed == "y"


@given(
    st.lists(st.tuples(st.sampled_from(["y", "n", "x", "", "ok\ny\n"]), st.floats(0, ALONE * 0.99)), min_size=2, max_size=8),
    st.floats(0, 2),
)
def test_fast_typing_is_never_an_answer_and_never_lost(keys: list[tuple[str, float]], begin: float) -> None:
    guard, now = KeyGuard(0.0), begin
    for key, pause in keys:
        assert guard.confirmed(now) is None
        guard.add(key, now, "yn")
        now += pause
    assert guard.confirmed(now + 9) is None
    assert guard.typed == "".join(key for key, _ in keys)


def test_enter_chooses_nothing_and_only_shown_keys_are_answers() -> None:
    assert list(prompt(PART).keys()) == ["y", "s", "a", "n", "b", "?", "e"]
    assert list(prompt(ApprovalPart("rm x", "ask", "mode ask", ("rm x",))).keys()) == ["y", "s", "n", "b", "?", "e"]
    edit = ApprovalPart("a.txt", "ask", "mode ask", ("a.txt",), edits=True)
    assert list(prompt(edit).keys()) == ["y", "s", "f", "n", "b", "?", "e"]
    chosen = prompt(edit)
    chosen.choose("f")
    assert chosen.proposed == Answer(True, "edits")
    assert "f" not in list(prompt(edit, PART).keys())
    assert list(prompt(ApprovalPart("a > b", "ask", "writes")).keys()) == ["y", "n", "b", "?", "e"]
    assert not {"", "\r", "\n", " "} & set(prompt(PART).keys())


@pytest.mark.parametrize(
    ("key", "answer"),
    [("y", Answer(True)), ("s", Answer(True, "conversation")), ("n", Answer(False, reason="denied by the user"))],
)
def test_each_key_proposes_its_answer(key: str, answer: Answer) -> None:
    request = prompt(PART)
    request.choose(key)
    assert (request.proposed, request.pending) == (answer, Pending.ANSWER)


def test_a_pattern_can_be_edited_before_it_is_saved_and_an_empty_one_is_not_saved() -> None:
    request = prompt(PART)
    request.choose("a")
    assert request.input is not None and (request.input.text, request.input.suggestions) == ("git status *", PART.patterns)
    request.submit("  ")
    assert request.proposed is None
    request.choose("a")
    request.submit("git status -s*")
    assert request.proposed == Answer(True, "always", patterns=("git status -s*",))


def test_edited_arguments_are_shown_before_they_run() -> None:
    request = prompt(PART)
    request.choose("e")
    request.submit("ls")
    assert (request.pending, request.text) == (Pending.SHOW, '{"command":"ls"}')
    request.show(CallPreview(dumps({"command": "ls"}), ()))
    assert list(request.keys()) == ["y", "e", "n", "b"]
    request.choose("y")
    assert request.proposed == Answer(True, arguments=b'{"command":"ls"}')


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1, "a": 2}', "NaN"])
def test_arguments_that_are_not_an_object_change_nothing(text: str) -> None:
    request = prompt(PART)
    assert request.take_edited(text) is None
    assert "Nothing was changed." in request.message


# ── visible content ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def plain(lines: list[list[tuple[str, str]]]) -> list[str]:
    return ["".join(text for _, text in line) for line in lines]


@given(st.text(max_size=300), st.integers(8, 60))
def test_a_row_is_wrapped_to_the_width_without_losing_a_character(text: str, width: int) -> None:
    lines = plain(render([Row(line, indent=0) for line in visible_lines(text)], width))
    assert all(width_of(line) <= width for line in lines)
    assert "".join(lines) == "".join(visible_lines(text))


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=400), st.integers(10, 80), st.integers(10, 40))
def test_every_character_of_a_command_can_be_scrolled_to(command: str, width: int, rows: int) -> None:
    request = prompt(ApprovalPart(command, "ask", "not understood"), command=command)
    everything, seen, top = plain(render(request.body(), width)), set[str](), 0
    while True:
        lines, at = draw(request, Viewport(width, rows, top, 299, "typed"))
        seen |= set(plain(lines))
        if at < top:
            break
        top += 1
    assert set(everything) <= seen


@given(st.integers(8, 200), st.integers(5, 50), st.text(max_size=50))
def test_every_line_fits_every_terminal(width: int, rows: int, typed: str) -> None:
    lines, _ = draw(prompt(PART), Viewport(width, rows, 0, 61, typed))
    assert all(width_of(line) <= max(width, 8) for line in plain(lines))


@pytest.mark.anyio
async def test_a_file_shows_what_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    looked = await preview_call(dumps({"path": "a.txt", "content": "one\n2\n"}), (), (tmp_path,), tmp_path)
    texts = [row.text for row in CallPrompt(Approval("r/t", "r", "c", "write_file", looked.arguments, b"", 0), looked, "", "").body()]
    assert {"2 -two", "2 +2", "1  one"} <= set(texts) and looked.fact == "replaces 2 lines, 8 bytes"
    assert (await preview_call(dumps({"path": "b.txt", "content": ""}), (), (tmp_path,), tmp_path)).fact == "a new file"


@pytest.mark.anyio
async def test_an_edit_shows_its_place_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(f"value_{number} = {number}\r\n" for number in range(1, 20)))
    edits = [{"old_text": "value_9 = 9\nvalue_10", "new_text": "value_9 = 0\nvalue_10"}]
    looked = await preview_call(dumps({"path": "a.py", "edits": edits}), (), (tmp_path,), tmp_path)
    texts = [row.text for row in call_rows(looked)]
    assert texts[1:5] == [" 6  value_6 = 6", " 7  value_7 = 7", " 8  value_8 = 8", " 9 -value_9 = 9"] and " 9 +value_9 = 0" in texts
    diff = diff_of(looked)
    assert diff is not None and diff.startswith("--- now\n+++ then\n@@ -6,7 +6,7 @@\n")
    wrong = await preview_call(dumps({"path": "a.py", "edits": [{"old_text": "none", "new_text": "x"}]}), (), (tmp_path,), tmp_path)
    assert [row.text for row in call_rows(wrong)][1:] == ["edit 1 of 1", "-none", "+x"] and diff_of(wrong) is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "edits", "rows"),
    [
        ("#!/bin/sh\na\n", [("a\n", "A\n"), ("#!/bin/sh", "#!/bin/sh\r")], ["-#!/bin/sh", "-a", "+#!/bin/sh\\x0d", "+A"]),
        ("a\nend\n", [("a\n", "b\n"), ("end\n", "end")], ["-a", "+b", "end", "-"]),
        ("# x\n", [("# x", "# note\u2028echo safe\x85rm -rf ~")], ["-# x", "+# note<U+2028>echo safe\\x85rm -rf ~"]),
    ],
)
async def test_an_edit_hides_no_line_ending(tmp_path: Path, text: str, edits: list[tuple[str, str]], rows: list[str]) -> None:
    (tmp_path / "a").write_bytes(text.encode())
    given = [{"old_text": old, "new_text": new} for old, new in edits]
    looked = await preview_call(dumps({"path": "a", "edits": given}), (), (tmp_path,), tmp_path)
    shown = [row.text.lstrip(" 0123456789").rstrip() for row in call_rows(looked)[1:]]
    assert shown == rows
    diff = diff_of(looked)
    assert diff is not None and [line for line in diff.split("\n")[3:] if line[0] in "+-"] != []


def test_changed_words_are_marked_and_no_line_is_treated_as_a_file_name() -> None:
    edits = [{"old_text": "-- a", "new_text": "++ b"}, {"old_text": "size = 1\n\x1b[2J", "new_text": "size = 2\n\x1b[2J"}]
    arguments = dumps({"path": "x.py", "edits": edits})
    approval = Approval("run/tool:1.0", "run", "call", "edit_file", arguments, b"", 0)
    lines, _ = draw(CallPrompt(approval, CallPreview(arguments), "/work", "default · step 1"), Viewport(60, 60, 0, None, ""))
    said = ["".join(text for _, text in line).strip() for line in lines]
    for wanted in ("--- a", "+++ b", "-size = 1", "+size = 2", "-\\x1b[2J"):
        assert wanted in said
    assert ("bad,marked", "1") in [span for line in lines for span in line]
    assert ("good,marked", "2") in [span for line in lines for span in line]


def test_a_plan_can_be_changed_before_it_is_accepted() -> None:
    prompt = QuestionPrompt([{"text": "1. Write x", "header": "Plan", "options": [{"label": "Accept"}], "edits": "plan"}], "default")
    assert prompt.keys()["e"] == "edit the plan"
    prompt.choose("e")
    assert prompt.pending is Pending.EDITOR
    prompt.change("1. Write x\n")
    assert prompt.message == "Nothing was changed."
    prompt.change("1. Write z\n")
    assert next(row.text for row in prompt.body()) == "1. Write z"
    prompt.choose("1")
    assert prompt.proposed == Answer(True, value=[["Accept"]], arguments=b'{"plan":"1. Write z"}')


def test_a_question_that_accepts_only_its_options_offers_no_other_answer():
    question: JsonObject = {"text": "Continue?", "options": [{"label": "Continue"}, {"label": "Stop"}]}
    assert list(QuestionPrompt([question], "default").keys()) == ["1", "2", "w", "n"]
    assert list(QuestionPrompt([{**question, "choices_only": True}], "default").keys()) == ["1", "2", "n"]
