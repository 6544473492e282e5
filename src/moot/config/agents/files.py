"""Agents defined in Markdown files: YAML front matter with the fields of an agent, followed by its instructions."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moot.config.agents.claude_code import FOLDER as FOREIGN_FOLDER
from moot.config.agents.claude_code import translated
from moot.config.home import read_text
from moot.config.settings import agent_of
from moot.config.tree import Node, Place, from_json
from moot.errors import ConfigError
from moot.plugins.registry import attribute
from moot.types.agent import Agent
from moot.types.canonical import dumps

FOLDER = "agents"
SUFFIX = ".md"

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE)

_TEXTS = ("name", "description", "version", "forked_from")
"""Fields whose values are read as text even if they look like numbers."""

LAYER = "agent"


@dataclass(frozen=True, slots=True)
class AgentFile:
    """An agent that is defined in a file, as an entry of the section `agents`."""

    name: str
    node: Node
    path: Path
    notes: tuple[str, ...] = ()
    """Messages about other programs' fields and tools that have no equivalent in moot."""


def markdown_files(folder: Path | str) -> list[str]:
    """Return the paths of a folder's Markdown files, sorted by name. The list is empty if the folder is missing or unreadable."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.name.endswith(SUFFIX) and not entry.name.startswith("."))
    except OSError:
        return []


def split(text: str) -> tuple[str, str]:
    """Return the YAML between the first two `---` lines, and the text after them. If there are no such lines, the YAML is empty.

    The first `---` is replaced by an empty line, so that line numbers stay the same.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return "", "\n".join(lines)
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        return "\n".join(["", *lines[1:]]), ""
    return "\n".join(["", *lines[1:end]]), "\n".join(lines[end + 1 :])


_PLAIN = re.compile(r"^((?:argument-hint|argument|description):[ \t]*)([^\s\"'|>#].*)$", re.MULTILINE)


def quoted(head: str) -> str:
    """Return the YAML with quotes around values that need them but are often written without, such as `argument-hint: [file] [how]`."""
    return _PLAIN.sub(lambda line: f"{line[1]}{dumps(line[2].strip()).decode()}", head)


FIELDS = (
    *("description", "agent_type", "model", "instructions", "rules", "tools", "allowed_uris", "skills", "mcp", "role", "temperature"),
    *("max_steps", "reasoning", "history", "fallback", "hooks", "options", "prompt", "agents", "isolation", "output_format", "hidden"),
    *("beta", "default", "version", "forked_from"),
)
"""The names of the fields of `schema.AgentPart`. They are repeated here, because importing that module takes longer than reading a file."""

PLUGIN_FIELDS = ("description", "model", "tools", "max_steps", "reasoning", "isolation")
"""The fields that an agent in a plugin may have. Other fields, such as `options`, could make it run programs."""

Parse = Callable[[str, Place], Node]


def _parse(text: str, place: Place) -> Node:
    return attribute("moot.config.document:parse")(text, place)


def agent_file(path: Path, text: str, *, foreign: bool = False, parse: Parse = _parse, known: Sequence[str] = FIELDS) -> AgentFile:
    """Return the agent defined by a file's text. If the front matter is invalid, raise ConfigError with line and column.

    Variable references are not replaced, so that no secret gets into a prompt.
    """
    place = Place(LAYER, str(path))
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.strip():
        raise place.error("The file is empty.", "Write the agent's instructions, or remove the file.")
    head, body = split(text)
    head = quoted(head) if foreign else head
    tree = parse(head, place) if head.strip() else Node({}, place)
    given = dict(tree.value) if isinstance(tree.value, dict) else {}
    for field in _TEXTS:
        if field in given and not isinstance(given[field].value, str | dict | list):
            given[field] = replace(given[field], value=given[field].text)
    fields, notes = translated(given, known, foreign=foreign)
    name = fields.pop("name", Node(path.stem, place))
    if not isinstance(name.value, str) or not NAME.fullmatch(name.value):
        raise name.place.error(f"Invalid agent name {name.value!r}: use letters, digits, - and _.")
    if body.strip():
        if "instructions" in fields:
            raise fields["instructions"].place.error("The instructions are given twice: as a field and below the front matter.")
        fields["instructions"] = Node(body.strip(), Place(LAYER, str(path), text.count("\n", 0, text.rindex(body)) + 1))
    return AgentFile(name.value, Node(dict(fields), Place(LAYER, str(path), 1)), path, tuple(f"{path}: {note}" for note in notes))


def home_layer(home: Path, parse: Parse = _parse) -> tuple[Node, list[str]]:
    """Return the agents in the folder `agents` of moot's home as a layer of the configuration, and notes.
    Raise ConfigError for an invalid file.
    """
    found: dict[str, AgentFile] = {}
    for path in map(Path, markdown_files(home / FOLDER)):
        file = agent_file(path, read_text(path), parse=parse)
        if file.name in found:
            raise ConfigError(f"{str(found[file.name].path)!r} also defines the agent {file.name!r}.", file=str(path))
        found[file.name] = file
    place = Place(LAYER, str(home / FOLDER))
    agents = Node({name: file.node for name, file in found.items()}, place)
    return Node({"agents": agents} if found else {}, Place("default", "")), [note for file in found.values() for note in file.notes]


def read_agent(
    path: Path, text: str, providers: Iterable[str] | None = None, *, foreign: bool = False, known: Sequence[str] = FIELDS
) -> tuple[Agent, tuple[str, ...]]:
    """Return the agent defined by a file's text, and notes about fields without an equivalent. Raise ConfigError if the text is invalid.

    `providers` are the names of the configured providers. If they are not given, models are not checked. A `foreign` file may have fields
    that moot doesn't know.
    """
    foreign = foreign or path.parent.as_posix().endswith(FOREIGN_FOLDER)
    file = agent_file(path, text, foreign=foreign, known=known)
    place = Place(LAYER, str(path))
    configured = from_json({name: {"base_url": "http://localhost"} for name in providers or ()}, place)  # only the names matter here
    root = Node({"agents": Node({file.name: file.node}, place), "providers": configured}, place)
    configuration = attribute("moot.config.validation:validate")(root)
    attribute("moot.config.validation:refuse_agents")(root, Node({}, place), models=providers is not None)
    part = configuration.agents[file.name].model_dump(mode="json")
    return replace(agent_of(file.name, part), origin=str(path)), file.notes
