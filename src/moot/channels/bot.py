"""A connection to Discord through discord.py. It submits direct messages and mentions as prompts, and shows answers and questions.

Discord's ids for users, rooms and messages are 64-bit numbers. In moot, a room is identified by `dm/CHANNEL`, `GUILD/CHANNEL` or
`GUILD/CHANNEL/THREAD`, with decimal ids. A prompt has the id `MESSAGE.USER`: the message's id prevents it from being handled twice, and
only this user may approve the run's tool calls.
"""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import aiohttp
import anyio
import discord
from anyio.abc import TaskGroup
from discord import ui
from discord.gateway import DiscordWebSocket
from discord.http import Route

from moot.channels.options import DIRECT, Options, slash_commands
from moot.channels.posts import Pace, digest_of, last_message, nonce_of, question_text, split, with_ending
from moot.errors import Busy, ConfigError, MootError, UsageError
from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject
from moot.types.channel import ChannelAnswer, ChannelRuntime
from moot.types.message import Part, text_of, text_part
from moot.types.run import TERMINAL, Run

LONGEST = 2_000
"""Maximum number of characters in a Discord message."""

WRITING = "▌"
"""Character shown at the end of an answer that is still being written."""

MOST_FILES, LARGEST_FILE = 10, 10 * 1024 * 1024
"""Maximum number of files per message, and maximum size of a file in bytes. Both apply to sent and received messages."""

_RETRY, _LONGEST_RETRY = 2.0, 60.0
"""Initial and maximum number of seconds until an answer that Discord did not accept is sent again."""

_WAITING_MESSAGES = 100
"""Maximum number of queued messages. If the queue is full, the sender is asked to try again later."""

_MISSED = 50
"""Maximum number of missed messages to read per room after a reconnect."""

_Interaction: TypeAlias = "discord.Interaction[discord.Client]"
FAILURES = (discord.HTTPException, aiohttp.ClientError, OSError, TimeoutError)

discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # moot does not use voice chat

log = logging.getLogger("moot.channels")


@dataclass(slots=True)
class _Shown:
    """An answer and the Discord messages that show it."""

    answer: ChannelAnswer
    room: discord.PartialMessageable
    user: int
    """Id of the person who wrote the prompt. Only this person may answer the run's questions."""
    pace: Pace
    posts: list[int]
    questions: dict[str, int]
    """Id of the message with the buttons for an approval, keyed by the approval's digest; 0 = answered."""
    has_files: bool = False
    last: int = 0
    """Id of the last message that answered a question."""
    texts: dict[int, str] = field(default_factory=dict[int, str])
    """Text of each message that this process has sent, keyed by message id."""
    dirty: anyio.Event = field(default_factory=anyio.Event)
    decided: anyio.Event = field(default_factory=anyio.Event)
    writing: anyio.Lock = field(default_factory=anyio.Lock)
    live: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    watched: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_over: bool = False

    def facts(self) -> ChannelAnswer:
        """Return the state to store, so that moot can continue to show the answer after a restart."""
        questions: JsonObject = {**self.questions}
        return replace(self.answer, shown={"posts": [*self.posts], "questions": questions, "has_files": self.has_files, "last": self.last})


@asynccontextmanager
async def errors(options: Options) -> AsyncGenerator[None]:
    """For the duration of the block, use the configured API URL and convert Discord's connection errors to moot's errors."""
    if options.api:
        Route.BASE = options.api
    try:
        yield
    except discord.LoginFailure as error:
        message = "Discord refused the token of channels.discord."
        raise ConfigError(message, fix="Copy the bot's token again from https://discord.com/developers/applications.") from error
    except (discord.ConnectionClosed, discord.GatewayNotFound, *FAILURES) as error:
        raise MootError(f"The connection to Discord failed: {error}") from error


