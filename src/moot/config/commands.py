"""Custom slash commands from the section `commands`, and from Markdown and YAML files in moot's home and in trusted projects."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from moot.config.agents.claude_code import COMMANDS_FOLDER, command_fields
from moot.config.agents.files import quoted, split
from moot.config.agents.project import repository_root
from moot.config.home import lock_file, read_text, write_atomically
from moot.config.plugins.installed import used_plugins
from moot.config.plugins.layout import Plugin
from moot.config.tree import Node, Place, find, place_of, plain
from moot.config.trust import is_trusted, trust_list, trusted_files
from moot.errors import ConfigError
from moot.plugins.registry import attribute
from moot.types.canonical import Json
from moot.types.command import COMMAND_NAME, CommandDefinition, CommandFacts, CommandParameter
from moot.types.workflow import CheckKind, StepCheck, WorkflowStep

FOLDER = "commands"
PLACES = (f".moot/{FOLDER}", COMMANDS_FOLDER)
"""Folders that contain commands in a project."""

SUFFIXES = (".md", ".yaml", ".yml")
MAX_FILES = 500
"""Maximum number of files to read in one folder."""
_DEPTH = 3

_KEPT = 64
"""Maximum number of folders whose commands are cached."""


@dataclass(frozen=True, slots=True)
class FileCommands:
    """The commands that are defined in files in moot's home and in a folder's project."""

    commands: Mapping[str, CommandDefinition] = field(default_factory=dict[str, CommandDefinition])
    refused: Mapping[str, ConfigError] = field(default_factory=dict[str, ConfigError])
    """Reasons why commands can't be used, keyed by name: the file is not trusted or not valid."""
    untrusted: frozenset[str] = frozenset()
    """The names in `refused` whose file is not trusted."""


def definition(name: str, part: Mapping[str, Any], origin: str, notes: tuple[str, ...] = ()) -> CommandDefinition:
    """Return the command defined by a complete, validated entry of `commands`."""
    parameters = tuple(
        CommandParameter(one["name"], one["description"], one["required"], one["default"], tuple(one["choices"]))
        for one in part["parameters"]
    )
    argument = part["argument"] or " ".join(f"<{one.name}>" if one.required else f"[{one.name}]" for one in parameters)
    facts = CommandFacts(
        name,
        part["description"] or _first_line(part["prompt"]) or _named(part["steps"]),
        argument,
        part["category"],
        part["type"],
        tuple(part["aliases"]),
        parameters,
        tuple(part["requires"]),
        part["agent"],
        tuple(part["examples"]),
        origin,
    )
    return CommandDefinition(facts, part["prompt"], part["model"], notes, steps_of(part["steps"]))


def placed(command: CommandDefinition, root: Node) -> CommandDefinition:
    """Return the command with the file and lines of its definition,
    taken from the configuration that contains it as an entry of `commands`.
    """
    path = ("commands", command.facts.name)
    agent, model = (place_of(root, (*path, key)) for key in ("agent", "model"))
    steps = tuple(replace(step, line=place_of(root, (*path, "steps", at)).line) for at, step in enumerate(command.steps))
    facts = replace(command.facts, origin=place_of(root, path, key=True).source or command.facts.origin)
    return replace(command, facts=facts, steps=steps, agent_line=agent.line, model_line=model.line)


def steps_of(parts: Sequence[Mapping[str, Any]]) -> tuple[WorkflowStep, ...]:
    """Return the steps defined by validated entries of `steps`. Steps without a name are numbered."""
    return tuple(
        WorkflowStep(part["name"] or str(number), part["prompt"], part["agent"], _check(part["check"]), part["retries"])
        for number, part in enumerate(parts, 1)
    )


def _check(part: Mapping[str, Any] | None) -> StepCheck | None:
    kinds: tuple[CheckKind, ...] = get_args(CheckKind)
    return next((StepCheck(kind, part[kind]) for kind in kinds if part[kind]), None) if part is not None else None


def _first_line(text: str) -> str:
    line = next((line.strip(" #") for line in text.split("\n") if line.strip(" #")), "")
    return line if len(line) <= 80 else f"{line[:79].rstrip()}…"


def _named(steps: Sequence[Mapping[str, Any]]) -> str:
    return f"Run {len(steps)} {'step' if len(steps) == 1 else 'steps'} in order" if steps else ""


def command_files_of(directory: Path, home: Path) -> list[Path]:
    """Return the command files in a folder and in the root of its repository."""
    return [path for _, path in _of_project(directory, home)]


def file_commands(home: Path, directory: Path | None) -> FileCommands:
    """Return the commands in files of the project, moot's home and plugins. The project's commands take precedence.

    This function blocks. Only changed files are read.
    """
    files = [*(_of_project(directory, home) if directory is not None else ()), *_below(home / FOLDER)]
    plugins = used_plugins(home)
    stamps = tuple((str(path), _stamp(path)) for path in (*(path for _, path in files), trust_list(home))) if files else ()
    cached = _cache.get((home, directory))
    if cached is None or cached[0] != (stamps, plugins):
        cached = (stamps, plugins), _read(home, files, plugins)
        _cache.pop((home, directory), None)
        _cache[home, directory] = cached
        while len(_cache) > _KEPT:
            _cache.popitem(last=False)
    return cached[1]


