"""What answers took: out of a message, in rows, and in the sums of days, which must always be those of the rows."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.store.connect import connect
from moot.store.counting.taken import Ran, called, taken
from moot.types.conversation import Conversation, Project
from moot.types.message import Message
from moot.types.recording import Recording
from moot.types.usage import Usage

DAY = 86_400_000
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


def test_an_answer_without_a_run_took_what_its_steps_say() -> None:
    took = taken({"agent": "claude", "model": "m", "steps": STEPS}, "finished", None)
    assert (took.agent, took.model, took.status, took.steps, took.input, took.output, took.cost) == (
        "claude",
        "m",
        "finished",
        2,
        40,
        6,
        12,
    )
    assert (took.first_ms, took.ms, took.timed, took.context) == (300, 900, 2, 30)
    assert taken({"steps": [STEPS[0], {**STEPS[1], "cost": None}]}, "finished", None).cost is None
    assert taken({}, "finished", None).cost is None


def test_an_answer_with_a_run_took_what_the_run_says() -> None:
    ran = Ran("default", "m@p", "failed", "overloaded", Usage(input=100, cache_read=60), None)
    took = taken({"agent": "other", "steps": STEPS}, "failed", ran)
    assert (took.agent, took.error, took.input, took.output, took.cache_read, took.cost, took.steps) == (
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
def test_what_a_source_says_wrongly_is_not_known(steps: Any) -> None:
    took = taken({"steps": steps}, "finished", None)
    assert (took.cost, took.ms, took.first_ms) == (None, 0, None)


def test_calls_are_counted_by_tool_with_what_became_of_them() -> None:
    found = called(TOOLS, {"a": 100})
    shell, read = found["shell"], found["read"]
    assert (shell.calls, shell.failed, shell.denied, shell.ms, shell.timed) == (2, 1, 0, 100, 1)
    assert (read.calls, read.denied, read.ms, read.timed) == (1, 1, 40, 1)


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(0, 2), st.integers(1, 4), st.sampled_from(["a", "b"]), st.booleans()),
        st.tuples(st.just("again"), st.integers(0, 9)),
        st.tuples(st.just("move"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("purge"), st.integers(0, 9)),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(acts=ACTS)
def test_sums_of_days_are_those_of_their_answers_whatever_becomes_of_them(acts: list[tuple[Any, ...]]) -> None:
    asyncio.run(sums_hold(acts))


async def sums_hold(acts: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        given_settings = Settings(home=Path(folder))
        store = await open_store(given_settings)
        try:
            project = await store.projects.create(Project("other", name="other"))
            for number in range(3):
                await store.conversations.create(Conversation(f"c{number}"))
            path, said = given_settings.database, 0
            for act in acts:
                await store.stats.count()
                match act:
                    case ("say", conversation, day, model, priced):
                        said += 1
                        say(path, f"m{said}", int(conversation), int(day) * DAY + 5, str(model), priced=bool(priced))
                    case ("again", number):
                        run_sql(path, "UPDATE message SET metadata = x'7b7d' WHERE id = ?", f"m{number}")
                    case ("move", conversation, there):
                        to = project.id if there else "default"
                        run_sql(path, "UPDATE conversation SET project_id = ? WHERE id = ?", to, f"c{conversation}")
                    case _:
                        run_sql(path, "DELETE FROM message WHERE id = ?", f"m{act[1]}")
            await check_sums(store)
        finally:
            await store.close()


async def check_sums(store: SqliteStore) -> None:
    days, rows = await store.stats.usage(), await store.stats.usage(since=1)  # the second is no whole day: it goes over the answers
    assert days.uncounted == rows.uncounted == 0
    assert (days.total, days.days, days.models, days.projects, days.tools) == (
        rows.total,
        rows.days,
        rows.models,
        rows.projects,
        rows.tools,
    )


def say(path: Path, id: str, conversation: int, at: int, model: str, *, priced: bool) -> None:
    step = b'{"usage":{"input":3,"output":1},"cost":%s,"ms":10}' % (b"9" if priced else b"null")
    metadata = b'{"model":"%s","steps":[%s]}' % (model.encode(), step)
    run_sql(
        path,
        "INSERT INTO message (id, conversation, role, parts, metadata, status, first_seq, last_seq, folded_through, created_at)"
        " SELECT ?, no, 'assistant', ?, ?, 'finished', 0, 0, 0, ? FROM conversation WHERE id = ?",
        *(id, b'[{"type":"tool-shell","toolCallId":"x","state":"output-available"}]', metadata, at, f"c{conversation}"),
    )


def run_sql(path: Path, sql: str, *values: object) -> None:
    connection = connect(path, writing=True)
    connection.execute(sql, values)
    connection.close()


@pytest.mark.anyio
async def test_a_forks_copies_are_not_counted_twice(store: SqliteStore) -> None:
    copy = Message("m", "assistant", (), {"source": {"conversation": "x"}, "steps": STEPS}, first_seq=0)
    await store.imports.add(Recording("c", Conversation("c", origin={"format": "recording", "source_id": "c"}), (copy,), (), (), ()))
    assert (await store.stats.usage()).total.runs == 0
