"""The sandbox of commands in conversations: approvals, refusals, and the hints for the model."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lanes import missing
from moot.cli.commands.maintenance import doctor
from moot.commands import CommandContext, built_in
from moot.config.settings import Permissions, Rule, SandboxSettings, Settings
from moot.errors import Refused, UsageError
from moot.guard.sandbox.mechanisms import find
from moot.guard.worktrees import create
from moot.runtime.approvals.answers import rule_on_edited
from moot.runtime.approvals.sandbox import OTHER_USERS, OUTSIDE, UNCONFINED, confine, find_mechanism, rule_on_call
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.tools.catalogue import provided_tool
from moot.types.agent import Agent
from moot.types.approval import Answer, Grant
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.sandbox import MECHANISMS, Access, Mechanism

pytestmark = pytest.mark.anyio

ENABLED = SandboxSettings()


def calling(command: str, **arguments: Any) -> Callable[[Recorded], Reply]:
    """Return a model that runs one command and then ends."""

    def script(recorded: Recorded) -> Reply:
        if "'role': 'tool'" in str(recorded.json["messages"]):
            return Reply(text="Done.")
        return Reply(tool_calls=[ToolCall("shell", {"command": command, **arguments})])

    return script


def output_of(on: Any) -> str:
    """Return what the model got for its call."""
    messages = on.server.requests[-1].json["messages"]
    return str([message["content"] for message in messages if message["role"] == "tool"])


async def confined(on: Any) -> None:
    if not (found := await find_mechanism(on.engine.runtime)).is_complete:
        missing("bubblewrap", "; ".join(found.missing))


async def test_a_command_in_mode_auto_can_not_leave_the_folder(stage: Any, directory: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    async with stage(calling(f"echo in > file; echo out > {outside}"), sandbox=ENABLED) as on:
        await confined(on)
        await on.ask("go")
        assert (directory / "file").read_text() == "in\n"
        assert not outside.exists()


async def test_git_works_in_a_subfolder_of_a_repository(stage: Any, directory: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(directory)], check=True)
    (folder := directory / "sub").mkdir()
    script = calling("echo x > new; git status --short .; touch ../beside")
    async with stage(script, sandbox=ENABLED) as on:
        await confined(on)
        on.directory = folder
        await on.ask("go")
        assert "?? ./" in output_of(on) or "?? new" in output_of(on)
        assert not (directory / "beside").exists()
        assert "access=outside" in output_of(on)


async def test_a_command_in_a_subfolder_of_a_worktree_can_commit_and_learns_why_it_can_not_tag(stage: Any, directory: Path) -> None:
    git = ["git", "-C", str(directory), "-c", "user.name=me", "-c", "user.email=me@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    (directory / "sub").mkdir()
    (directory / "sub" / "file").touch()
    for words in (
        ("config", "user.name", "me"),
        ("config", "user.email", "me@example.org"),
        ("add", "."),
        ("commit", "--quiet", "-m", "one"),
    ):
        subprocess.run([*git, *words], check=True)
    tree = await create(str(directory), "parser")
    async with stage(
        calling("touch new && git add new && git commit --quiet -m two && git log --format=%s && git tag v1"), sandbox=ENABLED
    ) as on:
        await confined(on)
        on.directory = Path(tree.path, "sub")
        await on.ask("go")
        assert "two" in output_of(on) and "can't change the rest of the repository" in output_of(on)
    found = subprocess.run([*git, "log", "--format=%s", "moot/parser"], check=True, capture_output=True, text=True)
    assert found.stdout == "two\none\n"


async def test_folders_of_the_agent_are_allowed_in_new_conversations_with_the_working_folder(
    stage: Any, directory: Path, tmp_path: Path
) -> None:
    (further := tmp_path / "further").mkdir()
    agents = {"default": Agent(allowed_uris=(str(further),))}
    async with stage(calling(f"touch here {further}/there"), sandbox=ENABLED, agents=agents) as on:
        await confined(on)
        await on.ask("go")
        assert (directory / "here").exists()
        assert (further / "there").exists()


async def test_the_command_allow_adds_a_folder_and_the_error_names_it(stage: Any, directory: Path, tmp_path: Path) -> None:
    (further := tmp_path / "further").mkdir()
    (further / "file").write_text("found it")

    def reading(recorded: Recorded) -> Reply:
        if recorded.json["messages"][-1]["role"] == "tool":
            return Reply(text="Done.")
        return Reply(tool_calls=[ToolCall("read_file", {"path": str(further / "file")})])

    async with stage(reading) as on:
        run, _ = await on.ask("go")
        assert "/allow DIR" in output_of(on)
        context = CommandContext(on.engine, str(directory), run.conversation)
        with pytest.raises(UsageError, match="not a folder"):
            await built_in().find("allow").run(context, "missing")
        await built_in().find("allow").run(context, "../further")
        assert (await on.engine.store.conversations.get(run.conversation)).allowed_uris == (str(directory), str(further))
        await on.ask("again", conversation=run.conversation)
        assert "found it" in output_of(on)


async def test_the_command_allow_before_the_first_prompt(stage: Any, directory: Path) -> None:
    async with stage(calling("true")) as on:
        context = CommandContext(on.engine, str(directory), further_folders=[])
        (notice,) = await built_in().find("allow").run(context, str(directory.parent))
        assert notice.text.splitlines()[1:] == [str(directory), str(directory.parent)]
        assert context.take_folders() == (str(directory.parent),)
        with pytest.raises(UsageError, match="no conversation yet"):
            await built_in().find("allow").run(CommandContext(on.engine, str(directory)), str(directory))


async def test_folders_of_other_users_are_not_changed(stage: Any, directory: Path) -> None:
    async with stage(calling("true")) as on:
        submitted = await on.submit("go", user="other")
        await on.engine.runs.wait(submitted.run.id)
        with pytest.raises(Refused):
            context = CommandContext(on.engine, str(directory), submitted.conversation.id, owner=submitted.conversation.owner)
            await built_in().find("allow").run(context, "/nowhere")


async def test_a_command_outside_the_sandbox_asks_in_every_mode_and_says_so(stage: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    async with stage(calling(f"echo out > {outside}", access="outside"), sandbox=ENABLED) as on:
        run, _ = await on.ask("go")
        assert run.status == "waiting"
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        assert [part.why for part in asked.parts] == [OUTSIDE]
        assert asked.lasting == ()
        assert not outside.exists()
        await on.engine.runs.answer(asked.id, Answer(True))
        assert (await on.engine.runs.wait(run.id)).status == "finished"
        assert outside.read_text() == "out\n"


async def test_a_denied_command_stays_denied_outside(stage: Any) -> None:
    permissions = Permissions(mode="auto", rules=(Rule("shell", "deny", "touch *"),))
    async with stage(calling("touch a", access="outside"), sandbox=ENABLED, permissions=permissions) as on:
        run, _ = await on.ask("go")
        assert run.status == "finished"
        assert "Not allowed" in output_of(on)


@pytest.mark.parametrize(("rules", "status"), [((), "waiting"), ((Rule("shell", "allow", "echo *", network=True),), "finished")])
async def test_the_network_asks_unless_a_rule_allows_it(stage: Any, rules: tuple[Rule, ...], status: str) -> None:
    async with stage(calling("echo x", access="network"), sandbox=ENABLED, permissions=Permissions("auto", rules)) as on:
        await confined(on)
        run, _ = await on.ask("go")
        assert run.status == status


async def test_mode_auto_asks_if_commands_can_not_be_confined(stage: Any, directory: Path) -> None:
    async with stage(calling("touch file"), sandbox=ENABLED) as on:
        on.engine.runtime.mechanisms = ()
        run, _ = await on.ask("go")
        assert run.status == "waiting"
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        assert UNCONFINED in str(asked.parts)
        assert not (directory / "file").exists()


async def test_a_required_sandbox_that_is_missing_refuses_commands(stage: Any, directory: Path) -> None:
    permissions = Permissions(rules=(Rule("shell", "allow"),))
    async with stage(calling("touch file"), sandbox=replace(ENABLED, required=True), permissions=permissions) as on:
        on.engine.runtime.mechanisms = ()
        run, _ = await on.ask("go")
        assert run.status == "finished"
        assert "requires a sandbox" in output_of(on)
        assert not (directory / "file").exists()


async def test_doctor_names_the_mechanism(tmp_path: Path) -> None:
    found = await find(MECHANISMS)
    finding = await doctor._sandbox(Settings(tmp_path))
    assert (found.mechanism or "none") in finding.detail
    assert (finding.state == "ok") == found.is_complete
    assert (await doctor._sandbox(Settings(tmp_path, sandbox=SandboxSettings(enabled=False)))).state == "note"


async def test_the_settings_of_a_repository_are_read_only_and_the_error_says_so(stage: Any, directory: Path) -> None:
    async with stage(calling("git init -q . && git remote add o https://example.org/x"), sandbox=ENABLED) as on:
        await confined(on)
        await on.ask("go")
        (directory / ".git" / "config").write_text("[core]\n")
        await on.ask("again")
        assert (directory / ".git" / "config").read_text() == "[core]\n"
        assert ".git/config and .git/hooks are read-only" in output_of(on)


async def test_a_call_that_was_edited_to_leave_the_sandbox_still_asks(stage: Any) -> None:
    permissions = Permissions("ask", rules=(Rule("shell", "allow", "touch a"),))
    async with stage(calling("touch b"), sandbox=ENABLED, permissions=permissions) as on:
        await confined(on)
        run, _ = await on.ask("go")
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        for access, action in (("sandbox", "allow"), ("outside", "ask"), ("network", "ask")):
            ruling = await rule_on_edited(on.engine.runtime, asked, dumps({"command": "touch a", "access": access}))
            assert ruling.action == action


@pytest.mark.parametrize(
    ("sandbox", "mechanisms", "access"),
    [(ENABLED, MECHANISMS, "outside"), (ENABLED, (), "sandbox"), (replace(ENABLED, enabled=False), MECHANISMS, "sandbox")],
)
async def test_a_command_of_another_user_never_runs_outside_the_sandbox(
    stage: Any, directory: Path, sandbox: SandboxSettings, mechanisms: tuple[Mechanism, ...], access: Access
) -> None:
    async with stage(calling("true"), sandbox=sandbox) as on:
        on.engine.runtime.mechanisms = mechanisms
        conversation = Conversation("1", owner="other", directory=str(directory))
        with pytest.raises(Refused):
            await confine(on.engine.runtime, conversation, directory, command="true", access=access)


async def test_access_outside_the_sandbox_is_denied_to_other_users(stage: Any, directory: Path) -> None:
    async with stage(calling("true"), sandbox=ENABLED) as on:
        conversation = Conversation("1", owner="other", directory=str(directory))
        for grants in ((), (Grant("shell", "true"),)):
            ruling = await rule_on_call(
                on.engine.runtime, conversation, provided_tool("shell"), "true", "outside", mode="auto", grants=grants
            )
            assert (ruling.action, ruling.why) == ("deny", OTHER_USERS)


async def test_a_command_starts_in_an_allowed_folder(stage: Any, directory: Path, tmp_path: Path) -> None:
    (allowed := tmp_path / "allowed").mkdir()
    async with stage(calling("pwd; touch here"), sandbox=ENABLED) as on:
        await confined(on)
        conversation = Conversation("1", directory=str(directory), allowed_uris=(str(allowed),))
        found = await confine(on.engine.runtime, conversation, directory, command="pwd", access="sandbox")
        assert found is not None
        assert found.directory == allowed
