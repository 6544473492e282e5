"""The commands of `moot config`."""

from __future__ import annotations

import os
from typing import Annotated

from anyio import to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.lines import write_notes
from moot.cli.context.configuration import configured, here
from moot.cli.context.output import Out
from moot.cli.terminal.prompts.editor import edit_checked
from moot.config.changes import check_text, set_value
from moot.config.commands import file_commands
from moot.config.document import parse_value
from moot.config.home import home_of
from moot.config.loader import FILE, Loaded
from moot.config.secrets import mask_secrets
from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject


def show(
    *,
    origin: Annotated[bool, Parameter(help="Show which file or variable each value comes from.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the effective settings, with secrets masked."""
    loaded = configured(output)
    values = flat(mask_secrets(loaded.configuration))
    if json:
        output.json(
            {
                "generation": loaded.settings.generation,
                "error": None,
                "home": str(loaded.settings.home),
                "config": mask_secrets(loaded.configuration),
                "origin": dict[str, Json](loaded.origin),
                "notes": list[Json](loaded.notes),
            }
        )
        return
    write_notes(output, loaded.notes)
    for key, value in values.items():
        text = output.to_json(value)
        output.line(f"{key}: {text}  ({_layer(loaded, key)})" if origin else f"{key}: {text}")


async def check(*, json: AsJson = False, output: Out) -> None:
    """Check the configuration and the slash commands. Raise ConfigError with file, line and column of the first error."""
    loaded = configured(output)
    notes, problems = [*loaded.notes], [loaded.doubt] if loaded.doubt is not None else []
    files = await to_thread.run_sync(file_commands, loaded.settings.home, here())
    if loaded.settings.commands or files.commands or files.refused:
        catalogue = await attribute("moot.commands.catalogue:load")(loaded.settings, str(here()), None)
        for name, error in sorted(catalogue.refused.items()):
            if name in catalogue.untrusted:
                notes.append(error.advice())
            else:
                problems.append(error)
    if problems:
        raise problems[0] if len(problems) == 1 else attribute("moot.config.validation:joined")(problems)
    if json:
        output.json({"ok": True, "file": str(loaded.settings.home / FILE), "notes": list[Json](notes)})
        return
    for note in notes:
        output.say(f"moot: {note}")
    output.say(f"moot: {loaded.settings.home / FILE}: no errors", "green")


def flat(value: JsonObject, prefix: str = "") -> JsonObject:
    """Flatten nested mappings to dotted keys. Lists and empty mappings are kept as values."""
    result: JsonObject = {}
    for key, item in value.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(item, dict) and item:
            result |= flat(item, path)
        else:
            result[path] = item
    return result


def _layer(loaded: Loaded, key: str) -> str:
    while key:
        if key in loaded.origin:
            return loaded.origin[key]
        key = key.rpartition(".")[0]
    return "default"


def get(key: Annotated[str, Parameter(help="Key of the setting, such as models.main.")], /, *, json: AsJson = False, output: Out) -> None:
    """Print one effective setting, with secrets masked. Raise UsageError if the key is not set."""
    value: Json = mask_secrets(configured(output).configuration)
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
    key: Annotated[str, Parameter(help="Key of the setting, such as models.main.")],
    value: Annotated[str, Parameter(help="Value in YAML, such as 20, true, text or '[a, b]'. ${NAME} inserts an environment variable.")],
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> None:
    """Check a value and set it in the user's configuration file. The file's comments and order are kept."""
    path = home_of(os.environ) / FILE
    set_value(path, key, parse_value(value, key), os.environ)
    loaded = configured(output)  # a layer with higher precedence may override the value
    origin = _layer(loaded, key)
    for problem in loaded.doubt.message.splitlines() if loaded.doubt is not None else ():
        if (
            f": {key}: " in problem
        ):  # an unknown provider or model; a model's name without a provider may belong to a server that isn't running
            output.say(f"moot: {problem}", "yellow")
    if json:
        output.json({"ok": True, "file": str(path), "key": key, "origin": origin})
        return
    output.say(f"moot: set {key} in {path}", "green")
    if not origin.startswith("user"):
        output.say(f"moot: the effective value comes from {origin}, which overrides it", "yellow")


TEMPLATE = "# moot's configuration; `moot config show` lists every setting, docs/configuration.md explains them.\n"


async def edit(*, output: Out) -> None:
    """Edit the user's configuration file. Save the file only if it is valid; otherwise print the error and offer to edit the text again."""
    if not output.attended:
        raise UsageError("Editing requires a terminal.", fix="moot config set KEY VALUE")
    path = home_of(os.environ) / FILE
    await edit_checked(path, TEMPLATE, lambda text, before: check_text(text, path, os.environ, before), output, lock=path)
