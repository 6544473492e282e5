"""moot as a library, with a real store and a scripted model over HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

import moot
from moot.config.settings import Models, Settings
from moot.engine import open_engine
from moot.library.names import NAMES
from moot.runtime.approvals.requests import NO_ONE_AVAILABLE
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.agent import Agent
from moot.types.message import text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio


@dataclass
class Desk:
    m: moot.Moot
    server: ScriptedServer
    settings: Settings


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    @asynccontextmanager
    async def open_desk(script: Any) -> AsyncGenerator[Desk, None]:
        async with ScriptedServer(script) as server:
            settings = Settings(tmp_path / "home", models=Models(main="scripted@mine"), providers={"mine": server.provider("mine")})
            async with moot.open(settings) as m:
                yield Desk(m, server, settings)

    return open_desk


def calling(tool: str, arguments: dict[str, Any], then: str = "done") -> Any:
    def script(recorded: Recorded) -> Reply:
        said = "'role': 'tool'" in str(recorded.json["messages"])
        return Reply(text=then) if said else Reply(text="I look.", tool_calls=[ToolCall(tool, arguments)])

    return script


ASK = {"questions": [{"question": "Which one?", "options": [{"label": "red"}, {"label": "blue"}]}]}


async def test_events_are_iterated_and_the_run_has_a_result(desk: Any) -> None:
    async with desk([Reply(text="Hello there, you.")]) as on:
        run = on.m.run("Hi")
        events = [event async for event in run]
        assert [event.seq for event in events] == sorted({event.seq for event in events})
        assert "".join(event.text for event in events) == "Hello there, you." == run.text
        assert any(event.raw for event in events)
        assert run.run.status == "finished" and run.message.status == "finished"
        assert (run.usage.input, run.usage.output, run.cost, run.value, run.denied) == (12, 7, None, None, ())
        assert [event async for event in run] == []
        assert [message.role for message in await on.m.conversations.messages(run.conversation)] == ["user", "assistant"]
        stored = [event async for event in on.m.conversations.events(run.conversation)]
        assert [event for event in stored if event.run == run.run.id] == events


async def test_awaiting_returns_the_finished_run_and_a_conversation_can_be_continued(desk: Any) -> None:
    async with desk([Reply(text="one"), Reply(text="two"), Reply(text="three"), Reply(text="four")]) as on:
        first = await on.m.run("first")
        second = await on.m.run("second", conversation=first.conversation)
        assert (first.text, second.text) == ("one", "two")
        assert second.conversation == first.conversation
        assert "first" in str(on.server.requests[1].json)
        keyed = await on.m.run("third", key="discord:ann")
        assert (await on.m.run("fourth", key="discord:ann")).conversation == keyed.conversation
        listed = (await on.m.conversations.list()).items
        assert [one.id for one in listed] == [keyed.conversation, first.conversation]
        assert [hit.conversation for hit in (await on.m.search("second")).hits] == [first.conversation]
        assert (await on.m.conversations.rename(first.conversation, "Ours")).title == "Ours"
        assert (await on.m.conversations.get("Ours")).id == first.conversation
        await on.m.conversations.delete("Ours")
        assert len((await on.m.conversations.list()).items) == 1
        await on.m.conversations.restore(first.conversation)
        assert len((await on.m.conversations.list()).items) == 2
        assert [run.id for run in await on.m.conversations.runs("Ours")] == [second.run.id, first.run.id]


async def test_edits_regenerated_answers_and_forks_create_branches(desk: Any) -> None:
    async with desk([Reply(text=text) for text in ("one", "two", "three")]) as on:
        first = await on.m.run("first")
        [asked, _] = await on.m.conversations.messages(first.conversation)
        assert (await on.m.run("better", conversation=first.conversation, edits=asked.id)).text == "two"
        again = await on.m.run("", conversation=first.conversation, answers=first.message.id)
        assert again.text == "three" and len(await on.m.conversations.tree.nodes(first.conversation)) == 5
        fork = await on.m.conversations.fork(first.conversation, title="Mine")
        assert [message.role for message in await on.m.conversations.messages(fork.id)] == ["user", "assistant"]
        await on.m.conversations.edit(asked.id, "best")
        assert "best" in str((await on.m.conversations.messages(first.conversation))[-1].parts)
        await on.m.conversations.archive("Mine")
        assert [one.id for one in (await on.m.conversations.list()).items] == [first.conversation]
        assert len((await on.m.conversations.list(archived=True, query="mine")).items) == 1


async def test_leaving_the_loop_keeps_the_run_and_a_later_loop_continues_after_it(desk: Any) -> None:
    async with desk([Reply(text="a long answer in many pieces, word by word", delay=0.02)]) as on:
        run = on.m.run("go")
        before: list[Any] = []
        async for event in run:
            before.append(event)
            if event.text:
                break
        assert [live.id for live in await on.m.live()] == [run.run.id]
        after = [event async for event in run]
        assert before and after and before[-1].seq < after[0].seq
        assert "".join(event.text for event in [*before, *after]) == "a long answer in many pieces, word by word"
        assert await on.m.live() == []


async def test_a_run_that_is_live_when_the_block_ends_can_be_resumed(desk: Any) -> None:
    async with desk([Reply(text="never ends", hang_at=3)]) as on:
        run = await on.m.run("go").start()
        async for event in run:
            if event.text:
                break
    async with desk([Reply(text="now it does")]) as on:
        resumed = await on.m.resume(run.run.id)
        assert resumed.text == "now it does" and resumed.run.id == run.run.id
        again = [event async for event in on.m.attach(run.run.id)]
        assert again[0].chunks[0]["type"] == "start" and again[-1].chunks[-1]["type"] == "finish"
        with pytest.raises(moot.UsageError, match="nothing to resume"):
            await on.m.resume(run.run.id)


async def test_a_cancelled_run_keeps_its_text_and_raises(desk: Any) -> None:
    async with desk([Reply(text="never ends", hang_at=3)]) as on:
        run = on.m.run("go")
        async for event in run:
            if event.text:
                with anyio.fail_after(60):
                    await run.cancel()
                break
        with pytest.raises(moot.Cancelled):
            await run
        assert run.run.status == "cancelled" and "never ends".startswith(run.text) and run.text
        await run.cancel()


async def test_a_failed_run_raises_its_error(desk: Any) -> None:
    async with desk([Reply(status=401)]) as on:
        with pytest.raises(moot.ProviderError) as caught:
            await on.m.run("go")
        assert caught.value.kind == "auth" and not caught.value.retryable
        with pytest.raises(moot.UsageError, match="Agent 'nobody' not found"):
            await on.m.run("go", agent="nobody")
        with pytest.raises(moot.NotFound):
            await on.m.run("go", conversation="0000-nothing")
    async with desk([Reply(text="never", hang_at=1)]) as on:
        with pytest.raises(moot.LimitReached, match=r"after 0.3 s"):
            await on.m.run("go", timeout=0.3)


async def test_a_busy_conversation_is_an_error_and_a_live_run_can_be_steered(desk: Any) -> None:
    def script(recorded: Recorded) -> Reply:
        return Reply(text="and brief") if "be brief" in str(recorded.json) else Reply(text="a slow answer, piece by piece", delay=0.03)

    async with desk(script) as on:
        run = await on.m.run("go").start()
        with pytest.raises(moot.Busy):
            await on.m.run("and?", conversation=run.conversation)
        await run.steer("be brief")
        assert (await run).message.parts[-1]["text"] == "and brief"


async def test_a_call_is_denied_and_listed_if_no_one_can_approve_it(desk: Any) -> None:
    async with desk(calling("shell", {"command": "touch made"})) as on:
        run = await on.m.run("go")
        assert run.denied == ("shell",) and not Path("made").exists()
        assert NO_ONE_AVAILABLE in str(on.server.requests[1].json)
        assert run.text == "done"


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_program_answers_an_approval_after_seeing_the_call(desk: Any, kind: str) -> None:
    seen: list[moot.Asked] = []

    def decide(asked: moot.Asked) -> bool:
        seen.append(asked)
        return True

    async def decide_later(asked: moot.Asked) -> moot.Answer:
        await anyio.sleep(0)
        return moot.Answer(decide(asked))

    async with desk(calling("shell", {"command": "touch made"})) as on:
        run = await on.m.run("go", on_approval=decide if kind == "plain" else decide_later)
        assert run.denied == () and Path("made").exists()
        [asked] = seen
        assert (asked.tool, asked.input, asked.directory) == ("shell", {"command": "touch made"}, str(Path.cwd()))
        assert "touch made" in asked.view.title + asked.view.body


async def test_the_reason_of_a_denial_reaches_the_model(desk: Any) -> None:
    async with desk(calling("shell", {"command": "touch made"})) as on:
        run = await on.m.run("go", on_approval=lambda asked: moot.Answer(False, reason="not on a Sunday"))
        assert not Path("made").exists() and run.denied == ()
        assert "not on a Sunday" in str(on.server.requests[1].json)


async def test_an_exception_of_a_callback_is_raised_from_the_loop(desk: Any) -> None:
    class Mine(Exception):
        pass

    def decide(asked: moot.Asked) -> bool:
        raise Mine

    async with desk(calling("shell", {"command": "touch made"})) as on:
        run = on.m.run("go", on_approval=decide)
        with pytest.raises(Mine):
            await run
        assert [live.status for live in await on.m.live()] == ["waiting"] and not Path("made").exists()


async def test_a_run_is_followed_to_its_end_when_a_sub_agent_that_asked_fails(desk: Any) -> None:
    task = ToolCall("delegate", {"agent": "helper", "prompt": "touch it"})
    script = [
        Reply(when="go", tool_calls=[task]),
        Reply(when="touch it", tool_calls=[ToolCall("shell", {"command": "touch made"})]),
        Reply(when="touch it", status=401, error="who are you?"),
        Reply(when="go", text="It failed."),
    ]
    async with desk(script) as on:
        on.settings.agents.update({"default": Agent(agents=("helper",)), "helper": Agent("helper")})
        asked: list[str] = []
        run = on.m.run("go", on_approval=lambda call: not asked.append(call.tool))
        events = [event async for event in run]
        assert (asked, run.text, Path("made").exists()) == (["delegate", "shell"], "It failed.", True)
        assert {event.run for event in events} == {run.run.id}
        assert "helper failed" in str(on.server.requests[-1].json)


async def test_questions_are_answered_by_the_callback_or_left_open(desk: Any) -> None:
    async with desk(calling("ask_user", ASK)) as on:
        asked: list[moot.Question] = []

        def reply(question: moot.Question) -> str:
            asked.append(question)
            return question.options[1].label

        await on.m.run("go", on_question=reply)
        assert asked[0].text == "Which one?" and "blue" in str(on.server.requests[1].json["messages"][-1])
        await on.m.run("go", on_approval=lambda asked: True)
        assert "(no answer)" in str(on.server.requests[3].json["messages"][-1])
        await on.m.run("go")
        assert "(no answer)" in str(on.server.requests[5].json["messages"][-1])


async def test_an_answer_of_another_process_is_accepted(desk: Any) -> None:
    def never(asked: moot.Asked) -> bool:
        raise AssertionError("somebody else was faster")

    async with desk(calling("shell", {"command": "touch made"})) as on:
        run = await on.m.run("go", on_approval=never).start()
        with anyio.fail_after(60):
            while not (asked := await on.m.engine.store.records.approvals(run=run.run.id)):
                await anyio.sleep(0.01)
            async with open_engine(on.settings) as other:
                await other.runs.answer(asked[0].id, moot.Answer(True))
                await other.runs.wait(run.run.id)
            assert (await run).text == "done" and Path("made").exists()


async def test_a_run_of_another_process_can_be_followed_to_its_end(desk: Any) -> None:
    async with desk([Reply(text="said elsewhere", delay=0.02)]) as on, open_engine(on.settings) as other:
        submitted = await other.runs.submit(Prompt((text_part("go"),), directory=str(Path.cwd())))
        with anyio.fail_after(60):
            assert (await on.m.attach(submitted.run.id)).text == "said elsewhere"


class City(BaseModel):
    name: str
    people: int


async def test_a_schema_returns_a_typed_value_or_raises(desk: Any) -> None:
    good, bad = Reply(text='{"name": "Oslo", "people": 700000}'), Reply(text='{"name": "Oslo"}')
    async with desk([good, good, bad, Reply(text="Oslo")]) as on:
        run = await on.m.run("which?", schema=City)
        assert run.value == City(name="Oslo", people=700000)
        assert on.server.requests[0].json["response_format"]["json_schema"]["schema"]["required"] == ["name", "people"]
        assert (await on.m.run("which?", schema={"type": "object", "required": ["people"]})).value == {"name": "Oslo", "people": 700000}
        for _ in range(2):
            run = on.m.run("which?", schema=City)
            with pytest.raises(moot.OutputContract):
                await run
            assert run.run.status == "finished" and "Oslo" in run.text


async def test_files_are_attached_to_the_prompt(desk: Any) -> None:
    async with desk([Reply(text="seen")]) as on:
        Path("notes.txt").write_text("the cat is Miso")
        await on.m.run("read", files=["notes.txt"])
        assert "the cat is Miso" in str(on.server.requests[0].json)
        with pytest.raises(moot.UsageError, match=r"Cannot read 'gone.txt'"):
            await on.m.run("read", files=["gone.txt"])


async def test_several_runs_are_concurrent(desk: Any) -> None:
    async with desk([Reply(text="ok", times=0)]) as on:
        async with anyio.create_task_group() as group:
            runs = [on.m.run(f"number {number}") for number in range(6)]
            for run in runs:
                group.start_soon(run._finish)
        assert {run.text for run in runs} == {"ok"} and len({run.conversation for run in runs}) == 6


async def test_reading_a_result_too_early_raises(desk: Any) -> None:
    async with desk([Reply(text="ok")]) as on:
        run = on.m.run("go")
        with pytest.raises(moot.UsageError, match="not started"):
            run.conversation  # noqa: B018
        await run.start()
        with pytest.raises(moot.UsageError, match="not ended"):
            run.text  # noqa: B018
        await run
        with pytest.warns(RuntimeWarning, match="never started"):
            on.m.run("never")
        assert {tool.name for tool in on.m.tools()} > {"read_file", "shell"}
        assert [str(model.id) for model in (await on.m.models("mine")).models] == ["scripted@mine"]


async def test_an_exception_of_the_program_leaves_the_block_unchanged(desk: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        async with desk([]) as on:
            await on.m.conversations.list()
            1 / 0  # noqa: B018


def test_run_sync_works_without_an_event_loop(tmp_path: Path) -> None:
    run = moot.run_sync("hello", home=tmp_path / "home", config={"models.main": "demo@demo"}, tools=False)
    assert "You said: hello" in run.text and run.cost == 0


async def test_run_sync_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    run = moot.run_sync("hello", home=tmp_path / "home", config={"models.main": "demo@demo"}, schema=None)
    assert run.run.status == "finished"


def test_importing_moot_imports_no_submodules() -> None:
    program = "import sys; before = set(sys.modules); import moot; from moot import errors; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in loaded if "moot" in name} == {"moot", "moot.errors"} and "asyncio" not in loaded
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        moot.Nothing  # noqa: B018  # type: ignore[attr-defined]


def test_the_type_stub_lists_exactly_the_public_names(repository: Path) -> None:
    stub = (repository / "src" / "moot" / "__init__.pyi").read_text(encoding="utf-8")
    told = [line.rpartition(" as ")[2] for line in stub.splitlines() if " import " in line]
    assert sorted(told) == sorted(NAMES)
    assert all(getattr(moot, name) is NAMES[name] for name in NAMES)
