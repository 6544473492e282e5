"""Lookup of slash commands: parse a typed line, and find a command that can be used in a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from moot.commands.command import Command, CommandContext, facts_of
from moot.config.settings import Settings
from moot.errors import ConfigError, MootError, UsageError
from moot.mcp.servers import McpServers
from moot.plugins import COMMANDS
from moot.plugins.registry import attribute, hint
from moot.runtime.setup import find_agent, load_project_agents
from moot.types.command import CommandDefinition, CommandFacts
from moot.types.token import LOCAL_USER

ALIASES = {"clear": "new", "resume": "continue", "quit": "exit", "q": "exit", "m": "model", "?": "keys"}
"""Built-in command for each alias. The aliases are listed here, so that resolving one does not import any command."""

_FILE_COMMANDS = "moot.config.commands:file_commands"
_MODEL_PROBLEM, _JOINED = "moot.config.validation:model_problem", "moot.config.validation:joined"
_CUSTOM, _PROMPT, _PROMPT_NAME = (f"moot.commands.custom:{name}" for name in ("CustomCommand", "McpPromptCommand", "mcp_command_name"))
"""Import paths, loaded on first use, because most processes run no custom command."""

_NAME = re.compile(r"/([A-Za-z?][\w:-]*|\d[\w-]*:[\w:-]+)(?:\s+(.*))?", re.DOTALL)

Typed = tuple[str, str]
"""The name of a command as typed, and the command's argument."""


def parse(line: str) -> Typed | None:
    """Parse the command in a line. Return None if the line is a prompt.

    `/usr/bin is full` is a prompt, `/hepl` is a misspelled command, and `?` alone means `/keys`.
    """
    if line.strip() == "?":
        return "keys", ""
    match = _NAME.fullmatch(line.strip())
    return (match[1], (match[2] or "").strip()) if match else None


class Catalogue:
    """The commands that can be used in a folder. Built-in commands can't be replaced.
    Of other commands with the same name, the nearest one wins.
    """

    def __init__(
        self,
        makers: Mapping[str, Callable[[], Command]],
        aliases: Mapping[str, str],
        refused: Mapping[str, ConfigError],
        untrusted: Collection[str] = (),
    ) -> None:
        self._makers = makers
        self._aliases = aliases
        self.refused = refused
        """Reasons why commands can't be used, keyed by command name."""
        self.untrusted = untrusted
        """The names in `refused` whose file is not trusted. The other commands in `refused` have errors."""

    def names(self) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(self._makers)

    def __contains__(self, name: str) -> bool:
        return self._aliases.get(name, name) in self._makers

    def find(self, name: str, *, listing: str = "/help lists all commands.") -> Command:
        """Return the command with this name or alias. Raise UsageError with a suggestion, or ConfigError if it can't be used.

        `listing` says how the user can list all commands.
        """
        known = self._aliases.get(name, name)
        if known in self._makers:
            return self._makers[known]()
        if known in self.refused:
            raise self.refused[known]
        raise UsageError(f"Command {name!r} not found.{hint(name, self.names())}", fix=listing)

    def facts(self) -> Iterator[CommandFacts]:
        """Yield the metadata of all commands, sorted by name."""
        for name in self.names():
            yield self.facts_of(name)

    def starting_with(self, typed: str) -> list[CommandFacts]:
        """Return the metadata of the commands whose names start with `typed` or that have `typed` as an alias.

        An exact match comes first, followed by commands that have aliases.
        """
        found = [one for one in self.facts() if one.name.startswith(typed) or typed in one.aliases]
        return sorted(found, key=lambda one: (typed not in (one.name, *one.aliases), not one.aliases, one.name))

    def facts_of(self, name: str) -> CommandFacts:
        """Return the metadata of the command with this name or alias. Raise the same errors as `find`."""
        known = self._aliases.get(name, name)
        facts = facts_of(known, self.find(known))
        aliases = tuple(sorted(alias for alias, of in self._aliases.items() if of == known))
        return replace(facts, aliases=aliases, origin=COMMANDS.package(known) or facts.origin)


def built_in() -> Catalogue:
    """Return the commands from moot and from installed packages."""
    return Catalogue({name: partial(COMMANDS.make, name) for name in COMMANDS.names()}, ALIASES, {})


async def catalogue_of(context: CommandContext) -> Catalogue:
    """Return the commands that can be used in a conversation. Other users of a server can use only built-in commands."""
    if context.owner != LOCAL_USER:
        return built_in()
    runtime = context.engine.runtime
    return await load(runtime.settings, await context.folder(), runtime.mcp)


async def load(settings: Settings, folder: str, mcp: McpServers | None) -> Catalogue:
    """Return the commands that the owner of moot's home can use in a folder. An empty `folder` means outside of any folder.

    The prompts of an MCP server are those of the last connection to it.
    """
    files = await anyio.to_thread.run_sync(lambda: attribute(_FILE_COMMANDS)(settings.home, Path(folder) if folder else None))
    definitions = {**settings.commands, **files.commands}
    own: dict[str, Callable[[], Command]] = {name: partial(COMMANDS.make, name) for name in COMMANDS.names()}
    unusable = await _unusable(settings, definitions.values(), folder)
    definitions = {name: one for name, one in definitions.items() if name not in unusable}
    aliases = {alias: name for name, one in definitions.items() for alias in one.facts.aliases if alias not in definitions}
    makers: dict[str, Callable[[], Command]] = {name: partial(attribute(_CUSTOM), one) for name, one in definitions.items()}
    offered: dict[str, Callable[[], Command]] = {}
    for server, prompt in mcp.prompts(settings.mcp.values()) if mcp is not None else ():
        offered[attribute(_PROMPT_NAME)(server, prompt)] = partial(attribute(_PROMPT), server, prompt)
    refused = {name: error for name, error in {**files.refused, **unusable}.items() if name not in own}
    return Catalogue({**offered, **makers, **own}, {**aliases, **ALIASES}, refused, files.untrusted)


async def _unusable(settings: Settings, definitions: Iterable[CommandDefinition], folder: str) -> dict[str, ConfigError]:
    """Return the commands that use an agent or model that is not available in the folder, each with the reason."""
    naming = [one for one in definitions if one.steps or one.facts.agent or one.model]
    if naming:
        await load_project_agents(settings, folder)
    providers = {name: one.models for name, one in settings.providers.items()}
    found: dict[str, ConfigError] = {}
    for one in naming:
        facts = one.facts
        named = ((one.agent_line, facts.agent), *((step.line, step.agent) for step in one.steps))
        problems = [(line, _agent_problem(settings, agent, folder), "moot agents list --all") for line, agent in named if agent]
        problems.append((one.model_line, attribute(_MODEL_PROBLEM)(one.model, providers) if one.model else "", "moot models list"))
        if errors := [ConfigError(text, file=facts.origin, line=line, fix=fix) for line, text, fix in problems if text]:
            found[facts.name] = errors[0] if len(errors) == 1 else attribute(_JOINED)(errors)
    return found


async def check_usable(settings: Settings, command: CommandDefinition) -> None:
    """Raise ConfigError, naming the field, if a command of moot's home names an agent or a model that is not available."""
    if error := (await _unusable(settings, [command], "")).get(command.facts.name):
        field = "agent" if command.facts.agent and _agent_problem(settings, command.facts.agent, "") else "model"
        error.problems = ((f"commands.{command.facts.name}.{field}", error.message.partition(": ")[2] or error.message),)
        raise error


def _agent_problem(settings: Settings, agent: str, folder: str) -> str:
    try:
        find_agent(settings, agent, {}, folder)
    except MootError as error:
        return error.message
    return ""
