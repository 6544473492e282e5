"""The way in for a program."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from moot.config.loading import load
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.library.moot import Moot
from moot.types.canonical import Json


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
