"""The layers from environment and flags, and merging. Later layers win; mappings are merged key by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from moot.config.home import NO_SETTINGS
from moot.config.tree import Node, Place, scalar
from moot.errors import ConfigError
from moot.types.canonical import Json

PREFIX = "MOOT_"

_NOTHING = Node({}, Place("default", ""))


def environment(environ: Mapping[str, str], sections: Iterable[str]) -> tuple[Node, list[str]]:
    """Return the tree of all `MOOT_A__B=value` variables, and the names of `MOOT_` variables that don't name a setting."""
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
            raise ConfigError(f"environment variable {name} has an empty level", fix="Write levels as MOOT_SERVER__PORT.")
        _put(root, path, Node(scalar(environ[name]), Place("environment", name), environ[name], True), name)
    return Node(root, Place("environment", "")), unused


def flags(values: Mapping[str, Json]) -> Node:
    """Return the tree for `{"models.main": …}`."""
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
    """Return `below` overlaid with `above`. Keys from the environment match without regard to case and dashes: `LM_STUDIO` is `lm-studio`.

    `known` lists further names that such keys may match below a top-level key.
    """
    if not isinstance(above.value, dict):
        return above
    result = dict(below.value) if isinstance(below.value, dict) else {}
    for key, child in above.value.items():
        at = _like(key, [*result, *names]) if child.place.layer == "environment" else key
        result[at] = merge(result.get(at, _NOTHING), child, names=(known or {}).get(at, ()))
    return replace(above if above.place.line or below is _NOTHING else below, value=result)


def _like(key: str, candidates: Iterable[str]) -> str:
    return next((name for name in candidates if _letters(name) == _letters(key)), key)


def _letters(name: str) -> str:
    return name.lower().replace("-", "_")


def _put(root: dict[str, Node], path: list[str], leaf: Node, name: str) -> None:
    level = root
    for step in path[:-1]:
        child = level.setdefault(step, Node({}, leaf.place))
        if not isinstance(child.value, dict):
            raise ConfigError(f"{name} conflicts with {child.place.source}, which sets a value at a higher level")
        level = child.value
    if path[-1] in level:
        raise ConfigError(f"{name} and {level[path[-1]].place.source or 'another variable'} both set the same key")
    level[path[-1]] = leaf
