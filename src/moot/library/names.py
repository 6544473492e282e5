"""The public names of the package `moot`, with its functions `open` and `run_sync`.

`moot/__init__.pyi` repeats the names for type checkers, and a test compares both lists.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

import anyio
from pydantic import BaseModel

from moot import errors
from moot.config.loader import Loader
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.library.live import LiveRun
from moot.library.moot import Conversations, Moot
from moot.library.options import Asked, RunOptions, Schema
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run
from moot.types.tool import Question
from moot.types.usage import Usage

log = logging.getLogger("moot.library")


@asynccontextmanager
async def open(
    settings: Settings | None = None,
    *,
    home: str | Path | None = None,
    directory: str | Path | None = None,
    config: Mapping[str, Json] | None = None,
) -> AsyncGenerator[Moot, None]:
    """Open moot for the duration of the block: `async with moot.open() as m:`.

    Use the same configuration as the command line, read from `home`, MOOT_HOME or the default location. `config` overrides it by dotted
    keys, as in `{"models.main": "demo@demo"}`. `directory` is the folder whose project configuration is read (default: current
    directory). The files are loaded again when they change. If `settings` is given, no configuration is read. Runs that are still active
    when the block ends can be resumed later. Raise ConfigError or StoreError if moot can't be opened.
    """
    loader: Loader | None = None
    if settings is None:
        loader = await anyio.to_thread.run_sync(_loader, home, directory, config)
        settings = loader.current.settings
    failure: Exception | None = None
    async with open_engine(settings, loader=loader) as engine:
        async with anyio.create_task_group() as group:
            moot = Moot(engine, group)
            try:
                yield moot
            except Exception as error:  # noqa: BLE001  raised below: the task group would wrap it
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    await moot.aclose()
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure


M = TypeVar("M", bound=BaseModel)


def _loader(home: str | Path | None, directory: str | Path | None, config: Mapping[str, Json] | None) -> Loader:
    loader = Loader(
        home=Path(home).expanduser().absolute() if home is not None else None,
        environ=os.environ,
        flags=config,
        directory=Path(directory) if directory is not None else Path.cwd(),
    )
    for note in loader.current.notes:
        log.warning("%s", note)
    return loader


class SyncOptions(RunOptions, total=False):
    """Options of `run_sync`: all options of a run, and some options of `open`."""

    settings: Settings | None
    home: str | Path | None
    config: Mapping[str, Json] | None


@overload
def run_sync(prompt: str, /, *, schema: type[M], **options: Unpack[SyncOptions]) -> LiveRun[M]: ...
@overload
def run_sync(prompt: str, /, *, schema: JsonObject, **options: Unpack[SyncOptions]) -> LiveRun[Json]: ...
@overload
def run_sync(prompt: str, /, *, schema: None = None, **options: Unpack[SyncOptions]) -> LiveRun[None]: ...
def run_sync(prompt: str, /, *, schema: Schema | None = None, **options: Unpack[SyncOptions]) -> LiveRun[Any]:
    """Run one prompt and return the finished run, for scripts and notebooks. In async code, use `await m.run(…)`.

    moot is opened for this prompt and closed afterwards. If an event loop is already running, as in a notebook, the prompt runs in a
    thread. The errors are those of `m.run`.
    """

    async def work() -> LiveRun[Any]:
        settings, home, config = options.pop("settings", None), options.pop("home", None), options.pop("config", None)
        async with open(settings, home=home, config=config) as moot:
            run: LiveRun[Any] = moot.run(prompt, schema=schema, **options)  # pyright: ignore[reportCallIssue, reportArgumentType]
            return await run

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(work)
    with ThreadPoolExecutor(1, "moot") as pool:
        return pool.submit(anyio.run, work).result()


NAMES: Mapping[str, object] = {
    "open": open,
    "run_sync": run_sync,
    **{
        kind.__name__: kind
        for kind in (Answer, Approval, Asked, Conversation, Conversations, Event, LiveRun, Message, Moot, Question, Run, Settings, Usage)
    },
    **{name: getattr(errors, name) for name in errors.__all__},
}


def named(name: str) -> object:
    """Return the object for `moot.NAME`. Raise AttributeError if the name is not public."""
    if name not in NAMES:
        raise AttributeError(f"module 'moot' has no attribute {name!r}")
    return NAMES[name]
