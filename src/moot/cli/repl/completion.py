"""Completion while typing: slash commands, their arguments, and files, resources, macros and tools after `@`."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from moot.cli.repl.composer import CommandCompletion
from moot.cli.repl.status import short_count
from moot.commands import Catalogue, Choice, CommandContext, catalogue_of
from moot.errors import MootError
from moot.features.prompts.attachments import paths_of
from moot.guard.terminal import clean
from moot.plugins.registry import attribute
from moot.tools.catalogue import tools_for
from moot.types.agent import Agent, McpServer
from moot.types.mcp import McpResource

if TYPE_CHECKING:
    from moot.features.projects.completion import FileIndex

_FILE_INDEX = "moot.features.projects.completion:FileIndex"
"""Import path, loaded on first use, so that the first prompt does not wait for the patterns of ignored files."""
MAX_COMPLETIONS = 200
MAX_AGE = 5.0
"""Minimum number of seconds for which a file listing is reused."""
RESOURCES_AGE = 30.0
"""Seconds for which an MCP server's resources are reused."""
RESOURCES_WAIT = 10.0
"""Seconds to wait for an MCP server's resources."""
SHARE = 20
"""A file listing is reused for at least this multiple of the time needed to create it."""

MACRO_CHARACTERS = 100
"""Maximum number of characters of a macro's text that are shown next to its name."""

_MENTION = re.compile(r"(?<![\w@/])@([^\s\"'`@]*)$")


