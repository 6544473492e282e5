from __future__ import annotations

from moot.cli.terminal.look import Look
from moot.cli.terminal.text import CONSTANT, DIM
from moot.cli.transcript.diffs import diff_lines, margin_of
from moot.cli.transcript.run import Transcript
from moot.cli.transcript.tool_cards import Fold, body
from moot.tools.texts import unified
from moot.types.canonical import Json
from moot.types.event import Event
from moot.types.message import Message
from moot.types.tool import View


def stored(name: str, given: Json, output: str, *, state: str = "output-available", look: Look | None = None) -> str:
    transcript = Transcript(look or Look(50, colour=False), reveal=lambda number: f"--call {number}")
    field = "errorText" if state == "output-error" else "output"
    part = {"type": f"tool-{name}", "toolCallId": "1", "state": state, "input": given, field: output}
    transcript.message(Message("m", "assistant", (part,), status="cancelled"))
    head, _, rest = transcript.take().partition("\n\n")
    assert "· cancelled" in head
    return rest


def test_a_diff_keeps_its_signs_and_marks_changed_words() -> None:
    edit: Json = {"path": "a.py", "edits": [{"old_text": "x = 1", "new_text": "x = 22"}]}
    assert stored("edit_file", edit, "ok") == "✓ Edit a.py · 1 edit\n  -x = 1\n  +x = 22\n", "its place is unknown"
    coloured = stored("edit_file", edit, "ok", look=Look(50, colour=True))
    assert "\x1b[32m+x = \x1b[0m\x1b[7;32m22\x1b[0m" in coloured


def test_a_diff_has_line_numbers_and_highlighted_context_also_after_a_fold() -> None:
    before = [f"value_{number} = {number}" for number in range(1, 300)]
    after = [line.replace("= 9", "= -9") if number == 8 else line for number, line in enumerate(before)]
    after[150:150] = [f"new_{number} = 0" for number in range(100)]
    lines = diff_lines(diff := unified("a.py", "\n".join(before), "\n".join(after)), margin=margin_of(diff))
    shown = ["".join(text for text, _ in line) for line in lines]
    assert shown[:6] == [
        "  6  value_6 = 6",
        "  7  value_7 = 7",
        "  8  value_8 = 8",
        "  9 -value_9 = 9",
        "  9 +value_9 = -9",
        " 10  value_10 = 10",
    ]
    assert shown[8:10] == ["    …", "148  value_148 = 148"] and "151 +new_0 = 0" in shown and "250 +new_99 = 0" in shown
    assert shown[-3:] == [f"{number}  value_{number - 100} = {number - 100}" for number in (251, 252, 253)]
    assert ("6", CONSTANT) in lines[0] and ("  6 ", DIM) in lines[0]
    card, folded = body(View("Edit", "", diff, "diff"), Look(60, colour=False), Fold(5, 2), "")
    texts = ["".join(text for text, _ in line) for line in card]
    assert folded and texts[0] == "    6  value_6 = 6" and texts[-1] == f"  {shown[-1]}"


def test_a_long_output_is_folded_to_its_first_and_last_lines() -> None:
    shown = stored("shell", {"command": "seq"}, "\n".join(map(str, range(100)))).split("\n")
    assert shown[:7] == ["✓ $ seq", "  0", "  1", "  2", "  3", "  … 90 more lines · --call 1", "  94"]
    assert stored("shell", {"command": "seq"}, "\n".join(map(str, range(11)))).count("\n") == 12


def test_failed_denied_and_unanswered_calls_show_their_state() -> None:
    assert stored("shell", {"command": "x"}, "no such thing", state="output-error") == "✗ $ x · failed\n  no such thing\n"
    assert stored("shell", {"command": "x"}, "", state="output-denied") == "⊘ $ x · denied\n"
    assert stored("unknown_tool", {"a": 1}, "out") == '✓ unknown_tool · {"a":1}\n  out\n'
    assert stored("Bash", {"description": "look", "command": "ls -l"}, "out") == "✓ Bash · ls -l\n  out\n"
    assert stored("shell", {"command": "x"}, "", state="input-available") == "○ $ x · no outcome\n"
    assert stored("shell", {"command": "x"}, "", state="approval-requested") == "○ $ x · waiting for an answer\n"


def test_live_returns_at_most_the_requested_number_of_lines() -> None:
    transcript = Transcript(Look(30, colour=False))
    for number in range(20):
        chunk = {"type": "tool-input-available", "toolCallId": str(number), "toolName": "shell", "input": {"command": "x" * 99}}
        transcript.feed(Event("chunks", (chunk,), at=1))
    for height in (0, 1, 5, 50):
        lines = transcript.live(height, now=2.0)
        assert len(lines) == min(height, 20)
        assert all(len(line) <= 30 for line in lines)


def test_a_wait_for_a_usage_limit_is_counted_down_until_the_run_continues() -> None:
    transcript = Transcript(Look(50, colour=False))
    wait = {"type": "data-note", "data": {"text": "The usage limit is reached.", "until": 2_000_000}}
    transcript.feed(Event("chunks", (wait,)))
    assert "The usage limit is reached." in transcript.take()
    assert (transcript.live(3, 1_010), transcript.busy) == (["Continues in 16:30"], True)
    assert transcript.live(3, 2_005) == ["Continues in 0:00"]
    transcript.feed(Event("chunks", ({"type": "start-step"},)))
    assert (transcript.live(3, 2_006), transcript.busy) == ([], False)
