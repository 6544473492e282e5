"""A misbehaving agent ends its run with a clear message, and everything it sent before is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.acp_stage import acp_stage
from moot.types.event import SENT
from moot.types.run import Run

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def failure(run: Run) -> str:
    assert run.status == "failed" and run.error is not None
    return run.error.message


async def test_a_missing_program_is_reported_with_its_install_command(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, "echo", name="gemini", command=["no-such-gemini", "--acp"]) as on:
        run = await on.run()
        assert "'no-such-gemini' is not installed, or not on the PATH" in failure(run)
        assert run.error is not None and run.error.fix == "npm install --global @google/gemini-cli"


async def test_an_unknown_agent_needs_a_command(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, "echo", command=[]) as on:
        assert "agents.tried.options.command is missing" in failure(await on.run())


async def test_a_crash_keeps_the_partial_answer_and_reports_stderr(tmp_path: Path) -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress", "title": "make", "kind": "execute"}
    steps = [{"say": "half of it"}, {"update": call}, {"stderr": "Segfault \x1b[31mhere\n"}, {"exit": 3}]
    async with acp_stage(tmp_path, {"prompt": steps}) as on:
        run = await on.run()
        assert "exited before its answer was complete (exit code 3): Segfault here" in failure(run)
        assert await on.text(run) == "half of it"
        (part,) = await on.calls(run)
        assert (part["state"], part["errorText"]) == ("output-error", "the agent ended before the call did")


async def test_a_program_that_exits_at_once_is_reported_with_its_output(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"begin": [{"stderr": "cannot find module\n"}, {"exit": 1}], "prompt": []}) as on:
        assert "cannot find module" in failure(await on.run())


async def test_an_agent_that_closes_its_stdout_has_ended(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"prompt": [{"say": "bye"}, {"close": 1}, {"sleep": 30}], "deaf": True}) as on:
        run = await on.run()
        assert "exited before its answer was complete" in failure(run)
        assert await on.text(run) == "bye"


async def test_an_agent_that_never_answers_times_out(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"begin": [{"sleep": 60}], "deaf": True, "prompt": []}, patience=0.3) as on:
        assert "No response to initialize within 0.3 s" in failure(await on.run())


async def test_an_agent_that_hangs_in_its_answer_is_cancelled_soon(tmp_path: Path) -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress", "title": "sleep", "kind": "execute"}
    async with acp_stage(tmp_path, {"prompt": [{"say": "working"}, {"update": call}, {"sleep": 60}], "deaf": True}) as on:
        run = await on.begin()
        await on.words(run)
        began = anyio.current_time()
        await on.engine.runs.cancel(run.id)
        ended = await on.ended(run)
        assert ended.status == "cancelled" and anyio.current_time() - began < 30
        assert [message.get("method") for message in await on.wire(run, ours=True)][-1] == "session/cancel"
        (part,) = await on.calls(run)
        assert part["errorText"] == "cancelled before it ended"


async def test_a_cancel_asks_the_agent_first(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, "slow") as on:
        run = await on.begin()
        await on.words(run)
        await on.engine.runs.cancel(run.id)
        assert (await on.ended(run)).status == "cancelled"
        assert (await on.wire(run, ours=False))[-1]["result"] == {"stopReason": "cancelled"}


async def test_an_open_permission_request_is_answered_as_cancelled(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, "echo", mode="ask") as on:
        run = await on.begin("hello")
        await on.asked(run)
        await on.engine.runs.cancel(run.id)
        assert (await on.ended(run)).status == "cancelled"
        told = [message.get("result") for message in await on.wire(run, ours=True)]
        assert {"outcome": {"outcome": "cancelled"}} in told


async def test_noise_between_messages_is_stored_and_ignored(tmp_path: Path) -> None:
    noise: list[dict[str, Any]] = [{"raw": "npm warn old lockfile"}, {"raw": "{broken"}, {"raw": "[1, 2]"}, {"raw": ""}]
    script = {"begin": noise, "prompt": [*noise, {"say": "fine"}, *noise]}
    async with acp_stage(tmp_path, script) as on:
        run = await on.run()
        assert (run.status, await on.text(run)) == ("finished", "fine")
        raws = [event.raw for event in await on.events(run) if event.raw is not None and event.body != SENT]
        assert raws.count(b"npm warn old lockfile\n") == 3


async def test_a_program_that_sends_only_noise_is_rejected(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"prompt": [{"say": "first"}, {"repeat": 20_000, "steps": [{"raw": "y"}]}, {"sleep": 30}]}) as on:
        run = await on.run()
        assert "writes lines to stdout that are not ACP messages" in failure(run)
        assert await on.text(run) == "first"


async def test_a_flood_of_text_is_an_answer(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"prompt": [{"repeat": 3000, "steps": [{"say": "word "}]}]}) as on:
        run = await on.run()
        assert (run.status, await on.text(run)) == ("finished", "word " * 3000)


async def test_another_version_of_the_protocol_is_named(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"initialize": {"protocolVersion": 2}, "prompt": []}) as on:
        run = await on.run()
        assert "speaks version 2 of the Agent Client Protocol, and moot speaks version 1" in failure(run)
        assert run.error is not None and "Update moot" in run.error.fix


async def test_a_required_login_is_reported_with_the_agents_command(tmp_path: Path) -> None:
    refuse = {"session/new": {"code": -32000, "message": "Authentication required"}}
    async with acp_stage(tmp_path, {"refuse": refuse, "prompt": []}, name="opencode") as on:
        run = await on.run()
        assert "'opencode' requires a login: Authentication required" in failure(run)
        assert run.error is not None and run.error.kind == "auth" and run.error.fix == "Log in with `opencode auth login`."


async def test_an_unknown_login_method_is_reported_with_the_agents_text(tmp_path: Path) -> None:
    refuse = {"session/prompt": {"code": -32000, "message": "Authentication required"}}
    ways = [{"id": "x", "name": "X", "description": "Run `double login`"}]
    async with acp_stage(
        tmp_path, {"refuse": {"session/new": refuse["session/prompt"]}, "initialize": {"authMethods": ways}, "prompt": []}
    ) as on:
        run = await on.run()
        assert run.error is not None and run.error.fix == "Run `double login`"


async def test_an_error_response_is_reported_with_its_detail(tmp_path: Path) -> None:
    refuse = {"session/prompt": {"code": -32603, "message": "Internal error", "data": {"details": "quota used up"}}}
    async with acp_stage(tmp_path, {"refuse": refuse, "prompt": []}) as on:
        assert "'double' could not answer: Internal error: quota used up" in failure(await on.run())


async def test_early_and_foreign_updates_are_stored_but_not_part_of_the_answer(tmp_path: Path) -> None:
    early = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "early"}}
    usage = {"sessionUpdate": "usage_update", "used": 5, "size": 10}
    opening = [{"update": {**early, "sessionId": "nobody"}}, {"update": early}, {"update": usage}]
    async with acp_stage(tmp_path, {"opening": opening, "prompt": [{"update": {**early, "sessionId": "other"}}, {"say": "mine"}]}) as on:
        run = await on.run()
        assert (run.status, await on.text(run)) == ("finished", "mine")
        assert sum(b'"early"' in (event.raw or b"") for event in await on.events(run)) == 3


async def test_a_permission_request_for_an_unknown_call_shows_the_call(tmp_path: Path) -> None:
    options = [{"optionId": "go", "name": "Go", "kind": "allow_once"}]
    asked = {"toolCallId": "new", "title": "rm -r x", "kind": "execute"}
    request = {"method": "session/request_permission", "params": {"toolCall": asked, "options": options}}
    async with acp_stage(tmp_path, {"prompt": [{"request": request}, {"say": "$ANSWER"}]}) as on:
        run = await on.run()
        assert json.loads(await on.text(run)) == {"outcome": {"outcome": "selected", "optionId": "go"}}
        (part,) = await on.calls(run)
        assert (part["title"], part["input"], part["state"]) == ("rm -r x", {"command": "rm -r x"}, "output-error")


async def test_a_permission_request_of_another_session_is_denied(tmp_path: Path) -> None:
    options = [{"optionId": "go", "name": "Go", "kind": "allow_once"}]
    params = {"sessionId": "other", "toolCall": {"toolCallId": "x"}, "options": options}
    async with acp_stage(
        tmp_path, {"prompt": [{"request": {"method": "session/request_permission", "params": params}}, {"say": "$ANSWER"}]}
    ) as on:
        run = await on.run()
        assert json.loads(await on.text(run)) == {"outcome": {"outcome": "cancelled"}}
        assert run.status == "finished" and await on.calls(run) == []


async def test_a_permission_request_without_known_options_is_denied(tmp_path: Path) -> None:
    request = {
        "method": "session/request_permission",
        "params": {"toolCall": {"toolCallId": "x"}, "options": [{"optionId": "?", "kind": "why"}]},
    }
    async with acp_stage(tmp_path, {"prompt": [{"request": request}, {"say": "$ANSWER"}]}) as on:
        run = await on.run()
        assert run.status == "finished" and json.loads(await on.text(run)) == {"outcome": {"outcome": "cancelled"}}


async def test_requests_after_the_answer_change_nothing(tmp_path: Path) -> None:
    write = {"method": "fs/write_text_file", "params": {"path": str(tmp_path / "work" / "late.txt"), "content": "late"}}
    async with acp_stage(tmp_path, {"prompt": [{"say": "done"}], "after": [{"say": " and more"}, {"request": write}]}, mode="ask") as on:
        run = await on.run()
        assert run.status == "finished" and (await on.text(run)).startswith("done")
        assert not (on.directory / "late.txt").exists()


async def test_an_unknown_method_is_rejected_and_the_run_continues(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"prompt": [{"request": {"method": "editor/dance"}}, {"say": "$ANSWER"}]}) as on:
        assert json.loads(await on.text(await on.run()))["code"] == -32601


async def test_response_ids_may_have_another_type(tmp_path: Path) -> None:
    request = {"id": "one", "method": "fs/read_text_file", "params": {"path": str(tmp_path / "work" / "none.txt")}}
    async with acp_stage(tmp_path, {"ids": "text", "prompt": [{"request": request}, {"say": "$ANSWER"}]}) as on:
        run = await on.run()
        assert json.loads(await on.text(run))["code"] == -32002


async def test_a_huge_line_is_read_and_stored(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, {"prompt": [{"say": "x" * 3_000_000}]}) as on:
        run = await on.run()
        assert run.status == "finished" and len(await on.text(run)) == 3_000_000


async def test_a_call_left_open_by_the_agent_is_closed(tmp_path: Path) -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress", "title": "make", "kind": "execute"}
    async with acp_stage(tmp_path, {"prompt": [{"update": call}, {"say": "done"}]}) as on:
        run = await on.run()
        (part,) = await on.calls(run)
        assert part["state"] == "output-error" and "without saying what came of this call" in str(part["errorText"])
