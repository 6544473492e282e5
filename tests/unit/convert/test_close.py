"""The chunks that close a broken stream."""

from __future__ import annotations

from moot.convert.exchanges import close_open, settle_calls
from moot.convert.fold import fold_parts
from moot.types.chunk import Chunk

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
