"""The configuration in force: read again when its file changes, all of it or nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import anyio
from anyio import to_thread

from moot.config.loading import Loaded, Loader
from moot.engine import Engine
from moot.errors import ConfigError

LOOK = 0.5
"""Seconds between two looks at the file; a change is taken up once it has stayed for one."""

log = logging.getLogger("moot.server")


class Configuration:
    """What is changed holds for the next step of every run."""

    def __init__(self, engine: Engine, loader: Loader, hide: Callable[[Sequence[str]], None] | None = None) -> None:
        """`hide` is told the secrets of what is taken up, so that no log line holds one."""
        self._engine = engine
        self._loader = loader
        self._hide = hide

    @property
    def loaded(self) -> Loaded:
        """What is in force, with where each value was written."""
        return self._loader.current

    @property
    def error(self) -> ConfigError | None:
        """What is wrong with the file as it stands now; None when it is in force."""
        return self._loader.error

    async def reload(self) -> bool:
        """Takes the file up as it is now; False, with `error` set, when it is wrong."""
        if not await to_thread.run_sync(self._loader.reload):
            log.warning("the configuration from before stays in force: %s", self._loader.error)
            return False
        if self._hide is not None:
            self._hide(self.loaded.secrets)
        self._engine.runtime.settings = self.loaded.settings
        self._engine.providers.update(self.loaded.settings)
        log.info("the configuration was read again")
        return True

    async def watch(self) -> None:
        """Takes up what is changed, for as long as it is not cancelled."""
        before = self._loader.stamp()
        while True:
            await anyio.sleep(LOOK)
            now = self._loader.stamp()
            if now == before and self._loader.is_stale():
                await self.reload()
            before = now
