"""Questions of MCP servers during a call: asked like other questions, checked, declined, withdrawn, and never a reason to hang."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import make
from moot.mcp import calls as mcp_calls
from moot.mcp import connection as mcp_connection
from moot.mcp import servers as mcp_servers
from moot.runtime import outside
from moot.testing._server import Recorded
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.agent import McpServer
from moot.types.approval import Answer
from moot.types.canonical import Json
from moot.types.mcp import McpQuestion, McpReply
from moot.types.message import Message, is_tool

pytestmark = pytest.mark.anyio

PROGRAM = str(Path(__file__).with_name("mcp_server.py"))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first step wait for the servers also on a busy machine."""
    monkeypatch.setattr(mcp_servers, "FIRST_WAIT", 90.0)


def asking(way: str) -> dict[str, McpServer]:
    return {"shop": McpServer("shop", command=sys.executable, args=(PROGRAM, way))}


def go(recorded: Recorded) -> Reply:
    if recorded.json["messages"][-1]["role"] != "user":
        return Reply(text="Done.")
    return Reply(tool_calls=[ToolCall("shop__go", {})])


def output(message: Message) -> str:
    (part,) = (part for part in message.parts if is_tool(part))
    return str(part.get("output") or part.get("errorText"))


async def opened(on: Any, run: str) -> Any:
    """Wait for the open question of a run."""
    with anyio.fail_after(60):
        while not (found := await on.engine.store.records.approvals(run=run)):
            await anyio.sleep(0.01)
    return found[0]


async def test_a_form_is_asked_field_by_field_and_checked(stage: Any) -> None:
    asked: list[Any] = []
    replies: list[Json] = [
        [["many"], ["Green"], ["Yes"], ["Wheels"]],
        [["0"], ["red"], ["Leave empty"], ["Leave empty"]],
        [["3"], ["red"], ["yes"], ["Wheels", "bell"]],
    ]

    def answer(data: dict[str, Any]) -> Answer:
        asked.append(data["questions"])
        return Answer(True, value=replies[len(asked) - 1])

    async with stage(go, mcp=asking("form")) as on:
        run, message = await on.ask("go", answer)
        content = {"size": 3, "colour": "r", "gift": True, "extras": ["w", "b"]}
        assert (run.status, json.loads(output(message))) == ("finished", {"action": "accept", "content": content})
    size, colour, gift, extras = asked[0]
    assert size["text"] == "The MCP server 'shop' asks: Which one? # Not a title: Size (In metres)"
    assert [option["label"] for option in colour["options"]] == ["Red", "Green"] and colour["options"][1]["description"] == "default"
    assert gift["text"] == "gift (optional)" and [option["label"] for option in gift["options"]] == ["Yes", "No", "Leave empty"]
    assert extras["multiple"] is True
    assert "'many' is not an integer" in asked[1][0]["text"]
    assert "minimum" in asked[2][0]["text"]


@pytest.mark.parametrize(
    ("way", "given", "reply"),
    [
        ("form", Answer(False), {"action": "decline"}),
        ("plain", Answer(True, value=[["Accept"]]), {"action": "accept", "content": {}}),
        ("plain", Answer(True, value=[["Decline"]]), {"action": "decline"}),
        ("plain", Answer(True, value=[["what?"]]), {"action": "decline"}),
        ("form", Answer(True, value=[["x"], ["x"], ["x"], ["x"]]), {"action": "cancel"}),
        ("page", Answer(True, value=[["Accept"]]), {"action": "accept"}),
        ("page", Answer(False), {"action": "decline"}),
    ],
)
@pytest.mark.slow
async def test_answers_reach_the_server(stage: Any, way: str, given: Answer, reply: dict[str, Any]) -> None:
    async with stage(go, mode="auto", mcp=asking(way)) as on:
        run, message = await on.ask("go", lambda _: given)
        assert (run.status, json.loads(output(message))) == ("finished", reply)


