"""Outgoing webhooks: what happens in runs is reported to other programs, signed, at most three times each, and never lost."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from e2e.cli_process import make
from moot.config.settings import OutgoingWebhook, Webhook
from moot.features.webhooks.receiver import is_authentic
from moot.features.webhooks.sender import PAUSES, OutgoingWebhooks
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.approval import Answer
from moot.types.ids import SystemClock
from moot.types.limits import Limits
from moot.types.message import text_part
from moot.types.run import Prompt
from moot.types.webhook import Outgoing

pytestmark = pytest.mark.anyio

SECRET = "a-secret-of-a-webhook"


@dataclass
class Receiver:
    """A program that receives events. It checks signatures as moot does for incoming webhooks."""

    url: str = ""
    statuses: list[int] = field(default_factory=list[int])
    """Statuses of the next responses; 200 if there are none left."""
    got: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    ids: list[str] = field(default_factory=list[str])

    async def receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert is_authentic(Webhook(prompt="x"), SECRET.encode(), headers, body, time.time())
        self.got.append(json.loads(body))
        self.ids.append(headers["webhook-id"])
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, text="x" * 100_000, headers={"location": f"{self.url}/elsewhere"} if status == 302 else {})

    async def wait(self, count: int) -> list[dict[str, Any]]:
        """Wait for that many events."""
        with anyio.fail_after(60):
            while len(self.got) < count:
                await anyio.sleep(0.01)
        return self.got


@asynccontextmanager
async def receiving() -> AsyncGenerator[Receiver, None]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.receive)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield receiver
    await runner.cleanup()


class Time(SystemClock):
    """The system's time plus what the test adds."""

    added = 0.0

    def now(self) -> int:
        return super().now() + int(self.added * 1_000_000)


class Reported:
    """A stage whose events are sent to a receiver."""

    def __init__(self, on: Any, receiver: Receiver, clock: Time) -> None:
        self.on, self.receiver, self.clock = on, receiver, clock

    def move(self, milliseconds: int) -> None:
        """Move the time."""
        self.clock.added += milliseconds / 1000

        async def nothing() -> None: ...

        self.on.engine.runs.clock.at("test", 0, nothing)  # its loop sleeps in real time

    async def history(self, claim: Callable[[list[Outgoing]], bool]) -> list[Outgoing]:
        """Wait until the history is as claimed, and return it, oldest first."""
        with anyio.fail_after(60):
            while not claim(found := (await self.on.engine.store.webhooks.history())[::-1]):
                await anyio.sleep(0.01)
        return found

    async def settled(self, count: int = 1) -> list[Outgoing]:
        return await self.history(lambda found: len(found) >= count and all(item.status != "pending" for item in found))


@pytest.fixture
def reported(stage: Any) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(script: Any = None, webhook: dict[str, Any] | None = None, **changes: Any) -> AsyncGenerator[Reported, None]:
        clock = Time()
        async with receiving() as receiver:
            configured = {"chat": OutgoingWebhook(f"{receiver.url}/hook?key=hidden-in-the-url", SECRET, **(webhook or {}))}
            replies = script if script is not None else [Reply(text="Done.", times=0)]
            async with stage(replies, clock=clock, **{"outgoing_webhooks": configured, **changes}) as on:
                await OutgoingWebhooks(on.engine.runtime, on.engine.runs.clock, "http://127.0.0.1:4747").start()
                yield Reported(on, receiver, clock)

    return opened


async def test_the_end_of_a_run_is_reported_once_and_signed(reported: Any) -> None:
    async with reported() as at:
        run, _ = await at.on.ask("hello")
        (event,) = await at.receiver.wait(1)
        conversation = await at.on.engine.store.conversations.get(run.conversation)
        assert event["event"] == "run.finished" and event["run"] == run.id and event["id"] == at.receiver.ids[0]
        assert event["conversation"] == {"id": conversation.id, "title": conversation.title}
        assert (event["status"], event["agent"], event["model"]) == ("finished", "default", "scripted@mine")
        assert event["usage"] == {"input": 12, "output": 7} and event["cost"] is None and "text" not in event
        assert event["url"] == f"http://127.0.0.1:4747/c/{conversation.id}"
        (item,) = await at.settled()
        assert (item.status, item.tries, item.reason) == ("delivered", 1, "")


