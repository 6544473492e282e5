"""Change values and rules in a configuration file, and change agent files.
Comments, order and quoting are kept, and each file is written atomically.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from moot.config.agents.files import FOLDER, NAME, SUFFIX, quoted, read_agent, split
from moot.config.document import parse
from moot.config.home import lock_file, read_text, write_atomically
from moot.config.settings import Settings
from moot.config.tree import Node, Place, interpolate_root
from moot.config.validation import refuse_agents, validate
from moot.errors import ConfigError, NotFound, UsageError
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject


def set_value(path: Path, key: str, value: Json, environ: Mapping[str, str]) -> None:
    """Set one value in the configuration file. See `set_values`."""
    set_values(path, {key: value}, environ)


def set_values(path: Path, values: Mapping[str, Json], environ: Mapping[str, str]) -> None:
    """Set either all of these values at their dotted keys, or none. Create the file if needed. Raise ConfigError if the result is invalid.

    The result is validated before it is written. Concurrent changes by other processes are kept.
    """
    with lock_file(path):
        yaml, root, comments = _load(path)
        for key, value in values.items():
            _put(root, key, value)
        write_atomically(path, _checked(yaml, root, comments, path, environ))


def remove_value(path: Path, key: str, environ: Mapping[str, str]) -> None:
    """Remove the value at a dotted key. Raise NotFound if the file does not set it, and ConfigError if the result is invalid."""
    with lock_file(path):
        yaml, root, comments = _load(path)
        level: Any = root
        *above, last = key.split(".")
        for step in above:
            level = cast("Any", level.get(step)) if isinstance(level, dict) else None
        if not isinstance(level, dict) or last not in level:
            raise NotFound(f"{key} is not set in {path}.")
        del level[last]
        write_atomically(path, _checked(yaml, root, comments, path, environ))


def set_entry(path: Path, section: str, name: str, fields: JsonObject, environ: Mapping[str, str]) -> None:
    """Write an entry of a section, such as an MCP server. See `with_entry`."""
    with lock_file(path):
        write_atomically(path, with_entry(path, section, name, fields, environ))


def with_entry(path: Path, section: str, name: str, fields: JsonObject, environ: Mapping[str, str]) -> bytes:
    """Return the file's new content with these fields of an entry set. Raise ConfigError if the new content is invalid.

    A null field is removed, and fields that are not given are kept. A mapping replaces the field's mapping. In it, null keeps the value in
    the file, so that secrets can be kept without knowing them.
    """
    yaml, root, comments = _load(path)
    entries: Any = root.get(section)
    known: Any = cast("Any", entries).get(name) if isinstance(entries, dict) else None
    entry: Any = known if isinstance(known, CommentedMap) else CommentedMap()
    if entry is not known:
        _put(root, f"{section}.{name}", entry)
    for key, value in fields.items():
        if isinstance(value, dict):
            value = _with_kept(entry.get(key), value, f"{section}.{name}.{key}", path)
        if value is None or value == {}:
            entry.pop(key, None)
        elif entry.get(key) != value:
            entry[key] = value
    return _checked(yaml, root, comments, path, environ)


def _with_kept(before: Any, values: JsonObject, key: str, path: Path) -> JsonObject:
    known = cast("dict[str, Any]", before) if isinstance(before, dict) else dict[str, Any]()
    for name in [name for name, value in values.items() if value is None and name not in known]:
        error = ConfigError(f"{key}.{name}: The value is missing.", file=str(path))
        error.problems = ((f"{key}.{name}", f"{name} has no stored value. Enter one."),)
        raise error
    return {name: known[name] if value is None else value for name, value in values.items()}


def _put(root: Any, key: str, value: Any) -> None:
    level = root
    *above, last = key.split(".")
    for step in above:
        if not isinstance(level.get(step), dict):
            level[step] = CommentedMap()
        level = level[step]
    if last in level or len(level) == 0 or level is root:
        level[last] = value
    else:  # before the last key, because the comments before the next section belong to that key
        level.insert(len(level) - 1, last, value)


def check_text(text: str, path: Path, environ: Mapping[str, str], before: str = "") -> None:
    """Raise ConfigError, with line and column, if the text is not a valid configuration.

    Agents with unknown tools, types, providers or models, and MCP servers whose environment variables are not set, are also invalid,
    unless the text `before` already contains them.
    """
    place = Place("user", str(path))
    tree, unset = interpolate_root(parse(text, place), environ)
    known: dict[str, ConfigError] = {}
    try:
        old, known = interpolate_root(parse(before, place), environ)
        validate(old)
    except ConfigError:
        old = Node({}, place)
    for name in unset.keys() - known.keys():
        raise unset[name]
    validate(tree)
    refuse_agents(tree, old)


def round_trip(text: str) -> Any:
    """Return a YAML reader and writer that keeps the comments, quotes and indentation of the text."""
    yaml = cast("Any", YAML(typ="rt"))
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    item = re.search(r"^( *)[^\s#-][^\n]*:[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*( *)- ", text, re.MULTILINE)
    indented = item is not None and len(item[2]) > len(item[1])
    below = re.search(r"^[^\s#-][^\n]*:[ \t]*\n( +)[^\s#-]", text, re.MULTILINE)
    width = len(below[1]) if below else 2
    yaml.indent(mapping=width, sequence=width + 2 if indented else width, offset=width if indented else 0)
    return yaml


def add_rules(path: Path, rules: list[dict[str, str]], environ: Mapping[str, str]) -> None:
    """Add permission rules to the file. Concurrent changes by other processes are kept. Raise ConfigError if the result is invalid."""
    with lock_file(path):
        write_atomically(path, with_rules(path, rules, environ))


def with_rules(path: Path, rules: list[dict[str, str]], environ: Mapping[str, str]) -> bytes:
    """Return the file's new content with these rules appended. Existing rules are not repeated.
    Raise ConfigError if the new content is invalid.
    """
    yaml, root, comments = _load(path)
    permissions = root.get("permissions")
    existing: Any = cast("Any", permissions).get("rules") if isinstance(permissions, dict) else None
    if not isinstance(existing, list):
        existing = CommentedSeq()
        _put(root, "permissions.rules", existing)
    for rule in rules:
        if any("${" in value for value in rule.values()):
            raise ConfigError(
                "A rule can't be added if it contains '${', which starts a variable reference.",
                file=str(path),
                fix=f"Add the rule to {path} by hand, and write $${{ for ${{.",
            )
        if rule not in existing:
            item: Any = CommentedMap(rule)
            item.fa.set_flow_style()
            # before the last item, because the comments before the next section belong to that item
            cast("Any", existing).insert(max(len(cast("list[Any]", existing)) - 1, 0), item)
    return _checked(yaml, root, comments, path, environ)


def without_rule(path: Path, at: int, environ: Mapping[str, str]) -> bytes:
    """Return the file's new content without the rule at index `at`. Raise ConfigError if the new content is invalid."""
    yaml, root, comments = _load(path)
    del root["permissions"]["rules"][at]
    return _checked(yaml, root, comments, path, environ)


