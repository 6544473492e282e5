"""Hooks: commands at events of a conversation, with real processes and a scripted model."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.acp_stage import DOUBLE
from moot.config.loader import load
from moot.config.settings import Permissions, Rule, Settings
from moot.config.trust import trust_file
from moot.features.replays.rerun import rerun
from moot.runtime.hooks import events
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.hooks import CommandHook, RunHook, RunHooks
from moot.types.message import Message, is_tool, note_of, text_of

pytestmark = pytest.mark.anyio


def outputs(recorded: Recorded) -> int:
    return str(recorded.messages).count("'role': 'tool'")


def python(code: str, *words: str) -> str:
    """Return a shell command that runs the code with Python."""
    return shlex.join([sys.executable, "-c", code, *words])


def configured(**events: str | CommandHook | list[CommandHook]) -> dict[str, Any]:
    """Return the settings for hooks: by event, a command, a hook or a list of hooks."""
    found: dict[str, tuple[CommandHook, ...]] = {}
    for event, given in events.items():
        listed = given if isinstance(given, list) else [CommandHook(given) if isinstance(given, str) else given]
        found[event] = tuple(listed)
    return {"hooks": found}


def runs(command: str, answer: str = "done") -> Any:
    """Return a model that runs one command and then answers."""

    def script(recorded: Recorded) -> Reply:
        return Reply(text=answer) if outputs(recorded) else Reply(tool_calls=[ToolCall("shell", {"command": command})])

    return script


def says(answer: dict[str, Any]) -> str:
    """Return a command that prints a JSON object."""
    return f"printf %s {shlex.quote(json.dumps(answer))}"


def notes(message: Message) -> list[str]:
    return [note_of(part) for part in message.parts if part["type"] == "data-note"]


def errors(message: Message) -> list[str]:
    return [str(part["errorText"]) for part in message.parts if is_tool(part) and part["state"] == "output-error"]


BLOCKS_RM = CommandHook("if grep -q 'rm '; then echo 'rm is not allowed here' >&2; exit 2; fi", "shell")


# ── tool calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_exit_code_2_blocks_a_call_and_the_model_gets_the_reason(stage: Any, directory: Path) -> None:
    (directory / "kept.txt").write_text("x")
    async with stage(runs("rm kept.txt"), **configured(PreToolUse=BLOCKS_RM)) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and (directory / "kept.txt").exists()
        assert errors(message) == ["A hook blocked this call: rm is not allowed here"]
        assert "rm is not allowed here" in str(on.server.requests[1].json)


async def test_a_hook_gets_the_call_as_json_on_stdin(stage: Any, directory: Path) -> None:
    async with stage(runs("true"), **configured(PreToolUse="cat > got.json", PostToolUse="cat > after.json")) as on:
        run, _ = await on.ask("go")
        got, after = (json.loads((directory / name).read_text()) for name in ("got.json", "after.json"))
        assert got["hook_event_name"] == "PreToolUse" and got["session_id"] == run.conversation and got["cwd"] == str(directory)
        assert got["tool_name"] == "shell" and got["tool_input"] == {"command": "true"} and got["run"] == run.id
        assert after["hook_event_name"] == "PostToolUse" and after["tool_response"]["error"] is False


async def test_other_exit_codes_warn_and_do_not_block(stage: Any, directory: Path) -> None:
    async with stage(runs("touch made"), **configured(PreToolUse="echo broken >&2; exit 1")) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and (directory / "made").exists()
        assert notes(message) == ["The PreToolUse hook 'echo broken >&2; exit 1' failed with exit code 1: broken."]


async def test_a_required_hook_blocks_when_it_fails(stage: Any, directory: Path) -> None:
    async with stage(runs("touch made"), **configured(PreToolUse=CommandHook("exit 1", required=True))) as on:
        _, message = await on.ask("go")
        assert not (directory / "made").exists() and errors(message) == ["A hook blocked this call: failed with exit code 1"]


async def test_a_matcher_selects_tools_by_name(stage: Any, directory: Path) -> None:
    listed = [CommandHook("touch a", "read_file|write_file"), CommandHook("touch b", "sh.*"), CommandHook("touch c", "*")]
    async with stage(runs("true"), **configured(PreToolUse=listed)) as on:
        await on.ask("go")
        assert sorted(path.name for path in directory.iterdir()) == ["b", "c"]


async def test_a_hook_can_change_the_arguments_of_a_call(stage: Any, directory: Path) -> None:
    changed = says({"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "touch other"}}})
    async with stage(runs("touch made"), **configured(PreToolUse=changed)) as on:
        _, message = await on.ask("go")
        assert [path.name for path in directory.iterdir()] == ["other"]
        (part,) = [part for part in message.parts if is_tool(part)]
        assert str(part["output"]).startswith('[A hook changed the arguments of the call. It ran with: {"command":"touch other"}]')


async def test_changed_arguments_that_a_rule_denies_are_denied(stage: Any, directory: Path) -> None:
    changed = says({"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "touch denied"}}})
    rules = Permissions("auto", (Rule("shell", "deny", "touch denied"),))
    async with stage(runs("touch made"), permissions=rules, **configured(PreToolUse=changed)) as on:
        _, message = await on.ask("go")
        assert not [*directory.iterdir()] and "says deny" in errors(message)[0]


ALLOWS = says({"hookSpecificOutput": {"permissionDecision": "allow"}})


@pytest.mark.parametrize(
    "command, mode, rules",
    [
        ("touch x", "auto", (Rule("shell", "deny", "touch *"),)),
        ("touch x", "plan", ()),
    ],
)
async def test_a_hook_cannot_allow_what_is_denied(stage: Any, directory: Path, command: str, mode: str, rules: Any) -> None:
    permissions = Permissions(mode, rules)  # type: ignore[arg-type]
    async with stage(runs(command), permissions=permissions, **configured(PreToolUse=ALLOWS)) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and len(errors(message)) == 1 and not [*directory.iterdir()]


@pytest.mark.parametrize("command, rules", [("touch .envrc", ()), ("touch x", (Rule("shell", "ask", "touch *"),))])
async def test_a_hook_cannot_allow_protected_paths_and_what_rules_ask_about(stage: Any, directory: Path, command: str, rules: Any) -> None:
    async with stage(runs(command), permissions=Permissions("ask", rules), **configured(PreToolUse=ALLOWS)) as on:
        run = await on.follow(await on.submit("go"))
        assert run.status == "waiting" and not [*directory.iterdir()]


async def test_a_hook_can_allow_what_only_the_mode_asks_about(stage: Any, directory: Path) -> None:
    async with stage(runs("touch made"), mode="ask", **configured(PreToolUse=ALLOWS)) as on:
        run = await on.follow(await on.submit("go"))
        assert run.status == "finished" and (directory / "made").exists()


async def test_a_hook_can_require_that_a_person_is_asked_and_runs_once(stage: Any, directory: Path) -> None:
    command = says({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "look closely"}})
    asks = CommandHook(f"echo ran >> hook.log; {command}")
    async with stage(runs("touch made"), **configured(PreToolUse=asks)) as on:
        submitted = await on.submit("go")
        run = await on.follow(submitted)
        assert run.status == "waiting"
        (approval,) = await on.engine.store.records.approvals(run=run.id)
        assert approval.parts[0].why == "a hook asks: look closely"
        await on.engine.runs.answer(approval.id, Answer(True))
        run = await on.engine.runs.wait(run.id)
        assert run.status == "finished" and (directory / "made").exists()
        assert (directory / "hook.log").read_text() == "ran\n"


def changes(command: str) -> str:
    """Return a hook's command that puts another shell command in place of each one."""
    return says({"hookSpecificOutput": {"updatedInput": {"command": command}}})