async def test_the_text_is_sent_only_if_configured(reported: Any) -> None:
    async with reported(webhook={"text": True}) as at:
        await at.on.ask("hello")
        (event,) = await at.receiver.wait(1)
        assert event["text"] == "Done."


async def test_a_failed_run_and_a_question_are_reported(reported: Any) -> None:
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})]), Reply(status=400, error="no more secrets", times=0)]
    async with reported(script, mode="ask") as at:
        run, _ = await at.on.ask("hello", lambda _: Answer(approved=False, answered_by="me"))
        asked, failed = sorted(await at.receiver.wait(2), key=lambda event: event["event"])
        assert run.status == "failed"
        assert (asked["event"], asked["approval"]["tool"], asked["run"]) == ("approval.asked", "shell", run.id)
        assert (failed["event"], failed["status"], failed["error"]["message"]) == ("run.failed", "failed", "")
        assert asked["id"] != failed["id"]


async def test_most_of_a_limit_is_reported_once_per_run(reported: Any) -> None:
    call = ToolCall("list_files", {"path": "."})
    script = [Reply(tool_calls=[call], usage={"input": 70, "output": 10}), Reply(tool_calls=[call], usage={"input": 5, "output": 1})]
    script += [Reply(text="Done.", usage={"input": 5, "output": 1}, times=0)]
    async with reported(script, {"events": ("budget.warning",)}, limits=Limits(tokens=100)) as at:
        run, _ = await at.on.ask("hello")
        (item,) = await at.settled()
        assert run.status == "finished" and len(at.on.server.requests) == 3
        budget = {"limit": "tokens", "used": 80, "most": 100, "name": "limits.tokens", "per": "run", "resets_at": None}
        assert item.facts == {"budget": budget} == {"budget": at.receiver.got[0]["budget"]}


