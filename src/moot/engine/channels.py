"""Run channels, and provide a restricted interface through which a channel can access only its own conversations."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import anyio

from moot.config.settings import Settings
from moot.convert.files.attachments import decode_data_url
from moot.engine.locks import claim_channel
from moot.engine.startup import Engine
from moot.errors import ConfigError, MootError, NotFound, Refused, UsageError
from moot.plugins import CHANNELS
from moot.plugins.registry import attribute
from moot.tools.catalogue import configures
from moot.types.agent import Mode
from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject
from moot.types.channel import Channel, ChannelAnswer, HasPost
from moot.types.conversation import Conversation
from moot.types.cron import JobReport
from moot.types.event import Event
from moot.types.message import Message, Part, text_of
from moot.types.run import OPEN, OnBusy, Prompt, Run, Submitted
from moot.types.token import LOCAL_USER

MODES = get_args(Mode)

OURS = ("type", "enabled", "agent", "model", "mode", "directory", "project")
"""Keys of `channels.<name>` that configure its runs. All other keys are settings of the channel itself."""

COMMANDS = ("agent", "compact", "context", "cost", "effort", "model", "new", "redo", "status", "stop", "undo")
"""Slash commands that can be run in a channel. None of them extends what runs are allowed to do."""

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""First and longest pause in seconds before a failed channel is restarted. The pause doubles with each failure."""

_POLL = 0.5
"""Seconds between two checks for changed settings."""

_RUN_COMMAND, _EXPANDED = "moot.commands.submission:run_in_channel", "moot.commands.submission:expanded"
"""Paths of functions, loaded on first use, because they are in a higher layer and most processes don't need them."""

log = logging.getLogger("moot.engine")


async def serve_all(engine: Engine) -> None:
    """Serve all configured channels until cancelled. If a channel fails, neither the other channels nor the caller are affected.

    A failed channel is restarted after a pause, or immediately when its settings change.
    """
    scopes: dict[str, tuple[JsonObject, anyio.CancelScope]] = {}
    async with anyio.create_task_group() as group:
        while True:
            wanted = {name: one for name, one in engine.runtime.settings.channels.items() if one.get("enabled") is not False}
            for name in [name for name, (settings, _) in scopes.items() if wanted.get(name) != settings]:
                scopes.pop(name)[1].cancel()
            for name in wanted.keys() - scopes.keys():
                scope = anyio.CancelScope()
                scopes[name] = wanted[name], scope
                group.start_soon(_keep_serving, engine, name, scope)
            await anyio.sleep(_POLL)


async def _keep_serving(engine: Engine, name: str, scope: anyio.CancelScope) -> None:
    pause = FIRST_PAUSE
    with scope:
        while True:
            try:
                await serve(engine, name)
            except UsageError as error:  # retrying can't help until the settings change
                log.error("the channel %s can't be served: %s", name, error.advice())
                await anyio.sleep_forever()
            except MootError as error:
                log.error("the channel %s failed and will be restarted in %g s: %s", name, pause, error.advice())
                await anyio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)


def type_of(name: str, settings: JsonObject) -> str:
    """Return the type of a configured channel. If no type is set, the type is the channel's name."""
    return str(settings.get("type") or name)


def channel_of(name: str, settings: JsonObject) -> Channel:
    """Return the channel with this name. Raise UsageError if it is unknown, ConfigError if its package is not installed."""
    kind = type_of(name, settings)
    try:
        channel: Channel = CHANNELS.make(kind)
    except ModuleNotFoundError as error:
        message = f"The channel {name!r} needs the package {error.name!r}, which is not installed."
        raise ConfigError(message, fix=f"pip install 'moot[{kind}]'") from error
    return channel


def own_settings(settings: JsonObject) -> JsonObject:
    """Return the settings of the channel itself, without those that configure its runs."""
    return {key: value for key, value in settings.items() if key not in OURS}


async def serve(engine: Engine, name: str) -> None:
    """Run a channel until it is cancelled. Raise UsageError for an unknown channel, ConfigError for invalid settings."""
    settings = engine.runtime.settings.channels.get(name, {})
    channel = channel_of(name, settings)
    port = Port(engine, name, settings)
    try:
        with claim_channel(engine.settings.home, name):
            await channel.serve(port, own_settings(settings))
    except MootError:
        raise
    except Exception as error:
        log.exception("the channel %s failed", name)
        package = CHANNELS.package(type_of(name, settings))
        raise MootError(f"The channel {name!r}{f' from the package {package}' if package else ''} failed: {error!r}") from error
    raise MootError(f"The channel {name!r} stopped unexpectedly.")