def with_front_matter(text: str, values: Mapping[str, Json], path: Path) -> str:
    """Return the text of a file of an agent, command or skill with these fields set. A null value removes a field.
    `instructions` is the text below the front matter.

    Comments, other fields, line endings and a byte order mark are kept. Raise ConfigError if the existing front matter is invalid.
    """
    head, body = split(text)
    try:
        parse(head, Place("user", str(path)))
    except ConfigError:
        head = quoted(head)
        parse(head, Place("user", str(path)))
    yaml = round_trip(head)
    tree: Any = yaml.load(head) or CommentedMap()
    for name, value in values.items():
        if name == "instructions":
            tree.pop(name, None)
            body = str(value or "")
        elif value is None:
            tree.pop(name, None)
        else:
            tree[name] = value
    buffer = io.StringIO()
    if tree:
        yaml.dump(tree, buffer)
    fields = buffer.getvalue().lstrip("\n")
    body = body.replace("\r\n", "\n").strip()
    changed = f"---\n{fields}---\n" + (f"\n{body}\n" if body else "")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return mark + (changed.replace("\n", "\r\n") if "\r\n" in text else changed)


def _load(path: Path) -> tuple[Any, Any, str]:
    """Return the YAML reader, the tree, and, if the file contains only comments, its text, because a tree can't contain those."""
    text = read_text(path)
    parse(text, Place("user", str(path)))  # rejects tags, duplicate keys and alias bombs, which the round-trip parser would accept
    yaml = round_trip(text)
    root = yaml.load(text)
    if root is not None:
        return yaml, root, ""
    return yaml, CommentedMap(), f"{text.rstrip()}\n" if text.strip() else ""


def _checked(yaml: Any, root: Any, comments: str, path: Path, environ: Mapping[str, str]) -> bytes:
    buffer = io.StringIO()
    yaml.dump(root, buffer)
    changed = comments + buffer.getvalue()
    check_text(changed, path, environ, read_text(path))
    return changed.encode()


def new_path(settings: Settings, name: str) -> Path:
    """Return the path of the file for a new agent. Raise UsageError if the agent's name is invalid or already in use."""
    if not NAME.fullmatch(name):
        raise UsageError(f"Invalid agent name {name!r}: use letters, digits, - and _.")
    path = settings.home / FOLDER / f"{name}{SUFFIX}"
    if path.exists() or name in settings.agents:
        raise UsageError(f"Agent {name!r} already exists.", fix=f"Show it with 'moot agents show {name}'.")
    return path


def checked(settings: Settings | None, path: Path, text: str, name: str) -> Agent:
    """Return the agent defined by the text of a file.
    Raise ConfigError, with line and column, if the text is invalid or the agent has a different name.

    If there are no settings, models are not checked.
    """
    agent, _ = read_agent(path, text, None if settings is None else settings.providers)
    if agent.name != name:
        raise ConfigError(
            f"The agent {name!r} can't be renamed to {agent.name!r}.", file=str(path), fix="Copy the agent, then remove the old one."
        )

    return agent


def create_agent(settings: Settings, name: str, values: JsonObject) -> Path:
    """Write a new agent to moot's home folder and return the path of its file.
    Raise UsageError or ConfigError if the agent is invalid. This function blocks.
    """
    path = new_path(settings, name)
    with lock_file(path.parent):
        if path.exists():
            raise UsageError(f"Agent {name!r} already exists.", fix=f"moot agents show {name}")
        write_agent(settings, path, with_front_matter("", values, path), name)
    return path


def write_agent(settings: Settings, path: Path, text: str, name: str) -> None:
    checked(settings, path, text, name)
    write_atomically(path, text.encode())