class Bot(discord.Client):
    """A connection to Discord. discord.py reconnects and resumes the session automatically."""

    def __init__(self, runtime: ChannelRuntime, options: Options, group: TaskGroup, interval: float) -> None:
        # the privileged intent is not needed: direct messages and mentions contain their text without it
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none(), max_messages=None)
        self._runtime = runtime
        self._options = options
        self._group = group
        self._interval = interval
        self._asked: dict[str, tuple[_Shown, Approval]] = {}
        """Open approvals and questions, keyed by the digest of their id."""
        self._showing: dict[str, _Shown] = {}
        """Answers that are not yet complete, keyed by run id."""
        self._handled: dict[str, int] = {}
        """Id of the last handled message in each room. Newer messages have larger ids."""
        self._send, self._received = anyio.create_memory_object_stream[tuple[str, discord.Message]](_WAITING_MESSAGES)

    async def run(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Serve until cancelled. Raise ConfigError if Discord rejects the token, MootError if Discord can't be reached."""
        async with errors(self._options):
            await self.login(self._options.token)
            if self._options.api:
                _, url, _ = await self.http.get_bot_gateway()
                DiscordWebSocket.DEFAULT_GATEWAY = type(DiscordWebSocket.DEFAULT_GATEWAY)(url)
            self._group.start_soon(self._handle)
            for answer in await self._runtime.answers():
                self._note(answer.who, last_message(answer))
                if not answer.finished:
                    self._group.start_soon(self._show, answer)
            await self.connect()
        raise MootError("Discord closed the connection.")

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Ignore events after the connection was closed. discord.py dispatches `ready` up to 2 seconds later; handling it would fail."""
        if not self.is_closed():
            super().dispatch(event, *args, **kwargs)

    async def close(self) -> None:
        self._send.close()
        self._received.close()
        await super().close()

    async def setup_hook(self) -> None:
        """Register the slash commands."""
        assert self.application_id is not None
        await self.http.bulk_upsert_global_commands(self.application_id, cast("Any", slash_commands()))

    # ── messages to moot ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def on_message(self, message: discord.Message) -> None:
        """Queue a received message. Called by discord.py."""
        await self._receive(_who(message), message)

    async def on_ready(self) -> None:
        """Queue messages that were written while moot was not connected. Called by discord.py unless it could resume the connection."""
        for who, last in list(self._handled.items()):
            id = int(who.rpartition("/")[2])
            room = self.get_channel(id)
            messageable = room if isinstance(room, discord.abc.Messageable) else self.get_partial_messageable(id)
            try:
                async for message in messageable.history(limit=_MISSED, after=discord.Object(last), oldest_first=True):
                    await self._receive(who, message)
            except FAILURES as error:
                log.warning("could not read the Discord messages that were written while disconnected: %s", error)

    async def _receive(self, who: str, message: discord.Message) -> None:
        if self._is_for_us(who, message):
            try:
                self._send.send_nowait((who, message))
            except anyio.WouldBlock:
                await self._notify(message, "moot: too many messages are queued. Send this message again later.")

    def _is_for_us(self, who: str, message: discord.Message) -> bool:
        if self.user is None or message.author.bot or message.author.id not in self._options.users:
            return False
        is_mentioned = any(user.id == self.user.id for user in message.mentions)
        return self._options.allows(who) and (is_mentioned or who.startswith(DIRECT))

    async def _handle(self) -> None:
        """Submit messages in the order in which they arrived."""
        async for who, message in self._received:
            if message.id <= self._handled.get(who, 0):  # received again after a lost connection
                continue
            try:
                if not await self._reply_to_question(who, message):
                    await self._submit(who, message)
            except MootError as error:
                await self._notify(message, f"moot: {error.advice()}")
            except Exception as error:
                log.error("could not handle a message from Discord", exc_info=error)
            self._note(who, message.id)

    def _note(self, who: str, message: int) -> None:
        self._handled[who] = max(message, self._handled.get(who, 0))

    async def _submit(self, who: str, message: discord.Message) -> None:
        parts = await self._parts(message)
        if not parts:
            return
        id = f"{message.id}.{message.author.id}"
        submitted = await self._runtime.submit(who, parts, id=id)
        answer = ChannelAnswer(submitted.run.id, submitted.conversation.id, who, id, submitted.seq)
        self._group.start_soon(self._show, answer)

    async def _parts(self, message: discord.Message) -> list[Part]:
        """Return the message's attachments, and its text without mentions of the bot."""
        assert self.user is not None
        text = message.content.replace(f"<@{self.user.id}>", "").replace(f"<@!{self.user.id}>", "").strip()
        parts: list[Part] = [text_part(text)] if text else []
        for attachment in message.attachments[:MOST_FILES]:
            if attachment.size > LARGEST_FILE:
                raise UsageError(f"{attachment.filename} is larger than {LARGEST_FILE >> 20} MiB.")
            try:
                data = await attachment.read()
            except FAILURES as error:
                raise MootError(f"Discord did not return the attachment {attachment.filename}.") from error
            kind = (attachment.content_type or "application/octet-stream").partition(";")[0]
            url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
            parts.append({"type": "file", "mediaType": kind, "filename": attachment.filename, "url": url})
        return parts

    async def _notify(self, message: discord.Message, text: str) -> None:
        with suppress(*FAILURES):
            await message.channel.send(text[:LONGEST], suppress_embeds=True)

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _show(self, answer: ChannelAnswer) -> None:
        """Show an answer until it is complete. If Discord does not accept it, try again."""
        shown, pause = self._shown(answer), _RETRY
        self._showing[answer.run] = shown
        self._group.start_soon(self._stream, shown)
        try:
            while not await self._finish(shown, pause):
                await anyio.sleep(pause)
                pause = min(pause * 2, _LONGEST_RETRY)
        except MootError as error:
            log.error("could not show an answer on Discord: %s", error)
        finally:
            del self._showing[answer.run]
            shown.live.cancel()
            shown.watched.cancel()

    def _shown(self, answer: ChannelAnswer) -> _Shown:
        stored = cast("dict[str, Any]", answer.shown)
        posts, questions = list(stored.get("posts", ())), dict(stored.get("questions", {}))
        room = self.get_partial_messageable(int(answer.who.rpartition("/")[2]))
        user = int(answer.prompt.partition(".")[2] or 0)
        return _Shown(answer, room, user, Pace(self._interval), posts, questions, bool(stored.get("has_files")), int(stored.get("last", 0)))

    async def _finish(self, shown: _Shown, pause: float) -> bool:
        """Show the questions of the run until it ends, then the complete answer. Return False if Discord did not accept a message."""
        try:
            while (found := await self._runtime.wait(shown.answer.run)).status not in TERMINAL:
                if found.status == "waiting":
                    await self._ask(shown)
                with anyio.move_on_after(0.5):  # the question may be answered in another program
                    await shown.decided.wait()
                shown.decided = anyio.Event()
            shown.is_over = True
            await self._ask(shown)  # the run has no open questions any more: remove the buttons
            async with shown.writing:
                await shown.pace.turn()
                await self._render(shown, found)
        except (discord.NotFound, discord.Forbidden) as error:
            log.warning("an answer can't be shown on Discord any more: %s", error)
        except FAILURES as error:
            log.warning("Discord did not accept an answer, which is sent again in %g s: %s", pause, error)
            return False
        await self._runtime.record(shown.facts(), finished=True)
        return True

    async def _stream(self, shown: _Shown) -> None:
        """Show the answer so far, at most once per interval."""
        with shown.live, suppress(MootError):
            self._group.start_soon(self._watch, shown)
            with suppress(*FAILURES):
                await shown.room.typing()
            while True:
                await shown.dirty.wait()
                shown.dirty = anyio.Event()
                async with shown.writing:
                    await shown.pace.turn()
                    if shown.is_over:
                        return
                    with suppress(*FAILURES):  # repeated with the next change or at the end of the answer
                        await self._render(shown, None)

    async def _watch(self, shown: _Shown) -> None:
        with shown.watched, suppress(MootError):
            async with aclosing(self._runtime.watch(shown.answer.conversation, after=shown.answer.after)) as batches:
                async for batch in batches:
                    if any(event.run == shown.answer.run for event in batch):
                        shown.dirty.set()

    async def _render(self, shown: _Shown, ended: Run | None) -> None:
        """Show the answer so far, or the whole answer if the run has ended."""
        message = await self._runtime.message(shown.answer.run)
        text = text_of(message.parts).strip()
        if ended is not None:
            text = with_ending(text, ended)
        elif text:
            text += WRITING
        pieces = split(text, LONGEST)
        for at, piece in enumerate(pieces):
            await self._post(shown, at, piece)
        while ended is not None and len(shown.posts) > len(pieces):  # a failed attempt was longer than the one that replaced it
            with suppress(discord.NotFound):
                await shown.room.get_partial_message(shown.posts[-1]).delete()
            shown.posts.pop()
        if ended is not None and not shown.has_files:
            await self._send_files(shown, message.parts)

    async def _post(self, shown: _Shown, at: int, text: str) -> None:
        if at < len(shown.posts):
            await self._edit(shown, shown.posts[at], text)
            return
        sent = await shown.room.send(text, suppress_embeds=True, nonce=nonce_of(shown.answer.run, at))
        shown.posts.append(sent.id)
        shown.texts[sent.id] = text if sent.content.strip() == text.strip() else sent.content
        await self._runtime.record(shown.facts())
        # Discord returns an older message if a process sent it and was killed before it could store the id
        await self._edit(shown, sent.id, text)

    async def _edit(self, shown: _Shown, post: int, text: str) -> None:
        if shown.texts.get(post) != text:
            await shown.room.get_partial_message(post).edit(content=text)
            shown.texts[post] = text

    async def _send_files(self, shown: _Shown, parts: Sequence[Part]) -> None:
        files: list[discord.File] = []
        for part in parts:
            data = await self._runtime.content(part) if part["type"] == "file" else None
            if data is not None and len(data) <= LARGEST_FILE and len(files) < MOST_FILES:
                name = str(part.get("filename") or f"file.{str(part.get('mediaType', '')).rpartition('/')[2] or 'bin'}")
                files.append(discord.File(io.BytesIO(data), name))
        if files:
            await shown.room.send(files=files, nonce=nonce_of(shown.answer.run, "files"))
            shown.has_files = True
            await self._runtime.record(shown.facts())

    # ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, shown: _Shown) -> None:
        """Show open questions. Remove the buttons of questions that have been answered, in Discord or in another program."""
        approvals = {digest_of(approval.id): approval for approval in await self._runtime.approvals(shown.answer.run)}
        for digest, approval in approvals.items():
            self._asked[digest] = shown, approval
            if digest not in shown.questions and not approval.by_client:
                shown.questions[digest] = await self._send_question(shown, digest, approval)
                await self._runtime.record(shown.facts())
        for digest, post in shown.questions.items():
            if digest not in approvals and post:
                self._asked.pop(digest, None)
                with suppress(discord.NotFound):
                    await shown.room.get_partial_message(post).edit(view=None)
                shown.questions[digest] = 0

    async def _send_question(self, shown: _Shown, digest: str, approval: Approval) -> int:
        *first, last = split(question_text(approval), LONGEST)
        for at, piece in enumerate(first):
            await shown.room.send(piece, suppress_embeds=True, nonce=nonce_of(digest, at))
        view = discord.utils.MISSING if isinstance(approval.questions, list) else _buttons(digest)
        sent = await shown.room.send(last, view=view, suppress_embeds=True, nonce=nonce_of(digest, "last"))
        return sent.id

    async def on_interaction(self, interaction: _Interaction) -> None:
        """Handle a click on a button, or a slash command. Called by discord.py."""
        data = cast("dict[str, Any]", interaction.data or {})
        try:
            if interaction.user.id not in self._options.users:
                await interaction.response.send_message("You may not use moot here.", ephemeral=True)
            elif interaction.type is discord.InteractionType.component:
                verb, _, digest = str(data.get("custom_id", "")).removeprefix("moot:").partition(":")
                await self._decide(interaction, verb, digest)
            elif interaction.type is discord.InteractionType.application_command:
                await self._command(interaction, data)
        except FAILURES as error:
            log.warning("could not answer a click or command: %s", error)

    async def _decide(self, interaction: _Interaction, verb: str, digest: str) -> None:
        message = interaction.message
        shown, approval = (None, None) if message is None else await self._question(digest, message.id)
        if shown is None or approval is None or message is None:
            await interaction.response.send_message("This question has already been answered.", ephemeral=True)
        elif interaction.user.id != shown.user or message.id != shown.questions.get(digest):
            await interaction.response.send_message("Only the person who wrote the message can decide this.", ephemeral=True)
        else:
            result = await self._answer(shown, approval, Answer(allowed := verb == "allow", answered_by=f"discord:{interaction.user.id}"))
            result = result or f"{'Allowed' if allowed else 'Denied'} by {interaction.user.name}."
            text = f"{message.content[: LONGEST - len(result) - 2]}\n{result}"
            await interaction.response.edit_message(content=text, view=None)

    async def _question(self, digest: str, post: int) -> tuple[_Shown | None, Approval | None]:
        """Return an open question. A question asked before a restart may not be known to `_ask` yet."""
        for shown in list(self._showing.values()):
            for approval in await self._runtime.approvals(shown.answer.run) if digest not in self._asked else ():
                if digest_of(approval.id) == digest and shown.questions.setdefault(digest, post):
                    self._asked[digest] = shown, approval
        return self._asked.get(digest, (None, None))

    async def _answer(self, shown: _Shown, approval: Approval, answer: Answer) -> str:
        """Store an answer. If it is rejected, return the reason, otherwise an empty string."""
        self._asked.pop(digest := digest_of(approval.id), None)
        try:
            await self._runtime.answer(approval.id, answer)
        except Busy as error:
            return error.message
        finally:
            shown.questions[digest] = 0
            shown.decided.set()
        return ""

    async def _reply_to_question(self, who: str, message: discord.Message) -> bool:
        """Use a message as the answer to an agent's open questions.

        Return False if the person has no open questions or answered too late.
        """
        for shown, approval in list(self._asked.values()):
            if shown.answer.who == who and shown.user == message.author.id and isinstance(approval.questions, list):
                text = text_of(await self._parts(message))
                answer = Answer(True, value=[[text] for _ in approval.questions], answered_by=f"discord:{message.author.id}")
                shown.last = message.id
                is_late = await self._answer(shown, approval, answer)
                await self._runtime.record(shown.facts())
                return not is_late
        return False

    async def _command(self, interaction: _Interaction, data: dict[str, Any]) -> None:
        who = _room(interaction)
        if not self._options.allows(who):
            await interaction.response.send_message("moot can't be used here.", ephemeral=True)
            return
        await interaction.response.defer(ephemeral=True)
        argument = next((str(option.get("value", "")) for option in data.get("options", ())), "")
        try:
            text = await self._runtime.command(who, str(data.get("name")), argument)
        except MootError as error:
            text = f"moot: {error.advice()}"
        await interaction.edit_original_response(content=text[:LONGEST])


def _buttons(digest: str) -> ui.View:
    view = ui.View(timeout=None)
    view.add_item(ui.Button(label="Allow", style=discord.ButtonStyle.success, custom_id=f"moot:allow:{digest}"))
    view.add_item(ui.Button(label="Deny", style=discord.ButtonStyle.danger, custom_id=f"moot:deny:{digest}"))
    view.stop()  # clicks are handled by `on_interaction`, also after a restart
    return view


def _who(message: discord.Message) -> str:
    return _key(message.guild and message.guild.id, message.channel)


def _room(interaction: _Interaction) -> str:
    return "" if interaction.channel is None else _key(interaction.guild_id, interaction.channel)


def _key(guild: int | None, channel: Any) -> str:
    parent: int | None = channel.parent_id if isinstance(channel, discord.Thread) else None
    return "/".join(str(one) for one in (guild or "dm", parent, channel.id) if one is not None)
