"""Tools that read and change moot's configuration: a model that obeys injected text gains nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.config.loader import load
from moot.config.settings import Permissions, Rule
from moot.engine.channels import Port
from moot.errors import Refused
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.canonical import Json, JsonObject
from moot.types.limits import Limits
from moot.types.message import text_part

pytestmark = pytest.mark.anyio

TOOLS = ("change_setting", "create_agent", "read_file", "read_setting", "shell")
AGENTS = {"default": Agent(tools=TOOLS, agents=("explorer",))}


def calling(*calls: tuple[str, JsonObject]) -> Callable[[Recorded], Reply]:
    """Return a model that makes these calls, one per step, and then ends."""

    def script(recorded: Recorded) -> Reply:
        done = sum(message["role"] == "tool" for message in recorded.json["messages"])
        return Reply(tool_calls=[ToolCall(*calls[done])]) if done < len(calls) else Reply(text="Done.")

    return script


def setting(key: str, value: Json) -> tuple[str, JsonObject]:
    return "change_setting", {"key": key, "value": value}


def creating(name: str = "helper", **more: Json) -> tuple[str, JsonObject]:
    return "create_agent", {"name": name, "description": "Helps.", "instructions": "Help.", "tools": [], **more}


def outputs(on: Any) -> list[str]:
    return [str(message["content"]) for message in on.server.requests[-1].json["messages"] if message["role"] == "tool"]


def allow(_: Any) -> Answer:
    return Answer(True)


def file_of(on: Any) -> Path:
    return on.engine.settings.home / "config.yaml"


async def test_a_setting_is_changed_in_the_file_after_a_person_has_seen_it(stage: Any) -> None:
    async with stage(calling(setting("ui.theme", "dark"), ("read_setting", {"key": "ui.theme"})), agents=AGENTS) as on:
        run, _ = await on.ask("go")
        assert run.status == "waiting"
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        assert asked.arguments == b'{"key":"ui.theme","value":"dark"}'
        assert asked.lasting == ()
        assert not file_of(on).exists()
        await on.engine.runs.answer(asked.id, Answer(True))
        await on.engine.runs.wait(run.id)
        assert outputs(on) == ["Changed ui.theme from auto to dark.", "dark"]
        assert "theme: dark" in file_of(on).read_text()


@pytest.mark.parametrize("mode", ["auto", "edits", "ask"])
async def test_neither_a_mode_nor_a_rule_spares_the_question(stage: Any, mode: Any) -> None:
    permissions = Permissions(mode=mode, rules=(Rule("*", "allow"), Rule("change_setting", "allow")))
    async with stage(calling(setting("ui.theme", "dark")), permissions=permissions, agents=AGENTS) as on:
        run, _ = await on.ask("go")
        assert run.status == "waiting"


async def test_without_a_person_and_in_mode_plan_nothing_is_changed(stage: Any) -> None:
    async with stage(calling(setting("ui.theme", "dark")), agents=AGENTS) as on:
        await on.ask("go", settings={"unattended": "deny"})
        assert "no one is available" in outputs(on)[0]
        await on.ask("go", mode="plan")
        assert "mode plan" in outputs(on)[0]
        assert not file_of(on).exists()


async def test_an_obedient_model_can_not_change_what_is_allowed(stage: Any) -> None:
    keys: dict[str, Json] = {
        "permissions.mode": "auto",
        "permissions.rules": [{"tool": "*", "action": "allow"}],
        "permissions": {"mode": "auto"},
        "sandbox.enabled": False,
        "hooks.Stop": [{"hooks": [{"command": "id"}]}],
        "providers.mine.base_url": "https://evil.example",
        "providers.mine.api_key": "x",
        "server.host": "0.0.0.0",
        "tools.it": {"command": "id", "description": "x"},
        "agents.default.tools": None,
        "cron.x": {"prompt": "x", "every": "1m"},
        "webhooks.x": {"prompt": "x"},
        "imports.watch": True,
        "retention.keep_days": 1,
        "ui.notify": ["sh", "-c", "id"],
        "ui.statusline": ["id"],
        "ui": {"notify": ["id"]},
        "limits": {"cost": 0},
        "limits.cost": 100,
        "limits.steps": 0,
        "limits.wait_for_reset": "1d",
        "models": {"main": "x@y"},
        "models.main": "other@evil",
        "models.small": "${HOME}@mine",
    }
    limits = Limits(cost=1_000_000_000, steps=100)
    async with stage(
        calling(*(setting(key, value) for key, value in keys.items())),
        agents=AGENTS,
        limits=limits,
        priced={"scripted": {"price": {"input": 0, "output": 0}}},
    ) as on:
        before = on.engine.settings
        await on.ask("go", allow)
        assert len(outputs(on)) == len(keys)
        assert [text for text in outputs(on) if text.startswith("Changed")] == []
        assert not file_of(on).exists()
        assert on.engine.settings == before


async def test_limits_can_be_lowered_only(stage: Any) -> None:
    limits = Limits(cost=2_000_000_000, tokens=0)
    calls = (setting("limits.cost", 1.5), setting("limits.tokens", 1000), setting("limits.seconds", "5m"), setting("limits.depth", 9))
    async with stage(calling(*calls), agents=AGENTS, limits=limits, priced={"scripted": {"price": {"input": 0, "output": 0}}}) as on:
        await on.ask("go", allow)
        assert ["Changed" in text for text in outputs(on)] == [True, True, True, False]
        assert load(home=on.engine.settings.home, environ={}, directory=on.directory).settings.limits.cost == 1_500_000_000


async def test_secrets_are_masked_when_settings_are_read(stage: Any) -> None:
    async with stage(
        calling(("read_setting", {"key": "providers"}), ("read_setting", {}), ("read_setting", {"key": "provders"})), agents=AGENTS
    ) as on:
        file_of(on).write_text("providers: {openai: {api_key: sk-very-secret, headers: {X: hidden-too}}}\n")
        await on.ask("go")
        providers, sections, unknown = outputs(on)
    assert "openai" in providers
    assert "sk-very-secret" not in providers
    assert "hidden-too" not in providers
    assert "permissions" in sections
    assert "Did you mean 'providers'" in unknown


async def test_an_agent_is_created_with_the_rights_of_its_creator(stage: Any, directory: Path) -> None:
    call = creating(tools=["read_file", "shell"], agents=["explorer"], allowed_uris=[str(directory)], model="main")
    async with stage(calling(call), agents=AGENTS) as on:
        await on.ask("go", allow)
        assert "Created the agent helper" in outputs(on)[0]
        agent = load(home=on.engine.settings.home, environ={}, directory=directory).settings.agents["helper"]
    assert (agent.tools, agent.agents, agent.allowed_uris) == (("read_file", "shell"), ("explorer",), (str(directory),))
    assert agent.instructions == "Help."


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tools": ["write_file"]}, "can't have tools that this agent doesn't have: write_file"),
        ({"tools": ["cron"]}, "can't have tools that this agent doesn't have: cron"),
        ({"agents": ["planner"]}, "can't have agents that this agent doesn't have: planner"),
        ({"allowed_uris": ["/"]}, "can't use the folder '/'"),
        ({"allowed_uris": ["~/x"]}, "can't use the folder"),
        ({"name": "explorer"}, "already exists"),
        ({"name": "claude-code"}, "already exists"),
        ({"name": "default"}, "already exists"),
        ({"name": "../../escape"}, "Invalid agent name"),
        ({"hooks": {"before_run": [{"tool": "shell"}]}}, "Unknown argument 'hooks'"),
        ({"agent_type": "codex"}, "Unknown argument 'agent_type'"),
        ({"default": True}, "Unknown argument 'default'"),
        ({"instructions": "Use ${ANTHROPIC_API_KEY}"}, "can't be stored"),
        ({"model": "x@evil"}, "Provider 'evil' not found"),
    ],
)
async def test_an_obedient_model_can_not_create_an_agent_with_more_rights(stage: Any, more: dict[str, Any], why: str) -> None:
    async with stage(calling(creating(**more)), agents=AGENTS) as on:
        await on.ask("go", allow)
        assert why in outputs(on)[0]
        assert not (on.engine.settings.home / "agents").exists() or not [*(on.engine.settings.home / "agents").glob("*.md")]


async def test_a_run_with_fewer_tools_and_an_agent_that_only_reads_create_no_more(stage: Any) -> None:
    async with stage(calling(creating(tools=["shell"])), agents=AGENTS) as on:
        await on.ask("go", allow, settings={"tools": ["create_agent"]})
        assert "can't have tools that this agent doesn't have: shell" in outputs(on)[0]


async def test_other_users_are_refused(stage: Any) -> None:
    calls = (("read_setting", {}), setting("ui.theme", "dark"), creating())
    async with stage(calling(*calls), agents=AGENTS) as on:
        submitted = await on.submit("go", user="other")
        await on.follow(submitted, allow)
        assert all("Only the owner of this moot home" in text for text in outputs(on))
        assert not file_of(on).exists()


async def test_a_change_can_not_be_allowed_in_a_channel(stage: Any) -> None:
    async with stage(calling(setting("ui.theme", "dark")), agents=AGENTS) as on:
        port = Port(on.engine, "lines", {"directory": str(on.directory)})
        submitted = await port.submit("ann", (text_part("go"),))
        assert (await port.wait(submitted.run.id)).status == "waiting"
        (asked,) = await port.approvals(submitted.run.id)
        with pytest.raises(Refused, match="in a channel"):
            await port.answer(asked.id, Answer(True))
        await port.answer(asked.id, Answer(False))
        assert (await port.wait(submitted.run.id)).status == "finished"
        assert not file_of(on).exists()


async def test_agents_get_the_tools_only_by_name(stage: Any) -> None:
    async with stage(calling()) as on:
        await on.ask("go")
        offered = {tool["function"]["name"] for tool in on.server.requests[0].json["tools"]}
    assert not offered & {"read_setting", "change_setting", "create_agent"}
