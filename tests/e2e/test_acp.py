"""Runs of a well-behaved ACP agent: permissions, files, terminals, sessions, prompts, modes."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp import schema

from e2e.acp_stage import AcpStage, acp_stage
from moot.config.settings import Rule
from moot.types.agent import McpServer
from moot.types.approval import Answer
from moot.types.message import model_ms
from moot.types.run import Run

pytestmark = pytest.mark.anyio

CALL = {"toolCallId": "c", "title": "Write a.txt", "kind": "edit", "rawInput": {"path": "a.txt", "content": "new"}}
DONE = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "rawOutput": "ok"}
MODES = {"currentModeId": "yolo", "availableModes": [{"id": id, "name": id} for id in ("plan", "default", "yolo")]}


def permission(*kinds: str, call: dict[str, Any] | None = None) -> dict[str, Any]:
    options = [{"optionId": f"id-{kind}", "name": kind, "kind": kind} for kind in kinds or ("allow_always", "allow_once", "reject_once")]
    return {"request": {"method": "session/request_permission", "params": {"toolCall": call or CALL, "options": options}}}


def wants(method: str, **params: Any) -> dict[str, Any]:
    return {"request": {"method": method, "params": params}}


async def last_answer(on: AcpStage, run: Run) -> Any:
    """moot's answer to the agent's last request, repeated by scripts."""
    return json.loads(await on.text(run))


def chosen(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


# ── permissions ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "option", "state"),
    [
        (Answer(True), "id-allow_once", "output-available"),
        (Answer(True, "id-allow_always"), "id-allow_always", "output-available"),
        (Answer(False, reason="no"), "id-reject_once", "output-denied"),
    ],
    ids=["yes", "always", "no"],
)
async def test_a_permission_request_is_answered_with_the_option_of_the_matching_kind(
    tmp_path: Path, answer: Answer, option: str, state: str
) -> None:
    async with acp_stage(tmp_path, {"prompt": [permission(), {"say": "$ANSWER"}, {"update": DONE}]}, mode="ask") as on:
        run = await on.begin()
        approval = await on.answer(run, answer)
        ended = await on.ended(run)
        assert ended.status == "finished" and await last_answer(on, run) == chosen(option)
        assert [item.kind for item in approval.options] == ["allow_always", "allow_once", "reject_once"]
        assert json.loads(approval.arguments) == CALL["rawInput"] and approval.outside is not None and approval.outside.subject == "a.txt"
        (part,) = await on.calls(run)
        assert part["state"] == state


async def test_the_time_of_a_turn_excludes_the_wait_for_approval(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"prompt": [permission(), {"update": DONE}]}, mode="ask") as on:
        run = await on.begin()
        (approval,) = await on.asked(run)
        await anyio.sleep(0.6)
        await on.engine.runs.answer(approval.id, Answer(True))
        run = await on.ended(run)
        began, ended = (event.at for event in await on.events(run) if event.kind == "exchange")
        message = await on.engine.store.conversations.message(run.message)
        assert (model_ms(message.metadata) or 0) < (ended - began) / 1000 - 300


async def test_a_denial_without_a_reject_option_cancels_the_call(tmp_path: Path) -> None:
    rules = (Rule("edit_file", "deny", "a.txt"),)
    async with acp_stage(tmp_path, {"prompt": [permission("allow_once"), {"say": "$ANSWER"}]}, rules=rules) as on:
        assert await last_answer(on, await on.run()) == {"outcome": {"outcome": "cancelled"}}


async def test_rules_of_moot_apply_to_agent_calls_in_every_mode(tmp_path: Path) -> None:
    rules = (Rule("edit_file", "deny", "a.txt"), Rule("shell", "allow", "ls *"))
    run_ls = {"toolCallId": "l", "kind": "execute", "title": "List", "rawInput": {"command": "ls -1"}}
    async with acp_stage(
        tmp_path, {"prompt": [permission(), {"say": "$ANSWER\n"}, permission(call=run_ls), {"say": "$ANSWER"}]}, rules=rules
    ) as on:
        run = await on.run()
        assert [json.loads(line) for line in (await on.text(run)).split("\n")] == [chosen("id-reject_once"), chosen("id-allow_once")]


@pytest.mark.parametrize(("mode", "option"), [("auto", "id-allow_once"), ("edits", "id-allow_once"), ("plan", "id-reject_once")])
async def test_modes_of_moot_decide(tmp_path: Path, mode: str, option: str) -> None:
    async with acp_stage(tmp_path, {"prompt": [permission(), {"say": "$ANSWER"}]}, mode=mode) as on:
        assert await last_answer(on, await on.run()) == chosen(option)


async def test_a_write_announced_only_as_a_diff_is_shown_for_approval(tmp_path: Path) -> None:
    diff = {"type": "diff", "path": "b.txt", "oldText": "one\n", "newText": "two\n"}
    call = {"toolCallId": "d", "title": "Writing b.txt", "kind": "edit", "content": [diff], "locations": [{"path": "b.txt"}]}
    async with acp_stage(tmp_path, {"prompt": [permission(call=call)]}, mode="ask") as on:
        run = await on.begin()
        approval = await on.answer(run, Answer(False))
        await on.ended(run)
        assert json.loads(approval.arguments) == {"path": "b.txt", "diff": "--- b.txt\n+++ b.txt\n@@ -1 +1 @@\n-one\n+two\n"}


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_file_that_an_allowed_call_is_about_is_written_without_asking_again(tmp_path: Path) -> None:
    write = wants("fs/write_text_file", path=str(tmp_path / "work" / "a.txt"), content="new")
    async with acp_stage(tmp_path, {"prompt": [permission(), write, {"say": "$ANSWER"}, {"update": DONE}]}, mode="ask") as on:
        run = await on.begin()
        await on.answer(run, Answer(True))
        assert (await on.ended(run)).status == "finished"
        assert (on.directory / "a.txt").read_text() == "new" and len(await on.calls(run)) == 1


async def test_an_approval_ends_with_its_call(tmp_path: Path) -> None:
    write = wants("fs/write_text_file", path=str(tmp_path / "work" / "a.txt"), content="again")
    async with acp_stage(tmp_path, {"prompt": [permission(), {"update": DONE}, write]}, mode="ask") as on:
        run = await on.begin()
        await on.answer(run, Answer(True))
        (second,) = await on.asked(run)
        assert second.tool == "write_text_file"
        await on.engine.runs.answer(second.id, Answer(False))
        await on.ended(run)
        assert not (on.directory / "a.txt").exists()
        assert [part["state"] for part in await on.calls(run)] == ["output-available", "output-denied"]


async def test_an_unannounced_write_needs_approval(tmp_path: Path) -> None:
    write = wants("fs/write_text_file", path=str(tmp_path / "work" / "b.txt"), content="plain")
    async with acp_stage(tmp_path, {"prompt": [write, {"say": "$ANSWER"}]}, mode="ask") as on:
        run = await on.begin()
        approval = await on.answer(run, Answer(True))
        await on.ended(run)
        assert (on.directory / "b.txt").read_text() == "plain" and await on.text(run) == "{}"
        assert json.loads(approval.arguments)["content"] == "plain"
        (part,) = await on.calls(run)
        assert (part["toolName"], part["state"]) == ("write_text_file", "output-available")


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.txt", "link/secret.txt"])
async def test_files_outside_the_allowed_folders_are_not_accessible(tmp_path: Path, path: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "work" / "link").symlink_to(tmp_path)
    steps = [
        wants("fs/read_text_file", path=path),
        {"say": "$ANSWER\n"},
        wants("fs/write_text_file", path=path, content="x"),
        {"say": "$ANSWER"},
    ]
    async with acp_stage(tmp_path, {"prompt": steps}) as on:
        run = await on.run()
        answers = [json.loads(line) for line in (await on.text(run)).split("\n")]
        assert [answer["code"] for answer in answers] == [-32602, -32602]
        assert (tmp_path / "secret.txt").read_text() == "secret" and not (tmp_path / "outside.txt").exists()


async def test_files_are_read_completely_or_by_lines_and_missing_ones_are_reported(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    path = str(tmp_path / "work" / "n.txt")
    Path(path).write_text("one\ntwo\nthree\n")
    reads = [
        wants("fs/read_text_file", path=path),
        wants("fs/read_text_file", path=path, line=2, limit=1),
        wants("fs/read_text_file", path="none"),
    ]
    steps = [step for read in reads for step in (read, {"say": "$ANSWER\n"})]
    async with acp_stage(tmp_path, {"prompt": steps}) as on:
        run = await on.run()
        whole, part, missing = [json.loads(line) for line in (await on.text(run)).splitlines()]
        assert (whole["content"], part["content"], missing["code"]) == ("one\ntwo\nthree\n", "two\n", -32002)


async def test_deny_rules_apply_to_reads_through_moot(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".env").write_text("KEY=1")
    rules = (Rule("read_file", "deny", ".env"),)
    async with acp_stage(
        tmp_path, {"prompt": [wants("fs/read_text_file", path=str(tmp_path / "work" / ".env")), {"say": "$ANSWER"}]}, rules=rules
    ) as on:
        assert "the rule" in (await last_answer(on, await on.run()))["message"]


# ── terminals ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def at(method: str) -> dict[str, Any]:
    return wants(f"terminal/{method}", terminalId="terminal-1")


async def test_the_output_of_a_terminal_belongs_to_the_call_that_shows_it(tmp_path: Path) -> None:
    shows = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "printf", "kind": "execute", "status": "in_progress"}
    steps = [
        {"update": {**shows, "content": [{"type": "terminal", "terminalId": "terminal-1"}]}},
        wants("terminal/create", command="printf", args=["%s-%s", "a", "b"], env=[{"name": "X", "value": "1"}]),
        *(at("wait_for_exit"), {"say": "$ANSWER\n"}, at("output"), {"say": "$ANSWER\n"}, at("release")),
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}},
    ]
    async with acp_stage(tmp_path, {"prompt": steps}) as on:
        run = await on.run()
        status, output = [json.loads(line) for line in (await on.text(run)).splitlines()]
        assert status == {"exitCode": 0, "signal": None}
        assert output == {"output": "a-b", "truncated": False, "exitStatus": {"exitCode": 0, "signal": None}}
        (part,) = await on.calls(run)
        assert part["output"] == "a-b"


async def test_a_command_that_policy_denies_is_not_run(tmp_path: Path) -> None:
    rules = (Rule("shell", "deny", "touch *"),)
    async with acp_stage(
        tmp_path, {"prompt": [wants("terminal/create", command="touch", args=["made"]), {"say": "$ANSWER"}]}, rules=rules
    ) as on:
        assert "Not allowed" in (await last_answer(on, await on.run()))["message"]
        assert not (on.directory / "made").exists()


async def test_a_long_output_keeps_its_end_and_a_command_can_be_killed(tmp_path: Path) -> None:
    line = "printf 'ää%.0s' 1 2 3 4 5 6 7 8; exec sleep 60"
    steps = [
        wants("terminal/create", command=line, outputByteLimit=5),
        {"sleep": 0.3},
        at("kill"),
        at("output"),
        {"say": "$ANSWER"},
        at("release"),
    ]
    async with acp_stage(tmp_path, {"prompt": steps}) as on:
        told = await last_answer(on, await on.run())
        assert (told["output"], told["truncated"]) == ("ää", True) and told["exitStatus"]["signal"] == "9"


async def test_commands_left_running_end_with_the_run(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"prompt": [wants("terminal/create", command="sleep", args=["600"])]}) as on:
        assert (await on.run()).status == "finished"  # the stage checks for leftover processes


async def test_a_terminal_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"prompt": [at("output"), {"say": "$ANSWER"}]}) as on:
        assert (await last_answer(on, await on.run()))["code"] == -32602


# ── sessions ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def methods(wire: list[dict[str, Any]]) -> list[str]:
    return [message["method"] for message in wire if "method" in message]


async def test_a_new_process_resumes_the_same_session(tmp_path: Path) -> None:
    script = {"sessions": str(tmp_path / "sessions.json"), "prompt": [{"say": "heard $TEXT"}]}
    async with acp_stage(tmp_path, script) as on:
        first = await on.run("one")
        second = await on.run("two", conversation=first.conversation)
        assert await on.text(second) == "heard two"
        assert methods(await on.wire(second, ours=True)) == ["initialize", "session/resume", "session/prompt"]
        assert second.agent_session_id == first.agent_session_id == "session-1"


async def test_a_loaded_session_does_not_show_its_replay_as_an_answer(tmp_path: Path) -> None:
    replay = [
        {"update": {"sessionUpdate": kind, "content": {"type": "text", "text": "old"}}}
        for kind in ("user_message_chunk", "agent_message_chunk")
    ]
    script = {
        "sessions": str(tmp_path / "sessions.json"),
        "initialize": {"agentCapabilities": {"loadSession": True}},
        "loading": [{"sleep": 0.1}, *replay],  # after its answer, as gemini does
        "prompt": [{"say": "heard $TEXT"}],
    }
    async with acp_stage(tmp_path, script) as on:
        first = await on.run("one")
        second = await on.run("two", conversation=first.conversation)
        assert methods(await on.wire(second, ours=True)) == ["initialize", "session/load", "session/prompt"]
        assert await on.text(second) == "heard two"


async def test_a_lost_session_is_replaced_by_one_with_the_history(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions.json"
    async with acp_stage(tmp_path, {"sessions": str(sessions), "prompt": [{"say": "heard $TEXT"}]}) as on:
        first = await on.run("one")
        sessions.write_text('["another"]')
        second = await on.run("two", conversation=first.conversation)
        assert methods(await on.wire(second, ours=True)) == [
            "initialize",
            "session/resume",
            "session/load",
            "session/new",
            "session/prompt",
        ]
        words = await on.text(second)
        assert "User: one" in words and "heard one" in words and words.endswith("two")


async def test_the_session_of_a_failed_run_is_reused(tmp_path: Path) -> None:
    script = {"sessions": str(tmp_path / "sessions.json"), "prompt": [{"say": "half"}, {"exit": 1}]}
    async with acp_stage(tmp_path, script) as on:
        first = await on.run("one")
        assert first.status == "failed"
        second = await on.run("two", conversation=first.conversation)
        assert "session/resume" in methods(await on.wire(second, ours=True))


# ── modes, models, prompts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("mode", "wanted"), [("plan", "plan"), ("auto", "default")])
async def test_the_agent_uses_plan_mode_only_in_plan_mode(tmp_path: Path, mode: Any, wanted: str) -> None:
    async with acp_stage(tmp_path, {"session": {"modes": MODES}, "prompt": [{"say": "ok"}]}) as on:
        run = await on.run(mode=mode)
        (message,) = [message for message in await on.wire(run, ours=True) if message.get("method") == "session/set_mode"]
        assert message["params"]["modeId"] == wanted


async def test_modes_and_models_use_the_agents_names(tmp_path: Path) -> None:
    options = [
        {"id": "model", "type": "select", "currentValue": "a", "options": [{"group": "g", "options": [{"value": "a"}, {"value": "b"}]}]}
    ]
    script = {"session": {"modes": MODES, "configOptions": options}, "prompt": [{"say": "ok"}]}
    async with acp_stage(tmp_path, script, own="yolo", model="b") as on:
        run = await on.run()
        told = {message["method"]: message["params"] for message in await on.wire(run, ours=True) if "method" in message}
        assert told["session/set_config_option"] == {"sessionId": "session-1", "configId": "model", "value": "b"}
        assert "session/set_mode" not in told


async def test_mcp_servers_are_passed_on_if_the_agent_supports_their_transport(tmp_path: Path) -> None:
    servers = (
        McpServer("files", "sh", ("-c", "cat")),
        McpServer("docs", url="http://127.0.0.1:1/mcp"),
        McpServer("old", url="http://x", protocol="sse"),
        McpServer("off", "sh", enabled=False),
    )
    can = {"agentCapabilities": {"mcpCapabilities": {"http": True}}}
    async with acp_stage(tmp_path, {"initialize": can, "prompt": [{"say": "ok"}]}, servers=servers) as on:
        run = await on.run()
        (opened,) = [message for message in await on.wire(run, ours=True) if message.get("method") == "session/new"]
        files, docs = opened["params"]["mcpServers"]
        assert (files["name"], files["args"], files["env"]) == ("files", ["-c", "cat"], []) and files["command"].endswith("/sh")
        assert docs == {"type": "http", "name": "docs", "url": "http://127.0.0.1:1/mcp", "headers": []}
        schema.NewSessionRequest.model_validate(opened["params"])


async def test_a_key_of_an_mcp_server_is_never_logged(tmp_path: Path) -> None:
    key = 'a "quoted" key \\ with ünicode'
    environment = {"KEY": key, "HOME": "/home/someone"}
    servers = (McpServer("files", "sh", env=environment), McpServer("docs", url="http://x", headers={"X-Key": key}))
    heard = tmp_path / "heard.jsonl"
    can = {"agentCapabilities": {"mcpCapabilities": {"http": True}}}
    async with acp_stage(tmp_path, {"initialize": can, "prompt": [{"say": "ok"}], "heard": str(heard)}, servers=servers) as on:
        run = await on.run()
        (opened,) = [message for message in await on.wire(run, ours=True) if message.get("method") == "session/new"]
        files, docs = opened["params"]["mcpServers"]
        assert files["env"] == [{"name": "KEY", "value": "[secret]"}, {"name": "HOME", "value": "/home/someone"}]
        assert docs["headers"] == [{"name": "X-Key", "value": "[secret]"}]
    told = [json.loads(line) for line in heard.read_text().splitlines()]
    (opened,) = [message for message in told if message.get("method") == "session/new"]
    assert opened["params"]["mcpServers"][0]["env"][0]["value"] == key
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"with \xc3\xbcnicode" in path.read_bytes()]


async def test_an_unknown_model_is_reported_with_the_available_ones(tmp_path: Path) -> None:
    models = {"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}
    async with acp_stage(tmp_path, {"session": {"models": models}, "prompt": []}, model="c") as on:
        run = await on.run()
        assert run.error is not None and run.error.message == "'double' has no model 'c'. Available models: a, b."


async def test_files_are_sent_in_the_forms_the_agent_supports(tmp_path: Path) -> None:
    def file(media_type: str, data: bytes, name: str) -> Any:
        return {"type": "file", "mediaType": media_type, "url": f"data:{media_type};base64,{b64encode(data).decode()}", "filename": name}

    files = (file("image/png", b"\x89PNG", "p.png"), file("text/plain", b"words", "w.txt"), file("audio/wav", b"RIFF", "a.wav"))
    async with acp_stage(tmp_path, {"prompt": [{"say": "ok"}]}) as on:
        run = await on.begin("look", files=files)
        await on.ended(run)
        (prompt,) = [message for message in await on.wire(run, ours=True) if message.get("method") == "session/prompt"]
        assert prompt["params"]["prompt"] == [
            {"type": "text", "text": "look"},
            {"type": "image", "mimeType": "image/png", "data": b64encode(b"\x89PNG").decode()},
            {"type": "resource", "resource": {"uri": "file:///w.txt", "mimeType": "text/plain", "text": "words"}},
            {"type": "text", "text": "[a.wav: audio/wav, not shown: this agent does not take it]"},
        ]


async def test_requests_match_the_official_protocol_schema(tmp_path: Path) -> None:
    requests = {
        "initialize": schema.InitializeRequest,
        "session/new": schema.NewSessionRequest,
        "session/resume": schema.ResumeSessionRequest,
        "session/set_mode": schema.SetSessionModeRequest,
        "session/prompt": schema.PromptRequest,
    }
    script = {"session": {"modes": MODES}, "sessions": str(tmp_path / "sessions.json"), "prompt": [permission(), {"say": "ok"}]}
    async with acp_stage(tmp_path, script) as on:
        first = await on.run("one")
        second = await on.run("two", conversation=first.conversation)
        wire = [message for run in (first, second) for message in await on.wire(run, ours=True)]
        assert {message["method"] for message in wire if "method" in message} == set(requests)
        for message in wire:
            assert message["jsonrpc"] == "2.0"
            kind = requests[message["method"]] if "method" in message else schema.RequestPermissionResponse
            kind.model_validate(message["params"] if "method" in message else message["result"])
