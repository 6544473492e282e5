"""moot as an agent in editors, driven by the protocol's own client over a real process."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.helpers import embedded_text_resource, image_block, resource_block, resource_link_block
from acp.schema import AllowedOutcome, DeniedOutcome, Implementation, McpServerStdio, RequestPermissionResponse

from e2e.cli_process import COMMAND, MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.anyio

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
EDIT = ToolCall("edit_file", {"path": "a.txt", "edits": [{"old_text": "two", "new_text": "three"}]})
TODO = ToolCall("todo", {"todos": [{"content": "look", "status": "completed"}, {"content": "write", "status": "in_progress"}]})
QUESTION = {"question": "Which color?", "header": "Color"}
CHOICE = {**QUESTION, "options": [{"label": "red"}, {"label": "blue"}]}

SCRIPT = [
    Reply(when="change", reasoning="Let me see.", text="Changing.", tool_calls=[EDIT]),
    Reply(when="change", text="Changed."),
    Reply(when="again", tool_calls=[EDIT], times=1),
    Reply(when="again", text="Not changed."),
    Reply(when="steps", tool_calls=[TODO]),
    Reply(when="steps", text="Planned."),
    Reply(when="long", text="cut off", finish="length"),
    Reply(when="wait", text="waiting for a long time", hang_at=2),
    Reply(when="color", tool_calls=[ToolCall("ask_user", {"questions": [QUESTION]})]),
    Reply(when="color", text="Painted."),
    Reply(when="choose", tool_calls=[ToolCall("ask_user", {"questions": [CHOICE]})]),
    Reply(when="choose", text="Chosen."),
    Reply(when="refused", status=400, error="no such thing"),
    Reply(text="Hello.", times=0),
]


@pytest.fixture
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess(SCRIPT) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config())
    (process.work / "a.txt").write_text("one\ntwo\n")
    yield process
    process.close()


@dataclass
class Editor:
    """A client that records the updates and answers permission requests with the option of this kind. None = the request is cancelled."""

    chooses: str | None = "allow_once"
    updates: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    asked: list[Any] = field(default_factory=list[Any])
    kinds: list[list[str]] = field(default_factory=list[list[str]])
    news: anyio.Event = field(default_factory=anyio.Event)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        self.news.set()
        self.news = anyio.Event()

    async def request_permission(self, session_id: str, tool_call: Any, options: Sequence[Any], **_: Any) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        self.kinds.append([option.kind for option in options])
        chosen = next((option.option_id for option in options if option.kind == self.chooses), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str, session: str | None = None) -> list[Any]:
        return [update for id, update in self.updates if update.session_update == kind and session in (None, id)]

    def text(self, kind: str = "agent_message_chunk", session: str | None = None) -> str:
        return "".join(update.content.text for update in self.of(kind, session) if update.content.type == "text")

    async def until(self, kind: str, count: int = 1) -> Any:
        with anyio.fail_after(60):
            while len(self.of(kind)) < count:
                await self.news.wait()
        return self.of(kind)[count - 1]


@asynccontextmanager
async def opened(moot: MootProcess, editor: Editor) -> AsyncGenerator[Any]:
    async with spawn_agent_process(editor, *COMMAND, "acp", env=moot.environ, cwd=str(moot.work)) as (agent, process):  # type: ignore[arg-type]
        await agent.initialize(protocol_version=PROTOCOL_VERSION, client_info=Implementation(name="test-editor", version="1"))
        yield agent
        assert process.stdin is not None
        process.stdin.close()
        with anyio.fail_after(60):
            assert await process.wait() == 0


async def started(agent: Any, moot: MootProcess, **more: Any) -> str:
    return str((await agent.new_session(cwd=str(moot.work), mcp_servers=[], **more)).session_id)


async def asked(agent: Any, session: str, *blocks: Any) -> str:
    prompt = [text_block(block) if isinstance(block, str) else block for block in blocks]
    return str((await agent.prompt(session_id=session, prompt=prompt)).stop_reason)


async def test_an_approved_edit_is_streamed_stored_and_replayed(moot: MootProcess) -> None:
    editor = Editor()
    async with opened(moot, editor) as agent:
        created = await agent.new_session(cwd=str(moot.work), mcp_servers=[])
        session = created.session_id
        assert [mode.id for mode in created.modes.available_modes] == ["ask", "edits", "plan"]
        assert [option.id for option in created.config_options] == ["mode", "model", "effort", "agent"]
        commands = {command.name for command in (await editor.until("available_commands_update")).available_commands}
        assert {"compact", "model", "status"} <= commands and not {"exit", "new"} & commands
        assert await asked(agent, session, "change it") == "end_turn"
        assert (moot.work / "a.txt").read_text() == "one\nthree\n"
        assert editor.text() == "Changing.Changed." and editor.text("agent_thought_chunk") == "Let me see."
        (call,), (request,) = editor.of("tool_call"), editor.asked
        assert call.kind == "edit" and request.tool_call_id == call.tool_call_id and request.raw_input == EDIT.arguments
        assert (request.content[0].old_text, request.content[0].new_text) == ("one\ntwo\n", "one\nthree\n")
        assert {"allow_once", "allow_always", "reject_once"} <= set(editor.kinds[0])
        last = editor.of("tool_call_update")[-1]
        assert last.status == "completed" and last.locations[0].path == str(moot.work / "a.txt")
        (listed,) = (await agent.list_sessions(cwd=str(moot.work))).sessions
        assert (listed.session_id, listed.title) == (session, "change it")
    editor = Editor()
    async with opened(moot, editor) as agent:
        loaded = await agent.load_session(cwd=str(moot.work), session_id=session, mcp_servers=[])
        assert loaded.modes.current_mode_id == "ask" and editor.text("user_message_chunk") == "change it"
        assert editor.text() == "Changing.Changed." and editor.text("agent_thought_chunk") == "Let me see."
        assert [call.status for call in editor.of("tool_call")] == ["completed"]
        assert await asked(agent, session, "thanks") == "end_turn" and editor.text().endswith("Hello.")
    shown = moot.run("chat", "list", "--plain").stdout.decode()
    assert "test-editor" in shown and "change it" in shown
    (conversation,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    assert conversation["message_count"] == 4


@pytest.mark.slow
async def test_a_rejected_call_is_not_made(moot: MootProcess) -> None:
    editor = Editor("reject_once")
    async with opened(moot, editor) as agent:
        assert await asked(agent, await started(agent, moot), "again") == "end_turn"
        assert editor.text().endswith("Not changed.") and editor.of("tool_call_update")[-1].status == "failed"
    assert (moot.work / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.slow
async def test_a_permission_lasts_for_the_conversation(moot: MootProcess) -> None:
    editor = Editor("allow_always")
    async with opened(moot, editor) as agent:
        session = await started(agent, moot)
        await asked(agent, session, "change it")
        (moot.work / "a.txt").write_text("one\ntwo\n")
        await asked(agent, session, "again")
    assert len(editor.asked) == 1 and (moot.work / "a.txt").read_text() == "one\nthree\n"


async def test_a_cancelled_permission_request_stays_open(moot: MootProcess) -> None:
    editor = Editor(None)
    async with opened(moot, editor) as agent:
        assert await asked(agent, await started(agent, moot), "change it") == "cancelled"
    (approval,) = json.loads(moot.run("approvals", "list", "--json").stdout)["data"]
    assert moot.run("approvals", "allow", approval["id"]).returncode == 0


async def test_modes_models_and_commands(moot: MootProcess) -> None:
    editor = Editor()
    async with opened(moot, editor) as agent:
        session = await started(agent, moot)
        await agent.set_session_mode(session_id=session, mode_id="edits")
        assert (await editor.until("current_mode_update")).current_mode_id == "edits"
        await asked(agent, session, "change it")
        assert not editor.asked and (moot.work / "a.txt").read_text() == "one\nthree\n"
        options = (await agent.set_config_option(session_id=session, config_id="effort", value="high")).config_options
        assert {option.id: option.current_value for option in options} == {
            "mode": "edits",
            "model": "scripted@mine",
            "effort": "high",
            "agent": "default",
        }
        assert await asked(agent, session, "/status") == "end_turn" and "scripted@mine" in editor.text()
        for change in (
            agent.set_session_mode(session_id=session, mode_id="auto"),
            agent.set_config_option(session_id=session, config_id="mode", value="auto"),
            agent.set_config_option(session_id=session, config_id="model", value="none@nowhere"),
            agent.set_config_option(session_id=session, config_id="color", value="red"),
            asked(agent, session, "/mode auto"),
            asked(agent, session, "/exit"),
            asked(agent, session, "/nonsense"),
        ):
            with pytest.raises(RequestError) as error:
                await change
            assert str(error.value) and "Traceback" not in str(error.value)


@pytest.mark.slow
async def test_auto_is_offered_if_the_configuration_allows_it(moot: MootProcess) -> None:
    (moot.home / "config.yaml").write_text((moot.home / "config.yaml").read_text() + "permissions: {mode: auto}\n")
    async with opened(moot, Editor()) as agent:
        modes = (await agent.new_session(cwd=str(moot.work), mcp_servers=[])).modes
        assert modes.current_mode_id == "auto" and "auto" in {mode.id for mode in modes.available_modes}


@pytest.mark.slow
async def test_the_todo_list_is_a_plan(moot: MootProcess) -> None:
    editor = Editor()
    async with opened(moot, editor) as agent:
        await asked(agent, await started(agent, moot), "steps")
    (plan,) = editor.of("plan")
    assert [(entry.content, entry.status) for entry in plan.entries] == [("look", "completed"), ("write", "in_progress")]
    assert not editor.of("tool_call")


@pytest.mark.slow
async def test_questions_are_answered_by_an_option_or_by_the_next_prompt(moot: MootProcess, model: ScriptedProcess) -> None:
    editor = Editor()
    async with opened(moot, editor) as agent:
        session = await started(agent, moot)
        assert await asked(agent, session, "color") == "end_turn" and "Which color?" in editor.text()
        assert await asked(agent, session, "green") == "end_turn" and editor.text().endswith("Painted.")
        assert "green" in model.requests()[-1]["body"]
        assert await asked(agent, await started(agent, moot), "choose") == "end_turn" and editor.text().endswith("Chosen.")
        assert "red" in model.requests()[-1]["body"] and editor.kinds == [["allow_once", "allow_once", "reject_once"]]


@pytest.mark.slow
async def test_files_pictures_and_links_reach_the_model(moot: MootProcess, model: ScriptedProcess) -> None:
    (moot.work / "linked.txt").write_text("the linked content")
    unsaved = resource_block(embedded_text_resource(f"file://{moot.work}/a.txt", "not saved yet"))  # type: ignore[arg-type]
    link = resource_link_block("linked.txt", f"file://{moot.work}/linked.txt")
    editor = Editor()
    async with opened(moot, editor) as agent:
        session = await started(agent, moot)
        await asked(agent, session, "see ", unsaved, " and ", link, image_block(PIXEL, "image/png"))
        body = model.requests()[-1]["body"]
        sent = ("not saved yet", "the linked content", "see a.txt and @linked.txt", "image.png")
        assert [text for text in sent if text not in body] == []
        large = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(21 << 20)).decode()
        for block in (image_block(large, "image/png"), image_block("????", "image/png"), image_block("AAAA", "image/png")):
            with pytest.raises(RequestError, match="image"):
                await asked(agent, session, block)
        assert await asked(agent, session, "hello") == "end_turn"


@pytest.mark.slow
async def test_reasons_for_the_end(moot: MootProcess) -> None:
    (moot.home / "config.yaml").write_text((moot.home / "config.yaml").read_text() + "limits: {steps: 1}\npermissions: {mode: auto}\n")
    editor = Editor()
    async with opened(moot, editor) as agent:
        session = await started(agent, moot)
        assert await asked(agent, session, "long") == "max_tokens"
        assert await asked(agent, session, "steps") == "max_turn_requests" and "stopped after 1 steps" in editor.text()
        with pytest.raises(RequestError, match="no such thing"):
            await asked(agent, session, "refused")


async def test_sessions_run_at_the_same_time_and_are_cancelled_separately(moot: MootProcess) -> None:
    editor = Editor()
    async with opened(moot, editor) as agent:
        first, second = await started(agent, moot), await started(agent, moot)
        reasons: list[str] = []

        async def wait() -> None:
            reasons.append(await asked(agent, first, "wait"))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await editor.until("agent_message_chunk")
            with pytest.raises(RequestError, match="still answering"):
                await asked(agent, first, "hello")
            assert await asked(agent, second, "hello") == "end_turn" and editor.text(session=second) == "Hello."
            await agent.cancel(session_id=first)
        assert reasons == ["cancelled"]
        assert await asked(agent, first, "hello") == "end_turn"


@pytest.mark.slow
async def test_servers_of_the_editor_are_reported(moot: MootProcess) -> None:
    editor = Editor()
    async with opened(moot, editor) as agent:
        server = McpServerStdio(name="database", command="/bin/false", args=[], env=[])
        session = (await agent.new_session(cwd=str(moot.work), mcp_servers=[server])).session_id
        await asked(agent, session, "hello")
    assert "database" in editor.text() and "moot mcp add" in editor.text()


@pytest.mark.slow
async def test_a_run_can_be_resumed_after_the_editor_has_left(moot: MootProcess, model: ScriptedProcess) -> None:
    editor = Editor()
    async with opened(moot, editor) as agent, anyio.create_task_group() as group:
        session = await started(agent, moot)
        group.start_soon(asked, agent, session, "wait")
        await editor.until("agent_message_chunk")
        group.cancel_scope.cancel()
    (conversation,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    assert conversation["status"] == "interrupted"
    model.release()
    assert moot.run("chat", "resume", conversation["id"]).returncode == 0


def lines(moot: MootProcess, *sent: str, timeout: float = 60) -> tuple[int, list[dict[str, Any]], str]:
    done = moot.run("acp", stdin="".join(f"{line}\n" for line in sent).encode(), timeout=timeout)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


def test_bad_messages_get_plain_errors(moot: MootProcess) -> None:
    def request(id: int, method: str, **params: Any) -> str:
        return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    code, answers, errors = lines(
        moot,
        "nonsense",
        "[1]",
        "{}",
        request(1, "no/such"),
        request(2, "session/new", cwd="relative", mcpServers=[]),
        request(3, "session/new", cwd="/no/such/folder", mcpServers=[]),
        request(4, "session/new", mcpServers="none"),
        request(5, "session/load", sessionId="unknown", cwd="/", mcpServers=[]),
        request(6, "session/set_mode", sessionId="unknown", modeId="ask"),
        request(7, "initialize", protocolVersion=1),
    )
    found = {answer["id"]: answer for answer in answers if answer["id"] is not None}
    assert code == 0 and not errors and "result" in found[7]
    assert [answer["error"]["code"] for answer in answers if answer["id"] is None] == [-32700, -32600, -32600]
    assert {id: found[id]["error"]["code"] for id in range(1, 7)} == {1: -32601, 2: -32602, 3: -32602, 4: -32602, 5: -32002, 6: -32002}
    assert found[2]["error"]["message"] == "cwd must be an absolute path, not 'relative'."
    assert found[4]["error"]["message"].startswith("Invalid parameters: cwd: Field required")


def test_without_a_model_the_error_says_what_to_do(tmp_path: Path) -> None:
    moot = make(tmp_path, "models: {main: gpt-5@openai}\n")
    initialize = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
    new = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": str(moot.work), "mcpServers": []}})
    code, answers, _ = lines(moot, initialize, new)
    found = {answer["id"]: answer for answer in answers}
    assert code == 0 and [method["id"] for method in found[1]["result"]["authMethods"]] == ["setup"]
    assert found[2]["error"]["code"] == -32000 and "Run `moot` in a terminal" in found[2]["error"]["message"]


def test_without_the_library_the_command_names_the_extra(moot: MootProcess) -> None:
    code = "import sys; sys.modules['acp'] = None; from moot.cli.app import main; sys.exit(main(['acp']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=moot.work, env=moot.environ, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and not done.stdout and b"pip install 'moot[acp]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
