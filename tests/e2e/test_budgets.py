"""Budgets: what runs have spent, warnings, and runs that wait because a budget is used up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.acp_stage import acp_stage
from e2e.cli_process import make
from e2e.cron_stage import HOUR, START, Jobs, opener
from moot.engine import open_engine
from moot.errors import UsageError
from moot.runtime.approvals.budgets import budget_states
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.conversation import Project
from moot.types.limits import Budget, Limits, Spending, SpendingQuery
from moot.types.message import note_of, text_of, text_part
from moot.types.run import Prompt, Run
from moot.types.webhook import Subscription

pytestmark = pytest.mark.anyio

DOLLAR = 1_000_000_000
PRICED = {"scripted": {"price": {"input": 1, "output": 0}}}
"""A million input tokens cost one dollar."""
MIDNIGHT = (START // (24 * HOUR) + 1) * 24 * HOUR

CALL = ToolCall("list_files", {"path": "."})


def costs(dollars: float, text: str = "", **more: Any) -> Reply:
    """Return a reply of that price: an answer, or without a text a call after which the run continues."""
    usage = {"input": round(dollars * 1_000_000), "output": 1}
    return Reply(text=text, usage=usage, **more) if text else Reply(tool_calls=[CALL], usage=usage, **more)


def per_day(dollars: float, name: str = "daily", **more: Any) -> Budget:
    return Budget(name, "day", round(dollars * DOLLAR), **more)


def chosen(label: str) -> Answer:
    return Answer(approved=True, value=[[label]])


def priced_config(model: ScriptedProcess) -> str:
    """Return a configuration with a priced model and a budget of one dollar per month."""
    provider = f"models: {{main: scripted@mine}}\nproviders:\n  mine: {{dialect: openai-chat, base_url: '{model.openai_url}', api_key: k"
    price = ", models: {scripted: {context: 9000000, price: {input: 1, output: 0}}}}\n"
    return f"{provider}{price}budgets: {{daily: {{per: month, cost: 1, tz: UTC}}}}\n"


@pytest.fixture
def jobs(stage: Any) -> Any:
    return opener(stage)


async def waiting(on: Any, run: str) -> Run:
    """Return the run once it waits or has ended."""
    with anyio.fail_after(60):
        while (found := await on.engine.store.records.run(run)).status not in ("waiting", "failed", "finished"):
            await anyio.sleep(0.01)
    return found


async def resumed(on: Any, run: Run) -> Run:
    """Return the run once it no longer waits and has ended."""
    with anyio.fail_after(60):
        while (await on.engine.store.records.run(run.id)).status == "waiting":
            await anyio.sleep(0.01)
    return await on.engine.runs.wait(run.id)


async def parked(on: Any, text: str = "go", **more: Any) -> Run:
    run = await waiting(on, (await on.submit(text, **more)).run.id)
    assert (run.status, run.awaits, run.owner) == ("waiting", "person", None)
    return run


async def question(on: Any, run: Run) -> Any:
    (approval,) = await on.engine.store.records.approvals(run=run.id)
    assert approval.tool == "budget"
    return approval


async def notes(on: Any, run: Run) -> list[str]:
    return [note_of(part) for part in (await on.engine.store.conversations.message(run.message)).parts if part["type"] == "data-note"]


async def spent(on: Any, name: str, owner: str = "local") -> tuple[float, int]:
    """Return the dollars and the number of unpriced runs of a budget."""
    states = await budget_states(on.engine.runtime, owner)
    (state,) = (state for state in states if state.budget.name == name and not state.problem)
    return state.spent.cost / DOLLAR, state.spent.unpriced


@pytest.mark.parametrize("answer", [chosen("Continue"), Answer(approved=True)])
async def test_a_used_up_budget_parks_the_run_after_the_step_until_a_person_answers(jobs: Any, answer: Answer) -> None:
    async with jobs([costs(1.25), costs(0.5, "Done.")], priced=PRICED, budgets=(per_day(1),)) as at:
        run = await parked(at.on)
        assert len(at.on.server.requests) == 1
        message = await at.on.engine.store.conversations.message(run.message)
        assert [part["state"] for part in message.parts if part["type"] == "tool-list_files"] == ["output-available"], "the step ended"
        asked = await question(at.on, run)
        assert "The budget 'daily' is used up: $1.25 of $1.00." in asked.questions[0]["text"] and asked.expires_at == MIDNIGHT * 1000
        assert await notes(at.on, run) == ["The budget 'daily' is used up: $1.25 of $1.00. It resets at 2026-09-22 00:00."]
        await at.on.engine.runs.answer(asked.id, answer)
        ended = await at.on.engine.runs.wait(run.id)
        assert (ended.status, ended.cost) == ("finished", round(1.75 * DOLLAR))
        assert await spent(at.on, "daily") == (1.75, 0)


@pytest.mark.parametrize("answer", [chosen("Stop"), Answer(approved=False)])
async def test_a_run_that_may_not_continue_fails(jobs: Any, answer: Answer) -> None:
    async with jobs([costs(1.25), costs(0.5, "Done.")], priced=PRICED, budgets=(per_day(1),)) as at:
        run = await parked(at.on)
        await at.on.engine.runs.answer((await question(at.on, run)).id, answer)
        ended = await at.on.engine.runs.wait(run.id)
        assert ended.status == "failed" and ended.error is not None and ended.error.kind == "limit"
        assert "'daily' is used up: $1.25 of $1.00" in ended.error.message and len(at.on.server.requests) == 1


@pytest.mark.parametrize("value", [[["Maybe"]], ["Stop now"], [[]], [["continue, please"]]])
async def test_other_replies_than_the_options_are_refused(jobs: Any, value: Any) -> None:
    async with jobs([costs(1.25), costs(0.5, "Done.")], priced=PRICED, budgets=(per_day(1),)) as at:
        asked = await question(at.on, await parked(at.on))
        with pytest.raises(UsageError, match="not a possible answer") as refused:
            await at.on.engine.runs.answer(asked.id, Answer(approved=True, value=value))
        assert refused.value.fix == "Answer with 'Continue' or 'Stop'."
        await question(at.on, await at.on.engine.store.records.run(asked.run))


@pytest.mark.parametrize(
    ("on_crash", "words"), [("ask", "or later with `moot chat resume "), ("resume", "Without an answer, the run continues at")]
)
async def test_the_question_says_what_happens_when_the_budget_resets(jobs: Any, on_crash: str, words: str) -> None:
    async with jobs([costs(1.25)], priced=PRICED, budgets=(per_day(1),)) as at:
        asked = await question(at.on, await parked(at.on, on_crash=on_crash))
        assert words in asked.questions[0]["text"] and "2026-09-22 00:00" in asked.questions[0]["text"]


async def test_a_run_continues_by_itself_when_the_budget_resets(jobs: Any) -> None:
    script = [costs(1.25), costs(0.25), costs(0.25, "Done."), costs(0.1, "More.")]
    async with jobs(script, priced=PRICED, budgets=(per_day(1),)) as at:
        run = await parked(at.on)
        asked = await question(at.on, run)
        await at.move(MIDNIGHT - at.time.seconds - 1)
        assert (await at.on.engine.store.records.run(run.id)).status == "waiting"
        await at.move(1)
        assert (await resumed(at.on, run)).status == "finished"
        assert await at.on.engine.store.records.approvals() == [], "the question is closed"
        closed = await at.on.engine.store.records.approval(asked.id)
        assert closed is not None and closed.answer is not None and not closed.answer.approved
        assert await spent(at.on, "daily") == (0.5, 0), "what was spent yesterday belongs to yesterday"
        assert (await at.on.ask("and now"))[0].status == "finished"


async def test_other_runs_wait_too_and_each_is_warned_once(jobs: Any) -> None:
    script = [costs(0.85), costs(0.05), costs(0.05, "Done."), costs(0.1, "Second."), costs(1, "Never.")]
    async with jobs(script, priced=PRICED, budgets=(per_day(1),)) as at:
        first, _ = await at.on.ask("go")
        assert await notes(at.on, first) == ["85% of the budget 'daily' is used: $0.8500 of $1.00. It resets at 2026-09-22 00:00."]
        assert at.on.engine.runtime.budget_status == "budget daily 90%"
        second, _ = await at.on.ask("again")
        assert len(await notes(at.on, second)) == 1 and second.status == "finished"
        await parked(at.on, "third")
        assert len(at.on.server.requests) == 4
        assert at.on.engine.runtime.budget_status == "budget daily 105%"


async def test_webhooks_are_warned_once_per_period(jobs: Any) -> None:
    small, large = costs(0.01, "Done.", times=2), costs(0.9, "Done.")
    budgets = (Budget("weekly", "week", DOLLAR), Budget("each", "run", 100 * DOLLAR))
    async with jobs([large, small, large, small], priced=PRICED, budgets=budgets) as at:
        webhooks = at.on.engine.store.webhooks
        await webhooks.subscribe((Subscription("chat", ("budget.warning",)),))
        for week in (1, 2):
            for _ in range(3):
                assert (await at.on.ask("hello"))[0].status == "finished"
            newest, *others = await webhooks.history()
            assert len(others) == week - 1
            budget = {"limit": "cost", "used": round(0.9 * DOLLAR), "most": DOLLAR, "name": "weekly", "per": "week"}
            assert newest.facts == {"budget": {**budget, "resets_at": (MIDNIGHT + (7 * week - 1) * 24 * HOUR) * 1000}}
            await at.move(7 * 24 * HOUR)


async def test_two_budgets_are_asked_about_one_after_the_other(jobs: Any) -> None:
    budgets = (per_day(1), Budget("run", "run", tokens=1_000_000), Budget("monthly", "month", 100 * DOLLAR))
    async with jobs([costs(1.25), costs(0.5, "Done.")], priced=PRICED, budgets=budgets) as at:
        run = await parked(at.on)
        first = await question(at.on, run)
        await at.on.engine.runs.answer(first.id, chosen("Continue"))
        with anyio.fail_after(60):
            while not (found := await at.on.engine.store.records.approvals(run=run.id)):
                await anyio.sleep(0.01)
        assert "1,250,001 of 1,000,000 tokens" in found[0].questions[0]["text"] and found[0].expires_at is None
        await waiting(at.on, run.id)
        await at.on.engine.runs.answer(found[0].id, chosen("Continue"))
        assert (await at.on.engine.runs.wait(run.id)).status == "finished"
        assert await spent(at.on, "monthly") == (1.75, 0)


async def test_sub_agents_count_once_and_wait_too(jobs: Any) -> None:
    agents = {"default": Agent(agents=("explorer",)), "explorer": Agent("explorer", tools=("list_files",))}
    delegates = ToolCall("delegate", {"agent": "explorer", "prompt": "list them"})
    script = [
        Reply(when="count", tool_calls=[delegates], usage={"input": 500_000, "output": 1}),
        costs(1.25, when="list them"),
        costs(0.25, "Three.", when="list them"),
        costs(0.25, "Done.", when="count"),
    ]
    budgets = (Budget("each", "run", DOLLAR), Budget("explorers", "day", 100 * DOLLAR, agent="explorer"), per_day(100))
    async with jobs(script, priced=PRICED, budgets=budgets, agents=agents) as at:
        run = (await at.on.submit("count")).run
        with anyio.fail_after(60):
            while not (found := await at.on.engine.store.records.approvals(run=run.id, tree=True)):
                await anyio.sleep(0.01)
        (child,) = await at.on.engine.store.records.children(run.id)
        assert found[0].run == child.id and "$1.25 of $1.00" in found[0].questions[0]["text"]
        await waiting(at.on, child.id)
        await at.on.engine.runs.answer(found[0].id, chosen("Continue"))
        with anyio.fail_after(60):
            while not (own := await at.on.engine.store.records.approvals(run=run.id)):
                await anyio.sleep(0.01)
        await waiting(at.on, run.id)
        await at.on.engine.runs.answer(own[0].id, chosen("Continue"))
        assert (await at.on.engine.runs.wait(run.id)).status == "finished"
        assert await spent(at.on, "daily") == (2.25, 0) and await spent(at.on, "explorers") == (1.5, 0)
        (tree,) = await at.on.engine.store.stats.spent([SpendingQuery(run=run.id)])
        assert tree == Spending(round(2.25 * DOLLAR), 2_250_004)


async def test_a_sub_agent_of_a_budgets_agent_counts_towards_it(jobs: Any) -> None:
    agents = {"default": Agent(agents=("explorer",)), "explorer": Agent("explorer", tools=("list_files",))}
    delegates = ToolCall("delegate", {"agent": "explorer", "prompt": "list them"})
    script = [
        Reply(when="count", tool_calls=[delegates], usage={"input": 500_000, "output": 0}),
        costs(0.25, "Three.", when="list them"),
        costs(0.25, "Done.", when="count"),
    ]
    async with jobs(script, priced=PRICED, budgets=(per_day(100, agent="default"),), agents=agents) as at:
        assert (await at.on.ask("count"))[0].status == "finished"
        assert await spent(at.on, "daily") == (1.0, 0)


async def test_runs_of_other_users_and_projects_are_not_counted(jobs: Any) -> None:
    script = [costs(2, "One."), costs(0.5, "Two."), costs(1, "Never.")]
    async with jobs(script, priced=PRICED, budgets=(per_day(1), per_day(1, "shop", project="shop"))) as at:
        store, anna = at.on.engine.store, await at.on.engine.store.tokens.user("anna")
        made = await at.on.engine.runs.submit(Prompt((text_part("hello"),), user=anna.id))
        assert (await at.on.engine.runs.wait(made.run.id)).status == "finished"
        assert await spent(at.on, "daily") == (0, 0) and await spent(at.on, "daily", anna.id) == (2, 0)
        shop = await store.projects.create(Project("shop-id", "shop"))
        assert (await at.on.ask("hi"))[0].status == "finished"
        assert await spent(at.on, "daily") == (0.5, 0) and await spent(at.on, "shop") == (0, 0)
        made = await at.on.engine.runs.submit(Prompt((text_part("again"),), user=anna.id))
        assert (await waiting(at.on, made.run.id)).awaits == "person", "each user has this budget"
        assert shop.id == "shop-id" and len(at.on.server.requests) == 2


async def test_a_budget_of_one_user_does_not_cover_others(jobs: Any) -> None:
    script = [costs(2), costs(2, "Done.", times=0)]
    async with jobs(script, priced=PRICED, budgets=(per_day(1, user="anna"),)) as at:
        assert (await at.on.ask("go"))[0].status == "finished"
        anna = await at.on.engine.store.tokens.user("anna")
        for status in ("finished", "waiting"):
            made = await at.on.engine.runs.submit(Prompt((text_part("hello"),), user=anna.id))
            assert (await waiting(at.on, made.run.id)).status == status


async def test_unknown_prices_stay_unknown(jobs: Any) -> None:
    async with jobs([costs(5), costs(5, "Done.")], budgets=(per_day(1), per_day(0, "tokens", tokens=100_000_000))) as at:
        run, message = await at.on.ask("go")
        assert (run.status, run.cost, text_of(message.parts)) == ("finished", None, "Done.")
        assert await spent(at.on, "daily") == (0, 1)
        states = {state.budget.name: state for state in await budget_states(at.on.engine.runtime, "local")}
        assert states["tokens"].spent.tokens == 10_000_002 and states["daily"].share == 0


async def test_a_limit_of_a_run_is_listed_and_warned_about_too(jobs: Any) -> None:
    async with jobs([costs(0.85), costs(0.1, "Done.")], priced=PRICED, limits=Limits(cost=DOLLAR)) as at:
        run, _ = await at.on.ask("go")
        assert run.status == "finished"
        assert await notes(at.on, run) == ["85% of the limit 'limits.cost' is used: $0.8500 of $1.00."]
        (state,) = await budget_states(at.on.engine.runtime, "local")
        assert (state.budget.name, state.budget.ends_run, state.resets_at, state.problem) == ("limits.cost", True, None, "")


async def test_unknown_users_and_projects_are_reported(jobs: Any) -> None:
    budgets = (per_day(1, user="nobody"), per_day(1, "shop", project="shop"))
    async with jobs([], budgets=budgets) as at:
        problems = [state.problem for state in await budget_states(at.on.engine.runtime, "local")]
        assert problems == ["User 'nobody' not found.", "Project 'shop' not found."]
        assert [state.problem for state in await budget_states(at.on.engine.runtime, "someone")] == []


async def test_a_run_starts_with_notes_about_unknown_users_and_projects(jobs: Any) -> None:
    budgets = (per_day(1, user="nobody"), per_day(1, "shop", project="shop"), per_day(1, "known", user="local"))
    async with jobs([costs(0.1), costs(0.1, "Done.")], priced=PRICED, budgets=budgets) as at:
        run = await at.on.engine.runs.wait((await at.on.submit("go")).run.id)
        assert await notes(at.on, run) == [
            "The budget 'daily' has no effect. User 'nobody' not found.",
            "The budget 'shop' has no effect. Project 'shop' not found.",
        ]


async def test_a_raised_budget_lets_a_resumed_run_continue(jobs: Any) -> None:
    async with jobs([costs(1.25), costs(0.5, "Done.")], priced=PRICED, budgets=(per_day(1),)) as at:
        run = await parked(at.on)
        runtime = at.on.engine.runtime
        runtime.settings = replace(runtime.settings, budgets=(per_day(10),))
        await at.on.engine.runs.resume(run.id)
        assert (await at.on.engine.runs.wait(run.id)).status == "finished"
        assert await at.on.engine.store.records.approvals() == []


async def test_a_raised_budget_that_is_used_up_again_asks_again(jobs: Any) -> None:
    async with jobs([costs(1.25), costs(1), costs(0.5, "Done.")], priced=PRICED, budgets=(per_day(1),)) as at:
        run = await parked(at.on)
        runtime, records = at.on.engine.runtime, at.on.engine.store.records
        runtime.settings = replace(runtime.settings, budgets=(per_day(2),))
        await at.on.engine.runs.resume(run.id)
        with anyio.fail_after(60):
            while len(at.on.server.requests) < 2 or (await records.run(run.id)).status != "waiting":
                await anyio.sleep(0.01)
        await at.on.engine.runs.answer((await question(at.on, run)).id, chosen("continue"))
        assert (await resumed(at.on, run)).status == "finished"


@pytest.mark.parametrize("answers", [False, True])
async def test_another_process_continues_a_run_whose_process_is_gone(jobs: Any, answers: bool) -> None:
    async with jobs([costs(1.25), costs(0.5, "Done.")], priced=PRICED, budgets=(per_day(1),)) as at:
        run = await parked(at.on, on_crash="resume")
        async with open_engine(at.on.engine.settings, clock=at.time, resume=True) as second:
            at.on.engine.runs.clock.cancel(f"run:{run.id}")  # the first process was killed
            other = Jobs(replace(at.on, engine=second), at.time)
            if answers:
                await second.runs.answer((await question(at.on, run)).id, chosen("Continue"))
            else:
                await other.move(MIDNIGHT - at.time.seconds)
            assert (await resumed(other.on, run)).status == "finished"
        assert len(at.on.server.requests) == 2


async def test_a_run_that_continues_after_a_reset_is_split_between_the_periods(jobs: Any) -> None:
    script = [
        costs(0.5),
        Reply(tool_calls=[ToolCall("ask_user", {"questions": [{"question": "Which?"}]})], usage={"input": 10_000, "output": 0}),
    ]
    budgets = (per_day(100), Budget("monthly", "month", 100 * DOLLAR))
    async with jobs([*script, costs(0.25, "Done.")], priced=PRICED, budgets=budgets) as at:
        run = await waiting(at.on, (await at.on.submit("go")).run.id)
        assert await spent(at.on, "daily") == (0.5, 0), "the step with the question has not ended"
        await at.move(MIDNIGHT - at.time.seconds)
        assert await spent(at.on, "daily") == (0, 0) and await spent(at.on, "monthly") == (0.5, 0)
        assert (await resumed(at.on, run)).status == "finished", "its question has expired"
        assert await spent(at.on, "monthly") == (0.76, 0)
        assert await spent(at.on, "daily") == (0.25, 0), "a step counts at the time at which its model call ended"


async def test_an_outside_agent_is_not_started_while_a_budget_is_used_up(tmp_path: Path) -> None:
    usage = {"inputTokens": 900, "outputTokens": 200, "totalTokens": 1_100}
    async with acp_stage(tmp_path, {"prompt": [{"say": "Hello."}, {"stop": "end_turn", "usage": usage}]}) as on:
        runtime = on.engine.runtime
        runtime.settings = replace(runtime.settings, budgets=(Budget("tokens", "month", tokens=1_000),))
        assert (await on.run()).status == "finished"
        second = await waiting(on, (await on.begin("again")).id)
        assert (second.status, second.awaits, second.held) == ("waiting", "person", False) and await on.text(second) == ""
        await on.engine.runs.answer((await question(on, second)).id, chosen("Continue"))
        assert (await on.ended(second)).status == "finished" and await on.text(second) == "Hello."


def test_the_terminal_names_the_commands_that_answer(tmp_path: Path) -> None:
    with ScriptedProcess([costs(1.25), costs(0.5, "All done.", times=0)]) as model:
        moot = make(tmp_path, priced_config(model))
        try:
            asked = moot.run("run", "go")
            (id,) = [approval["id"] for approval in json.loads(moot.run("approvals", "list", "--json").stdout)["data"]]
            command = f"moot approvals allow {id} --answer Continue"
            assert asked.returncode == 3 and f"is waiting for your answer; answer with: {command}\n".encode() in asked.stderr
            for words in (
                ("run", "-c", "1", "hello"),
                ("chat", "continue", "1", "hello"),
                ("run", "-c", "1", "--on-busy", "queue", "hello"),
            ):
                refused = moot.run(*words)
                assert (
                    refused.returncode == 7 and b"another prompt would cancel it" in refused.stderr and command.encode() in refused.stderr
                )
            refused = moot.run("approvals", "allow", id, "--answer", "Maybe")
            assert (
                refused.returncode == 2
                and b"'Maybe' is not a possible answer" in refused.stderr
                and b"'Continue' or 'Stop'" in refused.stderr
            )
            assert moot.run("approvals", "allow", id, "--answer", "stop").returncode == 0
            stopped = moot.run("chat", "resume", "1")
            assert b"Raise `budgets.daily` in the configuration, then `moot chat continue " in stopped.stderr
            assert moot.run("run", "-c", "1", "hello").returncode == 3
            replaced = moot.run("run", "-c", "1", "--on-busy", "interrupt", "hello")
            assert replaced.returncode == 3 and b"is used up" in replaced.stderr
        finally:
            moot.close()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["approval.asked", "run.parked"])
def test_a_killed_run_waits_for_the_answer_and_continues(tmp_path: Path, point: str) -> None:
    with ScriptedProcess([costs(1.25), costs(0.5, "All done.", times=0)]) as model:
        moot = make(tmp_path, priced_config(model))
        try:
            moot.more |= {"MOOT_TESTING": "1", "MOOT_CRASH_AT": point}
            assert moot.run("run", "go").returncode == -9
            moot.more.clear()
            resumed = moot.run("chat", "resume", "1")
            assert resumed.returncode == 3 and b"The budget 'daily' is used up: $1.25 of $1.00." in resumed.stderr
            (listed,) = json.loads(moot.run("budgets", "--json").stdout)["data"]
            assert (listed["spent"]["cost"], listed["share"]) == (1_250_000_000, 1.25)
            moot.run("approvals", "list")
            allowed = moot.run("approvals", "allow", "1", "--answer", "Continue", "--follow")
            assert allowed.returncode == 0 and allowed.stdout == b"All done.\n", allowed.stderr
            shown = moot.run("budgets").stdout.decode()
            assert shown.splitlines()[1].split()[:7] == ["daily", "all", "runs", "month", "$1.75", "of", "$1.00"]
            assert json.loads(moot.run("approvals", "list", "--json").stdout)["data"] == []
        finally:
            moot.close()


@pytest.mark.slow
def test_imported_runs_are_not_counted(tmp_path: Path) -> None:
    with ScriptedProcess() as server:
        config = f"{server.config()}budgets: {{daily: {{per: day, tokens: 1000, tz: UTC}}}}\n"
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        homes = [make(tmp_path / name, config) for name in ("a", "b")]
        try:
            homes[0].run("run", "hi")
            recording = str(tmp_path / "r.jsonl")
            assert homes[0].run("export", "1", "-f", "recording", "-o", recording).returncode == 0
            assert homes[1].run("import", recording).returncode == 0
            found = [json.loads(home.run("budgets", "--json").stdout)["data"][0]["spent"]["tokens"] for home in homes]
            assert found == [19, 0]
        finally:
            for home in homes:
                home.close()


@pytest.mark.slow
def test_the_list_of_budgets_names_the_place_of_a_problem(tmp_path: Path) -> None:
    moot = make(tmp_path, "budgets:\n  shop: {per: day, cost: 1, project: shop}\n  each: {per: run, tokens: 5000}\nlimits: {cost: 2}\n")
    try:
        listed = moot.run("budgets")
        assert listed.returncode == 0 and b"config.yaml:2:38: budgets.shop: Project 'shop' not found." in listed.stderr
        rows = [line.split("  ") for line in listed.stdout.decode().splitlines()[1:]]
        assert [row[0] for row in rows] == ["shop", "each", "limits.cost"] and "limit 5,000 tokens" in listed.stdout.decode()
        (checked,) = [one for one in json.loads(moot.run("doctor", "--json").stdout)["data"] if one["name"] == "budgets"]
        assert checked["state"] == "note" and "budgets.shop has no effect: Project 'shop' not found. (user " in checked["detail"]
        assert "config.yaml:2:38)" in checked["detail"]
    finally:
        moot.close()
