"""`moot config`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.configured import configured
from moot.cli.options import AsJson, Out
from moot.cli.parameters import Parameter
from moot.config.loading import FILE, Loaded
from moot.config.secret import masked
from moot.types.canonical import Json, JsonObject


def show(
    *,
    origin: Annotated[bool, Parameter(help="Say which layer decided each value.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Every setting in force, secrets masked."""
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
    """Whether the configuration is right: silent when it is, else file, line and column of every fault."""
    loaded = configured(output)
    if loaded.doubt is not None:
        raise loaded.doubt
    if json:
        output.json({"ok": True, "file": str(loaded.settings.home / FILE), "notes": list[Json](loaded.notes)})
        return
    for note in loaded.notes:
        output.say(f"moot: {note}")
    output.say(f"moot: {loaded.settings.home / FILE}: nothing wrong", "green")


def flat(value: JsonObject, prefix: str = "") -> JsonObject:
    """Dotted key → value; lists and empty mappings whole, and no mapping that holds anything."""
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
