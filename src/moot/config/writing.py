"""Changing values in a configuration file. Comments, order and quoting are kept, and the file is written atomically."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from moot.config.checking import check
from moot.config.document import parse
from moot.config.files import locked, text_of, write_atomically
from moot.config.interpolation import interpolate
from moot.config.tree import Place
from moot.types.canonical import Json


def set_value(path: Path, key: str, value: Json, environ: Mapping[str, str]) -> None:
    """Set one value, as `set_values` does."""
    set_values(path, {key: value}, environ)


def set_values(path: Path, values: Mapping[str, Json], environ: Mapping[str, str]) -> None:
    """Set each value at its dotted key, all or none. Create the file if needed. Raise ConfigError.

    The result is validated before it is written, and concurrent changes by other processes are kept.
    """
    with locked(path):
        write_atomically(path, _with_values(path, values, environ))


def _with_values(path: Path, values: Mapping[str, Json], environ: Mapping[str, str]) -> bytes:
    text = text_of(path)
    parse(text, Place("user", str(path)))  # rejects what the round trip would accept: tags, duplicate keys, alias bombs
    yaml = round_trip(text)
    root = cast("CommentedMap | None", yaml.load(text))
    root = CommentedMap() if root is None else root
    for key, value in values.items():
        _put(root, key, value)
    buffer = io.StringIO()
    yaml.dump(root, buffer)
    changed = buffer.getvalue()
    check_text(changed, path, environ)
    return changed.encode()


def _put(root: CommentedMap, key: str, value: Json) -> None:
    level: Any = root
    *above, last = key.split(".")
    for step in above:
        if not isinstance(level.get(step), dict):
            level[step] = CommentedMap()
        level = level[step]
    if last in level or len(level) == 0 or level is root:
        level[last] = value
    else:  # not after the last key, which holds the comments before the next section
        level.insert(len(level) - 1, last, value)


def check_text(text: str, path: Path, environ: Mapping[str, str]) -> None:
    """Raise ConfigError, with line and column, if the text is not a valid configuration."""
    check(interpolate(parse(text, Place("user", str(path))), environ))


def round_trip(text: str) -> Any:
    """Return a reader and writer that keeps comments, quotes and the indentation of the text."""
    yaml = cast("Any", YAML(typ="rt"))
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    item = re.search(r"^( *)[^\s#-][^\n]*:[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*( *)- ", text, re.MULTILINE)
    indented = item is not None and len(item[2]) > len(item[1])
    below = re.search(r"^[^\s#-][^\n]*:[ \t]*\n( +)[^\s#-]", text, re.MULTILINE)
    width = len(below[1]) if below else 2
    yaml.indent(mapping=width, sequence=width + 2 if indented else width, offset=width if indented else 0)
    return yaml
