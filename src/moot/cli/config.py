"""The commands `moot config show`, `check`, `get` and `set`."""

from __future__ import annotations

import os
from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.options import AsJson, Out
from moot.config.home import home_of
from moot.config.loading import FILE, Loaded
from moot.config.secret import masked
from moot.config.tree import scalar
from moot.config.writing import set_value
from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject


def show(
    *,
    origin: Annotated[bool, Parameter(help="Show which file or variable each value comes from.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the effective settings, with secrets masked."""
    loaded = configured(output)
    values = flat(masked(loaded.configuration))
    if json:
        output.json(_document(loaded))
        return
    for note in loaded.notes:
        output.say(f"moot: {note}", "dim")
    for key, value in values.items():
        text = output.to_json(value)
        output.line(f"{key}: {text}  ({_layer(loaded, key)})" if origin else f"{key}: {text}")


def check(*, json: AsJson = False, output: Out) -> None:
    """Check the configuration. Raise ConfigError with file, line and column of the first error."""
    loaded = configured(output)
    if loaded.doubt is not None:
        raise loaded.doubt
    if json:
        output.json({"ok": True, "file": str(loaded.settings.home / FILE), "notes": list[Json](loaded.notes)})
        return
    for note in loaded.notes:
        output.say(f"moot: {note}")
    output.say(f"moot: {loaded.settings.home / FILE}: no errors", "green")


def flat(value: JsonObject, prefix: str = "") -> JsonObject:
    """Flatten nested mappings to dotted keys. Lists and empty mappings stay values."""
    result: JsonObject = {}
    for key, item in value.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(item, dict) and item:
            result |= flat(item, path)
        else:
            result[path] = item
    return result


def _document(loaded: Loaded) -> JsonObject:
    return {
        "generation": loaded.settings.generation,
        "error": None,
        "home": str(loaded.settings.home),
        "config": masked(loaded.configuration),
        "origin": dict[str, Json](loaded.origin),
        "notes": list[Json](loaded.notes),
    }


def _layer(loaded: Loaded, key: str) -> str:
    while key:
        if key in loaded.origin:
            return loaded.origin[key]
        key = key.rpartition(".")[0]
    return "default"


def get(key: Annotated[str, Parameter(help="Dotted key, such as models.main.")], /, *, json: AsJson = False, output: Out) -> None:
    """Print one effective setting, with secrets masked. Raise UsageError if the key is not set."""
    value: Json = masked(configured(output).configuration)
    for step in key.split("."):
        if not isinstance(value, dict) or step not in value:
            known = f" Settings at this level: {', '.join(value)}." if isinstance(value, dict) and value else ""
            raise UsageError(f"Setting {key!r} not found.{known}", fix="moot config show")
        value = value[step]
    if json:
        output.json({"key": key, "value": value})
    else:
        output.line(value if isinstance(value, str) else output.to_json(value))


def set_(
    key: Annotated[str, Parameter(help="Dotted key, such as models.main.")],
    value: Annotated[str, Parameter(help="Value in YAML: 20, true, text. ${NAME} is an environment variable.")],
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> None:
    """Set a value in the user's configuration file after checking it. Comments and order are kept."""
    path = home_of(os.environ) / FILE
    set_value(path, key, scalar(value), os.environ)
    loaded = configured(output)  # a layer above may override the value
    origin = _layer(loaded, key)
    if json:
        output.json({"ok": True, "file": str(path), "key": key, "origin": origin})
        return
    output.say(f"moot: set {key} in {path}", "green")
    if not origin.startswith("user"):
        output.say(f"moot: the effective value comes from {origin}, which overrides it", "yellow")
