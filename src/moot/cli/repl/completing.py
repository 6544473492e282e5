"""What is completed as it is typed: slash commands, and what may stand behind them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from moot.commands import Choice, Situation, find, names
from moot.errors import MootError
from moot.guard.terminal import clean

__all__ = ["Completions"]

AT_MOST = 200


class Completions(Completer):
    """prompt-toolkit's seam."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._arguments: tuple[str, Sequence[Choice]] | None = None
        """The command whose choices were asked for last, and they."""

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
        return ()

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


def _commands(typed: str) -> Sequence[Completion]:
    return [
        Completion(name, -len(typed), display=f"/{name} {find(name).argument}".rstrip(), display_meta=find(name).help)
        for name in names()
        if name.startswith(typed)
    ]


def _completion(choice: Choice, start: int) -> Completion:
    return Completion(choice.value, start, display=clean(choice.label or choice.value), display_meta=clean(choice.about))
