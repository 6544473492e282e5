"""Stop in every phase of a run, once and twice: within a second, recorded once, and the conversation continues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.conftest import Stage
from e2e.test_incomplete_calls import pairs
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.event import Event
from moot.types.message import TOOL_DONE, is_tool

pytestmark = pytest.mark.anyio


def chunk(kind: str) -> Any:
    return lambda events, on: any(piece["type"] == kind for event in events for piece in event.chunks)


def asked(events: list[Event], on: Stage) -> bool:
    return bool(on.server.requests)


def key(name: str, phase: str) -> Any:
    return lambda events, on: any(event.phase == phase and str(event.key).startswith(name) for event in events)


SHELL = ToolCall("shell", {"command": "touch begun; sleep 600"})
PHASES: dict[str, tuple[Reply, str, Any]] = {
    "before the first byte": (Reply(text="x", wait=600), "auto", asked),
    "behind the headers": (Reply(text="x", hang_at=0), "auto", asked),
    "while it reasons": (Reply(reasoning="hm " * 20, text="x", hang_at=5), "auto", chunk("reasoning-delta")),
    "while it speaks": (Reply(text="word " * 9, hang_at=4), "auto", chunk("text-delta")),
    "in half a call": (Reply(tool_calls=[ToolCall("shell", {"command": "true" * 20})], hang_at=5), "auto", chunk("tool-input-start")),
    "while it waits to try again": (Reply(status=429, retry_after=30), "auto", key("llm:1.0", "end")),
    "while a tool works": (Reply(tool_calls=[SHELL, ToolCall("list_files", {"path": "."})]), "auto", key("tool:", "start")),
    "while a person is asked": (Reply(tool_calls=[SHELL]), "ask", chunk("tool-approval-request")),
}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
@pytest.mark.slow
async def test_a_run_can_be_stopped_in_every_phase(stage: Any, directory: Path, dialect: str, phase: str, times: int) -> None:
    first, mode, ready = PHASES[phase]

    def script(recorded: Recorded) -> Reply:
        return first if recorded.user_text == "go" else Reply(text="Here again.")

    async with stage(script, dialect=dialect, mode=mode) as on:
        submitted = await on.submit("go")
        with anyio.fail_after(60):  # less than most phases would take
            events: list[Event] = []
            while not ready(events, on):
                await anyio.sleep(0.01)
                events = await on.engine.store.log.read(submitted.conversation.id)
            async with anyio.create_task_group() as group:
                for _ in range(times):
                    group.start_soon(on.engine.runs.cancel, submitted.run.id)
            run = await on.engine.runs.wait(submitted.run.id)
            while run.status == "waiting":  # a parked run is resumed only to end it
                await anyio.sleep(0.01)
                run = await on.engine.runs.wait(submitted.run.id)
        await on.engine.runs.cancel(run.id)
        events = await on.engine.store.log.read(submitted.conversation.id, limit=5000)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert sum(event.key == "run" and event.phase == "end" for event in events) == 1
        message = await on.engine.store.conversations.message(run.message)
        assert (run.status, message.status) == ("cancelled", "cancelled")
        assert not [part for part in message.parts if part.get("state") in ("streaming", "input-streaming")]
        assert all(part["state"] in TOOL_DONE for part in message.parts if is_tool(part))
        again, _ = await on.ask("and now?", conversation=submitted.conversation.id)
        assert again.status == "finished", again.error
        pairs(on.server.requests[-1].json)


async def test_a_queued_prompt_can_be_stopped_before_its_turn(stage: Any) -> None:
    async with stage([Reply(text="never ends", hang_at=3), Reply(text="never asked")]) as on:
        first = await on.submit("one")
        second = await on.submit("two", conversation=first.conversation.id, on_busy="queue")
        with anyio.fail_after(60):
            await on.engine.runs.cancel(second.run.id)
            await on.engine.runs.cancel(first.run.id)
            ended = [await on.engine.runs.wait(one.run.id) for one in (first, second)]
        assert [run.status for run in ended] == ["cancelled", "cancelled"]
        assert all(request.user_text == "one" for request in on.server.requests)