_cache: OrderedDict[tuple[Path, Path | None], tuple[object, FileCommands]] = OrderedDict()


def _of_project(directory: Path, home: Path) -> list[tuple[str, Path]]:
    folders = dict.fromkeys(filter(None, (str(directory), repository_root(str(directory)))))
    places = [Path(folder, place) for folder in folders for place in PLACES]
    return [found for place in places if place.parent != home for found in _below(place)]


def _below(folder: Path) -> list[tuple[str, Path]]:
    """Return the names and paths of a folder's commands. The names of commands in a subfolder start with the subfolder's name."""
    found: list[tuple[str, Path]] = []
    for above, folders, names in os.walk(folder):
        inside = Path(above).relative_to(folder).parts
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if len(inside) < _DEPTH else []
        paths = [Path(above, name) for name in sorted(names) if name.endswith(SUFFIXES) and not name.startswith(".")]
        found += [(":".join((*inside, path.stem)), path) for path in paths]
        if len(found) >= MAX_FILES:
            break
    return found[:MAX_FILES]


def _stamp(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _read(home: Path, files: list[tuple[str, Path]], plugins: list[Plugin]) -> FileCommands:
    commands: dict[str, CommandDefinition] = {}
    refused: dict[str, ConfigError] = {}
    untrusted: set[str] = set()
    for name, path in files:
        try:
            text = read_text(path)
            if not path.is_relative_to(home / FOLDER) and not is_trusted(home, path, text):
                if name not in refused:
                    untrusted.add(name)
                raise _untrusted(path, str(path.resolve()) in trusted_files(home))
            found = read_command(name, path, text)
        except ConfigError as error:
            refused.setdefault(name, error)
            continue
        commands.setdefault(name, found)
    for file in (file for plugin in plugins for file in plugin.commands):
        try:
            commands.setdefault(file.name, read_command(file.name, file.path, file.text, foreign=True))
        except ConfigError as error:
            refused.setdefault(file.name, error)
    return FileCommands(commands, {name: error for name, error in refused.items() if name not in commands}, frozenset(untrusted))


def _untrusted(path: Path, changed: bool) -> ConfigError:
    why = "The command has changed since it was trusted." if changed else "The command is ignored because its file is not trusted."
    place = next(str(parent.parent.parent) for parent in path.parents if parent.name == FOLDER)
    return ConfigError(why, file=str(path), fix=f"Review it, then run 'moot trust {place}'.")


def read_command(name: str, path: Path, text: str, *, foreign: bool = False) -> CommandDefinition:
    """Return the command defined by a file's text: YAML front matter and a prompt, or only YAML. Raise ConfigError if the text is invalid.

    A `foreign` file may have fields that moot doesn't know.
    """
    place = Place("command", str(path))
    if not re.fullmatch(COMMAND_NAME, name):
        raise place.error(f"Invalid command name {name!r}: use letters, digits, - and _.")
    text = text.replace("\r\n", "\n")
    head, body = split(text) if path.suffix == ".md" else (text, "")
    head = quoted(head)
    tree = attribute("moot.config.document:parse")(head, place) if head.strip() else Node({}, place)
    given = find(tree)
    fields = dict(given) if isinstance(given, dict) else {}
    notes: tuple[str, ...] = ()
    if path.suffix == ".md":
        foreign = foreign or any(parent.as_posix().endswith(COMMANDS_FOLDER) for parent in path.parents)
        fields, notes = command_fields(fields, foreign=foreign)
        if body.strip() and "prompt" in fields:
            raise fields["prompt"].place.error("The prompt is given twice: as a field and below the front matter.")
        if body.strip():
            fields["prompt"] = Node(body.strip(), replace(place, line=text.count("\n", 0, text.rindex(body.strip())) + 1))
    root = Node({"commands": Node({name: Node(fields, replace(place, line=1))}, place)}, place)
    part = attribute("moot.config.validation:validate")(root).commands[name]
    return placed(definition(name, part.model_dump(mode="json"), str(path), notes), root)


def own_command_file(home: Path, name: str) -> Path:
    """Return the path of a command's Markdown file in moot's home. Raise ConfigError if the name is invalid."""
    if not re.fullmatch(COMMAND_NAME, name):
        error = ConfigError(f"Invalid command name {name!r}: use letters, digits, - and _.")
        error.problems = ((f"commands.{name.replace('.', '')}.name", "Use letters, digits, - and _."),)
        raise error
    return (home / FOLDER).joinpath(*name.split(":")).with_suffix(".md")


def written_fields(text: str, path: Path) -> dict[str, Json]:
    """Return the front matter of a command's file, as it is written. Raise ConfigError if it is invalid."""
    head = quoted(split(text.replace("\r\n", "\n"))[0])
    fields = plain(attribute("moot.config.document:parse")(head, Place("command", str(path)))) if head.strip() else {}
    return fields if isinstance(fields, dict) else {}


def write_command_file(path: Path, before: str, after: str) -> None:
    """Replace the file's text `before`, which is empty for a new file. An empty `after` deletes the file. This function blocks.

    Raise ConfigError if another program has changed the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock_file(path.parent):
        if read_text(path, mark=True) != before:
            raise ConfigError("Another program has changed the file.", file=str(path), fix="Load the command again.")
        if after:
            write_atomically(path, after.encode())
        else:
            path.unlink(missing_ok=True)
