"""The channel on Discord: the real client library against a double of Discord's gateway and REST interface."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import make
from e2e.cron_stage import HOUR, opener
from moot.channels.bot import LONGEST, WRITING
from moot.channels.discord import Discord
from moot.engine.channels import Port, serve_all
from moot.errors import ConfigError, UsageError
from moot.testing.discord import BOT, GUILD, ROOM, THREAD, DiscordServer
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.message import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Fast(Discord):
    edit_interval = 0.01


@dataclass
class Chat:
    on: Any
    discord: DiscordServer

    async def prompts(self, who: str) -> list[str]:
        """Return the user messages of a conversation."""
        conversation = await self.on.engine.store.conversations.by_key(f"discord:{who}")
        branch = [] if conversation is None else await self.on.engine.store.conversations.branch(conversation.id)
        return [text_of(message.parts) for message in branch if message.role == "user"]

    async def shows(self, text: str, room: str = "101") -> list[str]:
        """Wait until a finished message has this text, and return all finished ones."""
        await self.discord.until(lambda: any(text in one for one in self.discord.shown(room)))
        return self.discord.shown(room)

    async def asks(self, count: int = 1) -> dict[str, Any]:
        """Wait for a message with buttons."""
        return await self.discord.until(lambda: next((post for post in self.discord.posts[count - 1 :] if post["components"]), None))


@pytest.fixture
def chat(stage: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    async def soon(*_: Any, **more: Any) -> None:
        """Identify again without the pause that Discord demands."""

    monkeypatch.setattr("moot.channels.bot.Bot.before_identify_hook", soon)

    @asynccontextmanager
    async def opened(script: Any = None, *, given: dict[str, Any] | None = None, **changes: Any) -> AsyncGenerator[Chat, None]:
        replies = script if script is not None else [Reply(text="Hello there.", times=0)]
        async with DiscordServer().serve() as discord, stage(replies, **changes) as on:
            settings = {**discord.settings, **(given or {})}
            port = Port(on.engine, "discord", {"directory": str(on.directory)})
            async with anyio.create_task_group() as group:
                group.start_soon(Fast().serve, port, settings)
                await discord.until(lambda: discord.sessions)
                yield Chat(on, discord)
                group.cancel_scope.cancel()

    return opened


async def test_a_message_that_is_a_custom_command_is_expanded(chat: Any) -> None:
    async with chat() as at:
        path = at.on.engine.settings.home / "commands/report.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Report about $ARGUMENTS.")
        await at.discord.say("/report birds")
        await at.shows("Hello there.")
        await at.discord.say("/usr/bin is full")
        await at.discord.until(lambda: len(at.discord.shown("101")) == 2)
        assert await at.prompts("dm/101") == ["Report about birds.", "/usr/bin is full"]


async def test_an_answer_grows_by_edits_and_mentions_no_one(chat: Any) -> None:
    text = "@everyone " + "All is well. " * 20
    async with chat([Reply(text=text, delay=0.01)]) as at:
        await at.discord.say("hello")
        (shown,) = await at.shows(text.strip())
        (post,) = at.discord.posts
        assert shown == text.strip() and post["flags"] == 4, "no previews of links, which would be fetched"
        assert post["allowed_mentions"] == {"parse": []}
        assert any(WRITING in edit for edit in at.discord.edits)
        assert await at.prompts("dm/101") == ["hello"]


async def test_a_long_answer_becomes_several_messages(chat: Any) -> None:
    text = "```python\n" + "\n".join(f"print({number})" for number in range(500)) + "\n```"
    async with chat([Reply(text=text)]) as at:
        await at.discord.say("hello")
        shown = await at.shows("print(499)")
        assert len(shown) >= 3 and all(len(one) <= LONGEST and one.startswith("```python") and one.endswith("```") for one in shown)
        joined = "\n".join(line for one in shown for line in one.split("\n") if "```" not in line)
        assert joined == "\n".join(f"print({number})" for number in range(500))


async def test_only_allowed_users_and_mentions_are_answered(chat: Any) -> None:
    async with chat() as at:
        await at.discord.say("from a stranger", user=3)
        await at.discord.say("not to moot", room=ROOM)
        await at.discord.say(f"<@{BOT}> in the room", room=ROOM)
        await at.discord.say(f"<@{BOT}> in the thread", room=THREAD, user=2)
        await at.shows("Hello there.", ROOM)
        await at.shows("Hello there.", THREAD)
        assert await at.prompts(f"500/{ROOM}") == ["in the room"]
        assert await at.prompts(f"500/{ROOM}/{THREAD}") == ["in the thread"]
        assert len(at.on.server.requests) == 2


async def test_a_guild_that_is_not_listed_is_ignored(chat: Any) -> None:
    async with chat(given={"guilds": []}) as at:
        await at.discord.say(f"<@{BOT}> hello", room=ROOM)
        await at.discord.say("hello")
        await at.shows("Hello there.")
        assert len(at.on.server.requests) == 1


async def test_only_the_person_who_asked_can_press_a_button(chat: Any) -> None:
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})]), Reply(text="It is done.")]
    async with chat(script, mode="ask") as at:
        await at.discord.say(f"<@{BOT}> make it", room=ROOM)
        post = await at.asks()
        assert "touch made" in post["content"] and not list(at.on.directory.iterdir())
        await at.discord.click(post, "Allow", user=2)
        await at.discord.until(lambda: at.discord.replies)
        assert "Only the person" in at.discord.replies[0]["data"]["content"] and not list(at.on.directory.iterdir())
        await at.discord.click(post, "Allow")
        await at.shows("It is done.", ROOM)
        assert [path.name for path in at.on.directory.iterdir()] == ["made"]
        assert not post["components"] and "Allowed by ann." in post["content"]
        approvals = await at.on.engine.store.records.approvals(open_only=False)
        assert [one.answer.answered_by for one in approvals] == ["discord:1"]


async def test_a_question_that_is_answered_elsewhere_loses_its_buttons(chat: Any) -> None:
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})]), Reply(text="It is done.")]
    async with chat(script, mode="ask") as at:
        await at.discord.say("make it")
        post = await at.asks()
        (open_one,) = await at.on.engine.store.records.approvals()
        await at.on.engine.runs.answer(open_one.id, Answer(False, answered_by="me"))
        await at.shows("It is done.")
        await at.discord.until(lambda: not post["components"])
        assert not list(at.on.directory.iterdir())


async def test_the_questions_of_an_agent_are_answered_with_a_message(chat: Any) -> None:
    question = {"questions": [{"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}]}
    script = [Reply(tool_calls=[ToolCall("ask_user", question)]), Reply(text="Blue it is.")]
    async with chat(script) as at:
        await at.discord.say("paint it")
        await at.shows("Which colour?")
        await at.discord.say("blue")
        await at.shows("Blue it is.")
        assert await at.prompts("dm/101") == ["paint it"] and "blue" in json.dumps(at.on.server.requests[1].json)


async def test_attachments_are_passed_on(chat: Any) -> None:
    async with chat() as at:
        await at.discord.say("read this", files={"notes.txt": b"secret words"})
        await at.shows("Hello there.")
        conversation = await at.on.engine.store.conversations.by_key("discord:dm/101")
        user = (await at.on.engine.store.conversations.branch(conversation.id))[0]
        assert [part["type"] for part in user.parts] == ["text", "file"] and user.parts[1]["filename"] == "notes.txt"


async def test_pictures_in_an_answer_are_sent(chat: Any) -> None:
    picture = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
    )
    async with chat([Reply(text="Look.", picture=picture)], dialect="google") as at:
        await at.discord.say("draw")
        await at.discord.until(lambda: any(post["attachments"] for post in at.discord.posts))
        assert [content for _, content in at.discord.files.values()] == [picture]


@pytest.mark.parametrize("cut", ["reconnect", "invalidate", "drop"])
async def test_a_lost_connection_in_mid_answer_loses_nothing(chat: Any, cut: str) -> None:
    text = "All is well. " * 30
    async with chat([Reply(text=text, delay=0.02), Reply(text="Second.", times=0)]) as at:
        id = await at.discord.say("hello")
        await at.discord.until(lambda: at.discord.posts)
        await getattr(at.discord, cut)()
        again = (lambda: at.discord.identified == 2) if cut == "invalidate" else (lambda: at.discord.resumed == 1)
        await at.discord.until(again)
        await at.discord.say("hello", id=id)  # what Discord sends again is not handled again
        await at.discord.say("more")
        shown = await at.shows("Second.")
        assert shown == [text.strip(), "Second."] and await at.prompts("dm/101") == ["hello", "more"]


async def test_a_refused_or_delayed_message_is_sent_again(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.channels.bot._RETRY", 0.01)
    async with chat() as at:
        at.discord.refusals = [429, 418, 418]
        await at.discord.say("hello")
        assert await at.shows("Hello there.") == ["Hello there."]


async def test_slash_commands_change_the_conversation(chat: Any) -> None:
    async with chat() as at:
        assert {"new", "stop", "model"} <= {command["name"] for command in at.discord.commands}

        async def command(name: str, argument: str = "", **more: Any) -> str:
            before = len(at.discord.replies)
            await at.discord.command(name, argument, **more)
            replies = await at.discord.until(lambda: [one for one in at.discord.replies[before:] if one.get("type") != 5])
            return str(replies[0].get("content") or replies[0]["data"]["content"])

        assert "no conversation yet" in await command("status")
        assert "may not" in await command("new", user=3)
        await at.discord.say("hello")
        await at.shows("Hello there.")
        assert "Nothing is running" in await command("stop")
        assert "not found" in await command("agent", "nowhere")
        assert "Model set to scripted@mine" in await command("model", "scripted@mine")
        assert "can't be used" in await command("allow", "/")
        assert "new conversation" in await command("new")
        await at.discord.say("again")
        await at.discord.until(lambda: len(at.discord.shown()) == 2)
        assert await at.prompts("dm/101") == ["again"]


async def test_what_was_written_meanwhile_is_answered_once(chat: Any) -> None:
    async with chat() as at:
        await at.discord.say("one")
        await at.shows("Hello there.")
        sessions = dict(at.discord.sessions)
        at.discord.sessions.clear()  # messages are not dispatched to the bot
        await at.discord.say("two")
        await at.discord.say("from a stranger", user=3)
        at.discord.sessions |= sessions
        await at.discord.invalidate()
        await at.discord.until(lambda: at.discord.identified == 2 and len(at.discord.shown()) == 2)
        await at.discord.say("three")
        await at.discord.until(lambda: len(at.discord.shown()) == 3)
        assert await at.prompts("dm/101") == ["one", "two", "three"]


async def test_a_sub_agent_asks_the_person_who_wrote(chat: Any) -> None:
    agents = {"default": Agent(agents=("explorer",)), "explorer": Agent("explorer", tools=("shell",))}
    script = [
        Reply(when="go", tool_calls=[ToolCall("delegate", {"agent": "explorer", "prompt": "look"})]),
        Reply(when="look", tool_calls=[ToolCall("shell", {"command": "touch made"})]),
        Reply(when="look", text="I made it."),
        Reply(when="go", text="All done."),
    ]
    async with chat(script, mode="ask", agents=agents) as at:
        await at.discord.say("go")
        await at.discord.click(await at.asks(), "Allow")  # to start the sub-agent
        post = await at.discord.until(lambda: next((one for one in at.discord.posts if "touch made" in one["content"]), None))
        await at.discord.click(post, "Allow")
        await at.shows("All done.")
        assert [path.name for path in at.on.directory.iterdir()] == ["made"]


async def test_answers_of_jobs_are_sent_to_places_that_are_allowed(stage: Any) -> None:
    text = "All is well. " * 200
    async with DiscordServer().serve() as discord:
        channels = {"discord": discord.settings, "off": {**discord.settings, "type": "discord", "enabled": False}}
        async with opener(stage)([Reply(text=text, times=0)], channels=channels) as at:
            await _deliver(at, discord, text)


async def _deliver(at: Any, discord: DiscordServer, text: str) -> None:
    for deliver, owner, message in (
        ("channel:discord", "local", "does not name a place"),
        ("channel:irc:#moot", "local", "no channel 'irc'"),
        (f"channel:discord:{GUILD}/{ROOM}", "ann", "no channel 'discord'"),
    ):
        with pytest.raises(UsageError, match=message):
            await at.add("wrong", owner=owner, every=HOUR, deliver=deliver)
    await at.add("report", every=HOUR, deliver=f"channel:discord:{GUILD}/{ROOM}")
    await at.add("stray", every=HOUR, deliver="channel:discord:77/78")
    await at.add("silent", every=HOUR, deliver=f"channel:off:{GUILD}/{ROOM}")
    await at.move(HOUR)
    await at.history(1, "report")
    await discord.until(lambda: len(discord.shown(ROOM)) == 2)
    assert " ".join(discord.shown(ROOM)).split() == text.split() and not discord.sessions
    for name, reason in (("stray", "is not allowed to write to '77/78'"), ("silent", "'off' is turned off")):
        with anyio.fail_after(60):
            while reason not in (await at.history(1, name))[0].reason:
                await anyio.sleep(0.01)
    assert len(discord.posts) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"token": "wrong"}, "Discord refused the token"),
        ({"token": ""}, "requires `token` or `token_file`"),
        ({"user": [1]}, "Unknown key channels.discord.user"),
        ({"users": ["ann"]}, "must be a list of Discord ids"),
        ({"token_file": "/nowhere"}, "can't be read"),
    ],
)
async def test_unusable_settings_are_explained(settings: dict[str, Any], message: str) -> None:
    class Nothing:
        async def answers(self) -> list[Any]:
            return []

    async with DiscordServer().serve() as discord:
        with pytest.raises(ConfigError, match=message):
            await Discord().serve(Nothing(), {**discord.settings, **settings})  # type: ignore[arg-type]


async def test_a_channel_that_can_not_be_served_stops_nothing_else(stage: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with DiscordServer().serve() as discord:
        channels = {"discord": {**discord.settings, "token": "wrong"}, "off": {"type": "discord", "enabled": False}, "unknown": {}}
        async with stage([Reply(text="Fine.", times=0)], channels=channels) as on, anyio.create_task_group() as group:
            caplog.set_level(logging.ERROR, "moot.engine")
            group.start_soon(serve_all, on.engine)
            with anyio.fail_after(60):
                while len(caplog.records) < 2:
                    await anyio.sleep(0.01)
            assert "Discord refused the token" in caplog.text and "'unknown' not found" in caplog.text and "wrong" not in caplog.text
            run, _ = await on.ask("hello")
            assert run.status == "finished"
            group.cancel_scope.cancel()


@asynccontextmanager
async def served(on: Any, discord: DiscordServer) -> AsyncGenerator[None]:
    """Serve the channel for the duration of the block, which ends like a kill: nothing is finished first."""
    discord.sessions.clear()
    async with anyio.create_task_group() as group:
        group.start_soon(Fast().serve, Port(on.engine, "discord", {"directory": str(on.directory)}), discord.settings)
        await discord.until(lambda: discord.sessions)
        yield
        group.cancel_scope.cancel()


async def test_a_message_that_was_sent_but_not_stored_before_a_kill_is_completed(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "All is well. " * 30
    async with DiscordServer().serve() as discord, stage([Reply(text=text, delay=0.02)]) as on:
        with monkeypatch.context() as patch:
            patch.setattr(Port, "record", lambda *_, **__: anyio.sleep_forever())
            async with served(on, discord):
                await discord.say("hello")
                await discord.until(lambda: any(WRITING in post["content"] for post in discord.posts))
        (run,) = await on.engine.store.records.runs()
        await on.engine.runs.wait(run.id)
        monkeypatch.setattr("moot.channels.bot.Bot._stream", lambda *_: anyio.sleep(0))
        async with served(on, discord):  # the first it sends is the whole answer
            await discord.until(lambda: text.strip() in discord.shown())
        assert len(discord.posts) == 1


async def test_a_button_works_directly_after_a_restart(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})]), Reply(text="It is done.")]
    async with DiscordServer().serve() as discord, stage(script, mode="ask") as on:
        async with served(on, discord):
            await discord.say("make it")
            post = await discord.until(lambda: next((post for post in discord.posts if post["components"]), None))
        with monkeypatch.context() as patch:
            patch.setattr("moot.channels.bot.Bot._finish", lambda *_: anyio.sleep_forever())
            async with served(on, discord):
                await discord.click(post, "Allow")
                await discord.until(lambda: "Allowed by ann." in post["content"])
        async with served(on, discord):
            await discord.until(lambda: "It is done." in discord.shown())
        assert [path.name for path in on.directory.iterdir()] == ["made"]


async def test_an_answer_is_complete_once_after_a_kill(tmp_path: Path) -> None:
    async with DiscordServer().serve() as discord:
        channels = f"channels: {{discord: {json.dumps(discord.settings)}}}\n"
        text = "All is well. " * 10
        with ScriptedProcess([Reply(text=text, hang_at=8), Reply(text=text, times=0)]) as model:
            moot = make(tmp_path, model.config() + channels)
            try:
                server = moot.start("serve", "--port", "0")
                await discord.until(lambda: discord.sessions)
                await discord.say("hello")
                await discord.until(lambda: any(WRITING in post["content"] for post in discord.posts))
                server.kill()
                await anyio.to_thread.run_sync(server.wait)
                discord.sessions.clear()
                again = moot.start("serve", "--port", "0")
                await discord.until(lambda: any(text.strip() in one for one in discord.shown()))
                assert len(discord.posts) == 1
                again.terminate()
                await anyio.to_thread.run_sync(again.wait)
            finally:
                moot.close()


async def test_the_commands_list_and_test_a_channel_and_two_processes_do_not_serve_it(tmp_path: Path) -> None:
    async with DiscordServer().serve() as discord:
        with ScriptedProcess([Reply(text="Hello there.", times=0)]) as model:
            moot = make(tmp_path, model.config() + f"channels: {{discord: {json.dumps(discord.settings)}, off: {{}}}}\n")
            try:
                serving = moot.start("channels", "serve", "discord")
                await discord.until(lambda: discord.sessions)
                await discord.say("hello")
                await discord.until(lambda: "Hello there." in discord.shown())

                async def run(*arguments: str) -> Any:
                    return await anyio.to_thread.run_sync(lambda: moot.run("channels", *arguments))

                assert (await run("test", "discord")).stderr.decode() == "moot: signed in to Discord as moot\n"
                assert b"'off' not found" in (await run("test", "off")).stderr
                assert b"not configured" in (await run("test", "nowhere")).stderr
                listed = json.loads((await run("list", "--json")).stdout)["data"]
                assert [(one["name"], one["configured"]) for one in listed] == [("discord", True), ("off", True)]
                other = await run("serve", "discord")
                assert other.returncode == 7 and b"Another process is already serving the channel 'discord'." in other.stderr
                serving.terminate()
                await anyio.to_thread.run_sync(serving.wait)
            finally:
                moot.close()
