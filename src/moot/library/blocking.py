"""One prompt from a program that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

import anyio
from pydantic import BaseModel

from moot.config.settings import Settings
from moot.library.live import LiveRun
from moot.library.opening import open as open_moot
from moot.library.options import RunOptions, Schema
from moot.types.canonical import Json, JsonObject

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
        async with open_moot(settings, home=home, config=config) as moot:
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
