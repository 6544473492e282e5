"""Checks that every channel must pass, over a real engine with a scripted model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from moot.config.settings import Models, Settings
from moot.engine import Engine, open_engine
from moot.engine.channels import Port
from moot.errors import MootError, NotFound
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.channel import Channel, ChannelClient, HasTrialClient
from moot.types.conversation import Conversation
from moot.types.message import text_part
from moot.types.run import Prompt

PATIENCE = 60.0


def script(recorded: Recorded) -> Reply:
    """A model that repeats the text, asks to run something, or has another agent do so."""
    said = recorded.json["messages"][-1]["role"] == "tool"
    if recorded.user_text.startswith("have it done: "):
        task = recorded.user_text.removeprefix("have it done: ")
        return Reply(text="It was done.") if said else Reply(tool_calls=[ToolCall("delegate", {"agent": "helper", "prompt": task})])
    if "touch" in recorded.user_text:
        return Reply(text="I saw what came of it.") if said else Reply(tool_calls=[ToolCall("shell", {"command": recorded.user_text})])
    return Reply(text=f"You said {recorded.user_text}.")


@dataclass
class Stage:
    engine: Engine
    channel: Channel
    settings: Any
    directory: Path

    @asynccontextmanager
    async def somebody(self, who: str) -> AsyncGenerator[ChannelClient, None]:
        assert isinstance(self.channel, HasTrialClient)
        async with self.channel.client(self.settings, who) as client:
            yield client

    async def conversations(self) -> list[Conversation]:
        return list((await self.engine.store.conversations.list()).items)

    def made(self) -> list[str]:
        """The effects of executed commands."""
        return sorted(path.name for path in self.directory.iterdir())


def _port(engine: Engine, channel: Channel, directory: Path) -> Port:
    return Port(engine, channel.name, {"directory": str(directory)})


@asynccontextmanager
async def served(channel: Channel, home: Path) -> AsyncGenerator[Stage, None]:
    """Run the channel for the duration of a block; it must stop within a second afterwards."""
    assert isinstance(channel, HasTrialClient), f"{channel.name} can't be reached by a test: it has no `trial` and `client`"
    directory, folder = home / "work", home / "channel"
    for path in (directory, folder):
        path.mkdir(parents=True, exist_ok=True)
    async with ScriptedServer(script) as server:
        settings = Settings(
            home / "home",
            models=Models(main="scripted@mine"),
            providers={"mine": server.provider("mine")},
            agents={"default": Agent(agents=("helper",)), "helper": Agent("helper")},
        )
        async with open_engine(settings) as engine:
            stage = Stage(engine, channel, channel.trial(folder), directory)
            ended = anyio.Event()

            async def serve() -> None:
                try:
                    await channel.serve(_port(engine, channel, directory), stage.settings)
                    raise AssertionError("it stopped serving by itself")
                finally:
                    ended.set()

            async with anyio.create_task_group() as group:
                group.start_soon(serve)
                with anyio.fail_after(PATIENCE):
                    yield stage
                group.cancel_scope.cancel()
                began = anyio.current_time()
                with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE):
                    await ended.wait()
                assert ended.is_set() and anyio.current_time() - began < PATIENCE / 2, "it does not stop when it is cancelled"


async def check_answers(on: Stage) -> None:
    """Messages are answered, and the same user continues in the same conversation, even after they reconnect."""
    async with on.somebody("ann") as ann:
        await ann.say("hello")
        assert "You said hello." in await ann.hear()
        await ann.say("and again")
        assert "You said and again." in await ann.hear()
    async with on.somebody("ann") as ann:
        await ann.say("I am back")
        assert "You said I am back." in await ann.hear()
    [conversation] = await on.conversations()
    assert conversation.key is not None and conversation.key.startswith(f"{on.channel.name}:")
    assert conversation.message_count == 6


async def check_users_have_separate_conversations(on: Stage) -> None:
    """Two users who write concurrently have separate conversations."""
    async with on.somebody("ann") as ann, on.somebody("bob") as bob:
        await ann.say("I am ann")
        await bob.say("I am bob")
        assert "ann" in await ann.hear() and "bob" in await bob.hear()
    assert len(await on.conversations()) == 2


async def check_calls_run_only_after_approval(on: Stage) -> None:
    """Nothing runs before an approval, and nothing at all after a denial."""
    async with on.somebody("ann") as ann:
        await ann.say("touch first")
        assert "touch first" in await ann.hear(), "the person is not shown what it is about"
        await anyio.sleep(0.05)
        assert on.made() == [], "it ran before anybody said yes"
        await ann.say("no, not now")
        assert "I saw what came of it." in await ann.hear()
        assert on.made() == [], "it ran although the person said no"
        await ann.say("touch second")
        assert "touch second" in await ann.hear()
        await ann.say("yes")
        assert "I saw what came of it." in await ann.hear()
        assert on.made() == ["second"]


async def check_approvals_of_sub_agents_are_shown(on: Stage) -> None:
    """The approval request of a sub-agent is shown to the person who talks to its parent, and that person's answer is used."""
    async with on.somebody("ann") as ann:
        for file, reply, made in (("fourth", "no, not now", []), ("fifth", "yes", ["fifth"])):
            await ann.say(f"have it done: touch {file}")
            assert "helper" in await ann.hear(), "the person is not asked whether to start the agent"
            await ann.say("yes")
            assert f"touch {file}" in await ann.hear(), "the person is not shown what the agent asks"
            await ann.say(reply)
            assert "It was done." in await ann.hear()
            assert on.made() == made


async def check_a_disconnect_affects_no_one_else(on: Stage) -> None:
    """A user who disconnects stops neither the channel nor anyone else's conversation."""
    async with on.somebody("ann") as ann:
        async with on.somebody("bob") as bob:
            await bob.say("touch third")
            await bob.hear()
        await ann.say("still there?")
        assert "still there?" in await ann.hear()
    async with on.somebody("bob") as bob:
        with suppress(MootError):
            await bob.say("I am back")
            assert await bob.hear()


async def check_only_own_conversations_are_accessible(on: Stage) -> None:
    """The channel's port reveals nothing of other conversations, and answers none of their approvals."""
    port = _port(on.engine, on.channel, on.directory)
    foreign = await on.engine.store.conversations.create(Conversation("0" * 32, key="other:ann", title="Foreign"))
    for reference in (foreign.id, foreign.title):
        try:
            async for _ in port.watch(reference):
                break
        except MootError:
            continue
        raise AssertionError("a channel can watch what is not its own")
    other = await on.engine.runs.submit(Prompt((text_part("have it done: touch sixth"),), directory=str(on.directory)))
    await on.engine.runs.wait(other.run.id)
    (asked,) = await on.engine.store.records.approvals()
    await on.engine.runs.answer(asked.id, Answer(True))
    await on.engine.runs.wait(other.run.id)
    (asked,) = await on.engine.store.records.approvals()
    for act in (port.answer(asked.id, Answer(True)), port.approvals(asked.run), port.approvals(other.run.id)):
        try:
            await act
        except NotFound:
            continue
        raise AssertionError("a channel reaches approvals of a conversation that is not its own")
    assert on.made() == []