async def test_a_hook_that_blocks_sees_what_another_hook_changed(stage: Any, directory: Path) -> None:
    (directory / "kept").write_text("x")
    async with stage(runs("true"), **configured(PreToolUse=[BLOCKS_RM, CommandHook(changes("rm kept"))])) as on:
        _, message = await on.ask("go")
        assert (directory / "kept").exists() and errors(message) == ["A hook blocked this call: rm is not allowed here"]


async def test_a_hook_does_not_allow_what_another_hook_changed_and_the_request_shows_it(stage: Any, directory: Path) -> None:
    allows = f"if grep -q touch; then true; else {ALLOWS}; fi"
    async with stage(runs("true"), mode="ask", **configured(PreToolUse=[CommandHook(allows), CommandHook(changes("touch made"))])) as on:
        run = await on.follow(await on.submit("go"))
        (approval,) = await on.engine.store.records.approvals(run=run.id)
        assert run.status == "waiting" and json.loads(approval.arguments) == {"command": "touch made"}
        assert [part.text for part in approval.parts] == ["touch made"]
        await on.engine.runs.answer(approval.id, Answer(True))
        assert (await on.engine.runs.wait(run.id)).status == "finished" and (directory / "made").exists()


async def test_hooks_that_change_a_call_in_different_ways_block_it(stage: Any, directory: Path) -> None:
    async with stage(runs("true"), **configured(PreToolUse=[CommandHook(changes("touch a")), CommandHook(changes("touch b"))])) as on:
        _, message = await on.ask("go")
        assert errors(message) == ["A hook blocked this call: several hooks change its arguments in different ways"]
        assert not [*directory.iterdir()]


