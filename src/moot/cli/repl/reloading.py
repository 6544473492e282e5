"""Reloads the configuration between prompts when its file has changed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from moot.cli.output import Output
from moot.cli.repl.paper import Scrollback
from moot.config.loading import FILE, Loaded, load
from moot.engine import Engine
from moot.errors import ConfigError

__all__ = ["ConfigReloader"]


class ConfigReloader:
    """Applies a changed configuration to the next run and to the screen."""

    def __init__(self, engine: Engine, directory: str, output: Output, scrollback: Scrollback) -> None:
        self._engine, self._output, self._scrollback = engine, output, scrollback
        self._directory = Path(directory)
        self._file = engine.settings.home / FILE
        self._stamp = self._file_stamp()
        self._generation = engine.settings.generation

    async def reload(self) -> None:
        """Reload a changed configuration. If it is invalid, show the error and keep the current one."""
        if (stamp := self._file_stamp()) == self._stamp:
            return
        self._stamp = stamp
        try:
            loaded = await anyio.to_thread.run_sync(self._load)
        except ConfigError as error:
            self._scrollback.failed(error)
            self._scrollback.say("The previous configuration stays active.", "yellow")
            return
        self._output.hide(loaded.secrets)
        self._output.ui = loaded.settings.ui
        self._engine.runtime.settings = loaded.settings
        self._engine.providers.update(loaded.settings)
        self._scrollback.say("Configuration reloaded.", "dim")

    def _load(self) -> Loaded:
        loaded = load(home=self._engine.settings.home, environ=os.environ, directory=self._directory)
        self._generation += 1
        return replace(loaded, settings=replace(loaded.settings, generation=self._generation))

    def _file_stamp(self) -> tuple[int, int]:
        try:
            status = self._file.stat()
        except OSError:  # a missing file is a change too
            return 0, 0
        return status.st_mtime_ns, status.st_size
