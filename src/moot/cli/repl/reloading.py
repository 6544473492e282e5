"""The configuration, read again when its file has changed: between prompts, all of it or nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from moot.cli.output import Output
from moot.cli.repl.paper import Paper
from moot.config.loading import FILE, Loaded, load
from moot.engine import Engine
from moot.errors import ConfigError

__all__ = ["Reloading"]


class Reloading:
    """What is changed holds for the next run and for the screen."""

    def __init__(self, engine: Engine, directory: str, output: Output, paper: Paper) -> None:
        self._engine, self._output, self._paper = engine, output, paper
        self._directory = Path(directory)
        self._file = engine.settings.home / FILE
        self._stamp = self._stamped()
        self._generation = engine.settings.generation

    async def look(self) -> None:
        """Takes up a change; one that is wrong is said, and the last good one stays."""
        if (stamp := self._stamped()) == self._stamp:
            return
        self._stamp = stamp
        try:
            loaded = await anyio.to_thread.run_sync(self._load)
        except ConfigError as error:
            self._paper.failed(error)
            self._paper.say("the configuration from before stays in force", "yellow")
            return
        self._output.hide(loaded.secrets)
        self._output.ui = loaded.settings.ui
        self._engine.runtime.settings = loaded.settings
        self._engine.providers.update(loaded.settings)
        self._paper.say("the configuration was read again", "dim")

    def _load(self) -> Loaded:
        loaded = load(home=self._engine.settings.home, environ=os.environ, directory=self._directory)
        self._generation += 1
        return replace(loaded, settings=replace(loaded.settings, generation=self._generation))

    def _stamped(self) -> tuple[int, int]:
        try:
            status = self._file.stat()
        except OSError:  # it is gone: that is a change too
            return 0, 0
        return status.st_mtime_ns, status.st_size
