"""Summaries in the terminal: printed once, folded, and expanded on request."""

from __future__ import annotations

from dataclasses import replace

from moot.cli.repl.branch import ShownBranch
from moot.cli.repl.scrollback import Scrollback
from moot.cli.terminal.look import Look
from moot.types.message import Message, text_part
from moot.types.tree import Compaction

TEXT = "\n".join(f"fact {number}" for number in range(9))


class View:
    """A display that keeps the messages."""

    def __init__(self) -> None:
        self.shown: list[Message] = []

    def message(self, message: Message) -> None:
        self.shown.append(message)

    def notice(self, text: str) -> None:
        raise AssertionError(text)


def summarized(message: Message, seq: int, text: str = TEXT) -> Message:
    return replace(message, parts=(*message.parts, Compaction(message.id, text, seq=seq).to_part()))


def test_a_new_summary_is_printed_once_and_again_after_it_was_changed() -> None:
    view = View()
    branch = [Message("a", "user", (text_part("hi"),)), Message("b", "assistant", (text_part("yes"),))]
    shown = ShownBranch(view)
    shown.show(branch)
    for seq in (5, 5, 7):
        shown.show([branch[0], summarized(branch[1], seq)])
    assert [message.id for message in view.shown] == ["a", "b", "", ""]
    shown.show([branch[0], summarized(branch[1], 7), summarized(Message("c", "user", (text_part("more"),)), 9)])
    shown.show([branch[0], summarized(branch[1], 7), summarized(Message("c", "user", (text_part("more"),)), 9)])
    assert [message.id for message in view.shown] == ["a", "b", "", "", "c"]


def test_a_summary_is_folded_and_can_be_expanded_also_after_a_prompt() -> None:
    scrollback = Scrollback(Look(80, colour=False))
    scrollback.message(summarized(Message("a", "user", (text_part("hi"),)), 5, f"\x1b[2J{TEXT}"))
    text = scrollback.take()
    assert "hi" in text and "Summary of the messages above" in text and "fact 2" in text and "fact 3" not in text
    assert "6 more lines" in text and "\x1b[2J" not in text
    scrollback.expand()
    expanded = scrollback.take()
    assert "fact 8" in expanded and "\x1b[2J" not in expanded
