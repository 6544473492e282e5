"""The usage recorded in a message. Totals are tested in `test_totals.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.stores import prompt
from import_stage import only, stored, take
from moot.store import SqliteStore
from moot.store.database.transaction import Transaction
from moot.store.stats.answers import RunFacts, tool_calls, usage_of
from moot.types.conversation import Conversation
from moot.types.imports import Recording
from moot.types.limits import Spending, SpendingQuery
from moot.types.message import Message, text_part
from moot.types.store import End, Fold
from moot.types.usage import Usage
from talk_format import line

HOUR = 3_600_000
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
    assert not usage.unpriced
    assert usage_of({}, "finished", None).cost is None
    assert not usage_of({}, "finished", None).unpriced and usage_of({"model": "m"}, "finished", None).unpriced


def test_an_answer_with_a_step_of_unknown_price_has_the_cost_of_its_other_steps() -> None:
    partly: Any = {"model": "m", "steps": [STEPS[0], {**STEPS[1], "cost": None}]}
    empty: Any = {"model": "m", "steps": [STEPS[0], {"step": 2}]}
    ran = RunFacts("default", "m@p", "finished", "", Usage(input=40), None)
    cases: list[tuple[Any, RunFacts | None, int | None, bool]] = [
        (partly, None, 5, True),
        (empty, None, 5, False),  # the second step used no tokens
        (partly, ran, 5, True),
        (partly, ran._replace(cost=9), 9, False),  # the totals of the run also include attempts that failed
        ({"steps": [{**STEPS[1], "cost": None}]}, None, None, True),
    ]
    for metadata, run, cost, unpriced in cases:
        usage = usage_of(metadata, "finished", run)
        assert (usage.cost, usage.unpriced) == (cost, unpriced)


def test_an_answer_with_a_run_has_the_usage_of_the_run() -> None:
    ran = RunFacts("default", "m@p", "failed", "overloaded", Usage(input=100, cache_read=60), None)
    usage = usage_of({"agent": "other", "steps": STEPS}, "failed", ran)
    assert (usage.agent, usage.error, usage.input, usage.output, usage.cache_read, usage.cost, usage.steps) == (
        "default",
        "overloaded",
        100,
        0,
        60,
        12,
        2,
    )
    assert usage.unpriced


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


@pytest.mark.anyio
async def test_damaged_answers_are_counted_as_far_as_they_can_be_read(store: SqliteStore, caplog: pytest.LogCaptureFixture) -> None:
    await store.conversations.create(Conversation("c"))
    for id in ("parts", "metadata", "sound"):
        text = text_part("word " * 300)
        await store.conversations.add_message(
            Message(id, "assistant", (*TOOLS, text), {"agent": "a", "steps": STEPS}, "c", created_at=1000)
        )
    await store.search.index()  # which compresses the parts

    def damage(transaction: Transaction) -> None:
        parts = bytearray(transaction.row("SELECT parts FROM message WHERE id = 'parts'")[0])
        parts[len(parts) // 2] ^= 0xFF
        transaction.execute("UPDATE message SET parts = ? WHERE id = 'parts'", (bytes(parts),))
        transaction.execute("UPDATE message SET metadata = ? WHERE id = 'metadata'", (b'{"agent":',))

    await store._writer.write(damage)
    found = await store.stats.usage()
    assert (found.total.runs, found.total.output, found.tools["shell"].calls, found.uncounted) == (3, 12, 4, 0)
    assert [message.split()[2] for message in caplog.messages] == ["parts", "metadata"] and "moot verify" in caplog.text
    caplog.clear()
    await store.stats.usage()
    assert not caplog.messages  # nothing is counted again


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["cost", "ms", "first_ms", "at"])
async def test_numbers_that_can_not_be_true_do_not_stop_the_counting(store: SqliteStore, name: str) -> None:
    await store.conversations.create(Conversation("c"))
    huge: Any = {"usage": {"input": (1 << 62) - 1, "output": -5, "cache_read": 3}, "cost": 1, name: (1 << 62) - 1}
    for number in range(3):
        metadata: Any = {"agent": "a", "model": "m", "steps": [huge, huge, *STEPS]}
        await store.conversations.add_message(Message(f"m{number}", "assistant", TOOLS, metadata, "c", created_at=1000))
    found = await store.stats.usage()
    assert (found.total.runs, found.total.input, found.total.output, found.total.cache_read) == (3, 120, 18, 18)
    assert (found.total.cost, found.total.unpriced_runs) == ((36, 3) if name == "cost" else (42, 0))


@pytest.mark.anyio
async def test_all_sums_contain_the_known_part_of_a_cost(store: SqliteStore) -> None:
    partly: Any = [{**STEPS[0], "at": HOUR}, {**STEPS[1], "at": HOUR + 20 * 60_000, "cost": None}]
    metadata: Any = {"agent": "claude", "model": "m@p", "steps": partly}
    accepted = await store.records.submit(prompt())
    assert accepted.fence is not None
    changes = [Fold((), metadata, "finished"), End("finished", usage=Usage(40, 6), model="m@p")]
    await store.log.append(accepted.fence.conversation, [], fence=accepted.fence, changes=changes)
    ran = await store.conversations.get(accepted.run.conversation)
    assert (ran.cost, ran.unpriced_runs) == (5, 1)
    assert await store.stats.spent([SpendingQuery("local"), SpendingQuery(run=accepted.run.id)]) == [Spending(5, 46, 1)] * 2

    await store.conversations.create(Conversation("c", origin={"format": "claude-code", "source_id": "c"}))
    del metadata["agent"]
    await store.conversations.add_message(Message("a", "assistant", (), metadata, "c", created_at=HOUR))
    total = await store.stats.usage(by=("day", "model", "agent", "project", "hour"))
    groups = (total.models, total.projects, *({"": one} for one in (total.total,)))
    assert [[(one.runs, one.cost, one.unpriced_runs) for one in group.values()] for group in groups] == [[(2, 10, 2)]] * 3
    for group in (total.days, total.hours, total.agents):
        assert [(one.runs, one.cost, one.unpriced_runs) for one in group.values()] == [(1, 5, 1)] * 2
    alone = (await store.stats.usage(conversation="c")).total
    assert (alone.runs, alone.cost, alone.unpriced_runs) == (1, 5, 1)
    (block,) = (await store.stats.windows(2 * HOUR)).blocks
    assert (block.runs, block.input, block.cost, block.unpriced) == (2, 40, 5, 1)
    await store.erasure.purge(["c"])
    left = (await store.stats.usage()).total
    assert (left.runs, left.cost, left.unpriced_runs) == (1, 5, 1)


@pytest.mark.anyio
async def test_numbers_that_can_not_be_true_do_not_stop_an_import(tmp_path: Path) -> None:
    huge: Any = {"role": "assistant", "text": "x", "usage": {"input": (1 << 62) - 1, "output": 4}, "cost": (1 << 62) - 1}
    path = tmp_path / "t.talk"
    path.write_bytes(b"".join([line(talk="t"), *(line(id=f"a{number}", **huge) for number in range(4))]))
    async with stored(tmp_path / "home") as store:
        await take(store, path)
        conversation = await only(store)
        assert (conversation.message_count, conversation.usage, conversation.cost) == (4, Usage(output=16), None)
        assert (await store.stats.usage()).total.unpriced_runs == 4
