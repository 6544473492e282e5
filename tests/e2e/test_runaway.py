"""Endpoints that cost money, overflow, stall and lie: every run stops with a reason and keeps what it had before."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from moot.config.settings import Models, Permissions, ProviderSettings, Settings
from moot.convert.fold import fold_parts, in_history
from moot.engine import Engine, open_engine
from moot.testing.chaos import ChaosServer, Fault
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.limits import Limits
from moot.types.message import TOOL_DONE, is_tool, text_of, text_part
from moot.types.run import TERMINAL, Prompt

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

DIALECTS = ["openai-chat", "anthropic", "google", "ollama", "openai-responses"]
PRICED = {"scripted": {"context": 100_000, "price": {"input": 1.0, "output": 2.0}}}
DOLLAR = 1_000_000_000

# ── money ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def endless() -> Any:
    """A model that calls a tool forever, each time with other arguments."""
    count = iter(range(1, 1000))
    return lambda _: Reply(
        tool_calls=[ToolCall("list_files", {"path": ".", "limit": next(count)})], usage={"input": 100_000, "output": 50_000}
    )


@asynccontextmanager
async def opened(home: Path, provider: ProviderSettings, **changes: Any) -> AsyncGenerator[Engine, None]:
    settings = Settings(home, models=Models(main="scripted@mine"), providers={"mine": provider}, permissions=Permissions(mode="auto"))
    async with open_engine(replace(settings, **changes), seed=1) as engine:
        yield engine


async def test_a_cost_limit_stops_an_endless_run(tmp_path: Path) -> None:
    async with ScriptedServer(endless()) as server, opened(tmp_path, server.provider("mine", models=PRICED)) as engine:
        submitted = await engine.runs.submit(Prompt((text_part("go"),), directory=str(tmp_path), settings={"max_cost": DOLLAR // 2}))
        run = await engine.runs.wait(submitted.run.id)
        assert run.error is not None and (run.status, run.error.kind) == ("failed", "limit")
        assert "--max-cost" in run.error.fix and "--max-cost" not in run.error.message
        assert (len(server.requests), run.cost) == (3, 600_000_000)


async def test_a_rejected_request_costs_nothing_and_keeps_the_total_known(tmp_path: Path) -> None:
    script = [Reply(status=429, retry_after=0), Reply(text="x", usage={"input": 100, "output": 50})]
    async with ScriptedServer(script) as server, opened(tmp_path, server.provider("mine", models=PRICED)) as engine:
        submitted = await engine.runs.submit(Prompt((text_part("go"),), directory=str(tmp_path), settings={"max_cost": DOLLAR}))
        run = await engine.runs.wait(submitted.run.id)
        assert (run.status, run.cost, len(server.requests)) == ("finished", 200_000, 2)


@pytest.mark.parametrize("reply", [Reply(text="x", usage=None), Reply(text="x")], ids=["no usage", "no price"])
async def test_a_call_without_a_price_has_an_unknown_cost(stage: Any, reply: Reply) -> None:
    async with stage([reply, replace(reply)]) as on:
        run, _ = await on.ask("go")
        assert (run.status, run.cost) == ("finished", None)
        conversation = await on.engine.store.conversations.get(run.conversation)
        assert (conversation.cost, conversation.unpriced_runs) == (None, 1)


async def test_with_an_unknown_price_a_cost_limit_stops_before_the_second_call(stage: Any) -> None:
    async with stage(endless()) as on:
        run, _ = await on.ask("go", settings={"max_cost": DOLLAR})
        assert run.error is not None and run.error.kind == "limit" and "is unknown" in run.error.message
        assert len(on.server.requests) == 1


async def test_a_token_limit_stops_a_run(stage: Any) -> None:
    async with stage(endless(), limits=Limits(tokens=300_000)) as on:
        run, _ = await on.ask("go")
        assert run.error is not None and run.error.kind == "limit"
        assert len(on.server.requests) == 2


@pytest.mark.parametrize("after", ["1000000000", "Fri, 31 Dec 2999 23:59:59 GMT", "1e308"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_run_does_not_wait_as_long_as_an_endpoint_asks_for(stage: Any, dialect: str, after: str) -> None:
    async with stage([Reply(status=429, retry_after=after), Reply(text="never")], dialect=dialect) as on:
        run, _ = await on.ask("go")
        assert run.error is not None and (run.status, run.error.kind) == ("failed", "rate_limit")
        assert len(on.server.requests) == 1
    script = lambda r: Reply(status=429, retry_after=after) if r.model == "scripted" else Reply(text="I step in.")  # noqa: E731
    async with stage(script, dialect=dialect, models=Models(main="scripted@mine", fallback=("other@mine",))) as on:
        run, message = await on.ask("go")
        assert (run.status, text_of(message.parts)) == ("finished", "I step in.")


# ── too much for the model ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_history_that_cannot_be_summarized_is_trimmed_once_and_stays_complete_in_the_store(stage: Any, dialect: str) -> None:
    too_long = Reply(status=400, error="prompt is too long: maximum context length exceeded", error_code="context_length_exceeded")
    talk = [Reply(text=f"answer {number} " + "words " * 400) for number in range(3)]
    no_summary = Reply(when="Write the summary", status=400, error="no")
    async with stage([*talk, no_summary, too_long, too_long, Reply(text="never")], dialect=dialect) as on:
        first, _ = await on.ask("question 0")
        for number in (1, 2):
            await on.ask(f"question {number}", conversation=first.conversation)
        before = await on.engine.store.conversations.branch(first.conversation)
        run, _ = await on.ask("and now?", conversation=first.conversation)
        assert run.error is not None and (run.status, run.error.kind) == ("failed", "context_too_long")
        whole, _, cut = on.server.requests[3:]
        assert len(cut.body) < len(whole.body)
        assert "and now?" in cut.user_text
        assert "answer 0" in str(whole.json) and "answer 0" not in str(cut.json)
        assert (await on.engine.store.conversations.branch(first.conversation))[: len(before)] == before


# ── spoiled streams ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("fault", "dialect"), [(fault, DIALECTS[number % 2]) for number, fault in enumerate(get_args(Fault))])
async def test_an_invalid_answer_ends_the_run_once_and_is_stored_as_received(tmp_path: Path, fault: Fault, dialect: str) -> None:
    reply = Reply(text="Some words of an answer.", tool_calls=[ToolCall("list_files", {"path": "."})])
    async with ChaosServer(reply, seed=5, only=[fault]) as server:
        provider = server.provider("mine", dialect, timeout=0.3, models={"scripted": {}})
        async with opened(tmp_path, provider, limits=Limits(steps=2, seconds=2.5)) as engine:
            submitted = await engine.runs.submit(Prompt((text_part("go"),), directory=str(tmp_path)))
            run = await engine.runs.wait(submitted.run.id)
            events = []
            while page := await engine.store.log.read(run.conversation, after=len(events)):
                events += page
            message = await engine.store.conversations.message(run.message)
            assert run.status in TERMINAL and run.status != "cancelled"
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert sum(event.key == "run" and event.phase == "end" for event in events) == 1
            chunks = [piece for event in events if event.run == run.id for piece in event.chunks]
            assert message.parts == fold_parts((), chunks)
            assert all(part["state"] in TOOL_DONE for part in message.parts if is_tool(part))
            assert run.status == "finished" or (run.error is not None and run.error.message)
            assert "" not in [part.get("text", "x") for part in in_history(message.parts)]
            assert all(recorded.status for recorded in server.requests)
            assert len(server.requests) <= 8


def test_every_fault_of_the_chaotic_server_is_tried() -> None:
    assert len(get_args(Fault)) >= 14
