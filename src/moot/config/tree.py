"""A tree of configuration values and the places where they are written. Layers can be merged, and `${VAR}` references replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from moot.config.home import NO_SETTINGS
from moot.errors import ConfigError
from moot.types.canonical import Json

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a value is written."""

    layer: str
    """The layer: default, agent, user, project, environment or flags."""
    source: str
    """Path of the file, or name of the environment variable or flag."""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return " ".join(filter(None, (self.layer, ":".join(str(part) for part in (self.source, self.line, self.column) if part))))

    def error(self, message: str, fix: str = "") -> ConfigError:
        """Return an error that refers to this place."""
        return ConfigError(message, file=self.source, line=self.line, column=self.column, fix=fix)


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place. For a scalar, `text` is its original spelling."""

    value: Scalar | list[Node] | dict[str, Node]
    place: Place
    text: str = ""
    plain: bool = False
    """True for an unquoted scalar, in which the value of `${VAR}` may become a number."""
    named: Place | None = None
    """The place of the value's key; None if it has no key."""
    from_variable: bool = False
    """True if the value contains a resolved `${VAR}`."""
    size: int = field(default=1, compare=False)


def scalar(text: str) -> Scalar:
    """Return the value of an unquoted YAML 1.2 scalar. Very long numbers remain text."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 19 and _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if len(text) <= 40 and _FLOAT.fullmatch(text):
        return float(text)
    return text


def plain(node: Node) -> Json:
    """Return the values without their places. Keys with the value null are omitted, because null means "not set"."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items() if child.value is not None}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value


_COMPLETE = ("budgets", "macros")
"""Sections whose entries can't be null. For example, a budget without a value would limit nothing."""


def plain_configuration(root: Node) -> Json:
    """Return the values of a complete configuration as `plain` does, but keep null for entries that must have a value."""
    values = plain(root)
    for section in _COMPLETE if isinstance(values, dict) else ():
        entries = find(root, section)
        if isinstance(values, dict) and isinstance(entries, dict):
            values[section] = {name: None if entry.value is None else plain(entry) for name, entry in entries.items()}
    return values


def find(node: Node, *path: str) -> Scalar | list[Node] | dict[str, Node]:
    """Return the value at a path of keys, or None."""
    for key in path:
        if not isinstance(node.value, dict) or key not in node.value:
            return None
        node = node.value[key]
    return node.value


def place_of(root: Node, path: tuple[str | int, ...], *, key: bool = False) -> Place:
    """Return the place of the value at a path (or of its key), or of the closest parent that exists."""
    node = root
    for step in path:
        if isinstance(node.value, dict) and step in node.value:
            node = node.value[str(step)]
        elif isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
        else:
            break
    block = isinstance(node.value, dict | list)  # a block may start on the line after its key
    return node.named if node.named is not None and (key or block) else node.place


