"""Completion and help in a cell: commands after `%` or `/`, their arguments, and files after `@`."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import anyio.to_thread

from moot.commands import Choice, catalogue_of
from moot.errors import MootError
from moot.features.projects.completion import FileIndex
from moot.features.prompts.attachments import paths_of
from moot.guard.terminal import clean
from moot.kernel.notebook import Notebook

_MOST = 200
"""Maximum number of completions."""
_AGE = 5.0
"""Number of seconds for which a file listing is reused."""
_COMMAND = re.compile(r"[%/]([\w:-]*)(?:[ \t]+(.*))?")
_MENTION = re.compile(r"(?<![\w@/])@([^\s\"'`@]*)$")

Match = tuple[str, str]
"""The text to insert, and a word for its kind."""


class Completer:
    """Completions for one notebook."""

    def __init__(self, notebook: Notebook) -> None:
        self._context = notebook.context
        self._files: FileIndex | None = None
        self._listed_at = 0.0

    async def complete(self, text: str) -> tuple[list[Match], int]:
        """Return completions for the text before the cursor, and the number of characters that they replace."""
        line = text.rpartition("\n")[2]
        match = _COMMAND.fullmatch(line)
        if match is not None and (line.startswith("%") or "\n" not in text):
            return await self._command(line, match)
        mention = _MENTION.search(line)
        if mention is None:
            return [], 0
        found = (await self._file_index()).matches(mention[1])
        quoted = [f'"{path}"' if any(map(str.isspace, path)) else path for path in found if clean(path) == path]
        return [(f"@{path}", "file") for path in quoted], len(mention[0])

    async def describe(self, code: str, cursor: int) -> str:
        """Return the help of the command on the cursor's line, or an empty string if there is none."""
        before, after = code[:cursor].rpartition("\n")[2], code[cursor:].partition("\n")[0]
        match = _COMMAND.match(before + after)
        catalogue = await catalogue_of(self._context)
        if match is None or match[1] not in catalogue:
            return ""
        facts = catalogue.facts_of(match[1])
        examples = [f"  {example}" for example in facts.examples]
        return "\n".join([f"{f'/{facts.name} {facts.argument}'.rstrip()}", "", facts.help, *examples])

    async def _command(self, line: str, match: re.Match[str]) -> tuple[list[Match], int]:
        catalogue = await catalogue_of(self._context)
        if match[2] is None and not line.endswith((" ", "\t")):
            return [(f"{line[0]}{one.name}", "command") for one in catalogue.starting_with(match[1])], len(line)
        typed = match[2] or ""
        choices: Sequence[Choice] = ()
        try:
            choices = await catalogue.find(match[1]).choices(self._context)
        except MootError:  # unknown command, or its choices are not available
            return [], 0
        wanted = typed.lower()
        found = [one.value for one in choices if wanted in one.value.lower() or wanted in one.label.lower()]
        found.sort(key=lambda value: not value.lower().startswith(wanted))
        return [(value, match[1]) for value in found[:_MOST]], len(typed)

    async def _file_index(self) -> FileIndex:
        if self._files is None or time.monotonic() > self._listed_at + _AGE:
            self._files = await anyio.to_thread.run_sync(FileIndex.of, paths_of(self._context.directory))
            self._listed_at = time.monotonic()
        return self._files