async def test_three_attempts_are_made_and_the_history_names_no_secret(reported: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with reported() as at:
        at.receiver.statuses = [500, 302, 404]
        await at.on.ask("hello")
        for count, pause in enumerate(PAUSES, 1):
            (item,) = await at.history(lambda found, count=count: bool(found) and found[0].tries == count)
            assert item.status == "pending" and item.due_at is not None
            at.move(pause)
        (item,) = await at.settled()
        assert (item.status, item.tries, item.due_at, item.reason) == ("failed", 3, None, "It answered with the status 404.")
        assert len(at.receiver.got) == 3 and len(set(at.receiver.ids)) == 1, "the redirect was not followed"
        assert "hidden-in-the-url" not in caplog.text and SECRET not in caplog.text


@pytest.mark.parametrize(
    ("webhook", "reason"),
    [
        ({"url": "http://10.1.2.3:9/hook?key=hidden"}, "not on the public network"),
        ({"url": "http://127.0.0.1:1/hook?key=hidden"}, "Could not fetch http://127.0.0.1"),
        ({"secret": "short"}, "It has no secret of at least 16 characters."),
    ],
)
async def test_what_can_not_be_sent_is_explained(stage: Any, webhook: dict[str, str], reason: str) -> None:
    configured = OutgoingWebhook(**{"url": "http://127.0.0.1:1/", "secret": SECRET, **webhook})
    async with stage([Reply(text="Done.", times=0)], outgoing_webhooks={"chat": configured}) as on:
        at = Reported(on, Receiver(), Time())
        await OutgoingWebhooks(on.engine.runtime, on.engine.runs.clock).start()
        await on.ask("hello")
        (item,) = await at.history(lambda found: bool(found) and found[0].tries == 1)
        assert reason in item.reason and "hidden" not in item.reason


@pytest.mark.parametrize(
    "webhook", [{"agent": "other"}, {"conversation": "other"}, {"project": "other"}, {"events": ("run.failed",)}, {"enabled": False}]
)
async def test_filters_select_runs(reported: Any, webhook: dict[str, Any]) -> None:
    async with reported(webhook=webhook) as at:
        await at.on.ask("hello")
        assert await at.on.engine.store.webhooks.history() == []


async def test_runs_of_other_users_are_not_reported(reported: Any) -> None:
    async with reported() as at:
        anna = await at.on.engine.store.tokens.user("anna")
        made = await at.on.engine.runs.submit(Prompt((text_part("hello"),), user=anna.id))
        assert (await at.on.engine.runs.wait(made.run.id)).status == "finished"
        assert await at.on.engine.store.webhooks.history() == []


async def test_a_job_delivers_its_answer_to_a_webhook(reported: Any) -> None:
    async with reported([Reply(text="All is well.", times=0)], {"events": ()}) as at:
        jobs = at.on.engine.cron.of("local")
        with pytest.raises(Exception, match=r"There is no outgoing webhook .other"):
            await jobs.add("build", {"prompt": "go", "every": 60, "deliver": "webhook:other"})
        with pytest.raises(Exception, match="outgoing_webhooks is empty"):
            await at.on.engine.cron.of("anna").add("build", {"prompt": "go", "every": 60, "deliver": "webhook:chat"})
        await jobs.add("build", {"prompt": "go", "every": 60, "deliver": "webhook:chat", "directory": str(at.on.directory)})
        record = await at.on.engine.cron.run_now(await jobs.get("build"))
        await at.on.engine.runs.wait(record.run)
        await at.on.engine.cron.refresh()
        await at.on.engine.cron.settle()
        await at.on.engine.cron.settle()
        (event,) = await at.receiver.wait(1)
        assert (event["event"], event["job"], event["text"], event["run"]) == ("job.answer", "build", "All is well.", record.run)
        assert len(await at.settled()) == 1


async def test_a_job_delivers_the_reply_of_a_command_to_a_webhook(reported: Any) -> None:
    async with reported([Reply(text="All is well.", times=0)], {"events": ()}) as at:
        jobs = at.on.engine.cron.of("local")
        values = {"prompt": "/tasks add Feed the cat", "every": 60, "deliver": "webhook:chat", "directory": str(at.on.directory)}
        await jobs.add("cat", values)
        record = await at.on.engine.cron.run_now(await jobs.get("cat"))
        (event,) = await at.receiver.wait(1)
        assert (event["event"], event["job"], event["text"]) == ("job.answer", "cat", "Added task #1: Feed the cat")
        assert (record.outcome, record.run) == ("finished", None)


async def test_an_event_survives_a_kill_and_is_sent_again_with_the_same_id(tmp_path: Path) -> None:
    async with receiving() as receiver:
        config = f"outgoing_webhooks: {{chat: {{url: '{receiver.url}/', secret: {SECRET}}}}}\n"
        with ScriptedProcess([Reply(text="Done.", times=0)]) as model:
            moot = make(tmp_path, model.config() + config)
            try:
                moot.more |= {"MOOT_TESTING": "1", "MOOT_CRASH_AT": "webhook.sent"}
                server = moot.start("serve", "--json", "--port", "0")
                assert server.stdout is not None
                await anyio.to_thread.run_sync(server.stdout.readline)
                # the run ends in another process, which sends nothing itself
                done = await anyio.to_thread.run_sync(lambda: moot.run("run", "hello"))
                assert done.returncode == 0, done.stderr
                await receiver.wait(1)
                assert await anyio.to_thread.run_sync(server.wait) == -9
                del moot.more["MOOT_CRASH_AT"]
                again = moot.start("serve", "--json", "--port", "0")
                await receiver.wait(2)
                shown: list[dict[str, Any]] = []
                with anyio.fail_after(60):
                    while not shown or shown[0]["status"] == "pending":
                        listed = await anyio.to_thread.run_sync(lambda: moot.run("webhooks", "history", "--json"))
                        shown = json.loads(listed.stdout)["data"]
                assert [(item["status"], item["event"]) for item in shown] == [("delivered", "run.finished")]
                assert receiver.ids[0] == receiver.ids[1] and len(receiver.got) == 2
                tested = await anyio.to_thread.run_sync(lambda: moot.run("webhooks", "test", "chat", "--json"))
                assert json.loads(tested.stdout)["event"] == "webhook.test" == receiver.got[2]["event"]
                again.terminate()
                await anyio.to_thread.run_sync(again.wait)
            finally:
                moot.close()