_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^}:]*)(?::-(?P<default>[^}]*))?(?P<end>\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILES = ("user", "project")


def interpolate(node: Node, environ: Mapping[str, str], *, path: str = "", disabled: bool = False) -> Node:
    """Return the tree with the `${VAR}` references in values from files replaced. `$${` stands for `${`.

    Raise ConfigError if a variable is not set. In sections with `enabled: false`, references to unset variables are left unchanged.
    """
    if isinstance(node.value, dict):
        switch = node.value.get("enabled")
        off = disabled or (switch is not None and switch.value is False)
        items = {f"{path}.{key}" if path else key: (key, child) for key, child in node.value.items()}
        return replace(node, value={key: interpolate(child, environ, path=at, disabled=off) for at, (key, child) in items.items()})
    if isinstance(node.value, list):
        children = enumerate(node.value)
        return replace(node, value=[interpolate(child, environ, path=f"{path}[{at}]", disabled=disabled) for at, child in children])
    if not isinstance(node.value, str) or "${" not in node.value or node.place.layer not in _FILES:
        return node
    text = _REFERENCE.sub(lambda match: _resolve(match, node, environ, path, disabled), node.value)
    return replace(node, value=scalar(text) if node.plain else text, text=text, from_variable=True)


def interpolate_root(root: Node, environ: Mapping[str, str]) -> tuple[Node, dict[str, ConfigError]]:
    """Return the whole configuration with its `${VAR}` references replaced. Raise ConfigError as `interpolate` does.

    MCP servers with variables that are not set are disabled. Their names are also returned, each with the reason.
    """
    servers = find(root, "mcp")
    unset: dict[str, ConfigError] = {}
    for name, server in servers.items() if isinstance(servers, dict) else ():
        try:
            interpolate(server, environ, path=f"mcp.{name}")
        except ConfigError as error:
            unset[name] = error
    place = Place("default", "")
    off = {name: Node({"enabled": Node(False, place)}, place) for name in unset}
    return interpolate(merge(root, Node({"mcp": Node(off, place)}, place)) if off else root, environ), unset


def _resolve(match: re.Match[str], node: Node, environ: Mapping[str, str], path: str, disabled: bool) -> str:
    if match[0] == "$${":
        return "${"
    name, default = match["name"], match["default"]
    if not match["end"] or not _NAME.fullmatch(name) or (default is not None and "${" in default):
        message = f"{path}: Invalid reference {match[0]!r}: expected ${{NAME}} or ${{NAME:-default}}."
        raise node.place.error(message, "Write $${ for a literal ${.")
    found = environ.get(name)
    if default is not None:
        return found or default
    if found is None and not disabled:
        raise node.place.error(f"{path}: The environment variable {name!r} is not set.", f"Set it, or write ${{{name}:-default}}.")
    return match[0] if found is None else found


PREFIX = "MOOT_"

_NOTHING = Node({}, Place("default", ""))


def environment_layer(environ: Mapping[str, str], sections: Iterable[str]) -> tuple[Node, list[str]]:
    """Return the tree of all variables such as `MOOT_A__B=value`, and the names of `MOOT_` variables that don't correspond to a setting."""
    root: dict[str, Node] = {}
    unused: list[str] = []
    known = set(sections)
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in NO_SETTINGS:
            continue
        path = name.removeprefix(PREFIX).lower().split("__")
        if len(path) == 1 and path[0] not in known:
            unused.append(name)
            continue
        if not all(path):
            raise ConfigError(
                f"The environment variable {name} has an empty level.", fix="Separate levels with two underscores, as in MOOT_SERVER__PORT."
            )
        _put(root, path, Node(scalar(environ[name]), Place("environment", name), environ[name], True), name)
    return Node(root, Place("environment", "")), unused


def flag_layer(values: Mapping[str, Json]) -> Node:
    """Return the tree of values given by dotted key, such as `{"models.main": …}`."""
    root: dict[str, Node] = {}
    for name, value in values.items():
        _put(root, name.split("."), from_json(value, Place("flags", name)), name)
    return Node(root, Place("flags", ""))


def from_json(value: Json, place: Place) -> Node:
    """Return a tree in which all values have the same place."""
    if isinstance(value, dict):
        return Node({key: from_json(item, place) for key, item in value.items()}, place)
    if isinstance(value, list):
        return Node([from_json(item, place) for item in value], place)
    return Node(value, place, str(value))


def merge(below: Node, above: Node, known: Mapping[str, Sequence[str]] | None = None, names: Sequence[str] = ()) -> Node:
    """Return the tree `below` with the values of `above` merged over it.

    For keys from the environment, case and dashes don't matter: `LM_STUDIO` matches `lm-studio`. `known` lists, for each top-level key,
    additional names that they may match.
    """
    if not isinstance(above.value, dict):
        return above
    result = dict(below.value) if isinstance(below.value, dict) else {}
    for key, child in above.value.items():
        candidates = [*result, *names] if child.place.layer == "environment" else []
        at = next((name for name in candidates if _letters(name) == _letters(key)), key)
        result[at] = merge(result.get(at, _NOTHING), child, names=(known or {}).get(at, ()))
    return replace(above if above.place.line or below is _NOTHING else below, value=result)


def _letters(name: str) -> str:
    return name.lower().replace("-", "_")


def _put(root: dict[str, Node], path: list[str], leaf: Node, name: str) -> None:
    level = root
    for step in path[:-1]:
        child = level.setdefault(step, Node({}, leaf.place))
        if not isinstance(child.value, dict):
            raise ConfigError(f"{name} conflicts with {child.place.source}, which sets a value at a higher level.")
        level = child.value
    if path[-1] in level:
        raise ConfigError(f"{name} and {level[path[-1]].place.source or 'another variable'} both set the same key.")
    level[path[-1]] = leaf
