"""Earlier messages as text."""

from __future__ import annotations

from moot.agents.outside.prompts import with_history
from moot.types.message import Message, text_part

USER = Message("1", "user", (text_part("How many files?"),))
CALL = {"type": "tool-shell", "toolCallId": "c", "state": "output-available", "input": {"command": "ls"}, "output": "a\nb"}
ANSWER = Message("2", "assistant", (CALL, text_part("Two.")), {"agent": "codex"})


def test_without_a_history_the_prompt_is_unchanged() -> None:
    assert with_history([], "go on") == "go on"
    assert with_history([Message("1", "user", ())], "go on") == "go on"


def test_earlier_messages_and_calls_become_text() -> None:
    assert with_history([USER, ANSWER], "And now?").splitlines() == [
        "Earlier messages of this conversation, which you have not seen yet:",
        "",
        "User: How many files?",
        "",
        'Assistant (codex): [called shell with {"command":"ls"}: a',
        "b]",
        "Two.",
        "",
        "End of the earlier messages. The new message:",
        "",
        "And now?",
    ]


def test_the_oldest_messages_are_dropped_first() -> None:
    text = with_history([Message("0", "user", (text_part("old " * 100),)), USER], "now", limit=100)
    assert "old" not in text and "[earlier messages omitted]" in text and "How many files?" in text
    text = with_history([Message("0", "user", (text_part("x" * 500 + "the end"),))], "now", limit=100)
    assert "the end" in text and len(text) < 400
