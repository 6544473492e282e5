"""`${VAR}` and `${VAR:-default}` in configuration files. They are replaced after parsing, so a variable can't change the structure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from moot.config.tree import Node, scalar
from moot.errors import ConfigError

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^}:]*)(?::-(?P<default>[^}]*))?(?P<end>\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILES = ("user", "project")


def interpolate(node: Node, environ: Mapping[str, str], *, path: str = "", disabled: bool = False) -> Node:
    """Return the tree with every reference in values from files replaced. `$${` is an escaped `${`.

    Raise ConfigError if a variable is not set. In sections with `enabled: false`, unset variables are empty instead.
    """
    if isinstance(node.value, dict):
        switch = node.value.get("enabled")
        off = disabled or (switch is not None and switch.value is False)
        return replace(
            node, value={key: interpolate(child, environ, path=_join(path, key), disabled=off) for key, child in node.value.items()}
        )
    if isinstance(node.value, list):
        items = enumerate(node.value)
        return replace(node, value=[interpolate(child, environ, path=f"{path}[{at}]", disabled=disabled) for at, child in items])
    if not isinstance(node.value, str) or "${" not in node.value or node.place.layer not in _FILES:
        return node
    text = _REFERENCE.sub(lambda match: _resolve(match, node, environ, path, disabled), node.value)
    return replace(node, value=scalar(text) if node.plain else text, text=text, from_variable=True)


def references(text: str) -> list[str]:
    """Return the names of the variables used in a scalar."""
    return [match["name"] for match in _REFERENCE.finditer(text) if match["name"]]


def _resolve(match: re.Match[str], node: Node, environ: Mapping[str, str], path: str, disabled: bool) -> str:
    if match[0] == "$${":
        return "${"
    name, default = match["name"], match["default"]
    if not match["end"] or not _NAME.fullmatch(name) or (default is not None and "${" in default):
        raise _error(
            f"{path}: invalid reference {match[0]!r}; expected ${{NAME}} or ${{NAME:-default}}", node, "Write $${ for a literal ${."
        )
    found = environ.get(name)
    if default is not None:
        return found or default
    if found is not None:
        return found
    if disabled:
        return ""
    raise _error(f"{path}: environment variable {name!r} is not set", node, f"Set it, or write ${{{name}:-default}}.")


def _error(message: str, node: Node, fix: str) -> ConfigError:
    return ConfigError(message, file=node.place.source, line=node.place.line, column=node.place.column, fix=fix)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