async def test_arguments_of_a_hook_that_the_tool_refuses_are_an_error_and_no_one_is_asked(stage: Any) -> None:
    wrong = says({"hookSpecificOutput": {"updatedInput": {"command": ["touch", "made"]}}})
    async with stage(runs("true"), mode="ask", **configured(PreToolUse=wrong)) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and "A hook changed the arguments, and they are not valid: command:" in errors(message)[0]


@pytest.mark.parametrize("hook", [BLOCKS_RM, CommandHook(f"grep -q 'rm ' && {changes('mv kept trash')}")])
async def test_hooks_decide_again_about_what_a_person_edited(stage: Any, directory: Path, hook: CommandHook) -> None:
    (directory / "kept").write_text("x")
    async with stage(runs("true"), mode="ask", **configured(PreToolUse=hook)) as on:
        run = await on.follow(await on.submit("go"))
        (approval,) = await on.engine.store.records.approvals(run=run.id)
        await on.engine.runs.answer(approval.id, Answer(True, arguments=b'{"command":"rm kept"}'))
        run = await on.engine.runs.wait(run.id)
        message = await on.engine.store.conversations.message(run.message)
        assert run.status == "finished" and (directory / "kept").exists()
        assert errors(message)[0].startswith(("A hook blocked this call", "A hook would change the edited arguments"))


async def test_text_of_a_hook_before_a_call_reaches_the_model(stage: Any) -> None:
    adds = says({"hookSpecificOutput": {"additionalContext": "The disk is slow."}})
    async with stage(runs("echo ran"), **configured(PreToolUse=adds)) as on:
        await on.ask("go")
        assert "[A hook adds: The disk is slow.]\\nran" in json.dumps(on.server.requests[1].json)


@pytest.mark.parametrize("hooked", [False, True], ids=["the model", "a hook"])
async def test_a_rule_about_an_agent_holds_when_its_name_is_in_a_list_written_as_text(stage: Any, hooked: bool) -> None:
    more = json.dumps([{"agent": "denied", "prompt": "go"}])
    listed = {"agent": "fine", "prompt": "go", "more": more}

    def script(recorded: Recorded) -> Reply:
        if not outputs(recorded) and "start them" in str(recorded.json):
            return Reply(tool_calls=[ToolCall("delegate", {"agent": "fine", "prompt": "go"} if hooked else listed)])
        return Reply(text="ok")

    agents = {"default": Agent(agents=("fine", "denied")), "fine": Agent("fine"), "denied": Agent("denied")}
    rules = Permissions("auto", (Rule("delegate", "deny", "denied"),))
    hooks = configured(PreToolUse=says({"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": listed}})) if hooked else {}
    async with stage(script, agents=agents, permissions=rules, **hooks) as on:
        run, message = await on.ask("start them")
        assert "says deny" in errors(message)[0] and await on.engine.store.records.children(run.id) == []


async def test_text_of_a_hook_after_a_call_reaches_the_model(stage: Any) -> None:
    async with stage(runs("true"), **configured(PostToolUse=says({"decision": "block", "reason": "run the tests"}))) as on:
        await on.ask("go")
        assert "[A hook reports a problem with this call: run the tests]" in str(on.server.requests[1].json)


