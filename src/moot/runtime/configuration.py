"""The configuration of a running process. Either all changed files are loaded or none. The changes apply to the next step of every run."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio
from anyio import to_thread

from moot.config.loader import Loaded, Loader
from moot.errors import ConfigError
from moot.runtime.runtime import Runtime

DEBOUNCE = 0.5
"""Seconds that the files must be unchanged before they are loaded, so that a half-written file is not read."""

_POLL = 0.25
"""Seconds between two checks for changes."""

_TRIES = 10
"""Maximum number of debounce periods that `refresh` waits for files that keep changing."""

_SWITCH = 0.0005
"""Seconds that the thread that loads the files may run while other threads wait. Python's default is ten times as long."""

log = logging.getLogger("moot.runtime")


def log_change(change: Loaded | ConfigError) -> None:
    """Log that the configuration was loaded, or why it could not be loaded."""
    if isinstance(change, ConfigError):
        log.warning("invalid configuration, keeping the previous one: %s", change)
    else:
        log.info("configuration reloaded")


class Configuration:
    """The watcher of the configuration files; one per process. If changed files are invalid, the last valid configuration is kept."""

    def __init__(self, runtime: Runtime, loader: Loader) -> None:
        self._runtime = runtime
        self._loader = loader
        self._lock = anyio.Lock()
        self.on_change: Callable[[Loaded | ConfigError], None] = log_change
        """Called after each attempt to load changed files."""

    @property
    def loaded(self) -> Loaded:
        """The current configuration, with the origin of each value."""
        return self._loader.current

    @property
    def error(self) -> ConfigError | None:
        """The error that prevents the current files from being loaded, or None if they are loaded."""
        return self._loader.error

    async def reload(self) -> bool:
        """Load the files now. Return False and set `error` if they are invalid."""
        async with self._lock:
            return await self._load()

    async def _load(self) -> bool:
        known = self.loaded.notes
        with _sharing():
            succeeded = await to_thread.run_sync(self._loader.reload)
        if succeeded:
            self._runtime.settings = self.loaded.settings
            self._runtime.providers.update(self.loaded.settings)
            for note in self.loaded.notes:
                if note not in known:
                    log.warning("%s", note)
        self.on_change(self._loader.error or self.loaded)
        return succeeded

    async def refresh(self) -> None:
        """Load changed files as soon as they have been stable for 500 ms. Return at once if nothing has changed."""
        for _ in range(_TRIES):
            if (before := await self._stamp()) == self._loader.seen:
                return
            await anyio.sleep(DEBOUNCE)
            async with self._lock:
                if await self._stamp() == before != self._loader.seen:  # not loaded by someone else meanwhile
                    await self._load()

    async def _stamp(self) -> tuple[object, ...]:
        return await to_thread.run_sync(self._loader.stamp) if self._loader.has_plugins else self._loader.stamp()

    async def watch(self) -> None:
        """Load changed files until cancelled."""
        while True:
            await anyio.sleep(_POLL)
            await self.refresh()


@contextmanager
def _sharing() -> Generator[None]:
    """Let the block run in small time slices and without garbage collection, because parsing a large file would delay streams for a
    second."""
    interval, collects = sys.getswitchinterval(), gc.isenabled()
    # another reload in this process may be active, so only what is changed here is restored
    if interval > _SWITCH:
        sys.setswitchinterval(_SWITCH)
    if collects:
        gc.disable()
    try:
        yield
    finally:
        if interval > _SWITCH:
            sys.setswitchinterval(interval)
        if collects:
            gc.enable()
