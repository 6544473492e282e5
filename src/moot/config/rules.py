"""Adds a rule of the permissions to a configuration file, or takes one out; comments, order and quoting of the rest stay."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from moot.config.checking import check
from moot.config.document import parse
from moot.config.files import locked, text_of, write_atomically
from moot.config.interpolation import interpolate
from moot.config.tree import Place
from moot.config.writing import round_trip
from moot.errors import ConfigError

__all__ = ["add_rules", "with_rules", "without_rule"]


def add_rules(path: Path, rules: list[dict[str, str]], environ: Mapping[str, str]) -> None:
    """Writes the file `with_rules`; what another process writes at the same time stays. Raises ConfigError."""
    with locked(path):
        write_atomically(path, with_rules(path, rules, environ))


def with_rules(path: Path, rules: list[dict[str, str]], environ: Mapping[str, str]) -> bytes:
    """The file's bytes with these rules behind the others, checked; one that is there already is not repeated. Raises ConfigError."""
    yaml, root, remarks = _load(path)
    permissions = root.get("permissions")
    if not isinstance(permissions, dict):
        permissions = root["permissions"] = CommentedMap()
    kept = cast("Any", permissions).get("rules")
    if not isinstance(kept, list):
        kept = CommentedSeq()
        _put_before_last(permissions, "rules", kept)
    for rule in rules:
        if any("${" in value for value in rule.values()):
            raise ConfigError("a rule with '${' in it would be read as a variable; write it yourself", file=str(path))
        if not any(_same(item, rule) for item in cast("list[Any]", kept)):
            item: Any = CommentedMap(rule)
            item.fa.set_flow_style()
            # not behind the last one: comments that stand before the next section belong to it
            cast("Any", kept).insert(max(len(cast("list[Any]", kept)) - 1, 0), item)
    return _checked(yaml, root, remarks, path, environ)


def without_rule(path: Path, at: int, environ: Mapping[str, str]) -> bytes:
    """The file's bytes without its rule at that place, from 0, checked. Raises ConfigError."""
    yaml, root, remarks = _load(path)
    del root["permissions"]["rules"][at]
    return _checked(yaml, root, remarks, path, environ)


def _load(path: Path) -> tuple[Any, Any, str]:
    """Reader and tree, and the text of a file that has nothing but remarks: those have no place in a tree."""
    text = text_of(path)
    parse(text, Place("user", str(path)))  # refuses what the round trip would take: tags, duplicate keys, bombs
    yaml = round_trip(text)
    root = yaml.load(text)
    if root is not None:
        return yaml, root, ""
    return yaml, CommentedMap(), f"{text.rstrip()}\n" if text.strip() else ""


def _same(item: Any, rule: dict[str, str]) -> bool:
    return isinstance(item, dict) and cast("dict[str, Any]", item) == rule


def _put_before_last(mapping: Any, key: str, value: Any) -> None:
    if key in mapping or len(mapping) == 0:
        mapping[key] = value
    else:
        mapping.insert(len(mapping) - 1, key, value)


def _checked(yaml: Any, root: Any, remarks: str, path: Path, environ: Mapping[str, str]) -> bytes:
    buffer = io.StringIO()
    yaml.dump(root, buffer)
    changed = remarks + buffer.getvalue()
    check(interpolate(parse(changed, Place("user", str(path))), environ))
    return changed.encode()
