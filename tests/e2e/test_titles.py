"""Titles by the small model: after the first answer, once, and never over a user's title."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from moot.config.settings import Models
from moot.engine import open_engine
from moot.testing.script import Reply
from moot.types.message import text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

BOTH = Models(main="scripted@mine", small="little@mine")
NAMING = Reply(when="user:", text='"Greetings and more."', times=0)
ANSWER = Reply(when="", text="Hello.", times=0)


def calls(on: Any) -> list[str]:
    return [request.json["model"] for request in on.server.requests]


async def title(on: Any, conversation: str) -> tuple[str, str]:
    await on.engine.runs.settle(5)
    found = await on.engine.store.conversations.get(conversation)
    return found.title, found.title_source


async def test_the_small_model_names_a_conversation_after_its_first_answer_and_once(stage: Any) -> None:
    async with stage([NAMING, ANSWER], models=BOTH) as on:
        submitted = await on.submit("hi there")
        assert submitted.conversation.title == "hi there"
        run = await on.follow(submitted)
        assert await title(on, run.conversation) == ("Greetings and more", "model")
        assert calls(on) == ["scripted", "little"]
        asked = str(on.server.requests[-1].json["messages"])
        assert "hi there" in asked and "Hello." in asked and "tools" not in on.server.requests[-1].json
        await on.ask("again", conversation=run.conversation)
        await title(on, run.conversation)
        assert calls(on) == ["scripted", "little", "scripted"]


async def test_without_a_small_model_the_first_line_stays(stage: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with stage([NAMING, ANSWER]) as on:
        run, _ = await on.ask("hi there")
        assert await title(on, run.conversation) == ("hi there", "first-line")
        assert calls(on) == ["scripted"] and caplog.text == ""


async def test_a_failed_title_does_not_fail_the_run(stage: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with stage([Reply(when="user:", status=500, error="down", times=0), ANSWER], models=BOTH) as on:
        run, message = await on.ask("hi there")
        assert await title(on, run.conversation) == ("hi there", "first-line")
        assert (run.status, message.status, run.error) == ("finished", "finished", None)
        assert "could not generate a title" in caplog.text
        await on.ask("again", conversation=run.conversation)
        await title(on, run.conversation)
        assert calls(on) == ["scripted", "little", "scripted"]
    async with stage([Reply(when="user:", text="<think>hm", times=0), ANSWER], models=BOTH) as on:
        run, _ = await on.ask("hi there")
        assert await title(on, run.conversation) == ("hi there", "first-line")


async def test_a_title_set_during_the_title_call_wins(stage: Any) -> None:
    slow = Reply(when="user:", text="By the model", delay=0.1, chunk_size=3, times=0)
    async with stage([slow, ANSWER], models=BOTH) as on:
        run, _ = await on.ask("hi there")
        while len(on.server.requests) < 2:
            await anyio.sleep(0.01)
        await on.engine.store.conversations.rename(run.conversation, "Mine", "user")
        assert await title(on, run.conversation) == ("Mine", "user")
        events = await on.engine.store.log.read(run.conversation)
        assert events[-1].kind == "exchange" and events[-1].phase == "end"


async def test_a_title_set_before_the_answer_prevents_the_title_call(stage: Any) -> None:
    async with stage([NAMING, Reply(when="", text="Hello.", delay=0.05, times=0)], models=BOTH) as on:
        submitted = await on.submit("hi there")
        await on.engine.store.conversations.rename(submitted.conversation.id, "Mine", "user")
        await on.follow(submitted)
        assert await title(on, submitted.conversation.id) == ("Mine", "user")
        assert calls(on) == ["scripted"]


async def test_a_failed_run_gets_no_title(stage: Any) -> None:
    async with stage([NAMING, Reply(when="bad", status=400, error="no"), ANSWER], models=BOTH) as on:
        failed, _ = await on.ask("bad start")
        assert await title(on, failed.conversation) == ("bad start", "first-line")
        await on.ask("better", conversation=failed.conversation)
        assert (await title(on, failed.conversation))[1] == "model"


@pytest.mark.slow
async def test_the_answer_does_not_wait_for_the_title_and_closing_waits_a_moment_only(stage: Any) -> None:
    endless = Reply(when="user:", text="word " * 400, delay=0.5, chunk_size=2, times=0)
    async with stage([endless, ANSWER], models=BOTH) as on:
        async with open_engine(on.engine.settings) as engine:
            submitted = await engine.runs.submit(Prompt((text_part("hi"),), directory=str(on.directory)))
            assert (await engine.runs.wait(submitted.run.id)).status == "finished"
            while len(on.server.requests) < 2:
                await anyio.sleep(0.01)
            began = time.monotonic()
        assert time.monotonic() - began > 2.5
        end = (await on.engine.store.log.read(submitted.conversation.id))[-1]
        assert (end.kind, end.body["ended"]) == ("exchange", "cancelled")
