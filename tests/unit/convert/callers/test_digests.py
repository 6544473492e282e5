"""Recognition of an earlier answer in the history that a caller sends back."""

from __future__ import annotations

from typing import Any

from moot.convert.callers.chat import read_chat
from moot.convert.callers.messages import read_messages
from moot.convert.callers.pieces import Piece, answer_digest, digests
from moot.types.message import Message


def chat(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return read_chat({"model": "m", "messages": list(messages)}).messages


FIRST = {"role": "user", "content": "How is it?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


def test_a_returned_answer_has_its_original_digest() -> None:
    before = digests(chat(FIRST)).total
    given = answer_digest(before, (Piece("reasoning", "hm"), Piece("text", "Let me\n\nsee."), Piece("call", "{}", "c1", "weather")))
    back = {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]}
    found = digests(chat({"role": "system", "content": "It is noon."}, FIRST, back, {"role": "tool", "tool_call_id": "c1", "content": "x"}))
    assert found.each[1] == given and found.before[1] == before


def test_a_different_history_changes_the_digest() -> None:
    answer = {"role": "assistant", "content": "Fine."}
    known = digests(chat(FIRST, answer)).each[1]
    assert digests(chat({"role": "user", "content": "How was it?"}, answer)).each[1] != known
    assert digests(chat(FIRST, {"role": "assistant", "content": "Bad."})).each[1] != known
    assert digests(chat(FIRST, answer, FIRST, answer)).each[3] != known


def test_outputs_change_the_digest_of_later_messages() -> None:
    def asked(output: str) -> str:
        called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        return digests(chat(FIRST, called, {"role": "tool", "tool_call_id": "c1", "content": output})).total

    assert asked("rain") != asked("sun")


def test_dialects_agree() -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [FIRST, {"role": "assistant", "content": "Fine."}]}
    assert digests(read_messages(body).messages) == digests(chat(FIRST, {"role": "assistant", "content": "Fine."}))
