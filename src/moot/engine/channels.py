"""Channels, and the restricted interface through which a channel can only access its own conversations."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast, get_args

from moot.engine.startup import Engine
from moot.errors import ConfigError, MootError, NotFound
from moot.plugins import CHANNELS
from moot.types.agent import Mode
from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject
from moot.types.channel import Channel
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message, Part
from moot.types.run import OnBusy, Prompt, Run, Submitted

MODES = get_args(Mode)

OURS = ("agent", "model", "mode", "directory")
"""Keys of `channels.<name>` that configure its runs. All other keys are settings of the channel itself."""

log = logging.getLogger("moot.engine")


async def serve(engine: Engine, name: str) -> None:
    """Run a channel until it is cancelled. Raise UsageError for an unknown channel, ConfigError for invalid settings."""
    settings = engine.settings.channels.get(name, {})
    channel: Channel = CHANNELS.make(name)
    port = Port(engine, name, settings)
    try:
        await channel.serve(port, {key: value for key, value in settings.items() if key not in OURS})
    except MootError:
        raise
    except Exception as error:
        log.exception("the channel %s failed", name)
        package = CHANNELS.package(name)
        raise MootError(f"The channel {name!r}{f' from the package {package}' if package else ''} failed: {error!r}") from error
    raise MootError(f"The channel {name!r} stopped unexpectedly.")


class Port:
    """`ChannelRuntime` for one channel. Conversations of the channel have keys like `<channel>:<who>`; no others can be accessed."""

    def __init__(self, engine: Engine, name: str, settings: JsonObject) -> None:
        """Raise ConfigError for invalid settings."""
        self._engine = engine
        self._prefix = f"{name}:"
        self._agent = _text(name, settings, "agent")
        self._model = _text(name, settings, "model")
        self._directory = _text(name, settings, "directory") or ""
        mode = _text(name, settings, "mode")
        if mode is not None and mode not in MODES:
            raise ConfigError(f"The option channels.{name}.mode is {mode!r}. Expected one of: {', '.join(MODES)}.")
        self._mode: Mode | None = cast("Mode | None", mode)

    async def conversation(self, who: str) -> Conversation | None:
        return await self._engine.store.conversations.by_key(self._prefix + who)

    async def submit(self, who: str, parts: Sequence[Part], *, on_busy: OnBusy = "queue") -> Submitted:
        known = await self.conversation(who)
        return await self._engine.runs.submit(
            Prompt(
                tuple(parts),
                key=self._prefix + who,
                directory=self._directory,
                agent=self._agent if known is None else None,
                model=self._model if known is None else None,
                mode=self._mode,
                on_busy=on_busy,
                trigger="channel",
            )
        )

    async def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        own = await self._own(conversation)
        async with aclosing(self._engine.tail.watch(own.id, after=after)) as batches:
            async for batch in batches:
                yield batch

    async def wait(self, run: str) -> Run:
        return await self._engine.runs.wait((await self._run(run)).id)

    async def message(self, run: str) -> Message:
        return await self._engine.store.conversations.message((await self._run(run)).message)

    async def approvals(self, run: str) -> list[Approval]:
        return await self._engine.store.records.approvals(run=(await self._run(run)).id)

    async def answer(self, approval: str, answer: Answer) -> None:
        stored = await self._engine.store.records.approval(approval)
        if stored is None:
            raise NotFound(f"Approval {approval!r} not found.")
        await self._run(stored.run)
        await self._engine.runs.answer(approval, answer)

    async def cancel(self, run: str) -> None:
        await self._engine.runs.cancel((await self._run(run)).id)

    async def _run(self, id: str) -> Run:
        run = await self._engine.store.records.run(id)
        await self._own(run.conversation)
        return run

    async def _own(self, id: str) -> Conversation:
        conversation = await self._engine.store.conversations.get(id)
        if conversation.key is None or not conversation.key.startswith(self._prefix):
            raise NotFound(f"The channel {self._prefix[:-1]!r} has no conversation {id!r}.")
        return conversation


def _text(name: str, settings: JsonObject, key: str) -> str | None:
    value = settings.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ConfigError(f"The option channels.{name}.{key} is {value!r}. Expected text.")
