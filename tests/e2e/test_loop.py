"""The loop over real HTTP: model output, tool execution, and the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.orphans import is_locked
from moot.cli.console.results import summary
from moot.convert.fold import in_history
from moot.errors import Busy, UsageError
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.approval import Answer
from moot.types.chunk import problems
from moot.types.ids import SystemClock
from moot.types.limits import Limits
from moot.types.message import TOOL_DONE, is_tool, model_ms, text_of

pytestmark = pytest.mark.anyio

DIALECTS = ["openai-chat", "anthropic", "google", "ollama", "openai-responses"]


def yes(_: Any) -> Answer:
    return Answer(True)


def outputs(recorded: Recorded) -> int:
    """Return the number of tool outputs in a request of any dialect."""
    text = str(recorded.messages)
    return text.count("'role': 'tool'") + text.count("'type': 'tool_result'")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_is_streamed_and_stored_completely(stage: Any, dialect: str) -> None:
    async with stage([Reply(text="Hello there.", reasoning="Greet.")], dialect=dialect) as on:
        run, message = await on.ask("Hi")
        assert run.status == "finished" and run.error is None
        assert text_of(message.parts) == "Hello there."
        assert [part["type"] for part in message.parts] == ["step-start", "reasoning", "text"]
        assert on.kinds()[:2] == ["start", "start-step"] and on.kinds()[-3:] == ["message-metadata", "finish-step", "finish"]
        assert all(problems(chunk, 7) == [] for event in on.seen for chunk in event.chunks)
        assert run.usage.input == 12 and run.usage.output == 7 and run.cost is None


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_raws_of_an_exchange_joined_are_the_body_that_was_sent(stage: Any, dialect: str) -> None:
    async with stage([Reply(text="Some words here.")], dialect=dialect) as on:
        await on.ask("Hi")
        raws = b"".join(event.raw for event in on.seen if event.raw)
        assert len(raws) == on.server.requests[0].sent


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_tools_run_and_their_outputs_are_returned_to_the_model(stage: Any, directory: Path, dialect: str) -> None:
    (directory / "notes.txt").write_text("The cat is called Miso.\n")

    def script(recorded: Recorded) -> Reply:
        if outputs(recorded):
            assert "Miso" in str(recorded.json)
            return Reply(text="The cat is Miso.")
        return Reply(text="I look.", tool_calls=[ToolCall("read_file", {"path": "notes.txt"}), ToolCall("list_files", {"path": "."})])

    async with stage(script, dialect=dialect) as on:
        run, message = await on.ask("What is the cat called?")
        assert run.status == "finished", run.error
        assert text_of(message.parts) == "I look.The cat is Miso."
        assert [part["state"] for part in message.parts if is_tool(part)] == ["output-available", "output-available"]
        steps = message.metadata["steps"]
        assert isinstance(steps, list) and len(steps) == 2


async def test_concurrent_tools_run_together_and_others_in_order(stage: Any, directory: Path) -> None:
    def script(recorded: Recorded) -> Reply:
        if outputs(recorded):
            return Reply(text="ok")
        slow = [ToolCall("shell", {"command": f"sleep 0.05; echo {name} >> order.txt"}) for name in "abc"]
        return Reply(tool_calls=slow)

    async with stage(script) as on:
        run, _ = await on.ask("go")
        assert run.status == "finished"
        assert (directory / "order.txt").read_text().split() == ["a", "b", "c"]


async def test_every_invalid_call_gets_exactly_one_output(stage: Any) -> None:
    def script(recorded: Recorded) -> Reply:
        if outputs(recorded) >= 3:
            return Reply(text="I see.")
        calls = [ToolCall("no_such_tool", {}), ToolCall("read_file", {"nonsense": 1}), ToolCall("read_file", '{"path": ')]
        return Reply(tool_calls=calls)

    async with stage(script) as on:
        run, message = await on.ask("go")
        assert run.status == "finished", run.error
        tools = [part for part in message.parts if is_tool(part)]
        assert len(tools) == 3 and all(part["state"] == "output-error" for part in tools)
        assert "no_such_tool" in str(tools[0]["errorText"]) and "read_file" in str(tools[0]["errorText"])


async def test_a_call_that_needs_approval_waits_without_a_task(stage: Any, directory: Path) -> None:
    def script(recorded: Recorded) -> Reply:
        return Reply(text="done") if outputs(recorded) else Reply(tool_calls=[ToolCall("shell", {"command": "echo x > made.txt"})])

    async with stage(script, mode="ask") as on:
        submitted = await on.submit("go")
        run = await on.follow(submitted)
        assert run.status == "waiting" and run.owner is None
        assert not (directory / "made.txt").exists()
        (approval,) = await on.engine.store.records.approvals(run=run.id)
        await on.engine.runs.answer(approval.id, Answer(True))
        run = await on.engine.runs.wait(run.id)
        assert run.status == "finished" and (directory / "made.txt").exists()
        with pytest.raises(Busy):
            await on.engine.runs.answer(approval.id, Answer(False))
        used = await on.engine.store.records.approval(approval.id)
        assert used is not None and used.used_at is not None


class Later(SystemClock):
    """The system clock, a minute later."""

    def now(self) -> int:
        return super().now() + 60_000_000


async def test_the_time_of_a_model_excludes_its_calls_and_the_wait_for_approval(stage: Any) -> None:
    def script(recorded: Recorded) -> Reply:
        return Reply(text="done") if outputs(recorded) else Reply(tool_calls=[ToolCall("shell", {"command": "true"})])

    async with stage(script, mode="ask") as on:
        run = await on.follow(await on.submit("go"))
        on.engine.runtime.clock = Later()
        (approval,) = await on.engine.store.records.approvals(run=run.id)
        await on.engine.runs.answer(approval.id, Answer(True))
        run = await on.engine.runs.wait(run.id)
        message = await on.engine.store.conversations.message(run.message)
        first, second = message.metadata["steps"]
        events = await on.engine.store.log.read(run.conversation)
        assert events[-1].at - events[0].at >= 60_000_000
        assert first["first_ms"] <= first["ms"] < 60_000 and second["ms"] < 60_000
        assert model_ms(message.metadata) == first["ms"] + second["ms"]
        assert f"{(first['ms'] + second['ms']) / 1000:.1f} s" in summary(run, message)


async def test_a_denial_and_its_reason_are_the_tool_output(stage: Any, directory: Path) -> None:
    def script(recorded: Recorded) -> Reply:
        if outputs(recorded):
            assert "use another file" in str(recorded.json)
            return Reply(text="Understood.")
        return Reply(tool_calls=[ToolCall("write_file", {"path": "a.txt", "content": "x"})])

    async with stage(script, mode="ask") as on:
        run, message = await on.ask("go", lambda _: Answer(False, reason="use another file"))
        assert run.status == "finished", run.error
        assert [part["state"] for part in message.parts if is_tool(part)] == ["output-denied"]
        assert not (directory / "a.txt").exists()


async def test_without_an_approver_the_call_is_denied_and_the_run_reports_it(stage: Any, directory: Path) -> None:
    def script(recorded: Recorded) -> Reply:
        return Reply(text="I could not.") if outputs(recorded) else Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})])

    async with stage(script, mode="ask") as on:
        run, message = await on.ask("go", settings={"unattended": "deny"})
        assert run.status == "finished" and not (directory / "made").exists()
        assert message.metadata["needs_approval"] is True


async def test_questions_of_a_tool_return_their_answers(stage: Any) -> None:
    questions = [{"header": "Colour", "question": "Which colour?", "options": [{"label": "red", "description": "warm"}, {"label": "blue"}]}]

    def script(recorded: Recorded) -> Reply:
        if outputs(recorded):
            assert "blue" in str(recorded.json["messages"][-1])
            return Reply(text="Blue it is.")
        return Reply(tool_calls=[ToolCall("ask_user", {"questions": questions})])

    async with stage(script) as on:
        run, message = await on.ask("go", lambda data: Answer(True, value=[["blue"]]))
        assert run.status == "finished", run.error
        assert text_of(message.parts) == "Blue it is."


async def test_the_run_stops_at_its_step_limit(stage: Any) -> None:
    counter = iter(range(100))
    script = lambda _: Reply(tool_calls=[ToolCall("list_files", {"path": ".", "limit": next(counter) + 1})])  # noqa: E731
    async with stage(script) as on:
        run, _ = await on.ask("go", settings={"max_steps": 3})
        assert run.status == "failed" and run.error is not None and run.error.kind == "limit"
        assert len(on.server.requests) == 3


async def test_the_same_call_three_times_in_a_row_stops_the_run(stage: Any) -> None:
    async with stage(lambda _: Reply(tool_calls=[ToolCall("list_files", {"path": "."})])) as on:
        run, _ = await on.ask("go")
        assert run.error is not None and run.error.kind == "limit" and "3 identical" in run.error.message
        assert len(on.server.requests) == 3


async def test_a_failure_before_any_text_is_retried_without_a_trace(stage: Any) -> None:
    async with stage([Reply(status=529, retry_after=0.01), Reply(text="Here.")]) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and text_of(message.parts) == "Here."
        assert [part["type"] for part in message.parts] == ["step-start", "text"]
        assert [event.key for event in on.seen if event.kind == "exchange"] == ["llm:1.0", "llm:1.0", "llm:1.1", "llm:1.1"]


async def test_a_connection_lost_after_text_is_retried_once_and_the_partial_text_marked(stage: Any) -> None:
    torn = Reply(text="This is a long sentence that will be cut.", cut_at_byte=900, chunk_size=4)
    async with stage([torn, Reply(text="Whole.")]) as on:
        run, message = await on.ask("go")
        assert run.status == "finished", run.error
        assert text_of(in_history(message.parts)) == "Whole."
        assert text_of(message.parts).startswith("This is") and "data-attempt" in [part["type"] for part in message.parts]
    async with stage([torn, torn, Reply(text="never")]) as on:
        run, _ = await on.ask("go")
        assert run.status == "failed" and run.error is not None and run.error.kind == "transport"


async def test_a_permanent_refusal_fails_at_once(stage: Any) -> None:
    async with stage([Reply(status=401, error="bad key"), Reply(text="never")]) as on:
        run, _ = await on.ask("go")
        assert run.status == "failed" and run.error is not None and run.error.kind == "auth"
        assert len(on.server.requests) == 1
        assert on.kinds()[-2:] == ["finish-step", "finish"] and "error" in on.kinds()


async def test_the_fallback_model_answers_when_the_first_cannot(stage: Any) -> None:
    script = lambda r: Reply(status=401) if r.json["model"] == "scripted" else Reply(text="I step in.")  # noqa: E731
    async with stage(script, models=_models("other@mine")) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and message.metadata["model"] == "other"


async def test_a_request_that_is_too_long_is_shortened_once_and_sent_again(stage: Any) -> None:
    too_long = Reply(status=400, error="maximum context length exceeded", error_code="context_length_exceeded")
    summary = Reply(when="Write the summary", text="Summed up.")
    async with stage([summary, Reply(text="one " * 2000), too_long, Reply(text="fits")]) as on:
        first, _ = await on.ask("tell me much")
        run, message = await on.ask("and now?", conversation=first.conversation)
        assert run.status == "finished" and text_of(message.parts) == "fits"
        assert len(on.server.requests[3].body) < len(on.server.requests[1].body)


async def test_cancelling_keeps_the_partial_answer_and_ends_once(stage: Any) -> None:
    async with stage([Reply(text="A long answer that goes on and on", hang_at=4)]) as on:
        submitted = await on.submit("go")
        with anyio.fail_after(60):
            while not any(chunk["type"] == "text-delta" for event in on.seen for chunk in event.chunks):
                on.seen += await on.engine.store.log.read(submitted.conversation.id, after=on.seen[-1].seq if on.seen else 0)
                await anyio.sleep(0.01)
            await on.engine.runs.cancel(submitted.run.id)
            await on.engine.runs.cancel(submitted.run.id)
            run = await on.engine.runs.wait(submitted.run.id)
        assert run.status == "cancelled"
        message = await on.engine.store.conversations.message(run.message)
        assert message.status == "cancelled" and text_of(in_history(message.parts)).startswith("A long")
        assert all(part.get("state") != "streaming" for part in message.parts)


async def test_cancelling_during_a_tool_kills_it_and_stores_an_output(stage: Any) -> None:
    async with stage([Reply(tool_calls=[ToolCall("shell", {"command": "sleep 30"})])]) as on:
        submitted = await on.submit("go")
        with anyio.fail_after(60):
            while not [event for event in on.seen if event.phase == "start" and str(event.key).startswith("tool:")]:
                on.seen += await on.engine.store.log.read(submitted.conversation.id, after=on.seen[-1].seq if on.seen else 0)
                await anyio.sleep(0.01)
            await on.engine.runs.cancel(submitted.run.id)
            run = await on.engine.runs.wait(submitted.run.id)
        assert run.status == "cancelled"
        message = await on.engine.store.conversations.message(run.message)
        assert all(part["state"] in TOOL_DONE for part in message.parts if is_tool(part))


async def test_cancelling_while_an_approval_is_out_ends_the_run(stage: Any) -> None:
    async with stage([Reply(tool_calls=[ToolCall("shell", {"command": "true"})])], mode="ask") as on:
        submitted = await on.submit("go")
        run = await on.follow(submitted)
        await on.engine.runs.cancel(run.id)
        assert (await on.engine.runs.wait(run.id)).status == "cancelled"


async def test_a_steer_is_seen_at_the_next_step(stage: Any) -> None:
    def script(recorded: Recorded) -> Reply:
        if outputs(recorded):
            assert "in French please" in str(recorded.json["messages"])
            return Reply(text="Voilà.")
        return Reply(tool_calls=[ToolCall("shell", {"command": "while [ ! -e steered ]; do sleep 0.02; done"})])

    async with stage(script) as on:
        submitted = await on.submit("go")
        await on.called()
        steered = await on.submit("in French please", conversation=submitted.conversation.id, on_busy="steer")
        assert steered.steered and steered.run.id == submitted.run.id
        (on.directory / "steered").touch()
        run = await on.follow(submitted)
        message = await on.engine.store.conversations.message(run.message)
        assert run.status == "finished", run.error
        assert "steering-message" in [part["type"] for part in message.parts]


async def test_a_queued_prompt_follows_and_an_interrupting_one_replaces_the_run(stage: Any) -> None:
    async with stage([Reply(text="slow words", hang_at=1), Reply(text="second")]) as on:
        first = await on.submit("one")
        with pytest.raises(Busy):
            await on.submit("nope", conversation=first.conversation.id)
        second = await on.submit("two", conversation=first.conversation.id, on_busy="queue")
        assert second.run.status == "queued"
        await on.called()
        on.server.release()
        run = await on.engine.runs.wait(second.run.id)
        assert run.status == "finished"
        assert [text_of(message.parts) for message in await on.engine.store.conversations.branch(run.conversation)] == [
            "one",
            "slow words",
            "two",
            "second",
        ]
    async with stage([Reply(text="never ends", hang_at=3), Reply(text="now this")]) as on:
        first = await on.submit("one")
        await on.called()
        second = await on.submit("stop that", conversation=first.conversation.id, on_busy="interrupt")
        run = await on.engine.runs.wait(second.run.id)
        assert run.status == "finished"
        assert (await on.engine.store.records.run(first.run.id)).status == "cancelled"


async def test_concurrent_runs_of_a_user_respect_the_limit(stage: Any) -> None:
    async with stage(lambda _: Reply(text="some words", hang_at=1), limits=Limits(runs_per_user=2)) as on:
        submitted = [await on.submit(f"number {number}") for number in range(5)]
        assert [one.run.status for one in submitted] == ["running", "running", "queued", "queued", "queued"]
        most = 0
        await on.called(2)
        with anyio.fail_after(60):
            while unfinished := await on.engine.store.records.runs(statuses=frozenset({"running", "queued"})):
                most = max(most, sum(run.status == "running" for run in unfinished))
                on.server.release()
                await anyio.sleep(0.01)
        assert most == 2
        ended = await on.engine.store.records.runs()
        assert [run.status for run in ended] == ["finished"] * 5


async def test_a_new_prompt_supersedes_a_run_that_waits(stage: Any) -> None:
    def script(recorded: Recorded) -> Reply:
        return Reply(tool_calls=[ToolCall("shell", {"command": "true"})]) if recorded.user_text == "one" else Reply(text="fresh")

    async with stage(script, mode="ask") as on:
        first = await on.submit("one")
        waiting = await on.follow(first)
        run, message = await on.ask("two", conversation=waiting.conversation)
        assert run.status == "finished" and text_of(message.parts) == "fresh"
        assert (await on.engine.store.records.run(first.run.id)).status == "cancelled"
        old = await on.engine.store.conversations.message(waiting.message)
        assert all(part["state"] in TOOL_DONE for part in old.parts if is_tool(part))


async def test_unknown_names_are_rejected_before_anything_is_stored(stage: Any) -> None:
    async with stage([Reply(text="never")]) as on:
        for more in ({"model": "x@nowhere"}, {"agent": "nobody"}, {"settings": {"tools": ["reed_file"]}}):
            with pytest.raises(UsageError):
                await on.submit("go", **more)
        assert (await on.engine.store.conversations.list()).items == [] or not (await on.engine.store.conversations.list()).items


async def test_a_run_that_exceeds_its_time_limit_reports_it(stage: Any) -> None:
    async with stage([Reply(text="never ends", hang_at=2)]) as on:
        run, _ = await on.ask("go", settings={"timeout": 0.3})
        assert run.status == "failed" and run.error is not None and run.error.kind == "deadline"


async def test_a_background_command_ends_with_its_process(stage: Any, directory: Path) -> None:
    def script(recorded: Recorded) -> Reply:
        call = ToolCall("shell", {"command": "exec 9> held; flock 9; echo > locked; sleep 60", "background": True})
        return Reply(text="started") if outputs(recorded) else Reply(tool_calls=[call])

    async with stage(script) as on:
        run, _ = await on.ask("go")
        assert run.status == "finished", run.error
        with anyio.fail_after(60):
            while not (directory / "locked").exists():
                await anyio.sleep(0.01)
        assert is_locked(directory / "held")
    assert not is_locked(directory / "held")


async def test_a_long_tool_output_is_truncated_for_the_model_and_complete_in_a_blob(stage: Any, directory: Path) -> None:
    (directory / "long.txt").write_text("".join(f"line {number}\n" for number in range(20_000)))

    def script(recorded: Recorded) -> Reply:
        return Reply(text="long") if outputs(recorded) else Reply(tool_calls=[ToolCall("shell", {"command": "cat long.txt"})])

    async with stage(script, limits=Limits()) as on:
        run, message = await on.ask("go")
        assert run.status == "finished", run.error
        (tool,) = [part for part in message.parts if is_tool(part)]
        assert len(str(tool["output"])) < 31_000 and "blob:" in str(tool["output"])


def _models(fallback: str) -> Any:
    from moot.config.settings import Models

    return Models(main="scripted@mine", fallback=(fallback,))
