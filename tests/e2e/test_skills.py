"""Skills in runs: what a model sees of them, activating one, and running its scripts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lanes import missing
from moot.config.settings import Permissions, Rule
from moot.runtime.approvals.sandbox import find_mechanism
from moot.skills.decisions import decisions, set_scripts, set_use
from moot.skills.library import find_skill
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.canonical import JsonObject
from moot.types.hooks import CommandHook
from moot.types.skill import REVISION, SKILL_FILE

pytestmark = pytest.mark.anyio

BODY = "Stamp each page with the word blue."


def put(home: Path, name: str = "stamp", body: str = BODY, script: str = "") -> Path:
    folder = home / "skills" / name
    folder.mkdir(parents=True)
    (folder / SKILL_FILE).write_text(f"---\nname: {name}\ndescription: Stamps pages with {name}.\n---\n{body}\n")
    if script:
        (folder / "scripts").mkdir()
        (folder / "scripts/go.sh").write_text(script)
    return folder


def calling(*calls: tuple[str, JsonObject]) -> Callable[[Recorded], Reply]:
    """Return a model that makes these calls, one per step, and then ends."""

    def script(recorded: Recorded) -> Reply:
        done = sum(message["role"] == "tool" for message in recorded.json["messages"])
        return Reply(tool_calls=[ToolCall(*calls[done])]) if done < len(calls) else Reply(text="Done.")

    return script


def outputs(on: Any) -> list[str]:
    return [str(message["content"]) for message in on.server.requests[-1].json["messages"] if message["role"] == "tool"]


def offered(on: Any, request: int = -1) -> set[str]:
    return {tool["function"]["name"] for tool in on.server.requests[request].json.get("tools", ())}


def system(on: Any, request: int = -1) -> str:
    return str(on.server.requests[request].json["messages"][0]["content"])


async def test_a_skill_is_offered_in_one_line_and_its_instructions_follow_only_after_activation(stage: Any) -> None:
    async with stage(calling(("activate_skill", {"name": "stamp"}), ("activate_skill", {"name": "stamp", "file": "refs/a.md"}))) as on:
        home = on.engine.settings.home
        folder = put(home)
        (folder / "refs").mkdir()
        (folder / "refs/a.md").write_text("Blue is #00f.")
        run, _ = await on.ask("go", lambda _: Answer(False))
        assert run.status == "finished"
        assert "- stamp: Stamps pages with stamp." in system(on, 0) and BODY not in str(on.server.requests[0].json)
        assert "activate_skill" in offered(on) and "run_skill_script" not in offered(on)
        assert BODY in outputs(on)[0] and "refs/a.md" in outputs(on)[0]
        assert outputs(on)[1] == "Blue is #00f."
        assert decisions(home)["stamp"].used_at > 0


async def test_without_a_skill_nothing_is_added(stage: Any) -> None:
    async with stage(calling()) as on:
        await on.ask("go", agent="default")
        assert "activate_skill" not in offered(on) and "Skills" not in system(on)


async def test_an_enabled_skill_is_in_the_prompt_from_the_next_step(stage: Any) -> None:
    def enable(recorded: Recorded) -> Reply:
        if len(on.server.requests) > 1:
            return Reply(text="Done.")
        set_use(on.engine.settings.home, find_skill(on.engine.settings.home, "stamp"), "enabled")
        return Reply(tool_calls=[ToolCall("todo", {"items": []})])

    async with stage(enable) as on:
        put(on.engine.settings.home)
        await on.ask("go")
        assert BODY not in system(on, 0) and BODY in system(on, 1)


async def test_a_conversation_enables_skills_and_turns_them_off(stage: Any) -> None:
    async with stage(calling()) as on:
        put(on.engine.settings.home)
        first = await on.submit("go")
        await on.follow(first)
        for chosen, enabled, listed in ((["stamp"], True, False), ([], False, False), (None, False, True)):
            await on.engine.store.conversations.update(first.conversation.id, settings={"skills": chosen})
            await on.follow(await on.submit("again", conversation=first.conversation.id))
            assert (BODY in system(on), "- stamp:" in system(on)) == (enabled, listed)


@pytest.mark.parametrize(
    ("agent", "is_offered"),
    [
        (Agent("a", skills=()), False),
        (Agent("a", skills=("stamp",)), True),
        (Agent("a", tools=("read_file",)), False),
        (Agent("a", tools=("read_file",), skills=("stamp",)), True),
        (Agent("a", tools=("read_file", "activate_skill")), True),
        (Agent("a", tools=()), False),
    ],
)
async def test_an_agent_chooses_its_skills(stage: Any, agent: Agent, is_offered: bool) -> None:
    async with stage(calling(), agents={"a": agent}) as on:
        put(on.engine.settings.home)
        await on.ask("go", agent="a")
        assert ("activate_skill" in offered(on), "- stamp:" in system(on)) == (is_offered, is_offered)


@pytest.mark.parametrize(
    ("agent", "may_run"),
    [
        (Agent("a"), True),
        (Agent("a", role="read"), False),
        (Agent("a", tools=("read_file",), skills=("stamp",)), False),
        (Agent("a", tools=("shell",), skills=("stamp",)), True),
    ],
)
async def test_only_agents_that_may_run_commands_get_scripts(stage: Any, agent: Agent, may_run: bool) -> None:
    async with stage(calling(), agents={"a": agent}) as on:
        put(on.engine.settings.home, script="true")
        await on.ask("go", agent="a")
        assert ("activate_skill" in offered(on), "run_skill_script" in offered(on)) == (True, may_run)


def running(on: Any, command: str = "scripts/go.sh", revision: str = "") -> Callable[[Recorded], Reply]:
    def script(recorded: Recorded) -> Reply:
        found = revision or find_skill(on().engine.settings.home, "stamp").digest[:REVISION]
        return calling(("run_skill_script", {"skill": "stamp", "revision": found, "command": command}))(recorded)

    return script


async def test_a_script_asks_in_every_mode_and_whatever_rules_allow(stage: Any, directory: Path) -> None:
    permissions = Permissions(mode="auto", rules=(Rule("run_skill_script", "allow"), Rule("*", "allow")))
    async with stage(running(lambda: on), permissions=permissions) as on:
        put(on.engine.settings.home, script="touch made; echo made")
        run, _ = await on.ask("go")
        assert run.status == "waiting" and not (directory / "made").exists()
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        assert asked.lasting == ()
        await on.engine.runs.answer(asked.id, Answer(True))
        await on.engine.runs.wait(run.id)
        assert outputs(on) == ["made\n"] and (directory / "made").exists()


async def test_an_approval_does_not_cover_a_script_that_was_changed_since(stage: Any, directory: Path) -> None:
    async with stage(running(lambda: on)) as on:
        folder = put(on.engine.settings.home, script="touch made")
        run, _ = await on.ask("go")
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        (folder / "scripts/go.sh").write_text("touch evil")
        await on.engine.runs.answer(asked.id, Answer(True))
        await on.engine.runs.wait(run.id)
        assert "not the current revision" in outputs(on)[0]
        assert sorted(directory.iterdir()) == []


async def test_allowed_scripts_run_without_a_question_until_the_skill_changes(stage: Any, directory: Path) -> None:
    async with stage(running(lambda: on), mode="ask") as on:
        if not (found := await find_mechanism(on.engine.runtime)).is_complete:
            missing("bubblewrap", "; ".join(found.missing))
        home = on.engine.settings.home
        folder = put(home, script="touch made; echo made")
        set_scripts(home, find_skill(home, "stamp"), "allow")
        run, _ = await on.ask("go")
        assert run.status == "finished" and (directory / "made").exists()
        (folder / "scripts/go.sh").write_text("touch evil")
        run, _ = await on.ask("go")
        assert run.status == "finished" and "not found" in outputs(on)[0]
        assert not (directory / "evil").exists()


@pytest.mark.parametrize("rule", [Rule("run_skill_script", "deny", "scripts/go.sh*"), Rule("run_skill_script", "ask")])
async def test_rules_restrict_allowed_scripts(stage: Any, directory: Path, rule: Rule) -> None:
    async with stage(running(lambda: on), permissions=Permissions(mode="auto", rules=(rule,))) as on:
        home = on.engine.settings.home
        put(home, script="touch made")
        set_scripts(home, find_skill(home, "stamp"), "allow")
        run, _ = await on.ask("go")
        assert run.status == ("finished" if rule.action == "deny" else "waiting")
        assert not (directory / "made").exists()


async def test_a_hook_that_asks_is_obeyed_also_for_allowed_scripts(stage: Any, directory: Path) -> None:
    asks = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}
    hooks = {"PreToolUse": (CommandHook(f"printf %s {shlex.quote(json.dumps(asks))}"),)}
    async with stage(running(lambda: on), hooks=hooks) as on:
        home = on.engine.settings.home
        put(home, script="touch made")
        set_scripts(home, find_skill(home, "stamp"), "allow")
        run, _ = await on.ask("go")
        assert run.status == "waiting" and not (directory / "made").exists()


async def test_scripts_that_are_turned_off_never_run(stage: Any, directory: Path) -> None:
    async with stage(running(lambda: on), mode="auto") as on:
        home = on.engine.settings.home
        put(home, script="touch made")
        put(home, "other", script="true")
        set_scripts(home, find_skill(home, "stamp"), "never")
        await on.ask("go", lambda _: Answer(True))
        assert "are turned off" in outputs(on)[0] and not (directory / "made").exists()


async def test_a_script_can_not_write_outside_or_change_its_skill(stage: Any, directory: Path) -> None:
    async with stage(running(lambda: on)) as on:
        if not (found := await find_mechanism(on.engine.runtime)).is_complete:
            missing("bubblewrap", "; ".join(found.missing))
        home = on.engine.settings.home
        folder = put(home, script=f'echo x > "$(dirname "$0")/new" || echo refused; cat {home}/config.yaml || echo hidden; touch inside')
        (home / "config.yaml").write_text("{}")
        set_scripts(home, find_skill(home, "stamp"), "allow")
        await on.ask("go")
        assert "refused" in outputs(on)[0] and "hidden" in outputs(on)[0]
        assert sorted(path.name for path in folder.rglob("*")) == [SKILL_FILE, "go.sh", "scripts"]
        assert (directory / "inside").exists()