async def test_a_hook_can_end_the_run_after_a_call(stage: Any) -> None:
    async with stage(runs("true"), **configured(PostToolUse=says({"continue": False, "stopReason": "enough"}))) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and len(on.server.requests) == 1
        assert message.metadata["finish_reason"] == "stopped" and "ended the run: enough" in notes(message)[0]


async def test_all_hooks_of_an_event_run_and_the_strictest_decides(stage: Any, directory: Path) -> None:
    # each waits for the other, so they only end if they run at the same time
    pair = [
        CommandHook(f"touch {own}; until [ -e {other} ]; do sleep 0.01; done; {say}")
        for own, other, say in (("a", "b", ALLOWS), ("b", "a", "echo no >&2; exit 2"))
    ]
    async with stage(runs("touch made"), **configured(PreToolUse=pair)) as on:
        _, message = await on.ask("go")
        assert errors(message) == ["A hook blocked this call: no"] and not (directory / "made").exists()


# ── prompts, stops, sessions, questions ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_text_of_prompt_hooks_precedes_the_prompt_now_and_later(stage: Any) -> None:
    async with stage([Reply(text="one"), Reply(text="two")], **configured(UserPromptSubmit="echo The build is red.")) as on:
        run, _ = await on.ask("Fix it")
        await on.ask("Again", conversation=run.conversation)
        first, second = (request.json["messages"] for request in on.server.requests)
        assert "The build is red." in str(first[-1]) and str(first[-1]).index("The build") < str(first[-1]).index("Fix it")
        assert second[: len(first)] == first  # so the provider's prompt cache still works


async def test_a_blocked_prompt_never_reaches_a_model(stage: Any) -> None:
    guard = "if grep -q secret; then echo 'contains a secret' >&2; exit 2; fi"
    async with stage([Reply(text="ok")], **configured(UserPromptSubmit=guard)) as on:
        run, message = await on.ask("my secret")
        assert run.status == "finished" and not on.server.requests
        assert message.metadata["finish_reason"] == "blocked" and "blocked the prompt: contains a secret" in notes(message)[0]
        assert on.kinds()[-1] == "finish"
        await on.ask("hello", conversation=run.conversation)
        (request,) = on.server.requests
        assert "hello" in str(request.json) and "my secret" not in str(request.json)


async def test_hooks_of_events_without_a_matcher_always_run(stage: Any) -> None:
    async with stage([Reply(text="ok")], **configured(UserPromptSubmit=CommandHook("exit 2", "Bash"))) as on:
        await on.ask("hello")
        assert on.server.requests == []


async def test_a_stop_hook_continues_the_run_at_most_three_times(stage: Any, directory: Path) -> None:
    keep = "cat >> stops.jsonl; echo 'write tests' >&2; exit 2"
    async with stage([Reply(text=f"answer {number}") for number in range(9)], **configured(Stop=keep)) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and len(on.server.requests) == 4
        assert "A Stop hook asks to continue: write tests" in str(on.server.requests[1].json)
        active = [json.loads(line)["stop_hook_active"] for line in (directory / "stops.jsonl").read_text().splitlines()]
        assert active == [False, True, True, True]
        assert notes(message) == ["A Stop hook asked to continue more than 3 times, so the run ends."]
        assert text_of(message.parts) == "answer 0answer 1answer 2answer 3"


async def test_a_session_starts_once_and_ends_with_the_process(stage: Any, directory: Path) -> None:
    listed = configured(SessionStart="cat >> s.jsonl; echo Be brief.", SessionEnd="cat >> s.jsonl")
    async with stage([Reply(text="one"), Reply(text="two")], **listed) as on:
        run, _ = await on.ask("hi")
        await on.ask("again", conversation=run.conversation)
        assert "Be brief." in str(on.server.requests[0].json["messages"][-1])
        assert "Be brief." not in str(on.server.requests[1].json["messages"][-1])
    told = [json.loads(line) for line in (directory / "s.jsonl").read_text().splitlines()]
    assert [(one["hook_event_name"], one.get("source") or one.get("reason")) for one in told] == [
        ("SessionStart", "startup"),
        ("SessionEnd", "other"),
    ]
    async with stage([Reply(text="three")], **listed) as on:
        await on.ask("later", conversation=run.conversation)
    assert json.loads((directory / "s.jsonl").read_text().splitlines()[2])["source"] == "resume"


