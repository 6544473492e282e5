from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.commands.chat.document import entry_of, parts_of
from moot.cli.commands.chat.edit import Revision, render_conversation, revision
from moot.errors import UsageError
from moot.types.message import Message, Part, text_of, text_part

TOOL: Part = {
    "type": "tool-read_file",
    "toolCallId": "c1",
    "state": "output-available",
    "input": {"path": "a --> b\x1b[2J"},
    "output": {"text": "x"},
}
FILE: Part = {"type": "file", "mediaType": "image/png", "filename": "photo.png", "url": "data:,"}
STEP: Part = {"type": "step-start"}
THOUGHT: Part = {"type": "reasoning", "text": "hm", "providerMetadata": {"anthropic": {"signature": "s"}}}

MESSAGES = [
    Message("m1", "user", (FILE, text_part("what is it?"))),
    Message("m2", "assistant", (STEP, THOUGHT, TOOL, STEP, text_part("a cat")), {"model": "x@y", "usage": {"n": 1}}),
    Message("m3", "user", (text_part("sure?"),)),
    Message("m4", "assistant", (STEP, text_part("yes")), {"model": "x@y"}),
]
NUMBERS = {"m1": 1, "m2": 2, "m3": 5, "m4": 6}
TEXT = render_conversation(MESSAGES, NUMBERS)


def revised(old: str, new: str) -> Revision:
    assert old in TEXT
    found = revision(MESSAGES, NUMBERS, TEXT.replace(old, new, 1))
    assert found is not None
    return found


def said(found: Revision) -> list[tuple[str, str]]:
    return [(message.role, text_of(message.parts)) for message in found.messages]


def test_an_unchanged_text_has_no_changes() -> None:
    assert revision(MESSAGES, NUMBERS, TEXT) is None


def test_a_change_starts_a_branch_that_includes_the_following_messages() -> None:
    found = revised("sure?", "really?")
    assert (found.parent, said(found)) == ("m2", [("user", "really?"), ("assistant", "yes")])
    assert {message.id for message in found.messages}.isdisjoint(NUMBERS)


def test_a_changed_answer_keeps_its_tools_reasoning_and_author() -> None:
    found = revised("a cat", "a dog")
    assert found.parent == "m1"
    assert found.messages[0].parts == (STEP, THOUGHT, TOOL, STEP, text_part("a dog"))
    assert found.messages[0].metadata == {"model": "x@y"}
    assert revised("yes", "no").messages[0].parts == (STEP, text_part("no"))


def test_messages_may_be_removed_and_added() -> None:
    mark = "<!-- moot 5 user m3 -->"
    without = TEXT[: TEXT.index(mark)]
    assert revision(MESSAGES, NUMBERS, without) == Revision("m2", ())
    assert said(revised(mark, "<!-- moot user -->\nwait\n\n" + mark)) == [("user", "wait"), ("user", "sure?"), ("assistant", "yes")]
    assert said(revised("\nyes\n", "\n\n")) == []


def test_a_replacement_that_changed_markers_does_no_harm() -> None:
    text = "\n".join(line.replace("a", "b", 1) if not line.startswith("<!-- moot =") else line for line in TEXT.split("\n"))
    found = revision(MESSAGES, NUMBERS, text)
    assert found is not None
    assert said(found) == [("user", "whbt is it?"), ("assistant", "b cat"), ("user", "sure?"), ("assistant", "yes")]


def test_control_characters_of_a_tool_call_do_not_reach_the_text() -> None:
    assert "\x1b" not in TEXT
    assert "-- > b" in TEXT


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tool read_file", "tool write_file", "Line 11: this block of message 2 was changed"),
        ("photo.png", "other.png", "Line 6: this block of message 1 was changed"),
        ("<!-- moot 5 user m3 -->", "<!-- moot 7 user m3 -->", "Line 15: message 7 does not exist"),
        ("<!-- moot 5 user m3 -->", "<!-- moot 5 system m3 -->", "Line 15: the role of message 5 is user"),
        ("<!-- moot 5 user m3 -->", "<!-- moot 2 assistant m2 -->", "Line 15: message 2 already appears on line 10"),
        ("sure?", "<!-- moot = 2.0 x -->", "Line 16: this block of message 5 was changed"),
        ("<!-- moot 5 user m3 -->", "<!-- moot user -->\n<!-- moot = 9.9 x -->", "Line 16: this block belongs to another message"),
    ],
)
def test_an_invalid_change_is_reported_with_its_line(old: str, new: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        revised(old, new)
    assert words in raised.value.message


def test_a_missing_block_and_an_empty_conversation_are_errors() -> None:
    line = next(line for line in TEXT.split("\n") if "tool read_file" in line)
    with pytest.raises(UsageError, match="Line 10: a block of message 2 is missing"):
        revised(line + "\n", "")
    with pytest.raises(UsageError, match="conversation is empty"):
        revision(MESSAGES, NUMBERS, "")


parts = st.lists(st.one_of(st.sampled_from([TOOL, FILE, STEP, THOUGHT]), st.text(st.characters(exclude_categories=["Cs"])).map(text_part)))


@given(st.lists(parts, min_size=1, max_size=4))
def test_an_unchanged_text_never_changes_a_conversation(conversation: list[list[Part]]) -> None:
    messages = [Message(f"m{at}", "assistant", tuple(found)) for at, found in enumerate(conversation)]
    numbers = {message.id: at for at, message in enumerate(messages, 1)}
    assert revision(messages, numbers, render_conversation(messages, numbers)) is None


@given(parts)
def test_an_unchanged_message_keeps_its_parts(found: list[Part]) -> None:
    message = Message("m", "assistant", tuple(found))
    made = parts_of(entry_of(message, 3), message)
    assert [part for part in made if part != STEP] == [part for part in found if part != STEP]
