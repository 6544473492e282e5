"""What is completed as it is typed: slash commands, what may stand behind them, and `@file`."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from moot.cli.repl.mentions import paths_of
from moot.cli.repl.status import short
from moot.commands import Choice, Situation, find, names
from moot.errors import MootError
from moot.guard.terminal import clean
from moot.runtime.files import candidates, files_below

__all__ = ["Completions"]

AT_MOST = 200
FRESH = 5.0
"""Seconds for which the files that were found are taken for those that there are."""

_MENTION = re.compile(r"(?<![\w@/])@([^\s\"'`@]*)$")


class Completions(Completer):
    """prompt-toolkit's seam."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._arguments: tuple[str, Sequence[Choice]] | None = None
        """The command whose choices were asked for last, and they."""
        self._walked: Sequence[str] = ()
        self._walked_at = -FRESH

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return ()  # only the asynchronous form is used

    async def get_completions_async(self, document: Document, complete_event: CompleteEvent) -> AsyncGenerator[Completion, None]:
        for completion in await self._found(document):
            yield completion

    async def _found(self, document: Document) -> Sequence[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text:
            name, blank, argument = text[1:].partition(" ")
            if not blank:
                self._arguments = None
                return _commands(name)
            return await self._behind(name, argument.lstrip())
        match = _MENTION.search(text)
        return await self._files(match[1]) if match else ()

    async def _files(self, typed: str) -> Sequence[Completion]:
        found = candidates(typed, await self._below())
        sizes = await anyio.to_thread.run_sync(partial(_sizes, self._situation.directory, found))
        return [Completion(_spelled(path), -len(typed) - 1, display=clean(path), display_meta=sizes[path]) for path in found]

    async def _below(self) -> Sequence[str]:
        """The files below the folder, looked at again after a while."""
        if time.monotonic() - self._walked_at > FRESH:
            self._walked = await anyio.to_thread.run_sync(files_below, paths_of(self._situation.directory))
            self._walked_at = time.monotonic()
        return self._walked

    async def _behind(self, name: str, argument: str) -> Sequence[Completion]:
        if self._arguments is None or self._arguments[0] != name:
            try:
                self._arguments = (name, await find(name).choices(self._situation))
            except MootError:  # no such command, or nothing to be had: there is nothing to complete
                self._arguments = (name, ())
        wanted = argument.lower()
        fitting = [one for one in self._arguments[1] if wanted in one.value.lower() or wanted in one.label.lower()]
        fitting.sort(key=lambda one: not one.value.lower().startswith(wanted))
        return [_completion(one, -len(argument)) for one in fitting[:AT_MOST]]


def _spelled(path: str) -> str:
    return f'@"{path}"' if any(character.isspace() for character in path) else f"@{path}"


def _sizes(directory: str, paths: Sequence[str]) -> dict[str, str]:
    sizes: dict[str, str] = {}
    for path in paths:
        try:
            sizes[path] = "" if path.endswith("/") else _size(Path(directory, path).stat().st_size)
        except OSError:  # gone since it was listed
            sizes[path] = ""
    return sizes


def _size(number: int) -> str:
    """With the tokens that it is likely to cost: about four bytes each."""
    if number < 1_000:
        return f"{number} bytes"
    shown = f"{number / 1_000:.1f} kB" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"
    return f"{shown}, about {short(number // 4)} tokens"


def _commands(typed: str) -> Sequence[Completion]:
    return [
        Completion(name, -len(typed), display=f"/{name} {find(name).argument}".rstrip(), display_meta=find(name).help)
        for name in names()
        if name.startswith(typed)
    ]


def _completion(choice: Choice, start: int) -> Completion:
    return Completion(choice.value, start, display=clean(choice.label or choice.value), display_meta=clean(choice.about))