async def test_a_hook_is_notified_of_questions(stage: Any, directory: Path) -> None:
    async with stage(runs("true"), mode="ask", **configured(Notification=CommandHook("cat > n.json", "permission_prompt"))) as on:
        run = await on.follow(await on.submit("go"))
        assert run.status == "waiting"
        assert json.loads((directory / "n.json").read_text())["message"] == "moot needs your permission to use shell."


async def test_a_question_is_notified_once_even_if_moot_was_killed_before(stage: Any, directory: Path) -> None:
    def script(recorded: Recorded) -> Reply:
        calls = [ToolCall("shell", {"command": "echo one"}), ToolCall("shell", {"command": "echo two"})]
        return Reply(text="done") if outputs(recorded) else Reply(tool_calls=calls)

    hooks = configured(Notification=CommandHook("cat >> n.jsonl; echo >> n.jsonl"))
    async with stage(script, mode="ask") as on:  # as if it had been killed before the hook began
        run = await on.follow(await on.submit("go"))
    async with stage(script, mode="ask", **hooks) as on:
        for _ in range(2):
            await on.engine.runs.resume(run.id)
            assert (await on.engine.runs.wait(run.id)).status == "waiting"
        lines = [*filter(None, (directory / "n.jsonl").read_text().splitlines())]
        assert len(lines) == 1 and json.loads(lines[0])["notification_type"] == "permission_prompt"


async def test_a_sub_agent_starts_no_session_and_ends_with_its_own_event(stage: Any, directory: Path) -> None:
    def script(recorded: Recorded) -> Reply:
        starts = "start it" in str(recorded.json) and not outputs(recorded)
        return Reply(tool_calls=[ToolCall("delegate", {"agent": "fine", "prompt": "go"})]) if starts else Reply(text="ok")

    agents = {"default": Agent(agents=("fine",)), "fine": Agent("fine")}
    log = CommandHook("cat >> events.jsonl")
    async with stage(script, agents=agents, hooks=dict.fromkeys(("SessionStart", "SessionEnd", "Stop", "SubagentStop"), (log,))) as on:
        await on.ask("start it")
    names = [json.loads(line)["hook_event_name"] for line in (directory / "events.jsonl").read_text().splitlines()]
    assert names == ["SessionStart", "SubagentStop", "Stop", "SessionEnd"]


async def test_only_some_hooks_apply_to_outside_agents(stage: Any, directory: Path) -> None:
    names = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "SessionStart", "SessionEnd", "PreCompact")
    agents = {"double": Agent("double", agent_type="acp:double", model="", options={"command": [*DOUBLE, "echo"]})}
    async with stage([], agents=agents, hooks=dict.fromkeys(names, (CommandHook("cat >> events.jsonl"),))) as on:
        await on.ask("hello", agent="double")
    told = [json.loads(line)["hook_event_name"] for line in (directory / "events.jsonl").read_text().splitlines()]
    assert told == ["UserPromptSubmit", "Stop"]


async def test_a_hook_can_prevent_compaction_and_its_record_is_in_the_log(stage: Any) -> None:
    async with stage([Reply(text="ok")], **configured(PreCompact=CommandHook("echo not now >&2; exit 2", "manual"))) as on:
        run, _ = await on.ask("hi")
        conversation = await on.engine.store.conversations.get(run.conversation)
        assert await events.before_compaction(on.engine.runtime, conversation, trigger="manual") == "not now"
        assert await events.before_compaction(on.engine.runtime, conversation, trigger="auto") == ""
        last = (await on.engine.store.log.read(run.conversation))[-1]
        assert last.body["hook"]["code"] == 2 and last.body["hook"]["output"] == "not now"


# ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def example(repository: Path, home: Path, number: int) -> Settings:
    """Return the settings of an example in docs/hooks.md."""
    home.mkdir(exist_ok=True)
    text = (repository / "docs" / "hooks.md").read_text()
    (home / "config.yaml").write_text(re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[number])
    found = load(home=home, environ={}, directory=home)
    assert found.doubt is None
    return found.settings