class ReplCompleter(Completer):
    """Completes commands, arguments, files, resources of MCP servers, macros and tools."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._catalogue: Catalogue | None = None
        """Reloaded when the next command is typed."""
        self._arguments: tuple[str, Sequence[Choice]] | None = None
        """The last completed command and its choices."""
        self._files: FileIndex | None = None
        self._list_again_at = 0.0
        self._resources: dict[str, tuple[float, Sequence[McpResource]]] = {}
        """For each MCP server, the time and the result of the last request for its resources."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return ()  # only the asynchronous form is used

    async def get_completions_async(self, document: Document, complete_event: CompleteEvent) -> AsyncGenerator[Completion, None]:
        for completion in await self._complete(document):
            yield completion

    async def _complete(self, document: Document) -> Sequence[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text:
            name, blank, argument = text[1:].partition(" ")
            if not name or self._catalogue is None:
                self._catalogue = await catalogue_of(self._context)
            if not blank:
                self._arguments = None
                return [
                    CommandCompletion(
                        one.name,
                        -len(name),
                        display=f"/{one.name} {one.argument}".rstrip(),
                        about=one.help,
                        is_name=True,
                        needs_more=bool(one.argument) and not one.argument.startswith("["),
                    )
                    for one in self._catalogue.starting_with(name)
                ]
            return await self._complete_argument(self._catalogue, name, argument.lstrip())
        match = _MENTION.search(text)
        if match is None:
            return ()
        if match[1].startswith(("{", "[")):
            return self._complete_names(match[1])
        server, colon, typed = match[1].partition(":")
        if colon and server in self._servers():
            return await self._complete_resource(server, typed)
        found = (await self._file_index()).matches(match[1])
        sizes = await anyio.to_thread.run_sync(partial(_sizes, self._context.directory, found))
        quoted = {path: f'"{path}"' if any(character.isspace() for character in path) else path for path in found}
        files = [Completion(f"@{quoted[path]}", -len(match[0]), display=clean(path), display_meta=sizes[path]) for path in found]
        names = [name for name in self._servers() if name.startswith(match[1])]
        return [*files, *(Completion(f"@{name}:", -len(match[0]), display_meta="resources of an MCP server") for name in names)]

    def _servers(self) -> Mapping[str, McpServer]:
        runtime = self._context.engine.runtime
        return {name: server for name, server in runtime.settings.mcp.items() if server.enabled} if runtime.mcp is not None else {}

    async def _complete_resource(self, name: str, typed: str) -> Sequence[Completion]:
        found: list[Completion] = []
        for one in await self._resources_of(name):
            uri = one.uri.partition("{")[0] if one.is_template else one.uri
            if typed.lower() in one.uri.lower() or typed.lower() in one.name.lower() or (one.is_template and uri.startswith(typed)):
                spelled = f'"{name}:{uri}"' if re.search(r"[\s'`@]", uri) else f"{name}:{uri}"
                if clean(spelled) == spelled:  # the rest can't be typed
                    found.append(Completion(f"@{spelled}", -len(f"@{name}:{typed}"), display=clean(one.uri), display_meta=clean(one.name)))
        return found[:MAX_COMPLETIONS]

    async def _resources_of(self, name: str) -> Sequence[McpResource]:
        """Return the server's resources, or none while it does not answer. They are requested at most once per `RESOURCES_AGE` seconds."""
        mcp, known = self._context.engine.runtime.mcp, self._resources.get(name)
        if mcp is None or (known is not None and time.monotonic() < known[0] + RESOURCES_AGE):
            return known[1] if known is not None else ()
        found: Sequence[McpResource] = ()
        try:
            with anyio.move_on_after(RESOURCES_WAIT):
                found = await mcp.resources(self._servers()[name], self._context.directory)
        except MootError:  # the status of the server tells why
            found = ()
        self._resources[name] = time.monotonic(), found
        return found

    def _complete_names(self, typed: str) -> Sequence[Completion]:
        """Complete the name of a macro or of a tool."""
        sign, settings = typed[0], self._context.engine.runtime.settings
        if sign == "{":
            offered = {f"{name}}}": " ".join(text.split())[:MACRO_CHARACTERS] for name, text in sorted(settings.macros.items())}
        else:
            offered = {f"{tool.name}{{": tool.description for tool in tools_for(settings, Agent())}
        return [
            Completion(f"@{sign}{text}", -len(typed) - 1, display=clean(text[:-1]), display_meta=clean(about))
            for text, about in offered.items()
            if text.startswith(typed[1:])
        ]

    async def _file_index(self) -> FileIndex:
        started = time.monotonic()
        if self._files is None or started > self._list_again_at:
            index: FileIndex = await anyio.to_thread.run_sync(attribute(_FILE_INDEX).of, paths_of(self._context.directory))
            ended = time.monotonic()
            self._files, self._list_again_at = index, ended + max(MAX_AGE, SHARE * (ended - started))
        return self._files

    async def _complete_argument(self, catalogue: Catalogue, name: str, argument: str) -> Sequence[Completion]:
        if self._arguments is None or self._arguments[0] != name:
            try:
                self._arguments = (name, await catalogue.find(name).choices(self._context))
            except MootError:  # unknown command, or its choices are not available
                self._arguments = (name, ())
        typed = argument.lower()
        matches = [choice for choice in self._arguments[1] if typed in choice.value.lower() or typed in choice.label.lower()]
        matches.sort(key=lambda choice: not choice.value.lower().startswith(typed))
        return [
            CommandCompletion(
                one.value, -len(argument), display=clean(one.label or one.value), about=clean(one.about), needs_more=one.needs_more
            )
            for one in matches[:MAX_COMPLETIONS]
        ]


def _sizes(directory: str, paths: Sequence[str]) -> dict[str, str]:
    sizes: dict[str, str] = {}
    for path in paths:
        try:
            sizes[path] = "" if path.endswith("/") else _size(Path(directory, path).stat().st_size)
        except OSError:  # gone since it was listed
            sizes[path] = ""
    return sizes


def _size(number: int) -> str:
    """Return the size with an estimate of its tokens, at four bytes each."""
    if number < 1_000:
        return f"{number} bytes"
    shown = f"{number / 1_000:.1f} kB" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"
    return f"{shown}, about {short_count(number // 4)} tokens"
