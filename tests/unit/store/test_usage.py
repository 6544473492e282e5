"""The usage recorded in a message. Totals are tested in `test_totals.py`."""

from __future__ import annotations

from typing import Any

import pytest

from moot.store import SqliteStore
from moot.store.stats.answers import RunFacts, tool_calls, usage_of
from moot.types.conversation import Conversation
from moot.types.imports import Recording
from moot.types.message import Message
from moot.types.usage import Usage

STEPS: Any = [
    {"step": 1, "model": "m@p", "usage": {"input": 10, "output": 2}, "cost": 5, "ms": 900, "first_ms": 300},
    {"step": 2, "model": "m@p", "usage": {"input": 30, "output": 4}, "cost": 7},
]
TOOLS: Any = (
    {"type": "tool-shell", "toolCallId": "a", "state": "output-available", "output": "x"},
    {"type": "dynamic-tool", "toolName": "shell", "toolCallId": "b", "state": "output-error", "errorText": "no"},
    {
        "type": "dynamic-tool",
        "toolName": "read",
        "toolCallId": "c",
        "state": "output-denied",
        "toolMetadata": {"vendorId": "c", "codex": {"durationMs": 40}},
    },
    {"type": "text", "text": "done"},
)


def test_an_answer_without_a_run_has_the_usage_of_its_steps() -> None:
    usage = usage_of({"agent": "claude", "model": "m", "steps": STEPS}, "finished", None)
    assert (usage.agent, usage.model, usage.status, usage.steps, usage.input, usage.output, usage.cost) == (
        "claude",
        "m",
        "finished",
        2,
        40,
        6,
        12,
    )
    assert (usage.first_ms, usage.ms, usage.timed, usage.context) == (300, 900, 2, 30)
    assert usage_of({"steps": [STEPS[0], {**STEPS[1], "cost": None}]}, "finished", None).cost is None
    assert usage_of({}, "finished", None).cost is None


def test_an_answer_with_a_run_has_the_usage_of_the_run() -> None:
    ran = RunFacts("default", "m@p", "failed", "overloaded", Usage(input=100, cache_read=60), None)
    usage = usage_of({"agent": "other", "steps": STEPS}, "failed", ran)
    assert (usage.agent, usage.error, usage.input, usage.output, usage.cache_read, usage.cost, usage.steps) == (
        "default",
        "overloaded",
        100,
        0,
        60,
        None,
        2,
    )


@pytest.mark.parametrize(
    "steps", [None, 5, ["x"], [{"usage": 3, "cost": -1, "ms": "soon", "first_ms": True}], [{"usage": {"input": 1 << 70}}]]
)
def test_invalid_usage_in_a_source_is_unknown(steps: Any) -> None:
    usage = usage_of({"steps": steps}, "finished", None)
    assert (usage.cost, usage.ms, usage.first_ms) == (None, 0, None)


def test_calls_are_counted_by_tool_and_outcome() -> None:
    found = tool_calls(TOOLS, {"a": 100})
    shell, read = found["shell"], found["read"]
    assert (shell.calls, shell.failed, shell.denied, shell.ms, shell.timed) == (2, 1, 0, 100, 1)
    assert (read.calls, read.denied, read.ms, read.timed) == (1, 1, 40, 1)


@pytest.mark.anyio
async def test_a_forks_copies_are_not_counted_twice(store: SqliteStore) -> None:
    copy = Message("m", "assistant", (), {"source": {"conversation": "x"}, "steps": STEPS}, first_seq=0)
    await store.imports.add(Recording("c", Conversation("c", origin={"format": "recording", "source_id": "c"}), (copy,), (), (), ()))
    assert (await store.stats.usage()).total.runs == 0
