"""The chunks that close a broken stream."""

from __future__ import annotations

import pytest

from moot.convert.exchanges import close_open, settle_calls
from moot.convert.fold import fold_parts
from moot.convert.ui_message import problem_of
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk, tool_denied
from moot.types.message import Part

OPEN: tuple[Chunk, ...] = (
    {"type": "start-step"},
    {"type": "text-start", "id": "1.0.0"},
    {"type": "text-delta", "id": "1.0.0", "delta": "half"},
    {"type": "reasoning-start", "id": "1.0.1"},
    {"type": "tool-input-start", "toolCallId": "c1", "toolName": "shell"},
    {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"comm'},
    {"type": "tool-input-available", "toolCallId": "c2", "toolName": "shell", "input": {"command": "ls"}},
)


def test_closing_closes_every_part() -> None:
    parts = fold_parts((), OPEN)
    closed = fold_parts(parts, close_open(parts))
    assert [part.get("state") for part in closed[1:]] == ["done", "done", "output-error", "input-available"]
    assert close_open(closed) == ()


def test_every_complete_call_gets_one_output() -> None:
    parts = fold_parts((), OPEN)
    closed = fold_parts(parts, (*close_open(parts), *settle_calls(parts, "cancelled")))
    assert [part["errorText"] for part in closed if part.get("toolCallId") == "c2"] == ["cancelled"]
    assert settle_calls(closed, "again") == ()


def test_preliminary_output_is_not_the_output() -> None:
    shown: Chunk = {"type": "tool-output-available", "toolCallId": "c2", "output": "half", "preliminary": True}
    parts = fold_parts((), (*OPEN, shown))
    closed = fold_parts(parts, settle_calls(parts, "cancelled"))
    [call] = [part for part in closed if part.get("toolCallId") == "c2"]
    assert call["state"] == "output-error" and call["errorText"] == "cancelled; its output so far:\nhalf"
    assert "preliminary" not in call


CALL: Part = {"type": "tool-write_file", "toolCallId": "c1", "state": "input-available", "input": {}}


@pytest.mark.parametrize(
    ("approval", "state"),
    [
        (None, "output-error"),
        ({"id": "a"}, "output-denied"),
        ({"id": "a", "approved": False}, "output-denied"),
        ({"id": "a", "approved": True}, "output-error"),
    ],
)
def test_a_call_whose_run_ends_early_is_a_valid_part(approval: JsonObject | None, state: str) -> None:
    asked = {**CALL, "state": "approval-requested", "approval": approval} if approval is not None else CALL
    [part] = fold_parts([asked], settle_calls([asked], "The run was stopped."))
    assert (part["state"], problem_of(part)) == (state, "")
    words = part.get("errorText") or part["approval"].get("reason")  # type: ignore[union-attr]
    assert words == "The run was stopped." or approval == {"id": "a", "approved": False}


def test_a_denial_keeps_the_persons_reason_and_adds_the_agents_words_only_without_one() -> None:
    """An agent's own refusal of an allowed call is an error, because a person did not deny it."""
    denied = tool_denied("c1", approval="c1", reason="The agent's words.")
    [alone] = fold_parts([CALL], [denied])
    assert alone["approval"] == {"id": "c1", "approved": False, "reason": "The agent's words."}
    answered: Part = {**CALL, "state": "approval-responded", "approval": {"id": "a", "approved": False, "reason": "Not now."}}
    [person] = fold_parts([answered], [denied])
    assert person["approval"] == answered["approval"]
    [own] = fold_parts([{**answered, "approval": {"id": "a", "approved": True}}], [denied])
    assert (own["state"], own["errorText"]) == ("output-error", "The agent's words.")
    assert not any(map(problem_of, (alone, person, own)))
