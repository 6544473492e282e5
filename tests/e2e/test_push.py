"""Push notifications: a browser learns what happens in its owner's runs while the page is closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from e2e.cli_process import make
from e2e.push_service import CONTACT, SECRET, PushService, push_service
from e2e.test_outgoing_webhooks import Time
from moot.config.settings import Settings
from moot.errors import NotFound
from moot.features.webhooks.encryption import server_key
from moot.features.webhooks.push import LIFETIME, LONGEST_PAUSE, POLICY, Pusher
from moot.features.webhooks.sender import PAUSES, OutgoingWebhooks
from moot.store import open_store
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.approval import Answer
from moot.types.message import text_part
from moot.types.push import TO_DEVICE, Device
from moot.types.run import Prompt
from moot.types.token import Token
from moot.types.webhook import Outgoing

pytestmark = pytest.mark.anyio

COMMAND = "touch made-by-a-command"
ASKS = [Reply(tool_calls=[ToolCall("shell", {"command": COMMAND})]), Reply(text="All is well.", times=0)]


class Pushed:
    """A stage whose events are sent to a browser."""

    def __init__(self, on: Any, service: PushService, clock: Time) -> None:
        self.on, self.service, self.clock = on, service, clock
        self.store = on.engine.store

    def pusher(self, **more: Any) -> Pusher:
        runtime = self.on.engine.runtime
        return Pusher(self.store, runtime.settings.home, runtime.clock, contact=CONTACT, **{"policy": self.service.policy, **more})

    async def start(self, **more: Any) -> None:
        """Send what is stored."""
        await OutgoingWebhooks(self.on.engine.runtime, self.on.engine.runs.clock, pusher=self.pusher(**more)).start()

    async def add(self, owner: str = "local", **more: Any) -> Device:
        return await self.store.of(owner).devices.add(self.service.device(owner, **more))

    def move(self, milliseconds: int) -> None:
        self.clock.added += milliseconds / 1000

        async def nothing() -> None: ...

        self.on.engine.runs.clock.at("test", 0, nothing)  # its loop sleeps in real time

    async def until(self, claim: Callable[[Device], bool]) -> Device:
        """Wait until the only device is as claimed, and return it."""
        with anyio.fail_after(60):
            while not ((found := await self.store.devices.list()) and claim(found[0])):
                await anyio.sleep(0.01)
        return found[0]

    async def queue(self, device: Device) -> list[Outgoing]:
        """The unsent events for the device."""
        due = await self.store.webhooks.due(1 << 50, 100)
        return [item for item in due if item.webhook == f"{TO_DEVICE}{device.id}"]


@pytest.fixture
def pushed(stage: Any) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(script: Any = None, *, start: bool = True, **changes: Any) -> AsyncGenerator[Pushed, None]:
        clock = Time()
        replies = script if script is not None else [Reply(text="All is well.", times=0)]
        async with push_service() as service, stage(replies, clock=clock, **changes) as on:
            at = Pushed(on, service, clock)
            if start:
                await at.start()
            yield at

    return opened


async def test_the_end_of_a_run_is_sent_encrypted_and_without_the_answer(pushed: Any) -> None:
    async with pushed() as at:
        device = await at.add()
        run, _ = await at.on.ask("hello")
        (message,) = await at.service.wait(1)
        assert message == {
            "event": "run.finished",
            "title": "hello",
            "body": "The answer is ready",
            "details": False,
            "path": f"/c/{run.conversation}",
            "tag": run.id,
        }
        (headers,) = at.service.headers
        assert headers["urgency"] == "normal" and LIFETIME - 60 < int(headers["ttl"]) <= LIFETIME
        assert at.service.keys == {server_key(at.on.engine.runtime.settings.home).public}
        sent = await at.until(lambda one: one.sent_at is not None)
        assert (sent.id, sent.failures, sent.error) == (device.id, 0, "")
        assert await at.store.webhooks.history() == [], "webhooks have a history of their own"


async def test_a_question_and_the_end_of_the_same_run_replace_each_other(pushed: Any) -> None:
    async with pushed(ASKS, mode="ask") as at:
        await at.add()
        submitted = await at.on.submit("hello")
        waiting = await at.on.follow(submitted)
        asked = (await at.service.wait(1))[0]
        assert (waiting.status, asked["event"], asked["body"]) == ("waiting", "approval.asked", "Needs your answer")
        assert COMMAND not in str(asked)
        (approval,) = await at.store.records.approvals(run=waiting.id)
        await at.on.engine.runs.answer(approval.id, Answer(approved=False, answered_by="me"))
        ended = (await at.service.wait(2))[1]
        assert (ended["event"], ended["tag"]) == ("run.finished", asked["tag"])
        first, second = at.service.headers
        assert first["topic"] == second["topic"] and len(first["topic"]) == 32 and waiting.id not in first["topic"]
        assert first["urgency"] == "high" and int(first["ttl"]) > 0


async def test_details_are_sent_only_to_devices_that_want_them(pushed: Any) -> None:
    async with pushed([*ASKS[:1], Reply(text="All\n is \u202ewell."), Reply(status=400, error="no more", times=0)], mode="ask") as at:
        await at.add(details=True)
        await at.on.ask("hello", lambda _: Answer(approved=False, answered_by="me"))
        await at.on.ask("again")
        with anyio.fail_after(60):
            while not {message["event"] for message in at.service.got} >= {"run.finished", "run.failed"}:
                await anyio.sleep(0.01)
        bodies = {message["event"]: message["body"] for message in at.service.got if message["details"]}
        assert bodies["run.finished"] == "All is <U+202E>well."
        assert "no more" in bodies["run.failed"]


async def test_a_question_is_sent_with_its_details(pushed: Any) -> None:
    async with pushed(ASKS, mode="ask") as at:
        await at.add(details=True)
        await at.on.follow(await at.on.submit("hello"))
        (asked,) = await at.service.wait(1)
        assert (asked["body"], asked["details"]) == (f"shell: {COMMAND}", True)


async def test_an_answered_question_is_not_sent(pushed: Any) -> None:
    async with pushed(ASKS, start=False, mode="ask") as at:
        device = await at.add(events=("approval.asked",))
        await at.on.ask("hello", lambda _: Answer(approved=False, answered_by="me"))
        (item,) = await at.queue(device)
        outcome = await at.pusher().attempt(item)
        assert (outcome.reason, outcome.is_skipped, at.service.requests) == ("It is no longer needed.", True, 0)


async def test_an_event_of_yesterday_is_not_sent(pushed: Any) -> None:
    async with pushed(start=False) as at:
        device = await at.add()
        await at.on.ask("hello")
        (item,) = await at.queue(device)
        at.clock.added += LIFETIME
        assert (await at.pusher().attempt(item)).reason == "It is no longer needed."
        assert at.service.requests == 0


async def test_a_device_gets_only_the_events_that_it_chose(pushed: Any) -> None:
    async with pushed(start=False) as at:
        device = await at.add(events=("run.failed",))
        await at.on.ask("hello")
        assert await at.queue(device) == []


async def test_devices_get_the_events_of_their_owner_only(pushed: Any) -> None:
    async with pushed(start=False) as at:
        anna = await at.store.tokens.user("anna")
        other = PushService(url="http://127.0.0.1:1")
        mine, theirs = await at.add(), await at.store.of(anna.id).devices.add(other.device(anna.id))
        made = await at.on.engine.runs.submit(Prompt((text_part("hello"),), user=anna.id))
        assert (await at.on.engine.runs.wait(made.run.id)).status == "finished"
        assert await at.queue(mine) == []
        assert [item.run for item in await at.queue(theirs)] == [made.run.id]


@pytest.mark.parametrize("status", [404, 410])
async def test_an_ended_subscription_is_removed_with_its_events(pushed: Any, status: int) -> None:
    async with pushed() as at:
        device = await at.add()
        at.service.answers = [(status, {})]
        await at.on.ask("hello")
        with anyio.fail_after(60):
            while await at.store.devices.list():
                await anyio.sleep(0.01)
        assert await at.queue(device) == [] and at.service.requests == 1
        with pytest.raises(NotFound):
            await at.store.devices.get(device.id)


async def test_busy_services_are_tried_again_when_they_ask_for_it(pushed: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with pushed() as at:
        device = await at.add()
        at.service.answers = [(429, {"retry-after": "120"}), (503, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})]
        await at.on.ask("hello")
        failed = await at.until(lambda one: one.failures == 1)
        assert failed.error == "The push service answered with the status 429."
        with anyio.fail_after(60):
            while not (items := await at.queue(device)) or items[0].tries < 1:
                await anyio.sleep(0.01)
        assert items[0].due_at is not None and items[0].due_at - at.clock.now() // 1000 > 110_000
        at.move(121_000)
        await at.until(lambda one: one.failures == 2)
        at.move(PAUSES[1])
        (message,) = await at.service.wait(1)
        assert message["event"] == "run.finished" and at.service.requests == 3
        assert (await at.until(lambda one: one.failures == 0)).error == ""
        assert SECRET not in caplog.text


async def test_other_failures_are_final_and_shown(pushed: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with pushed() as at:
        device = await at.add()
        at.service.answers = [(403, {})]
        await at.on.ask("hello")
        failed = await at.until(lambda one: one.failures == 1)
        assert "status 403. Turn notifications off and on again" in failed.error
        with anyio.fail_after(60):
            while await at.queue(device):
                await anyio.sleep(0.01)
        assert at.service.requests == 1 and failed.sent_at is None
        assert "not delivered to device:" in caplog.text and SECRET not in caplog.text


@pytest.mark.parametrize("seconds", ["999999", "x", "-5", "Sat, 01 Jan 2099 00:00:00 GMT"])
async def test_a_service_can_not_ask_for_long_pauses(pushed: Any, seconds: str) -> None:
    async with pushed(start=False) as at:
        at.service.answers = [(429, {"retry-after": seconds})]
        outcome = await at.pusher().test(await at.add())
        assert 0 <= outcome.pause <= LONGEST_PAUSE * 1000 and not outcome.is_final


async def test_a_silent_service_is_left_after_the_time_limit(pushed: Any) -> None:
    async with pushed(start=False) as at:
        at.service.hangs = True
        outcome = await at.pusher().test(await at.add())
        assert "took longer than 0.3 seconds" in outcome.reason and not outcome.is_final
        assert SECRET not in outcome.reason and SECRET not in (await at.store.devices.list())[0].error


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        (f"https://10.1.2.3/{SECRET}", "not on the public network"),
        (f"https://[::1]/{SECRET}", "not on the public network"),
        (f"https://169.254.169.254/{SECRET}", "not on the public network"),
        (f"https://8.8.8.8:8443/{SECRET}", "Port 8443 is not allowed"),
        (f"http://8.8.8.8/{SECRET}", "Only https URLs"),
        (f"https://me:pw@8.8.8.8/{SECRET}", "user name or password"),
    ],
)
async def test_private_addresses_are_never_reached(pushed: Any, endpoint: str, reason: str) -> None:
    async with pushed(start=False) as at:
        device = await at.store.of("local").devices.add(replace(at.service.device(), endpoint=endpoint))
        outcome = await at.pusher(policy=POLICY).test(device)
        assert reason in outcome.reason and SECRET not in outcome.reason


async def test_a_redirect_is_not_followed(pushed: Any) -> None:
    async with pushed(start=False) as at:
        at.service.answers = [(302, {"location": f"{at.service.url}/elsewhere"})]
        outcome = await at.pusher().test(await at.add())
        assert outcome.reason and at.service.requests == 1


async def test_a_revoked_login_gets_nothing_more(pushed: Any) -> None:
    async with pushed(start=False) as at:
        token = await at.store.tokens.create(Token("t1", "local", "phone", ("read",)), b"digest")
        device = await at.add(token=token.id)
        await at.on.ask("hello")
        assert len(await at.queue(device)) == 1
        await at.store.tokens.revoke(token.id)
        assert await at.store.devices.list() == [] and await at.queue(device) == []


async def test_an_event_survives_a_kill_and_is_sent_again(tmp_path: Path) -> None:
    phone = PushService(url="https://push.invalid").device()
    with ScriptedProcess([Reply(text="Done.", times=0)]) as model:
        moot = make(tmp_path, model.config())
        settings = Settings(home=moot.home)

        async def attempts(count: int) -> None:
            async with await open_store(settings) as store:
                with anyio.fail_after(60):
                    while (await store.devices.get(phone.id)).failures < count:
                        await anyio.sleep(0.05)

        try:
            async with await open_store(settings) as store:
                await store.of("local").devices.add(phone)
            # the run ends in another process, which sends nothing itself
            done = await to_thread.run_sync(lambda: moot.run("run", "hello"))
            assert done.returncode == 0, done.stderr
            moot.more |= {"MOOT_TESTING": "1", "MOOT_CRASH_AT": "webhook.sent"}
            server = moot.start("serve", "--json", "--port", "0")
            assert await to_thread.run_sync(server.wait) == -9
            await attempts(1)
            del moot.more["MOOT_CRASH_AT"]
            again = moot.start("serve", "--json", "--port", "0")
            await attempts(2)
            again.terminate()
            await to_thread.run_sync(again.wait)
            log = "".join(file.read_text() for file in (moot.home / "state" / "logs").glob("*"))
            assert SECRET not in log
        finally:
            moot.close()
