from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.convert.comparison import Side, compare_conversations, word_diff
from moot.types.conversation import Conversation
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.usage import Usage

TEXT = st.text(st.sampled_from("ab \n.é"), max_size=40)


def side(id: str, *said: tuple[str, str], cost: int | None = 5) -> Side:
    messages: list[Message] = []
    runs: dict[str, Run] = {}
    for at, (prompt, answer) in enumerate(said):
        run = Run(
            f"{id}r{at}", id, f"{id}a{at}", model="m@p", usage=Usage(10, 2), cost=cost, started_at=1000, ended_at=9000, status="finished"
        )
        call: Any = {"type": "tool-shell", "toolCallId": "c", "state": "output-available", "input": {"command": "ls"}, "output": "x"}
        metadata: Any = {"agent": "default", "steps": [{"step": 1, "ms": 500}, {"step": 2, "ms": 1500}]}
        messages.append(Message(f"{id}u{at}", "user", (text_part(prompt),)))
        messages.append(Message(f"{id}a{at}", "assistant", (call, text_part(answer)), metadata, run=run.id))
        runs[run.id] = run
    return Side(Conversation(id, model="m@p", last_model="l@p"), messages, runs)


def test_equal_prompts_are_paired_with_their_usage() -> None:
    found: Any = compare_conversations(
        side("a", ("hi", "Hello there."), ("more", "One.")), side("b", ("hi", "Hello you."), ("more", "One."))
    )
    first, second = found["pairs"]
    assert (first["prompt"], first["same"], second["same"], found["same"]) == ({"a": "hi", "b": "hi"}, False, True, False)
    assert first["diff"] == [[" ", "Hello "], ["-", "there"], ["+", "you"], [" ", "."]]
    assert first["a"]["tools"] == [{"name": "shell", "input": '{"command":"ls"}', "state": "output-available"}]
    assert (found["a"]["cost"], found["a"]["ms"], found["a"]["tools"], found["a"]["usage"]) == (10, 4000, 2, {"input": 20, "output": 4})
    assert (found["a"]["model"], found["a"]["last_model"]) == ("m@p", "l@p")


def test_a_prompt_in_one_branch_only_leaves_a_gap() -> None:
    found: Any = compare_conversations(side("a", ("one", "1"), ("two", "2"), ("three", "3")), side("b", ("one", "1"), ("three", "3")))
    assert [(pair["prompt"]["a"], pair["prompt"]["b"]) for pair in found["pairs"]] == [("one", "one"), ("two", None), ("three", "three")]
    assert found["pairs"][1]["b"] is None and not found["pairs"][1]["same"]


def test_an_unknown_cost_makes_the_sum_unknown() -> None:
    found: Any = compare_conversations(side("a", ("one", "1"), cost=None), side("b"))
    assert (found["a"]["cost"], found["b"]["cost"], found["b"]["answers"]) == (None, None, 0)


@given(left=TEXT, right=TEXT)
def test_a_diff_restores_both_texts(left: str, right: str) -> None:
    pieces = word_diff(left, right)
    assert "".join(str(text) for op, text in pieces if op != "+") == left
    assert "".join(str(text) for op, text in pieces if op != "-") == right
