"""The channel `discord`: direct messages and mentions on Discord."""

from __future__ import annotations

import anyio
import discord
from anyio import to_thread

from moot.channels.bot import LONGEST, Bot, errors
from moot.channels.options import read_options
from moot.channels.posts import nonce_of, split
from moot.errors import MootError, UsageError
from moot.types.canonical import JsonObject
from moot.types.channel import ChannelRuntime

EDIT_INTERVAL = 1.5
"""Seconds between two edits of an answer."""

_CLOSING = 2.0
"""Maximum number of seconds for closing the connection when the channel stops."""


class Discord:
    """The channel `discord`. Tests can change `edit_interval`."""

    name = "discord"
    edit_interval = EDIT_INTERVAL

    async def serve(self, runtime: ChannelRuntime, settings: JsonObject) -> None:
        options = await to_thread.run_sync(read_options, settings)
        failure: MootError | None = None
        async with anyio.create_task_group() as group:
            bot = Bot(runtime, options, group, self.edit_interval)
            try:
                await bot.run()
            except MootError as error:  # raised below, because the task group would wrap it in an ExceptionGroup
                failure = error
            finally:
                with anyio.move_on_after(_CLOSING, shield=True):
                    await bot.close()
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def check(self, settings: JsonObject) -> str:
        """Sign in to Discord, and return a message with the bot's name."""
        options = await to_thread.run_sync(read_options, settings)
        client = discord.Client(intents=discord.Intents.none())
        try:
            async with errors(options):
                await client.login(options.token)
                return f"signed in to Discord as {client.user}"
        finally:
            await client.close()

    async def post(self, settings: JsonObject, place: str, text: str, *, id: str) -> None:
        """Send a message without receiving events. Raise UsageError if the settings don't allow the place."""
        options = await to_thread.run_sync(read_options, settings)
        room = place.rpartition("/")[2]
        if not room.isdecimal() or not options.allows(place):
            raise UsageError(
                f"The Discord channel is not allowed to write to {place!r}.", fix="Use dm/CHANNEL, or GUILD/CHANNEL of a configured guild."
            )
        client = discord.Client(intents=discord.Intents.none(), allowed_mentions=discord.AllowedMentions.none())
        try:
            async with errors(options):
                await client.login(options.token)
                for at, piece in enumerate(split(text, LONGEST)):
                    await client.get_partial_messageable(int(room)).send(piece, suppress_embeds=True, nonce=nonce_of(id, at))
        finally:
            await client.close()
