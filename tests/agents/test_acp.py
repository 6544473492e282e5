"""The real agents that speak ACP, each driven by its service against scripted models."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agents.acp_programs import PROGRAMS, AcpProgram
from agents.models import Call, Script, ScriptedModels, Step
from e2e.acp_stage import AcpStage, acp_stage
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import local_sources
from moot.types.approval import Answer
from moot.types.message import is_tool
from moot.types.run import Run

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(400)]

PRODUCT = "python3 -c 'print(6*7)'"
FOREVER = "python3 -c 'import time; time.sleep(99)'"
ASKS = ("opencode", "gemini", "qwen", "claude-agent-acp")
"""Agents that ask before they run such a command in the mode that moot selects."""
Opens = Callable[..., AbstractAsyncContextManager[AcpStage]]


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> AcpProgram:
    found: AcpProgram = request.param
    return found


def script_of(program: AcpProgram) -> Script:
    def call(command: str) -> Call:
        return Call(program.shell, {program.argument: command, **dict(program.more)})

    return {
        "compute the product": [
            Step("", "I have to compute.", [call(PRODUCT)]),
            Step("The product of the two numbers is 42, as computed.", piece=8),
        ],
        "touch the file": [Step("I touch it.", "", [call("touch made-by-agent")]), Step("I was not allowed to.")],
        "sleep for long": [Step("Sleeping now.", "", [call(FOREVER)]), Step("Awake.")],
        "say hello": [Step("Hello to you.")],
        "what did I say": [Step("You said hello.")],
    }


@pytest.fixture
def opens(program: AcpProgram, tmp_path: Path, serve_models: Callable[[Script], ScriptedModels]) -> Opens:
    @asynccontextmanager
    async def staged(**options: Any) -> AsyncIterator[AcpStage]:
        command = program.command()
        models = serve_models(script_of(program))
        home, work = tmp_path / "agent-home", tmp_path / "work"
        home.mkdir()
        work.mkdir()
        env = program.environment(models.url, home, work)
        async with acp_stage(tmp_path, "echo", name=program.name, command=command, env=env, **options) as on:
            on.seconds = 180
            on.requests = models.requests
            yield on

    return staged


async def answered(on: AcpStage, run: Run, answer: Answer) -> int:
    """Give that answer to every question until the run ends. Return the number of questions."""
    asked = 0
    with anyio.fail_after(on.seconds):
        while (await on.engine.store.records.run(run.id)).status in ("queued", "running", "waiting"):
            for approval in await on.engine.store.records.approvals(run=run.id):
                await on.engine.runs.answer(approval.id, answer)
                asked += 1
            await anyio.sleep(0.05)
    return asked


async def test_answers_stream_with_reasoning_and_an_approved_command(program: AcpProgram, opens: Opens) -> None:
    async with opens(mode="ask") as on:
        run = await on.begin("please compute the product")
        asked = await answered(on, run, Answer(True))
        ended = await on.ended(run)
        assert ended.status == "finished", ended.error
        assert (asked > 0) == (program.name in ASKS)
        assert "The product of the two numbers is 42, as computed." in await on.text(run)
        (call,) = await on.calls(run)
        assert call["state"] == "output-available" and PRODUCT in str(call["input"])
        if program.name != "gemini":  # it shows no shell output
            assert "42" in str(call["output"])
        thought = "".join(str(part["text"]) for part in await on.parts(run) if part["type"] == "reasoning")
        # gemini writes an empty heading before every part of an untitled thought
        assert re.sub(r"\*\*\*\*|\n", "", thought) == "I have to compute."
        chunks = [chunk for event in await on.events(run) for chunk in event.chunks]
        assert sum(chunk["type"] == "text-delta" for chunk in chunks) >= 3
        assert ended.usage.input, "it counts no tokens"


async def test_a_denied_call_is_reported_to_the_agent(program: AcpProgram, opens: Opens) -> None:
    if program.name not in ASKS:
        pytest.skip(f"{program.name} asks nothing")
    async with opens(mode="ask") as on:
        run = await on.begin("please touch the file")
        asked = await answered(on, run, Answer(False, reason="not now"))
        ended = await on.ended(run)
        assert asked and ended.status == "finished"
        assert not (on.directory / "made-by-agent").exists()
        (call,) = await on.calls(run)
        assert call["state"] == "output-denied"


async def test_a_cancel_ends_a_running_command(program: AcpProgram, opens: Opens) -> None:
    async with opens(mode="auto") as on:
        run = await on.begin("please sleep for long")
        with anyio.fail_after(on.seconds):
            while not any(
                is_tool(part) and part["state"] != "input-streaming"
                for part in (await on.engine.store.conversations.message(run.message)).parts
            ):
                assert (await on.engine.store.records.run(run.id)).status in ("queued", "running", "waiting")
                await anyio.sleep(0.05)
        await anyio.sleep(1)  # its shell needs time to start
        began = anyio.current_time()
        await on.engine.runs.cancel(run.id)
        ended = await on.ended(run)
        took = anyio.current_time() - began
        assert ended.status == "cancelled" and took < 30, took
        (call,) = await on.calls(run)
        assert call["state"] in ("output-error", "output-available")


async def test_a_new_process_resumes_the_session_for_the_next_prompt(program: AcpProgram, opens: Opens) -> None:
    async with opens(mode="auto") as on:
        first = await on.run("please say hello")
        second = await on.run("what did I say", conversation=first.conversation)
        assert second.status == "finished" and (await on.text(second)).endswith("You said hello.")
        sent = [message["method"] for message in await on.wire(second, ours=True) if "method" in message]
        assert "session/resume" in sent or "session/load" in sent
        if program.name != "gemini":  # it often does not find its session; then a new one gets the history
            assert second.agent_session_id == first.agent_session_id and "session/new" not in sent
        asked = [str(entry["body"]) for entry in on.requests()]
        if "__aimock_truncated" not in asked[-1]:  # for long requests the models record only the size
            assert any("please say hello" in body and "what did I say" in body for body in asked), "the model was not told what was said"


async def test_sessions_created_by_moot_are_not_imported_again(program: AcpProgram, opens: Opens) -> None:
    async with opens(mode="auto") as on:
        await on.run("please compute the product")
        await on.run("please say hello")
        sources = list(local_sources(on.directory.parent / "agent-home", {}, on.directory.parent / "data"))
        assert sources, "it keeps no sessions where they are looked for"
        report = Report()
        await import_sources(on.engine.store, sources, ImportOptions(), report)
        # gemini also creates files without messages
        assert not report.failed and report.conversations["known"] == 2 and report.conversations.keys() <= {"known", "empty"}
        assert len((await on.engine.store.conversations.list()).items) == 2
