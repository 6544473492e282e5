"""Usage by hour, day, week and month of a time zone, of sub-agents, in the windows of subscriptions, and changes of files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from import_stage import only, stored, take
from moot.errors import UsageError
from moot.store import SqliteStore
from moot.store.stats.windows import Usages, blocks_of, spans_of
from moot.types.conversation import Project
from moot.types.stats import Counts, Grouping
from moot.types.usage import Usage
from talk_format import line

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
BLOCK = 5 * HOUR
BERLIN, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")
TIMES = (
    "2026-03-28T22:59:59",
    "2026-03-28T23:00",
    "2026-03-29T21:59:59",
    "2026-03-29T22:00",
    "2026-03-29T22:10",
    "2026-04-05T18:29",
    "2026-04-05T18:31",
)


def at(time: str) -> int:
    return int(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() * 1000)


def talk(path: Path, id: str, *answers: dict[str, Any], **head: Any) -> Path:
    lines = [line(talk=id, title=id, **head)]
    lines += [
        line(**{"id": f"{id}{number}", "role": "assistant", "usage": {"input": 10, "output": 1}, **one})
        for number, one in enumerate(answers)
    ]
    path = path / f"{id}.talk"
    path.write_bytes(b"".join(lines))
    return path


def runs(groups: dict[str, Counts]) -> dict[str, int]:
    return {name: counts.runs for name, counts in groups.items()}


async def test_times_are_those_of_a_zone_also_when_its_offset_changes(tmp_path: Path) -> None:
    async with stored(tmp_path / "home") as store:
        await take(store, talk(tmp_path, "t", *({"at": at(time)} for time in TIMES)))
        every: tuple[Grouping, ...] = ("hour", "day", "week", "month", "hour-of-day")
        berlin = await store.stats.usage(by=every, zone=BERLIN)
        assert runs(berlin.days) == {"2026-04-05": 2, "2026-03-30": 2, "2026-03-29": 2, "2026-03-28": 1}
        assert runs(berlin.weeks) == {"2026-03-30": 4, "2026-03-23": 3}
        assert runs(berlin.months) == {"2026-04": 2, "2026-03": 5}
        assert runs(berlin.hours_of_day) == {"00": 3, "20": 2, "23": 2}
        kolkata = await store.stats.usage(by=every, zone=KOLKATA)
        assert runs(kolkata.days) == {"2026-04-06": 1, "2026-04-05": 1, "2026-03-30": 3, "2026-03-29": 2}
        assert runs(kolkata.hours)["2026-04-06 00:00"] == runs(kolkata.hours)["2026-04-05 23:00"] == 1
        assert (berlin.models, berlin.agents, berlin.tools) == ({}, {}, {})
        assert runs((await store.stats.usage()).days)["2026-03-29"] == 3


@pytest.mark.parametrize(("since", "until", "expected"), [(0, 7, 7), (1, 7, 6), (1, 5, 4), (3, 4, 1), (5, 5, 0)])
async def test_sums_of_a_period_count_each_answer_in_it_once(tmp_path: Path, since: int, until: int, expected: int) -> None:
    tool = {"type": "dynamic-tool", "toolName": "shell", "toolCallId": "c", "state": "output-available", "input": {}, "output": ""}
    async with stored(tmp_path / "home") as store:
        await take(store, talk(tmp_path, "t", *({"at": at(time), "part": tool} for time in TIMES)))
        moments = [*map(at, TIMES), at("2027-01-01")]
        found = await store.stats.usage(since=moments[since], until=moments[until], zone=KOLKATA)
        assert found.total.runs == expected and found.total.input == 10 * expected
        for groups in (found.days, found.agents, found.projects, found.hours_of_day):
            assert sum(counts.runs for counts in groups.values()) == expected
        assert sum(counts.calls for counts in found.tools.values()) == expected


@pytest.mark.parametrize("is_old", [False, True])
async def test_imported_answers_keep_their_agent_and_model(tmp_path: Path, is_old: bool) -> None:
    async with stored(tmp_path / "home") as store:
        await take(store, talk(tmp_path, "t", {}, model="gpt-4o@openai"))
        before = await store.stats.usage()
        assert runs(before.models) == {"gpt-4o@openai": 1} and runs(before.agents) == {"talk": 1}
        if is_old:  # versions that did not record the model of a source
            forget = "UPDATE conversation SET origin = CAST(json_remove(CAST(origin AS TEXT), '$.model') AS BLOB)"
            await cast("SqliteStore", store)._writer.write(lambda transaction: transaction.execute(forget))
        conversation = await only(store)
        await store.conversations.update(conversation.id, agent=("coder", "moot"), model="other@vendor")
        project = await store.projects.create(Project("p", name="p"))
        await store.conversations.update(conversation.id, project=project.id)  # which counts all answers again
        after = await store.stats.usage()
        assert (after.models, after.agents, runs(after.projects)) == (before.models, before.agents, {"p": 1})


async def test_sub_agents_count_for_the_agent_at_the_top_even_if_it_is_imported_last(tmp_path: Path) -> None:
    top = talk(tmp_path, "top", {"agent": "boss", "at": 1_000}, agent="boss")
    middle = talk(tmp_path, "middle", {"agent": "scout", "at": 2_000}, above="top", agent="scout")
    low = talk(tmp_path, "low", {"agent": "runner", "at": 3_000}, above="middle", agent="runner")
    async with stored(tmp_path / "home") as store:
        await take(store, low)
        assert runs((await store.stats.usage()).agents) == {"runner": 1}
        await take(store, middle)
        assert runs((await store.stats.usage()).agents) == {"scout": 2}
        await take(store, top)
        assert runs((await store.stats.usage()).agents) == {"boss": 3}
        assert runs((await store.stats.usage(apart=True)).agents) == {"boss": 1, "runner": 1, "scout": 1}
        (conversation,) = (await store.conversations.list()).items
        assert (await store.stats.usage(conversation=conversation.id)).total.runs == 3
        assert (await store.stats.usage(conversation=conversation.id, apart=True)).total.runs == 1


def call(first: int, last: int = 0) -> Usages:
    return Usages(first, last or first, 1, 10, 1, 0, 0, 5, 0)


def test_blocks_start_at_a_full_hour_and_end_after_five_hours_or_a_pause() -> None:
    start = at("2026-05-02T09:00")
    one = blocks_of("claude-code", [call(start + 59 * 60_000), call(start + BLOCK - 1)])
    assert [(block.since, block.until, block.runs, block.cost) for block in one] == [(start, start + BLOCK, 2, 10)]
    later = blocks_of("claude-code", [call(start + 59 * 60_000), call(start + BLOCK), call(start + BLOCK + 1)])
    assert [(block.since, block.runs) for block in later] == [(start, 1), (start + BLOCK, 2)]
    paused = blocks_of("claude-code", [call(start + 60_000, start + BLOCK - HOUR), call(start + 2 * BLOCK - HOUR)])
    assert [block.since for block in paused] == [start, start + 2 * BLOCK - HOUR]


def test_a_block_continues_to_its_end_as_it_began() -> None:
    start = at("2026-05-02T09:00")
    (block,) = blocks_of("claude-code", [call(start), call(start + HOUR)])
    assert (block.tokens_per_minute, block.cost_per_hour) == (22 / 60, 10)
    assert (block.projected_cost(start + HOUR), block.projected_tokens(start + HOUR)) == (50, 110)
    assert block.projected_cost(block.until) is None
    (single,) = blocks_of("claude-code", [call(start)])
    assert (single.cost_per_hour, single.projected_cost(start)) == (None, None)


def test_calls_of_a_long_answer_keep_its_totals() -> None:
    calls = [(None, Usage(10, 1), 2), (None, Usage(20, 2), 2), (HOUR + 1, Usage(5, 1), None)]
    assert spans_of(0, calls, Usage(40, 4), 10) == "[[0,0,2,35,3,0,0,10],[3600001,3600001,1,5,1,0,0,0]]"
    assert spans_of(0, [(None, Usage(10, 1), 2), (60_000, Usage(20, 2), 2)], Usage(30, 3), 4) is None


async def test_windows_have_the_calls_and_the_newest_limits_of_a_program(tmp_path: Path) -> None:
    start = at("2026-05-02T09:00")
    now = start + 3 * HOUR
    limits = [{"limit": "x", "minutes": 300, "used": 12.5, "resets_at": now + HOUR, "at": start}]
    newer = [{"limit": "x", "minutes": 300, "used": 40, "resets_at": now + HOUR, "at": now - 1}]
    past = [{"limit": "y", "minutes": 240, "used": 99, "resets_at": now, "at": start}]
    async with stored(tmp_path / "home") as store:
        mine = {"agent": "claude-code", "cost": 7, "model": "m"}
        first, second = {**mine, "id": "a", "at": start + 60_000}, {**mine, "id": "a", "at": start + 2 * HOUR}
        old = {**mine, "id": "o", "at": start - 8 * 24 * HOUR}
        await take(store, talk(tmp_path, "t", old, first, second), talk(tmp_path, "other", {"agent": "pi", "at": start}))
        await take(store, talk(tmp_path, "c", *({"agent": "codex", "at": start, "limits": one} for one in (newer, limits, past))))
        block, week, mine_limited, ended = (await store.stats.windows(now)).current
        assert (block.since, block.until, block.runs, block.cost, block.last) == (start, start + BLOCK, 2, 14, start + 2 * HOUR)
        assert (week.minutes, week.runs, week.resets) == (10_080, 2, False)
        assert (mine_limited.agent, mine_limited.used, mine_limited.until, mine_limited.runs) == ("codex", 40, now + HOUR, 3)
        assert (ended.minutes, ended.used, ended.resets) == (240, None, False)
        assert [each.since for each in (await store.stats.windows(now, days=30)).blocks] == [start, start - 8 * 24 * HOUR]
        assert (await store.of("nobody").stats.windows(now)).current == ()


async def test_limits_of_an_unknown_form_are_ignored(tmp_path: Path) -> None:
    now = at("2026-05-02T12:00")
    sound = {"limit": "x", "minutes": 300, "used": 40, "resets_at": now + HOUR, "at": now - 1}
    wrong: list[Any] = [1, None, [], {}, {"limit": "x"}]
    wrong += [{**sound, name: value} for name in sound for value in (None, [], {}, "", -1, 1 << 62) if (name, value) != ("limit", "")]
    async with stored(tmp_path / "home") as store:
        answers = [
            {"agent": "codex", "at": now - HOUR, "limits": one} for one in (*([each] for each in wrong), [*wrong, sound], "x", {"a": 1})
        ]
        await take(store, talk(tmp_path, "c", *answers))
        assert [(one.agent, one.minutes, one.used) for one in (await store.stats.windows(now)).current] == [("codex", 300, 40)]


async def test_changes_of_files_are_listed_newest_first(tmp_path: Path) -> None:
    def edit(path: str, new: str = "b\nc") -> Any:
        given = {"file_path": path, "old_string": "a", "new_string": new}
        return {"type": "dynamic-tool", "toolName": "Edit", "toolCallId": path, "state": "output-available", "input": given, "output": ""}

    async with stored(tmp_path / "home") as store:
        await take(store, talk(tmp_path, "t", *({"at": number * 1000, "part": edit(f"/w/{number}.py")} for number in range(1, 6))))
        found, before = await store.stats.edits(limit=3)
        assert [(one.path, one.tool, one.added, one.removed, one.at) for one in found[:1]] == [("/w/5.py", "Edit", 2, 1, 5000)]
        assert before is not None
        rest, end = await store.stats.edits(limit=3, before=before)
        assert [one.path for one in (*found, *rest)] == [f"/w/{number}.py" for number in (5, 4, 3, 2, 1)] and end is None
        (message,) = [one for one in await store.conversations.branch(found[0].conversation) if one.id == found[0].message][:1] or [None]
        assert message is not None and message.parts[0]["toolName"] == "Edit"
        assert await store.of("nobody").stats.edits() == ([], None)
        with pytest.raises(UsageError, match="Invalid cursor"):
            await store.stats.edits(before="x")
        await store.conversations.delete(found[0].conversation)
        assert await store.stats.edits() == ([], None)
        await store.erasure.purge([found[0].conversation])
