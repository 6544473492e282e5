"""Adding and removing permission rules in a configuration file. Comments, order and quoting are kept."""

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
    """Add rules to the file, keeping concurrent changes by other processes. Raise ConfigError."""
    with locked(path):
        write_atomically(path, with_rules(path, rules, environ))


def with_rules(path: Path, rules: list[dict[str, str]], environ: Mapping[str, str]) -> bytes:
    """Return the file's bytes with these rules appended, validated. Existing rules are not repeated. Raise ConfigError."""
    yaml, root, comments = _load(path)
    permissions = root.get("permissions")
    if not isinstance(permissions, dict):
        permissions = root["permissions"] = CommentedMap()
    existing = cast("Any", permissions).get("rules")
    if not isinstance(existing, list):
        existing = CommentedSeq()
        _put_before_last(permissions, "rules", existing)
    for rule in rules:
        if any("${" in value for value in rule.values()):
            raise ConfigError(
                "a rule can't be added if it contains '${', which starts a variable reference",
                file=str(path),
                fix=f"Add the rule to {path} by hand, with $${{ for ${{.",
            )
        if not any(_same(item, rule) for item in cast("list[Any]", existing)):
            item: Any = CommentedMap(rule)
            item.fa.set_flow_style()
            # not after the last item, which holds the comments before the next section
            cast("Any", existing).insert(max(len(cast("list[Any]", existing)) - 1, 0), item)
    return _checked(yaml, root, comments, path, environ)


def without_rule(path: Path, at: int, environ: Mapping[str, str]) -> bytes:
    """Return the file's bytes without the rule at index `at`, validated. Raise ConfigError."""
    yaml, root, comments = _load(path)
    del root["permissions"]["rules"][at]
    return _checked(yaml, root, comments, path, environ)


def _load(path: Path) -> tuple[Any, Any, str]:
    """Return the reader, the tree, and the text of a file that contains only comments, which a tree can't hold."""
    text = text_of(path)
    parse(text, Place("user", str(path)))  # rejects what the round trip would accept: tags, duplicate keys, alias bombs
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


def _checked(yaml: Any, root: Any, comments: str, path: Path, environ: Mapping[str, str]) -> bytes:
    buffer = io.StringIO()
    yaml.dump(root, buffer)
    changed = comments + buffer.getvalue()
    check(interpolate(parse(changed, Place("user", str(path))), environ))
    return changed.encode()