async def test_the_first_example_of_the_page_blocks_rm_and_adds_the_branch(
    stage: Any, directory: Path, repository: Path, tmp_path: Path
) -> None:
    (directory / "kept").write_text("x")
    async with stage(runs("rm kept"), hooks=example(repository, tmp_path / "home", 0).hooks) as on:
        _, message = await on.ask("go")
        assert (directory / "kept").exists() and "rm is not allowed. Move files to trash/ instead." in errors(message)[0]
        assert "The current branch is unknown." in str(on.server.requests[0].json)


async def test_the_second_example_of_the_page_skips_runs_without_tasks(
    stage: Any, directory: Path, repository: Path, tmp_path: Path
) -> None:
    async with stage([Reply(text="Watered.")], agents=example(repository, tmp_path / "home", 1).agents) as on:
        run, message = await on.ask("Go on", agent="gardener")
        assert message.metadata["finish_reason"] == "skipped" and not on.server.requests
        (directory / "todo.txt").write_text("water the roses")
        await on.ask("Go on", agent="gardener", conversation=run.conversation)
        assert "water the roses" in str(on.server.requests[0].json)
        assert (directory / "done.txt").read_text().endswith(" Watered.\n")


# ── outside agents, projects, other faces ───────────────────────────────────────────────────────────────────────────────────────────


async def test_outside_agents_get_added_text_and_continue_for_stop_hooks(stage: Any, directory: Path) -> None:
    once = "if grep -q 'stop_hook_active\":false'; then echo 'and now?' >&2; exit 2; fi"
    agent = Agent(
        "double",
        agent_type="acp:double",
        model="",
        options={"command": [*DOUBLE, "echo"]},
        hooks=RunHooks(
            (RunHook("shell", {"command": "echo from a tool"}),), (RunHook("shell", {"command": "echo {{response}} > said.txt"}),)
        ),
    )
    async with stage([], agents={"double": agent}, **configured(UserPromptSubmit="echo from a hook", Stop=once)) as on:
        run, message = await on.ask("hello", agent="double")
        assert run.status == "finished", run.error
        text = text_of(message.parts)
        assert text.index("from a hook") < text.index("from a tool") < text.index("hello") < text.index("and now?")
        assert "hello" in (directory / "said.txt").read_text()


async def test_a_hook_of_a_project_does_not_run_once_its_program_has_changed(stage: Any, directory: Path, tmp_path: Path) -> None:
    program = directory / ".moot" / "hooks" / "own"
    program.parent.mkdir(parents=True)
    program.write_text("touch ran")
    file = directory / ".moot" / "config.yaml"
    file.write_text("hooks: {PreToolUse: [{hooks: [{command: sh .moot/hooks/own}]}]}")
    home = tmp_path / "home"
    home.mkdir()
    trust_file(home, file, file.read_text())
    settings = load(home=home, environ={}, directory=directory).settings
    async with stage(lambda recorded: runs("true")(recorded), hooks=settings.hooks) as on:
        await on.ask("go")
        assert (directory / "ran").exists()
        (directory / "ran").unlink()
        program.write_text("touch ran; curl evil")
        _, message = await on.ask("again")
        assert not (directory / "ran").exists() and "has changed since it was trusted" in notes(message)[0]


async def test_a_hook_of_a_project_does_not_run_in_other_folders(stage: Any, directory: Path, tmp_path: Path) -> None:
    other = CommandHook("touch ran", folder=str(tmp_path / "other"))
    async with stage(runs("true"), **configured(PreToolUse=other)) as on:
        _, message = await on.ask("go")
        assert not (directory / "ran").exists() and notes(message) == []


async def test_a_run_with_hooks_is_rerun_with_the_same_requests(stage: Any) -> None:
    async with stage(
        runs("true"), **configured(UserPromptSubmit="echo added", PostToolUse=says({"decision": "block", "reason": "x"}))
    ) as on:
        run, _ = await on.ask("go")
        store = on.engine.store
        conversation = await store.conversations.get(run.conversation)
        again = await rerun(on.engine.runtime, store.of(conversation.owner), conversation, run)
        assert again.differences == () and again.requests == 2
