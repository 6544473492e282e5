"""Opening the engine for a command, and finding the conversation that the command is about."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio

from moot.cli.arguments.signatures import LATEST, PREVIOUS
from moot.cli.console.lines import Lines
from moot.cli.console.output import Output
from moot.cli.context.configuration import apply, configured, configured_loader, here
from moot.cli.context.references import find_in, live_statuses
from moot.cli.options import RunFlags
from moot.cli.remote import AnyEngine
from moot.cli.remote.address import remote_url
from moot.config.loader import Loaded, Loader
from moot.config.settings import Settings
from moot.engine import Engine, open_engine
from moot.errors import ConfigError, MootError, NotFound, UsageError
from moot.plugins.registry import attribute
from moot.runtime.configuration import log_change
from moot.store.tree.lists import ListFilter, with_listed_names
from moot.types.conversation import Conversation, Page
from moot.types.run import RunStatus

if TYPE_CHECKING:
    from moot.cli.remote.engine import RemoteEngine


_OPEN_REMOTE = "moot.cli.remote.engine:open_remote"
"""Import path, loaded only if the command uses a server."""


async def find_conversation(engine: AnyEngine, reference: str, directory: str) -> Conversation:
    """Return the conversation with this id, list number or title, in this order. Raise NotFound if there is none."""
    if reference == LATEST and not isinstance(engine, Engine):
        reference = PREVIOUS  # folders of this machine don't exist on the server
    return await find_in(engine.store, state_of(engine), reference, directory)


def state_of(engine: AnyEngine) -> Path:
    """Return the `state` directory of moot's home, or its part that belongs to the server."""
    return engine.settings.home / "state" if isinstance(engine, Engine) else engine.state


@asynccontextmanager
async def opened(output: Output) -> AsyncGenerator[Engine, None]:
    """Open the engine for the duration of the block. Raise ConfigError or StoreError on failure."""
    async with open_watched(configured_loader(output), output) as engine:
        yield engine


@asynccontextmanager
async def connected(output: Output) -> AsyncGenerator[AnyEngine, None]:
    """Like `opened`, but use the server of `--url` or MOOT_URL if there is one. Raise HostError if the server can't be reached."""
    if not remote_url():
        async with opened(output) as engine:
            yield engine
        return
    async with open_remote(output) as remote:
        yield remote


def open_remote(output: Lines) -> AbstractAsyncContextManager[RemoteEngine]:
    """Return a context manager that opens the engine of the command line's server."""
    return attribute(_OPEN_REMOTE)(configured(output).settings.home, output)


@asynccontextmanager
async def connected_at(conversation: str, output: Output) -> AsyncGenerator[tuple[AnyEngine, Conversation], None]:
    """Like `opened_at`, but use the server of `--url` or MOOT_URL if there is one."""
    async with connected(output) as engine:
        yield engine, await find_conversation(engine, conversation, "" if remote_url() else str(here()))


@asynccontextmanager
async def open_watched(loader: Loader, output: Output, *, resume: bool = False) -> AsyncGenerator[Engine, None]:
    """Open the engine for the duration of the block and follow changes to the configuration. Raise StoreError on failure.

    If `resume` is True, runs of processes that no longer exist are resumed, as in a server.
    """

    def on_change(change: Loaded | ConfigError) -> None:
        if isinstance(change, Loaded):
            apply(change, output)
        log_change(change)

    async with open_engine(loader.current.settings, loader=loader, resume=resume) as engine:
        assert engine.configuration is not None
        engine.configuration.on_change = on_change
        yield engine


@asynccontextmanager
async def opened_at(conversation: str, output: Output) -> AsyncGenerator[tuple[Engine, Conversation], None]:
    """Open the engine and find a conversation. Raise ConfigError, StoreError or NotFound on failure."""
    async with opened(output) as engine:
        yield engine, await find_conversation(engine, conversation, str(here()))


ListPage: TypeAlias = tuple[Page[Conversation], dict[str, RunStatus]]


def list_with_engine(settings: Settings, wanted: ListFilter) -> ListPage:
    """Return a page of conversations and the status of each live run, for commands without an event loop. Raise StoreError on failure."""

    async def listed() -> ListPage:
        async with open_engine(settings) as engine:
            return await _list(engine, wanted)

    return anyio.run(listed)


def list_on_server(output: Lines, wanted: ListFilter) -> tuple[ListPage, Path]:
    """Return the same from the command line's server, and the folder for list numbers. Raise HostError if it can't be reached."""

    async def listed() -> tuple[ListPage, Path]:
        async with open_remote(output) as remote:
            return await _list(remote, wanted), remote.state

    return anyio.run(listed)


async def _list(engine: AnyEngine, wanted: ListFilter) -> ListPage:
    project = None if wanted.project is None else (await engine.store.projects.get(wanted.project)).id
    wanted = with_listed_names(wanted, await engine.store.conversations.choices())
    shown = await engine.store.conversations.list(
        limit=wanted.limit,
        cursor=wanted.cursor,
        directory=wanted.directory,
        project=project,
        query=wanted.query,
        host=wanted.host,
        deleted=wanted.deleted,
        archived=wanted.archived,
        agent=wanted.agent,
        model=wanted.model,
        since=wanted.since,
        until=wanted.until,
        tag=wanted.tag,
        pinned_first=wanted.pinned_first,
    )
    return shown, await live_statuses(engine)


def check_new(flags: RunFlags) -> None:
    """Raise UsageError if `--temporary` is given for an existing conversation."""
    if flags.temporary:
        raise UsageError("--temporary applies only to new conversations.", fix="Leave out the option, or start a conversation.")


_PURGE_SECONDS = 10.0
"""Maximum time for a purge when a command ends. What is left is done at the next start."""


@asynccontextmanager
async def purged(conversations: Sequence[str], engine: Engine, output: Output) -> AsyncGenerator[None, None]:
    """Purge those of the conversations that are temporary after the block. The sequence may grow meanwhile.

    A conversation with an unfinished run, such as one that continues in the background, is purged when it expires.
    """
    try:
        yield
    finally:
        with anyio.move_on_after(_PURGE_SECONDS, shield=True) as scope:
            await _purge_temporary(conversations, engine, output)
        if scope.cancelled_caught:
            output.say("moot: the next command finishes deleting the temporary conversation", "yellow")


@asynccontextmanager
async def deleted_at_end(conversation: Conversation, engine: RemoteEngine, output: Output) -> AsyncGenerator[None, None]:
    """Like `purged`, for a temporary conversation on a server. The server deletes it later if this is not possible now."""
    try:
        yield
    finally:
        if conversation.expires_at is not None:
            with anyio.move_on_after(_PURGE_SECONDS, shield=True):
                try:
                    await engine.purge(conversation.id)
                    output.say("moot: the temporary conversation was deleted", "dim")
                except MootError as error:
                    output.say(f"moot: the server deletes the temporary conversation when it expires: {error.message}", "yellow")


async def _purge_temporary(conversations: Sequence[str], engine: Engine, output: Output) -> None:
    for id in conversations:
        found = await engine.store.conversations.by_client_id(id)
        if found is None or found.expires_at is None:
            continue
        try:
            receipt = await engine.store.erasure.purge([found.id], temporary=True)
        except NotFound:  # another process has purged it
            continue
        except MootError as error:
            output.say(
                f"moot: the temporary conversation could not be deleted yet and will be deleted when it expires: {error.message}", "yellow"
            )
            continue
        if receipt.conversations:
            output.say("moot: the temporary conversation was deleted", "dim")
