"""The order in which an interactive conversation tells its display about runs."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from moot.cli.approvals.decide import Decision
from moot.cli.repl.conversation import InteractiveConversation
from moot.commands import CommandContext
from moot.errors import MootError
from moot.testing.script import Reply, ToolCall
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message, text_part
from moot.types.run import Run

pytestmark = pytest.mark.anyio


class Recorder:
    """A display that records when runs start and end."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.second = anyio.Event()

    def prompted(self, text: str) -> None:
        self.seen.append(f"prompt {text}")

    def opened(self, conversation: Conversation) -> None: ...

    def message(self, message: Message) -> None: ...

    def started(self, run: str, resumed: Message | None = None) -> None:
        self.seen.append("started")
        if self.seen.count("started") == 2:
            self.second.set()

    def left(self) -> None:
        self.seen.append("left")

    def event(self, event: Event) -> None: ...

    def ended(self, run: Run) -> None:
        self.seen.append("ended")

    def failed(self, error: MootError) -> None:
        self.seen.append(f"failed {error}")

    def notice(self, text: str) -> None:
        self.seen.append(text)

    def changed(self) -> None: ...

    async def decide(self, approval: Approval, conversation: Conversation) -> Decision:
        raise AssertionError("no approval is expected")


async def test_the_end_of_a_run_is_shown_before_the_queued_prompt_that_follows(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage([Reply(text="One.", hang_at=1), Reply(text="Two.")]) as on, anyio.create_task_group() as group:
        view, get = Recorder(), on.engine.store.conversations.get
        conversation = InteractiveConversation(CommandContext(on.engine, str(on.directory)), group, view)

        async def slow(reference: str) -> Conversation:
            task = asyncio.current_task()
            if task is not None and "InteractiveConversation" in task.get_name():  # a busy machine: the next run starts meanwhile
                await view.second.wait()
            return await get(reference)

        await conversation.send([text_part("first")], "first")
        monkeypatch.setattr(type(on.engine.store.conversations), "get", lambda _, reference: slow(reference))
        await conversation.send([text_part("second")], "second")
        await on.called()
        on.server.release()
        with anyio.fail_after(60):
            while view.seen.count("ended") < 2:
                await anyio.sleep(0.02)
        assert view.seen == ["prompt first", "started", "ended", "prompt second", "started", "ended"]
        group.cancel_scope.cancel()


async def test_a_run_that_starts_early_waits_until_the_end_of_the_run_before_is_shown(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage([Reply(text="One.", hang_at=1), Reply(text="Two.")]) as on, anyio.create_task_group() as group:
        view, wait, runs = Recorder(), on.engine.runs.wait, list[str]()
        conversation = InteractiveConversation(CommandContext(on.engine, str(on.directory)), group, view)

        async def slow(run: str) -> Run:
            runs.append(run)
            ended = await wait(run)
            while run == runs[0] and not await next_is_started(ended):
                await anyio.sleep(0.01)
            return ended

        async def next_is_started(ended: Run) -> bool:
            events = await on.engine.store.log.read(ended.conversation, after=ended.last_seq)
            return any(event.key == "run" and event.phase == "start" and event.seq <= conversation._seq for event in events)

        monkeypatch.setattr(on.engine.runs, "wait", slow)
        await conversation.send([text_part("first")], "first")
        await conversation.send([text_part("second")], "second")
        await on.called()
        on.server.release()
        with anyio.fail_after(60):
            while view.seen.count("ended") < 2:
                await anyio.sleep(0.02)
        assert view.seen == ["prompt first", "started", "ended", "prompt second", "started", "ended"]
        group.cancel_scope.cancel()


class Postponing(Recorder):
    """A display whose user leaves every approval open."""

    async def decide(self, approval: Approval, conversation: Conversation) -> Decision:
        return Decision(None, outcome="later")


async def test_a_prompt_that_cancels_a_waiting_run_says_so(stage: Any) -> None:
    script = [Reply(when="first", tool_calls=[ToolCall("shell", {"command": "true"})]), Reply(text="Two.")]
    async with stage(script, mode="ask") as on, anyio.create_task_group() as group:
        view = Postponing()
        conversation = InteractiveConversation(CommandContext(on.engine, str(on.directory)), group, view)
        for number, text in enumerate(("first", "second"), 1):
            await conversation.send([text_part(text)], text)
            with anyio.fail_after(60):
                while view.seen.count("ended") < number:
                    await anyio.sleep(0.02)
        notice = "The run that was waiting for your answer was cancelled, because you sent another prompt."
        assert view.seen.count(notice) == 1
        group.cancel_scope.cancel()