async def post(settings: Settings, target: str, report: JobReport) -> None:
    """Send the answer of a job to `CHANNEL:PLACE`. Raise UsageError if the channel can't be used, MootError if sending fails."""
    name, _, place = target.partition(":")
    configured = settings.channels.get(name)
    if report.owner != LOCAL_USER or configured is None:  # channels belong to the local user
        raise UsageError(f"There is no channel {name!r}.")
    if configured.get("enabled") is False:
        raise UsageError(f"The channel {name!r} is turned off.")
    channel = channel_of(name, configured)
    if not isinstance(channel, HasPost):
        raise UsageError(f"The channel {name!r} can't deliver answers of cron jobs.")
    await channel.post(own_settings(configured), place, report.text, id=report.run)


class Port:
    """The `ChannelRuntime` of one channel. Conversations of the channel have keys like `<channel>:<who>`;
    no other conversations can be accessed.
    """

    def __init__(self, engine: Engine, name: str, settings: JsonObject) -> None:
        """Raise ConfigError for invalid settings."""
        self._engine = engine
        self._name = name
        self._prefix = f"{name}:"
        self._settings = settings
        _options_of(name, settings)

    async def conversation(self, who: str) -> Conversation | None:
        return await self._engine.store.conversations.by_key(self._prefix + who)

    async def submit(self, who: str, parts: Sequence[Part], *, on_busy: OnBusy = "queue", id: str = "") -> Submitted:
        known = await self.conversation(who)
        options = _options_of(self._name, self._engine.runtime.settings.channels.get(self._name, self._settings))
        prompt = Prompt(
            tuple(parts),
            key=self._prefix + who,
            client_id=self._prefix + id if id else None,
            directory=options.directory or "",
            project=options.project or "",
            agent=options.agent if known is None else None,
            model=options.model if known is None else None,
            mode=options.mode if known is None or known.own_settings.mode is None else None,
            on_busy=on_busy,
            trigger="channel",
            on_crash="resume",
        )
        if text_of(prompt.parts).startswith("/"):
            prompt = await attribute(_EXPANDED)(self._engine.runtime, prompt)
        return await self._engine.runs.submit(prompt)

    async def command(self, who: str, name: str, argument: str = "") -> str:
        if name not in COMMANDS:
            raise UsageError(f"The command /{name} can't be used here. Available: {', '.join(f'/{one}' for one in COMMANDS)}.")
        known = await self.conversation(who)
        if name == "new":
            if known is not None:
                await self._engine.store.answers.release(known.id)
            return "The next message starts a new conversation."
        if known is None:
            raise UsageError("There is no conversation yet.", fix="Send a message first.")
        if name == "stop":
            active = await self._engine.store.records.runs(conversation=known.id, statuses=OPEN)
            for run in active:
                await self._engine.runs.cancel(run.id)
            return "Stopped." if active else "Nothing is running."
        reply: Any = await attribute(_RUN_COMMAND)(self._engine, known, name, argument)
        return str(reply)

    async def answers(self) -> list[ChannelAnswer]:
        return await self._engine.store.answers.current(self._prefix)

    async def record(self, answer: ChannelAnswer, *, finished: bool = False) -> None:
        await self._run(answer.run)
        await self._engine.store.answers.record(answer.run, answer.conversation, answer.shown, finished=finished)

    async def content(self, part: Part) -> bytes | None:
        url = str(part.get("url", ""))
        if url.startswith("blob:"):
            return await self._engine.store.blobs.get(url.removeprefix("blob:"))
        return decode_data_url(part)

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
        return await self._engine.store.records.approvals(run=(await self._run(run)).id, tree=True)

    async def answer(self, approval: str, answer: Answer) -> None:
        stored = await self._engine.store.records.approval(approval)
        if stored is None:
            raise NotFound(f"Approval {approval!r} not found.")
        run = await self._engine.store.records.run(stored.run)
        while run.parent_run is not None:  # a sub-agent asks the person who talks to the topmost agent
            run = await self._engine.store.records.run(run.parent_run)
        await self._own(run.conversation)
        if answer.approved and stored.outside is None and configures(stored.tool, self._engine.settings):
            raise Refused("A call that changes moot's configuration can't be allowed in a channel.", fix="moot approvals list")
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


@dataclass(frozen=True, slots=True)
class _Options:
    """Options for a channel's runs, read again for each prompt."""

    agent: str | None
    model: str | None
    directory: str | None
    project: str | None
    mode: Mode | None


def _options_of(name: str, settings: JsonObject) -> _Options:
    """Return the options in the settings of a channel. Raise ConfigError if an option is invalid."""
    mode = _text(name, settings, "mode")
    if mode is not None and mode not in MODES:
        raise ConfigError(f"The option channels.{name}.mode is {mode!r}. Expected one of: {', '.join(MODES)}.")
    agent, model, directory, project = (_text(name, settings, key) for key in ("agent", "model", "directory", "project"))
    directory = str(Path(directory).expanduser()) if directory else directory
    return _Options(agent, model, directory, project, cast("Mode | None", mode))


def _text(name: str, settings: JsonObject, key: str) -> str | None:
    value = settings.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ConfigError(f"The option channels.{name}.{key} is {value!r}. Expected a string.")