async def test_a_page_to_open_is_shown_with_its_host(stage: Any) -> None:
    asked: list[str] = []

    def answer(data: dict[str, Any]) -> Answer:
        asked.append(data["questions"][0]["text"])
        return Answer(False)

    async with stage(go, mode="auto", mcp=asking("page")) as on:
        await on.ask("go", answer)
    assert asked == ["The MCP server 'shop' asks you to open a page of example.org yourself: https://example.org/pay?x=1 (Sign in)"]


@pytest.mark.parametrize("way", ["deep", "file", "hidden"])
async def test_what_can_not_be_shown_is_declined_without_a_question(stage: Any, way: str) -> None:
    async with stage(go, mode="auto", mcp=asking(way)) as on:
        run, message = await on.ask("go")
        assert (run.status, json.loads(output(message))) == ("finished", {"action": "decline"})
        assert await on.engine.store.records.approvals(run=run.id, open_only=False) == []


async def test_without_a_person_a_question_is_declined(stage: Any) -> None:
    async with stage(go, mode="auto", mcp=asking("form")) as on:
        run, message = await on.ask("go", settings={"unattended": "deny"})
        assert (run.status, json.loads(output(message))) == ("finished", {"action": "decline"})


async def test_while_a_person_is_asked_the_run_waits_and_no_time_limit_counts(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_connection, "CALL_SECONDS", 1.0)
    async with stage(go, mode="auto", mcp=asking("plain")) as on:
        submitted = await on.submit("go")
        question = await opened(on, submitted.run.id)
        with anyio.fail_after(30):
            assert (await on.engine.runs.wait(submitted.run.id)).status == "waiting"
        run = await on.engine.store.records.run(submitted.run.id)
        assert (run.held, question.tool) == (True, "mcp__shop__go")
        await anyio.sleep(1.2)  # longer than the limit of the call
        await on.engine.runs.answer(question.id, Answer(True, value=[["Accept"]]))
        with anyio.fail_after(60):
            while (run := await on.engine.runs.wait(run.id)).status != "finished":
                await anyio.sleep(0.01)
        assert '"accept"' in output(await on.engine.store.conversations.message(run.message))


async def test_a_question_without_an_answer_ends(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "WAIT_SECONDS", 0.3)
    async with stage(go, mode="auto", mcp=asking("plain")) as on:
        submitted = await on.submit("go")
        with anyio.fail_after(60):
            while (run := await on.engine.runs.wait(submitted.run.id)).status != "finished":
                await anyio.sleep(0.01)
        assert '"cancel"' in output(await on.engine.store.conversations.message(run.message))
        (asked,) = await on.engine.store.records.approvals(run=run.id, open_only=False)
        assert asked.answer is not None and not asked.answer.approved


async def test_a_question_is_withdrawn_when_its_call_ends(stage: Any) -> None:
    async with stage(go, mode="auto", mcp=asking("leaves")) as on:
        with anyio.fail_after(60):
            run, _ = await on.ask("go")
            while run.status != "finished":
                run = await on.engine.runs.wait(run.id)
                await anyio.sleep(0.01)
        assert output(await on.engine.store.conversations.message(run.message)) == "never mind"
        assert await on.engine.store.records.approvals(run=run.id) == []


async def test_a_cancelled_run_withdraws_the_question(stage: Any) -> None:
    async with stage(go, mode="auto", mcp=asking("form")) as on:
        submitted = await on.submit("go")
        await opened(on, submitted.run.id)
        await on.engine.runs.cancel(submitted.run.id)
        with anyio.fail_after(30):
            while (await on.engine.runs.wait(submitted.run.id)).status != "cancelled":
                await anyio.sleep(0.01)
        assert await on.engine.store.records.approvals(run=submitted.run.id) == []


async def test_a_server_that_asks_again_and_again_is_declined(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_calls, "QUESTIONS", 0)
    async with stage(go, mode="auto", mcp=asking("insists")) as on:
        run, message = await on.ask("go")
        assert (run.status, output(message)) == ("finished", "decline")


