from __future__ import annotations

from moot.cli.terminal.look import Look
from moot.cli.transcript.run import Transcript
from moot.types.chunk import Chunk
from moot.types.event import Event

PLAIN = Look(60, colour=False)


def fed(transcript: Transcript, *chunks: Chunk, at: int = 1_000_000, body: object = None) -> None:
    transcript.feed(Event("chunks", chunks, at=at, body=body))  # type: ignore[arg-type]


def test_a_paragraph_is_redrawn_until_it_ends_and_then_printed_once() -> None:
    transcript = Transcript(Look(20, colour=False))
    fed(transcript, {"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "one two three "})
    assert (transcript.take(), transcript.live(5)) == ("", ["one two three"])
    fed(transcript, {"type": "text-delta", "id": "1", "delta": "four five six\n\nnext\n"})
    assert (transcript.take(), transcript.live(5)) == ("one two three four\nfive six\n", ["", "next"])
    fed(transcript, {"type": "text-end", "id": "1"})
    assert (transcript.take(), transcript.live(5), transcript.take()) == ("\nnext\n", [], "")


def test_a_call_is_shown_while_it_runs_and_when_it_has_ended() -> None:
    transcript = Transcript(PLAIN)
    fed(transcript, {"type": "tool-input-available", "toolCallId": "a", "toolName": "shell", "input": {"command": "make"}})
    assert transcript.live(5, now=3.0) == ["⠋ $ make · 2.0 s"]
    fed(transcript, {"type": "tool-output-available", "toolCallId": "a", "output": "built"}, at=4_500_000)
    assert transcript.take() == "✓ $ make · 3.5 s\n  built\n"
    assert transcript.live(5) == []


def plan(*entries: tuple[str, str]) -> Chunk:
    return {"type": "data-plan", "id": "plan", "data": {"entries": [{"content": text, "status": status} for text, status in entries]}}


def test_a_plan_is_shown_in_full_once_and_then_by_its_progress() -> None:
    transcript = Transcript(PLAIN)
    fed(transcript, plan(("look", "in_progress"), ("fix", "pending")))
    assert transcript.take() == "▸ look\n· fix\n"
    fed(transcript, plan(("look", "completed"), ("fix", "in_progress")))
    assert transcript.take() == "plan 1/2: fix\n"
    fed(transcript, plan(("fix it well", "pending")))
    assert transcript.take() == "· fix it well\n"


def test_text_of_a_sub_agent_is_shown_but_not_its_reasoning() -> None:
    transcript = Transcript(PLAIN)
    said: Chunk = {
        "type": "data-subagent",
        "id": "1",
        "data": {"parent": "a", "agent": "explorer", "kind": "text", "text": "It is \x1b[2Jthere."},
    }
    fed(transcript, said, {**said, "id": "2", "data": {"agent": "explorer", "kind": "reasoning", "text": "hmm"}})
    assert transcript.take() == "explorer: It is there.\n"


def call(id: str, command: str, parent: str = "") -> Chunk:
    chunk: Chunk = {"type": "tool-input-available", "toolCallId": id, "toolName": "shell", "input": {"command": command}}
    return {**chunk, "toolMetadata": {"moot": {"parentToolCallId": parent}}} if parent else chunk


def output(id: str, text: str = "") -> Chunk:
    return {"type": "tool-output-available", "toolCallId": id, "output": text}


def words(parent: str, text: str) -> Chunk:
    data: Chunk = {"parentToolCallId": parent, "agent": "explorer", "kind": "text", "text": text}
    return {"type": "data-subagent", "id": text, "data": data}


def test_the_calls_of_a_sub_agent_are_inside_the_card_that_started_it() -> None:
    transcript = Transcript(Look(60, colour=False, motion=False))
    fed(transcript, call("a", "explore"), call("b", "ls", "a"), words("a", "I look."), call("c", "deep", "b"))
    assert transcript.take() == ""
    assert transcript.live(9) == ["● $ explore", "  ● $ ls", "    ● $ deep", "  explorer: I look."]
    fed(transcript, output("c"), output("b", "notes.txt"), output("a", "Found it."))
    assert transcript.take() == "✓ $ explore\n  ✓ $ ls\n    ✓ $ deep\n  explorer: I look.\n  Found it.\n"
    [folded] = transcript.folded
    assert folded.draw(PLAIN) == "✓ $ explore\n  ✓ $ ls\n    ✓ $ deep\n    notes.txt\n  explorer: I look.\n  Found it.\n"


def test_many_calls_of_a_sub_agent_are_folded() -> None:
    transcript = Transcript(PLAIN)
    fed(
        transcript,
        call("a", "explore"),
        *(call(f"{n}", f"ls {n}", "a") for n in range(9)),
        *(output(f"{n}") for n in range(9)),
        output("a"),
    )
    shown = transcript.take().splitlines()
    assert shown == ["✓ $ explore", *(f"  ✓ $ ls {n}" for n in range(6)), "  … 3 more · Ctrl+O"]
    assert transcript.folded[-1].draw(PLAIN).count("ls") == 9


def test_what_a_sub_agent_does_after_its_card_was_printed_follows_below_its_title() -> None:
    transcript = Transcript(PLAIN)
    fed(transcript, call("a", "spawn"), output("a"))
    assert transcript.take() == "✓ $ spawn\n"
    fed(transcript, call("b", "ls", "a"), output("b", "notes.txt"), words("a", "Found it."), call("c", "make"), output("c"))
    fed(transcript, words("a", "The end."))
    assert transcript.take() == (
        "\n↳ $ spawn\n  ✓ $ ls\n    notes.txt\n  explorer: Found it.\n\n✓ $ make\n\n↳ $ spawn\n  explorer: The end.\n"
    )


def test_a_screen_without_live_lines_announces_the_calls_of_a_sub_agent() -> None:
    transcript = Transcript(PLAIN, announces=True)
    fed(transcript, call("a", "explore"), call("b", "ls", "a"))
    assert transcript.take() == "… $ explore\n  … $ ls\n"


def test_calls_that_only_read_share_a_line() -> None:
    transcript = Transcript(PLAIN)
    for name in ("a.py", "b.py"):
        fed(transcript, {"type": "tool-input-available", "toolCallId": name, "toolName": "read_file", "input": {"path": name}})
        fed(transcript, {"type": "tool-output-available", "toolCallId": name, "output": "text"})
    fed(transcript, {"type": "text-delta", "id": "1", "delta": "So."})
    transcript.end()
    assert transcript.take() == "✓ Read a.py, b.py\n\nSo.\n"
    assert [one.number for one in transcript.folded] == [1, 2]
