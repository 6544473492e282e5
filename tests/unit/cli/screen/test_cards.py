from __future__ import annotations

from moot.cli.terminal.look import Look
from moot.cli.transcript.run import Transcript
from moot.types.canonical import Json
from moot.types.event import Event
from moot.types.message import Message


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
    assert stored("edit_file", edit, "ok") == "✓ Edit a.py · 1 edit\n  @@ -1 +1 @@\n  -x = 1\n  +x = 22\n"
    coloured = stored("edit_file", edit, "ok", look=Look(50, colour=True))
    assert "\x1b[32m+x = \x1b[0m\x1b[7;32m22\x1b[0m" in coloured


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