async def test_a_question_of_no_certain_call_is_declined() -> None:
    async def ask(_: McpQuestion) -> McpReply:
        raise AssertionError("no one may be asked")

    calls, replies = mcp_calls.Calls(), list[McpReply]()

    async def asked() -> None:  # a task of the connection, which belongs to no call
        replies.append(await calls.reply_to(McpQuestion("Go on?", {})))

    async def call(ready: anyio.Event) -> None:
        with anyio.CancelScope() as scope, calls.running(mcp_calls.Call(scope, 60, ask)):
            ready.set()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        for _ in range(2):
            ready = anyio.Event()
            group.start_soon(call, ready)
            await ready.wait()
        await asked()
        group.cancel_scope.cancel()
    assert replies == [McpReply("decline")]


async def test_a_question_that_arrives_while_its_call_ends_is_declined() -> None:
    opened, withdrawn, replies = anyio.Event(), anyio.Event(), dict[str, McpReply]()

    async def ask(_: McpQuestion) -> McpReply:
        opened.set()
        try:
            await anyio.sleep_forever()
            raise AssertionError("no one answers")
        finally:
            with anyio.CancelScope(shield=True):  # like the write that withdraws it
                await withdrawn.wait()

    calls = mcp_calls.Calls()
    call = mcp_calls.Call(anyio.CancelScope(), 60, ask)

    async def asked(text: str) -> None:
        replies[text] = await calls.reply_to(McpQuestion(text, {}))

    async with anyio.create_task_group() as group:
        with calls.running(call):
            group.start_soon(asked, "in time")
            await opened.wait()
            async with anyio.create_task_group() as ending:
                ending.start_soon(call.close)
                await anyio.wait_all_tasks_blocked()
                await asked("too late")
                withdrawn.set()
        await asked("even later")
        group.cancel_scope.cancel()
    assert replies == {"in time": McpReply("cancel"), "too late": McpReply("decline"), "even later": McpReply("decline")}


async def test_after_an_abandoned_call_a_question_of_no_certain_call_is_declined() -> None:
    async def ask(_: McpQuestion) -> McpReply:
        return McpReply("accept")

    async def running(call: mcp_calls.Call) -> None:
        with calls.running(call):
            await anyio.sleep_forever()

    calls = mcp_calls.Calls()
    first, second = (mcp_calls.Call(anyio.CancelScope(), 60, ask) for _ in range(2))
    async with anyio.create_task_group() as group:
        group.start_soon(running, second)
        await anyio.wait_all_tasks_blocked()
        assert await calls.reply_to(McpQuestion("Of the second?", {})) == McpReply("accept")
        async with anyio.create_task_group() as abandoned:
            abandoned.start_soon(running, first)
            await anyio.wait_all_tasks_blocked()
            abandoned.cancel_scope.cancel()
        assert await calls.reply_to(McpQuestion("Of the first?", {})) == McpReply("decline")
        group.cancel_scope.cancel()


@pytest.mark.slow
def test_a_call_whose_process_died_during_a_question_ends_as_unknown(tmp_path: Path, obedient: ScriptedProcess) -> None:
    server = f'mcp: {{shop: {{command: "{sys.executable}", args: ["{PROGRAM}", plain]}}}}\n'
    moot = make(tmp_path, obedient.config() + "permissions: {mode: auto}\n" + server)
    try:
        assert moot.run("mcp", "test", "shop").returncode == 0
        terminal = moot.terminal("run", "call shop__go {}")
        terminal.expect_exact("Go on?")
        (question,) = json.loads(moot.run("approvals", "list", "--json").stdout)["data"]
        assert "The MCP server 'shop' asks: Go on?" in str(question["questions"])
        terminal.kill(signal.SIGKILL)
        terminal.wait()
        ended = moot.run("chat", "resume", "1")
        assert ended.returncode == 0, ended.stderr
        assert "outcome of this call is unknown" in str(json.loads(obedient.requests()[-1]["body"])["messages"][-1])
        assert json.loads(moot.run("approvals", "list", "--json").stdout)["data"] == []
    finally:
        moot.close()
