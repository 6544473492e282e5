"""Slash commands over HTTP, each with its effect in the store or on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import Json, began, got, said, sent
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.message import text_of
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio


async def ran(server: LiveServer, name: str, argument: str = "", **body: Any) -> list[Json]:
    """Run a command and return its replies."""
    return (await sent(server.client, "POST", f"/api/commands/{name}", {"argument": argument, **body}))["replies"]


def define(server: LiveServer, name: str, text: str) -> None:
    path = server.engine.settings.home / f"commands/{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def prompts(server: LiveServer, conversation: str) -> list[str]:
    branch = await server.engine.store.conversations.branch(conversation)
    return [text_of(message.parts) for message in branch if message.role == "user"]


async def test_a_custom_command_is_listed_and_sends_its_prompt(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Fixed.", times=0)], agents={"coder": Agent("coder")}) as server:
        define(server, "fix", "---\ndescription: Fix it\nagent: coder\n---\nFix $1 using @notes.txt")
        (server.directory / "notes.txt").write_text("Be quick.")
        listed = {one["name"]: one for one in (await got(server.client, "/api/commands"))["data"]}
        assert (listed["fix"]["help"], listed["fix"]["category"], listed["fix"]["type"]) == ("Fix it", "custom", "prompt")
        id = (await began(server, agent="default"))["id"]
        (reply,) = await ran(server, "fix", "app.py", conversation=id)
        assert (reply["kind"], reply["conversation"]) == ("run", id)
        run = await server.engine.runs.wait(reply["run"])
        assert (run.status, run.agent) == ("finished", "coder")
        assert (await got(server.client, f"/api/conversations/{id}"))["agent"] == "default"  # the command's agent is for one prompt
        assert "Be quick." in str(server.model.requests[-1].body) and await prompts(server, id) == ["Fix app.py using @notes.txt"]
        (first,) = await ran(server, "fix", "b.py", directory=str(server.directory))
        assert first["conversation"] != id and await prompts(server, first["conversation"]) == ["Fix b.py using @notes.txt"]


async def test_a_workflow_is_listed_and_runs_its_steps(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(when="Draft", text="A heron."), Reply(when="Review", text="Good.")]) as server:
        steps = "steps: [{name: draft, prompt: Draft $1}, {prompt: 'Review {{steps.draft.output}}'}]"
        define(server, "write", f"---\ntype: workflow\n{steps}\n---\n")
        define(server, "wrong", f"---\ntype: workflow\n{steps.replace('draft.out', 'draf.out')}\n---\n")
        listed = await got(server.client, "/api/commands")
        assert {one["name"]: one["type"] for one in listed["data"]}["write"] == "workflow"
        assert "wrong.md:3:" in listed["problems"]["wrong"] and "Unknown step 'draf'" in listed["problems"]["wrong"]
        (reply,) = await ran(server, "write", "birds", directory=str(server.directory))
        run = await server.engine.runs.wait(reply["run"])
        assert run.status == "finished" and await prompts(server, reply["conversation"]) == ["/write birds"]
        children = (await got(server.client, "/api/conversations", parent=reply["conversation"]))["data"]
        assert sorted(child["title"] for child in children) == ["Draft birds", "Review A heron."]


async def test_shell_lines_of_a_command_run_with_the_permissions_of_the_conversation(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Seen.", times=0)]) as server:
        define(server, "look", "State: !`echo now-$1 > $2`")
        id = (await began(server))["id"]
        (reply,) = await ran(server, "look", "a out.txt", conversation=id, wishes={"mode": "ask"})
        run = await server.engine.runs.wait(reply["run"])
        assert (run.status, run.awaits) == ("waiting", "person") and not (server.directory / "out.txt").exists()
        (asked,) = (await got(server.client, "/api/approvals"))["data"]
        await sent(server.client, "POST", f"/api/approvals/{asked['id']}", {"approved": True})
        assert (await server.engine.runs.wait(run.id)).status == "finished"
        assert (server.directory / "out.txt").read_text() == "now-a\n"


async def test_shell_lines_and_named_calls_of_a_prompt_run_again_for_another_answer(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Seen.", times=0)], agents={"default": Agent(tools=("list_files",))}) as server:
        define(server, "look", "State: !`echo now >> log; cat log` @[list_files{}]")
        (reply,) = await ran(server, "look", directory=str(server.directory))
        run = await server.engine.runs.wait(reply["run"])
        again = await server.engine.runs.submit(Prompt((), conversation=run.conversation))
        assert (await server.engine.runs.wait(again.run.id)).status == "finished"
        message = await server.engine.store.conversations.message(again.run.message)
        outputs = [str(part.get("output")) for part in message.parts if str(part["type"]).startswith("tool-")]
        assert len(outputs) == 2 and outputs[0].startswith("now\nnow") and "log" in outputs[1]
        assert b"now\\nnow" in server.model.requests[-1].body


async def test_an_inserting_command_returns_text_and_a_missing_argument_is_an_error(server: LiveServer) -> None:
    define(server, "sign", "---\ntype: insert\nparameters: [{name: who, required: true}]\n---\nBest, $who")
    (reply,) = await ran(server, "sign", "Mara")
    assert (reply["kind"], reply["text"]) == ("compose", "Best, Mara")
    problem = await sent(server.client, "POST", "/api/commands/sign", {}, 400)
    assert "'who' is missing" in problem["detail"] and "/sign <who>" in str(problem)


async def test_a_command_knows_the_open_file(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Fine.", times=0)]) as server:
        define(server, "explain", "---\nrequires: [file]\n---\nExplain $FILE.")
        await sent(server.client, "POST", "/api/commands/explain", {"directory": str(server.directory)}, 400)
        (reply,) = await ran(server, "explain", directory=str(server.directory), file="src/app.py")
        assert await prompts(server, reply["conversation"]) == ["Explain src/app.py."]


async def test_commands_of_a_project_need_trust(server: LiveServer) -> None:
    path = server.directory / ".moot/commands/deploy.md"
    path.parent.mkdir(parents=True)
    path.write_text("Deploy.")
    listed = await got(server.client, "/api/commands", directory=str(server.directory))
    assert "moot trust" in listed["problems"]["deploy"] and "deploy" not in [one["name"] for one in listed["data"]]
    body = {"directory": str(server.directory)}
    assert "not trusted" in (await sent(server.client, "POST", "/api/commands/deploy", body, 422))["detail"]


async def test_other_users_see_only_their_own_data_and_built_in_commands(server: LiveServer) -> None:
    define(server, "secret", "The code word is heron.")
    await began(server, title="Private plans")
    async with server.caller(scopes=["tools"], owner="mara") as mara:
        names = [one["name"] for one in (await got(mara, "/api/commands"))["data"]]
        assert "secret" not in names and "review" in names
        await sent(mara, "POST", "/api/commands/secret", {}, 404)
        shown = await sent(mara, "POST", "/api/commands/continue", {})
        assert "Private plans" not in str(shown)
        found = await sent(mara, "POST", "/api/commands/search", {"argument": "heron"})
        assert found["replies"][0]["text"] == "No results."
        for name in ("mcp", "doctor", "git"):
            await sent(mara, "POST", f"/api/commands/{name}", {}, 400)
        await sent(mara, "POST", "/api/commands/init", {"directory": str(server.directory)}, 403)


async def test_plan_sets_the_mode_and_sends_the_prompt(open_server: Callable[..., Any]) -> None:
    script = [Reply(tool_calls=(ToolCall("write_file", {"path": "x", "content": "y"}),)), Reply(text="A plan.", times=0)]
    async with open_server(script) as server:
        id = (await began(server))["id"]
        notice, reply = await ran(server, "plan", "write x", conversation=id)
        assert notice["kind"] == "say"
        await server.engine.runs.wait(reply["run"])
        assert (await got(server.client, f"/api/conversations/{id}"))["settings"]["mode"] == "plan"
        assert not (server.directory / "x").exists() and await prompts(server, id) == ["write x"]
        _, first = await ran(server, "plan", "hello", directory=str(server.directory))  # the prompt creates the conversation
        assert (await got(server.client, f"/api/conversations/{first['conversation']}"))["settings"]["mode"] == "plan"


async def test_tasks_and_memory_are_stored(server: LiveServer) -> None:
    (server.directory / ".git").mkdir()
    id = (await began(server))["id"]
    await ran(server, "tasks", "add Update the changelog", conversation=id)
    assert "#1  backlog     Update the changelog" in (await ran(server, "tasks", conversation=id))[0]["text"]
    said = (await ran(server, "memory", "The server is\ncalled heron.", conversation=id))[0]["text"]
    assert said == "Added to project/MEMORY.md."
    assert (server.directory / ".moot/memory/MEMORY.md").read_text().endswith("- The server is called heron.\n")
    assert "project/MEMORY.md" in (await ran(server, "memory", conversation=id))[0]["text"]


async def test_mcp_servers_are_switched_in_the_configuration(server: LiveServer) -> None:
    file = server.engine.settings.home / "config.yaml"
    file.write_text("mcp: {git: {command: mcp-server-git}}\n")
    await server.state.configuration.reload()
    assert (await ran(server, "mcp", "disable git"))[0]["text"] == "MCP server git disabled."
    assert "enabled: false" in file.read_text()
    await server.state.configuration.reload()
    assert "git  disabled" in (await ran(server, "mcp"))[0]["text"]
    await sent(server.client, "POST", "/api/commands/mcp", {"argument": "disable gti"}, 404)


async def test_a_cron_job_is_run_and_paused(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Done.", times=0)]) as server:
        jobs = server.engine.cron.of("local")
        await jobs.add("nightly", {"prompt": "go", "every": 86400.0, "directory": str(server.directory)})
        assert "Started nightly" in (await ran(server, "cron", "run nightly"))[0]["text"]
        (record,) = await jobs.history("nightly")
        assert record.run is not None and (await server.engine.runs.wait(record.run)).status == "finished"
        await ran(server, "cron", "pause nightly")
        assert (await jobs.get("nightly")).paused_at is not None
        assert "nightly  every 1d, paused" in (await ran(server, "cron"))[0]["text"]


async def test_a_conversation_is_found_exported_and_shared(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Herons fish.", times=0)]) as server:
        id = (await began(server, title="Birds"))["id"]
        submitted = await said(server, id, "What do herons do?")
        await server.engine.runs.wait(submitted["run"]["id"])
        (found,) = await ran(server, "search", "herons")
        assert (found["kind"], found["command"], found["choices"][0]["value"]) == ("choose", "continue", id)
        for argument, format in (("html", "html"), ("", "md")):
            (saved,) = await ran(server, "export", argument, conversation=id)
            assert (saved["kind"], saved["conversation"], saved["format"]) == ("save", id, format)
            async with server.client.get(f"/api/conversations/{id}/export", params={"format": format}) as answer:
                assert answer.status == 200
        about, choice = await ran(server, "share", conversation=id)
        assert "The page would show" in about["text"] and [one["value"] for one in choice["choices"]] == ["1h", "1d", "7d", "30d"]
        assert (await got(server.client, "/api/shares"))["data"] == []
        (link,) = await ran(server, "share", "1d", conversation=id)
        assert "/share/" in link["text"] and len((await got(server.client, "/api/shares"))["data"]) == 1


async def test_permissions_and_the_state_are_shown(server: LiveServer) -> None:
    id = (await began(server))["id"]
    await sent(server.client, "PATCH", f"/api/conversations/{id}", {"settings": {"mode": "plan"}})
    assert (await ran(server, "permissions", conversation=id))[0]["text"].startswith("Mode: plan")
    shown = (await ran(server, "doctor"))[0]["text"]
    assert "integrity ok" in shown and "sandbox" in shown


async def test_review_and_commit_need_a_repository_and_send_their_instructions(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Fine.", times=0)]) as server:
        body = {"directory": str(server.directory)}
        assert "Git repository" in (await sent(server.client, "POST", "/api/commands/commit", body, 400))["detail"]
        (server.directory / ".git").mkdir()
        (reply,) = await ran(server, "review", "main..HEAD", **body)
        await server.engine.runs.wait(reply["run"])
        assert "Review these changes: main..HEAD" in str(server.model.requests[-1].body)
        assert "data-findings" not in str(await got(server.client, f"/api/conversations/{reply['conversation']}/messages"))
        (reply,) = await ran(server, "commit", "only the docs", **body, wishes={"mode": "ask"})
        run = await server.engine.runs.wait(reply["run"])
        assert run.status in ("waiting", "finished") and (await prompts(server, reply["conversation"]))[0].endswith("before this message.)")
        (reply,) = await ran(server, "init", "the tests", **body)
        await server.engine.runs.wait(reply["run"])
        assert "AGENTS.md" in str(server.model.requests[-1].body)


async def test_findings_of_a_review_are_stored_with_file_and_line_and_again_after_a_retry(open_server: Callable[..., Any]) -> None:
    answer = "**src/app.py:40** Adds the tax twice.\n\n- `lib/a.py:7-9`: Leaks a file.\n"
    async with open_server([Reply(text=answer, times=0)]) as server:
        (server.directory / ".git").mkdir()
        (reply,) = await ran(server, "review", directory=str(server.directory))
        first = await server.engine.runs.wait(reply["run"])
        again = await server.engine.runs.wait((await server.engine.runs.submit(Prompt((), conversation=first.conversation))).run.id)
        plain = await server.engine.runs.wait((await said(server, first.conversation, "Again."))["run"]["id"])
        for run in (first, again, plain):
            message = await server.engine.store.conversations.message(run.message)
            parts = [part["data"] for part in message.parts if part["type"] == "data-findings"]
            found = [
                {"path": "src/app.py", "line": 40, "text": "Adds the tax twice."},
                {"path": "lib/a.py", "line": 7, "text": "Leaks a file."},
            ]
            assert parts == ([] if run is plain else [{"findings": found}])
        assert "data-findings" not in str(server.model.requests[-1].body)


async def test_a_command_is_created_changed_and_deleted(server: LiveServer) -> None:
    fields = {"description": "Explain a file", "argument": "FILE", "prompt": "Explain $1."}
    created = await server.client.post("/api/commands", json={"name": "docs:explain", **fields})
    assert created.status == 201, await created.text()
    path = server.engine.settings.home / "commands/docs/explain.md"
    assert path.read_text() == "---\ndescription: Explain a file\nargument: FILE\n---\n\nExplain $1.\n"
    listed = {one["name"]: one for one in (await got(server.client, "/api/commands"))["data"]}
    assert listed["docs:explain"]["is_own"] and not listed["status"]["is_own"]
    assert (await ran(server, "docs:explain", "a.py"))[0]["kind"] == "run"

    path.write_text(path.read_text().replace("argument", "# typed after the name\nargument"))
    url = "/api/commands/docs:explain"
    stale = await server.client.patch(url, json={"prompt": "Explain $1 twice."}, headers={"If-Match": created.headers["etag"]})
    assert stale.status == 412
    current = (await server.client.get(url)).headers["etag"]
    changed = await server.client.patch(url, json={"prompt": "Explain $1 twice."}, headers={"If-Match": current})
    assert changed.status == 200, await changed.text()
    assert path.read_text() == "---\ndescription: Explain a file\n# typed after the name\nargument: FILE\n---\n\nExplain $1 twice.\n"
    assert (await (await server.client.patch(url, json={"argument": ""})).json())["argument"] == ""
    assert "argument" not in path.read_text().replace("# typed", "")
    assert (await server.client.delete(url)).status == 204
    assert not path.exists() and (await server.client.get(url)).status == 404


async def test_a_command_whose_front_matter_lacks_quotes_can_be_changed(server: LiveServer) -> None:
    path = server.engine.settings.home / "commands" / "fix.md"
    path.parent.mkdir()
    path.write_text("---\ndescription: Fix: the parser\nargument: [file] [how]\n---\n\nFix $1.\n")
    changed = await server.client.patch("/api/commands/fix", json={"prompt": "Fix $1 now."})
    shown = await changed.json()
    assert (shown["prompt"].strip(), shown["description"], shown["argument"]) == ("Fix $1 now.", "Fix: the parser", "[file] [how]")


async def test_errors_in_a_command_name_the_field(server: LiveServer) -> None:
    for body, field in (
        ({"name": "a b", "prompt": "x"}, "name"),
        ({"name": "../a", "prompt": "x"}, "name"),
        ({"name": "status", "prompt": "x"}, "name"),
        ({"name": "mine"}, "prompt"),
        ({"name": "mine", "prompt": "x", "agent": "nobody"}, "agent"),
        ({"name": "mine", "prompt": "x", "model": "large@nowhere"}, "model"),
    ):
        answer = await server.client.post("/api/commands", json=body)
        assert answer.status == 422, await answer.text()
        assert [error["at"].split(".")[-1] for error in (await answer.json())["errors"]] == [field]
    assert not (server.engine.settings.home / "commands/mine.md").exists()


async def test_commands_elsewhere_are_shown_but_not_changed(server: LiveServer) -> None:
    answer = await server.client.patch("/api/config", json={"values": {"commands.hello": {"prompt": "Say hello."}}})
    assert answer.status == 200, await answer.text()
    shown = await got(server.client, "/api/commands/hello")
    assert (shown["prompt"], shown["is_own"]) == ("Say hello.", False) and shown["origin"].endswith("config.yaml")
    assert (await server.client.patch("/api/commands/hello", json={"prompt": "Bye."})).status == 404
    assert (await server.client.delete("/api/commands/hello")).status == 404
    assert (await server.client.get("/api/commands/status")).status == 404
