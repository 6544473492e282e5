from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from moot.convert.dialects.parts import made_here
from moot.convert.history import FILE_TOKENS, estimate, split_steps, trim
from moot.types.message import BY_CLIENT, Message, Part, is_tool, text_part

STEP: Part = {"type": "step-start"}


def call(id: str, output: str) -> Part:
    return {"type": "tool-read", "toolCallId": id, "state": "output-available", "input": {}, "output": output}


def user(text: str) -> Message:
    return Message(text, "user", (text_part(text),))


def assistant(*parts: Part) -> Message:
    return Message("a", "assistant", parts)


def ids(messages: tuple[Message, ...]) -> list[str]:
    return [message.id for message in messages]


def test_text_counts_by_characters_and_files_by_the_piece() -> None:
    assert estimate([text_part("x" * 400)]) == 100
    assert estimate([text_part("語" * 4)]) == 3
    picture: Part = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64," + "A" * 1_000_000}
    assert estimate([picture]) == FILE_TOKENS
    with_picture = {"type": "content", "value": [text_part("x" * 40), picture]}
    assert estimate([call("c", "x" * 400)]) == 110
    assert FILE_TOKENS + 10 < estimate([{**call("c", ""), "output": with_picture}]) < FILE_TOKENS + 60
    assert estimate([{"type": "data-plan", "data": "x" * 4000}, STEP, {"type": "source-url"}]) == 0


def test_a_message_is_split_at_steps_and_steering_messages() -> None:
    steering: Part = {"type": "steering-message", "id": "s", "parts": [text_part("rather b")]}
    steps = split_steps(assistant(STEP, text_part("one"), call("c", "1"), steering, STEP, text_part("two"), STEP))
    assert [(len(step.steering), len(step.parts), len(step.calls)) for step in steps] == [(0, 2, 1), (1, 1, 0)]
    assert split_steps(assistant()) == () and len(split_steps(assistant(text_part("bare")))) == 1


def test_a_short_history_is_not_trimmed() -> None:
    messages = (user("a"), assistant(text_part("b")), user("c"))
    assert trim(messages, None) is messages and trim(messages, 1_000) is messages


def test_whole_groups_are_dropped_oldest_first() -> None:
    long = assistant(text_part("x" * 400))
    messages = (user("first"), long, user("second"), long, user("third"))
    assert ids(trim(messages, 130)) == ["second", "a", "third"]
    assert ids(trim(messages, 50)) == ["third"]


def test_the_last_user_message_is_kept_however_large() -> None:
    assert ids(trim((user("a"), user("x" * 4_000)), 10)) == ["a", "x" * 4_000]
    assert ids(trim((user("a"), assistant(text_part("b")), user("x" * 4_000)), 10)) == ["x" * 4_000]


def test_a_long_answer_in_the_making_loses_its_oldest_steps_with_their_calls() -> None:
    steps = [part for number in range(10) for part in (STEP, text_part(f"say {number}"), call(f"c{number}", "x" * 400))]
    kept = trim((user("go"), assistant(*steps)), 300)
    assert ids(kept) == ["go", "a"]
    assert [part["toolCallId"] for part in kept[1].parts if is_tool(part)] == ["c8", "c9"]
    assert kept[1].parts[0] == STEP
    assert [part["toolCallId"] for part in trim((user("go"), assistant(*steps)), 1)[1].parts if is_tool(part)] == ["c9"]


PARTS = st.lists(st.sampled_from([STEP, text_part("x" * 40), call("c", "y" * 80), {"type": "data-plan", "data": 1}]), max_size=8)
MESSAGES = st.lists(
    st.builds(lambda role, parts: Message(role, role, tuple(parts)), st.sampled_from(["user", "assistant"]), PARTS), max_size=8
)


@given(MESSAGES, st.integers(0, 400))
@settings(deadline=None)
def test_trimming_keeps_order_groups_and_the_last_message(made: list[Message], budget: int) -> None:
    messages = tuple(dataclasses.replace(message, id=str(index)) for index, message in enumerate(made))
    kept = trim(messages, budget)
    users = [message.id for message in messages if message.role == "user"]
    numbers = [int(message.id) for message in kept]
    assert numbers == sorted(set(numbers))
    assert not users or users[-1] in ids(kept)
    if users and len(kept) < len(messages):
        assert kept[0].role == "user"
    groups = sum(message.role == "user" and (index == 0 or kept[index - 1].role != "user") for index, message in enumerate(kept))
    if groups > 1:
        assert sum(estimate(message.parts) + 4 for message in kept) <= budget


def test_signatures_in_a_clients_own_history_are_never_sent() -> None:
    part: Part = {"type": "reasoning", "text": "hm", "providerMetadata": {"anthropic": {"signature": "s", "provider": "p"}}}
    assert made_here(part, "anthropic", Message("m", "assistant", (part,)), "p") is not None
    assert made_here(part, "anthropic", Message("m", "assistant", (part,), dict(BY_CLIENT)), "p") is None
