"""References to files that an earlier message of the same request has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moot.agents.window import fitted, in_request, summary_message, with_references
from moot.convert.files.attachments import facts_of, local_file
from moot.convert.history import history_tokens
from moot.types.message import Message, Part, text_part
from moot.types.tree import Compaction

NAMES = st.sampled_from(["a.py", "b.py"])
CONTENTS = st.sampled_from(["x" * 400, "y" * 400, "z" * 4_000])
FILES = st.lists(st.builds(lambda name, text: local_file(text.encode(), name), NAMES, CONTENTS), max_size=3)


def prompt(number: int, files: list[Part]) -> Message:
    return Message(f"user {number}", "user", (*files, text_part(f"question {number}")))


def answer(number: int) -> Message:
    return Message(f"assistant {number}", "assistant", (text_part(f"answer {number} " * 20),))


HISTORIES = st.lists(FILES, min_size=1, max_size=8).map(
    lambda files: tuple(message for number, each in enumerate(files) for message in (prompt(number, each), answer(number)))
)


def references(messages: tuple[Message, ...]) -> list[str]:
    texts = [str(part.get("text")) for message in messages for part in message.parts if message.role == "user"]
    return [text for text in texts if "unchanged since it was attached above" in text]


def test_a_repeated_file_is_sent_once_and_a_changed_one_again() -> None:
    one, two = local_file(b"one", "a.py"), local_file(b"two", "a.py")
    lines = local_file(b"one", "a.py", lines=(1, 1))
    picture = local_file(b"one", "a.png", "image/png")
    messages = tuple(prompt(number, [part]) for number, part in enumerate([one, one, two, one, lines, lines, picture, picture]))
    sent = [message.parts[0] for message in with_references(messages)]
    assert [part["type"] for part in sent] == ["file", "text", "file", "file", "file", "text", "file", "text"]
    assert sent[5]["text"] == "a.py, lines 1 to 1: unchanged since it was attached above, so it is not repeated."
    assert messages[1].parts[0] == one  # what is stored stays whole


def test_files_without_a_path_are_never_replaced() -> None:
    upload: Part = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,eA=="}
    messages = (prompt(0, [upload]), prompt(1, [upload]))
    assert with_references(messages) == messages


@given(HISTORIES, st.integers(0, 15))
def test_later_messages_never_change_how_earlier_ones_are_sent(messages: tuple[Message, ...], count: int) -> None:
    assert with_references(messages)[:count] == with_references(messages[:count])
    assert with_references(messages) == with_references(messages)


@given(HISTORIES, st.integers(50, 6_000), st.booleans())
def test_each_reference_has_its_file_in_the_same_request(messages: tuple[Message, ...], budget: int, summarized: bool) -> None:
    head = (summary_message(Compaction("", "They read a.py.")),) if summarized else ()
    sent = fitted(in_request((*head, *messages)), 0, budget)
    whole = {message.id: message for message in messages}
    seen: set[tuple[str, str]] = set()
    for message in sent:
        if message.id not in whole or message.role != "user":
            continue
        for before, after in zip(whole[message.id].parts, message.parts, strict=True):
            key = (str(facts_of(before).get("path")), str(before.get("url")))
            assert after == before or key in seen
            seen.add(key)
    if len(sent) > len(head) + 2:
        assert history_tokens(sent) <= max(budget, budget // 2 + history_tokens(head))


def test_a_history_that_fits_only_with_references_is_sent_whole() -> None:
    file = local_file(b"x" * 4_000, "a.py")
    messages = tuple(message for number in range(8) for message in (prompt(number, [file]), answer(number)))
    sent = fitted(messages, 0, 3_000)
    assert len(sent) == 16 and len(references(sent)) == 7
    shorter = fitted(messages, 0, 1_500)  # the first copy is gone, so the first prompt that is left has it
    assert 2 < len(shorter) < 16 and shorter[0].parts[0] == file and len(references(shorter)) == len(shorter) // 2 - 1
