"""One evening of the runtime: a review on Discord with two sub-agents, a cron job with hooks, an edited configuration, and kill -9."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import moot.testing
from e2e.cli_process import MootProcess, make
from moot.testing.discord import DiscordServer
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(240)]

PROGRAM = [sys.executable, "-S", "-E", str(Path(moot.testing.__file__).with_name("claude_program.py")), "answer"]
CHILDREN = {"agent": "scout", "prompt": "look around", "more": [{"agent": "program", "prompt": "say hello"}]}
SCRIPT = [
    Reply(when="review it", tool_calls=[ToolCall("delegate", CHILDREN)]),
    Reply(when="look around", tool_calls=[ToolCall("shell", {"command": "touch made"})]),
    Reply(when="look around", text="There are 3.", times=0),
    Reply(when="tidy up", text="All is tidy. " * 20, hang_at=5),
    Reply(when="tidy up", text="All is tidy.", times=0),
    Reply(when="review it", text="Three, and hello.", times=0),
]


def config(model: ScriptedProcess, discord: DiscordServer) -> str:
    """Agents, a channel, and a hook. Prices make the costs of the sub-agents visible."""
    agents = {
        "default": {"agents": ["scout", "program"]},
        "scout": {"tools": ["shell"], "description": "Looks around."},
        "program": {"agent_type": "claude-code", "options": {"command": PROGRAM}, "description": "Another program."},
        "janitor": {"hooks": {"before_run": [{"tool": "shell", "arguments": {"command": "echo dust in the corner"}}]}},
    }
    sections = {"agents": agents, "channels": {"discord": discord.settings}, "permissions": {"mode": "ask"}}
    return model.config().replace("context:", "price: {input: 1, output: 2}, context:") + "".join(
        f"{key}: {json.dumps(value)}\n" for key, value in sections.items()
    )


async def until(claim: Callable[[], Any]) -> Any:
    """Return the first true value of a function that runs in a thread."""
    with anyio.fail_after(90):
        while not (found := await anyio.to_thread.run_sync(claim)):
            await anyio.sleep(0.05)
    return found


def read(at: MootProcess, *arguments: str) -> Any:
    return json.loads(at.run(*arguments, "--json").stdout)


def review(at: MootProcess) -> Any:
    """Return the tree of the conversation on Discord."""
    (id,) = [one["id"] for one in read(at, "chat", "list")["data"] if one["title"] == "review it"]
    return read(at, "agents", "tree", id)


def children(at: MootProcess) -> list[tuple[str, str]]:
    return sorted((one["agent"], one["status"]) for one in review(at)["children"])


async def asked(discord: DiscordServer, what: str) -> dict[str, Any]:
    """Wait for a message with buttons that asks about this."""
    found: dict[str, Any] = await discord.until(
        lambda: next((post for post in discord.posts if post["components"] and what in post["content"]), None)
    )
    return found


async def test_a_review_a_job_an_edited_configuration_and_a_kill(tmp_path: Path) -> None:
    async with DiscordServer().serve() as discord:
        with ScriptedProcess(SCRIPT) as model:
            at = make(tmp_path, config(model, discord))
            try:
                await _evening(at, model, discord)
            finally:
                at.close()


async def _evening(at: MootProcess, model: ScriptedProcess, discord: DiscordServer) -> None:
    server = at.start("serve", "--port", "0")
    await discord.until(lambda: discord.sessions)
    await discord.say("review it")
    await discord.click(await asked(discord, "delegate"), "Allow")
    question = await asked(discord, "touch made")
    await until(lambda: children(at) == [("program", "finished"), ("scout", "pending")])

    added = at.run("cron", "add", "tidy", "--every", "1h", "--agent", "janitor", "--prompt", "tidy up", "--fresh", "--mode", "auto")
    assert added.returncode == 0, added.stderr
    job = at.start("cron", "run", "tidy")
    await until(lambda: any(one["body"].count("dust in the corner") for one in model.requests()))
    path = at.home / "config.yaml"
    path.write_text(path.read_text().replace("Looks around.", "Looks around well."))
    assert any(one["title"] == "tidy up" for one in read(at, "ps")["data"]), "an edited configuration stops no run"

    for process in (server, job):
        process.kill()
        await anyio.to_thread.run_sync(process.wait)
    discord.sessions.clear()
    server = at.start("serve", "--port", "0")
    await discord.until(lambda: discord.sessions)
    await discord.click(question, "Allow")
    await discord.until(lambda: "Three, and hello." in discord.shown())
    await until(lambda: [one["status"] for one in read(at, "cron", "history", "tidy")["data"]] == ["finished"])

    assert discord.shown().count("Three, and hello.") == 1 and "Allowed by ann." in question["content"]
    assert children(at) == [("program", "finished"), ("scout", "finished")]
    found = review(at)
    (own,) = [one["cost"] for one in read(at, "chat", "list")["data"] if one["id"] == found["id"]]
    assert own > 0 and found["cost"] == own + sum(one["cost"] for one in found["children"])
    bodies = [one["body"] for one in model.requests()]
    assert any("Looks around well." in body for body in bodies), "the runs after the restart use the edited configuration"
    verified = await anyio.to_thread.run_sync(partial(at.run, "verify", "--all"))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    server.terminate()
    await anyio.to_thread.run_sync(server.wait)
