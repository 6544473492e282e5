"""Opening moot, and running one prompt without async code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

import anyio
from pydantic import BaseModel

from moot.config.loading import load
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.library.live import LiveRun
from moot.library.moot import Moot
from moot.library.options import RunOptions, Schema
from moot.types.canonical import Json, JsonObject


@asynccontextmanager
async def open(
    settings: Settings | None = None,
    *,
    home: str | Path | None = None,
    directory: str | Path | None = None,
    config: Mapping[str, Json] | None = None,
) -> AsyncGenerator[Moot, None]:
    """A moot for as long as the block lasts: `async with moot.open() as m:`.

    The configuration is the one that the command line has: of `home`, else of MOOT_HOME or the usual place, with `config` laid over
    it by dotted keys, as in `{"models.main": "demo@demo"}`. `settings` takes the place of all of that. `directory` is the folder whose
    configuration is read; the current one without it. Leaving the block leaves runs that still go on to be resumed.
    Raises ConfigError, StoreError.
    """
    if settings is None:
        settings = await anyio.to_thread.run_sync(_load, home, directory, config)
    failure: Exception | None = None
    async with open_engine(settings) as engine:
        async with anyio.create_task_group() as group:
            moot = Moot(engine, group)
            try:
                yield moot
            except Exception as error:  # noqa: BLE001  raised again below: out of a group it would come wrapped
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    await moot.aclose()
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure


def _load(home: str | Path | None, directory: str | Path | None, config: Mapping[str, Json] | None) -> Settings:
    return load(
        home=Path(home).expanduser().absolute() if home is not None else None,
        environ=os.environ,
        flags=config,
        directory=Path(directory) if directory is not None else Path.cwd(),
    ).settings


M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@overload
def run_sync(
    prompt: str,
    /,
    *,
    schema: type[M],
    settings: Settings | None = None,
    home: str | Path | None = None,
    config: Mapping[str, Json] | None = None,
    **options: Unpack[RunOptions],
) -> LiveRun[M]: ...
@overload
def run_sync(
    prompt: str,
    /,
    *,
    schema: JsonObject,
    settings: Settings | None = None,
    home: str | Path | None = None,
    config: Mapping[str, Json] | None = None,
    **options: Unpack[RunOptions],
) -> LiveRun[Json]: ...
@overload
def run_sync(
    prompt: str,
    /,
    *,
    schema: None = None,
    settings: Settings | None = None,
    home: str | Path | None = None,
    config: Mapping[str, Json] | None = None,
    **options: Unpack[RunOptions],
) -> LiveRun[None]: ...
def run_sync(
    prompt: str,
    /,
    *,
    schema: Schema | None = None,
    settings: Settings | None = None,
    home: str | Path | None = None,
    config: Mapping[str, Json] | None = None,
    **options: Unpack[RunOptions],
) -> LiveRun[Any]:
    """The finished run of one prompt, for scripts and notebooks; `await m.run(…)` is for all else. Raises what that raises.

    Opens a moot and closes it again. Where an event loop runs already, as in a notebook, the work is done in a thread meanwhile.
    """

    async def work() -> LiveRun[Any]:
        async with open(settings, home=home, config=config) as moot:
            run: LiveRun[Any] = moot.run(prompt, schema=schema, **options)  # pyright: ignore[reportCallIssue, reportArgumentType]
            return await run

    return _outside(lambda: anyio.run(work))


def _outside(work: Callable[[], T]) -> T:
    """Runs what starts an event loop of its own, beside the one of this thread if there is one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "moot") as pool:
        return pool.submit(work).result()
