"""The display of an answer below its cell, updated while the answer is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import anyio

from moot.convert.fold import Folder
from moot.formats.notebook.outputs import RECORD, outputs_of, text_bundle
from moot.types.canonical import JsonObject
from moot.types.event import Event
from moot.types.message import Part

INTERVAL = 0.1
"""Minimum number of seconds between two updates of an answer."""


class Frontend(Protocol):
    """The program that shows the notebook, such as JupyterLab."""

    def show(self, bundle: JsonObject, id: str = "", *, update: bool = False) -> None:
        """Add an output below the cell, or replace the output with this id."""

    def suggest(self, text: str) -> None:
        """Add a cell with this text below the current one."""

    async def ask(self, prompt: str) -> str | None:
        """Let the person type a line, and return it. Return None if that is not possible in this frontend."""
        ...


class AnswerDisplay:
    """The outputs of one answer. Every part of the answer is an output of its own, so that an update sends only what has changed."""

    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend
        self._folder = Folder()
        self._id = ""
        self._shown: list[JsonObject] = []
        self._changed = anyio.Event()

    def start(self, message: str) -> None:
        """Show the answer with this message id from now on."""
        self._id = message

    def event(self, event: Event) -> None:
        """Take an event of the run. It is shown with the next update."""
        self._folder.feed_all(event.chunks)
        self._changed.set()

    async def update(self) -> None:
        """Show changes until cancelled, at most once per `INTERVAL`."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            self.show(self._folder.parts())
            await anyio.sleep(INTERVAL)

    def refresh(self) -> None:
        """Show the last changes now, for example before a question to the person."""
        self.show(self._folder.parts())

    def show(self, parts: Sequence[Part], record: JsonObject | None = None) -> None:
        """Show the parts, and add or replace only outputs that have changed. Attach the `RECORD` of the finished answer."""
        bundles = outputs_of(parts)
        bundles += [text_bundle("")] * (len(self._shown) - len(bundles))  # outputs can't be removed
        if record is not None:
            bundles = bundles or [text_bundle("")]
            bundles[-1] = {**bundles[-1], RECORD: record}
        for at, bundle in enumerate(bundles):
            if at >= len(self._shown):
                self._frontend.show(bundle, f"{self._id}-{at}")
                self._shown.append(bundle)
            elif self._shown[at] != bundle:
                self._frontend.show(bundle, f"{self._id}-{at}", update=True)
                self._shown[at] = bundle
