"""A merged tree against the schema: one problem for each fault, with file, line, column, key and the nearest known name."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from moot.config.schema import Configuration, fields_at
from moot.config.secret import is_secret
from moot.config.tree import Node, Place, place_of, plain
from moot.errors import ConfigError, UsageError
from moot.plugins import AGENTS, DIALECTS, PROVIDERS, TOOLS
from moot.types.canonical import JsonObject

_QUOTED = re.compile(r"'([^']*)'")
_SERVER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
}


def checked(root: Node) -> JsonObject:
    """The whole configuration in the file's own shape, with every default. Raises ConfigError as `check` does."""
    return cast("JsonObject", check(root).model_dump(mode="json"))


def check(root: Node) -> Configuration:
    """The validated configuration. Raises ConfigError that names every problem, the first one's place first."""
    try:
        configuration = Configuration.model_validate(plain(root))
    except ValidationError as error:
        root, changed = _as_text(root, error)
        if changed:
            return check(root)
        problems = [_problem(root, cast("dict[str, Any]", item)) for item in error.errors(include_url=False)]
        raise _joined(problems) from None  # the values that it quotes may be secrets
    problems = [problem for look in (_near_misses, _strangers, _tools, _agent_types, _servers) for problem in look(root, configuration)]
    if problems:
        raise _joined(problems)
    return configuration


def _as_text(root: Node, error: ValidationError) -> tuple[Node, bool]:
    """Numbers that came by a variable and should be text are text: a key made of digits, for instance."""
    changed = False
    for item in error.errors(include_url=False, include_input=False):
        if item["type"] == "string_type":
            root, hit = _retext(root, item["loc"])
            changed = changed or hit
    return root, changed


def _retext(node: Node, path: tuple[str | int, ...]) -> tuple[Node, bool]:
    if not path:
        loose = node.plain and not isinstance(node.value, str) and (node.place.layer == "environment" or node.from_variable)
        return (replace(node, value=node.text), True) if loose else (node, False)
    step = path[0]
    if isinstance(node.value, dict) and isinstance(step, str) and step in node.value:
        child, hit = _retext(node.value[step], path[1:])
        return (replace(node, value={**node.value, step: child}), True) if hit else (node, False)
    if isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
        child, hit = _retext(node.value[step], path[1:])
        return (replace(node, value=[*node.value[:step], child, *node.value[step + 1 :]]), True) if hit else (node, False)
    return node, False


def _problem(root: Node, item: dict[str, Any]) -> ConfigError:
    path = cast("tuple[str | int, ...]", item["loc"])
    place = place_of(root, path)
    kind = str(item["type"])
    if kind == "extra_forbidden":
        return _at(place_of(root, path, key=True), _unknown(path))
    if kind == "missing":
        return _at(place, f"{_dotted(path[:-1])}: the key {path[-1]!r} is missing")
    shown = "" if is_secret(path) or isinstance(item.get("input"), dict | list) else f", got {item.get('input')!r}"
    if kind == "literal_error":
        expected = str(item["ctx"]["expected"])
        close = difflib.get_close_matches(str(item.get("input")), _QUOTED.findall(expected), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return _at(place, f"{_dotted(path)}: expected {expected}{shown}{hint}")
    if kind == "string_pattern_mismatch":
        return _at(place, f"{_dotted(path)}: expected a URL that begins with http:// or https://{shown}")
    if kind in _EXPECTED:
        return _at(place, f"{_dotted(path)}: expected {_EXPECTED[kind]}{shown}")
    words = str(item["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return _at(place, f"{_dotted(path)}: {words}{shown}")


def _unknown(path: tuple[str | int, ...]) -> str:
    above, key = tuple(str(step) for step in path[:-1]), str(path[-1])
    known = fields_at(above)
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    where = f" in {_dotted(path[:-1])}" if above else ""
    return (
        f"unknown key {key!r}{where}{hint} known: {', '.join(known)}" if hint else f"unknown key {key!r}{where}; known: {', '.join(known)}"
    )


def _near_misses(root: Node, configuration: Configuration) -> list[ConfigError]:
    """A provider may have options of its own, but one that is nearly a known key is a slip."""
    found: list[ConfigError] = []
    for name, part in configuration.providers.items():
        known = list(type(part).model_fields)
        for key in part.model_extra or {}:
            if _nearly(key, known):
                found.append(_at(place_of(root, ("providers", name, key), key=True), _unknown(("providers", name, key))))
    return found


def _strangers(root: Node, configuration: Configuration) -> list[ConfigError]:
    """A provider that is none of ours must say where it is; a dialect must be one that we speak."""
    found: list[ConfigError] = []
    for name, part in configuration.providers.items():
        if name not in PROVIDERS and part.enabled and not part.base_url:
            words = f"{PROVIDERS.unknown(name)}; one of your own needs base_url"
            found.append(_at(place_of(root, ("providers", name), key=True), words))
        if part.dialect and part.dialect not in DIALECTS:
            path = ("providers", name, "dialect")
            close = difflib.get_close_matches(part.dialect, DIALECTS.names(), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ";"
            found.append(
                _at(place_of(root, path), f"{_dotted(path)}: no dialect {part.dialect!r}{hint} known: {', '.join(DIALECTS.names())}")
            )
    return found


def _tools(root: Node, configuration: Configuration) -> list[ConfigError]:
    """A tool that nobody knows may come later, but a name that is nearly one of ours is a slip."""
    agents = configuration.agents.items()
    named = [(name, ("agents", agent, "tools", at)) for agent, part in agents for at, name in enumerate(part.tools or ())]
    settled = [(name, ("tools", name)) for name in configuration.tools]
    return [
        _at(place_of(root, path, key=path[0] == "tools"), f"{_dotted(path if path[0] == 'agents' else path[:1])}: {TOOLS.unknown(name)}")
        for name, path in [*named, *settled]
        if name not in TOOLS and _nearly(name, TOOLS.names())
    ]


def _servers(root: Node, configuration: Configuration) -> list[ConfigError]:
    """A server is a program or an address; an agent names those that there are."""
    found: list[ConfigError] = []
    for name, part in configuration.mcp.items():
        place = place_of(root, ("mcp", name), key=True)
        if not _SERVER.fullmatch(name):
            found.append(_at(place, f"mcp: {name!r} is no name for a server; expected letters, digits, _ and -"))
        if bool(part.command) == bool(part.url):
            found.append(_at(place, f"mcp.{name}: expected a command, as in {{command: npx, args: [..]}}, or a url"))
        for key in ("headers",) if part.command else ("args", "env"):
            if getattr(part, key):
                why = "a program gets no headers" if part.command else f"what stands behind a url gets no {key}"
                found.append(_at(place_of(root, ("mcp", name, key), key=True), f"mcp.{name}.{key}: {why}"))
    for agent, part in configuration.agents.items():
        for at, name in enumerate(part.mcp or ()):
            if name not in configuration.mcp:
                path = ("agents", agent, "mcp", at)
                hint = _close(name, sorted(configuration.mcp)) if configuration.mcp else "; the section mcp is empty"
                found.append(_at(place_of(root, path), f"{_dotted(path)}: no server named {name!r}{hint}"))
    return found


def doubts(root: Node) -> ConfigError | None:
    """What is wrong and no fault of the file until it is asked for.

    Models that there are not, or that a provider of your own does not list; settings that a tool does not have, or not in that shape.
    """
    configuration = check(root)
    found = _unknown_models(root, configuration) + _tool_settings(root, configuration)
    return _joined(found) if found else None


def _unknown_models(root: Node, configuration: Configuration) -> list[ConfigError]:
    known = sorted({*PROVIDERS.names(), *configuration.providers} - {"custom"})
    found: list[ConfigError] = []
    for path, text in _named_models(configuration):
        model, at, provider = text.rpartition("@")
        if not at:
            continue
        if provider not in known:
            found.append(_at(place_of(root, path), f"{_dotted(path)}: no provider named {provider!r}{_close(provider, known)}"))
            continue
        part = configuration.providers.get(provider)
        own = sorted(part.models) if part is not None and provider not in PROVIDERS else []
        if own and model not in own:
            words = f"{_dotted(path)}: {provider!r} has no model {model!r} in providers.{provider}.models{_close(model, own)}"
            found.append(_at(place_of(root, path), words))
    return found


def _named_models(configuration: Configuration) -> list[tuple[tuple[str | int, ...], str]]:
    found: list[tuple[tuple[str | int, ...], str]] = []
    for key, value in configuration.models.model_dump(exclude_none=True).items():
        if isinstance(value, str):
            found.append((("models", key), value))
        else:
            found += [(("models", key, at), str(each)) for at, each in enumerate(value)]
    found += [(("agents", name, "model"), part.model) for name, part in configuration.agents.items() if part.model]
    return found


def _tool_settings(root: Node, configuration: Configuration) -> list[ConfigError]:
    found: list[ConfigError] = []
    for name, given in configuration.tools.items():
        if (model := _settings_of(name)) is None:
            continue
        known = sorted(model.model_fields)
        for key in given:
            if key not in known and model.model_config.get("extra") != "allow":
                hint = _close(key, known) if known else "; it has none"
                found.append(_at(place_of(root, ("tools", name, key), key=True), f"tools.{name}: unknown setting {key!r}{hint}"))
        try:
            model.model_validate({key: value for key, value in given.items() if key in known})
        except ValidationError as error:
            faults = [cast("dict[str, Any]", item) for item in error.errors(include_url=False)]
            found += [_problem(root, {**item, "loc": ("tools", name, *item["loc"])}) for item in faults]
    return found


def _settings_of(tool: str) -> type[BaseModel] | None:
    """What the tool says that its settings are; None when it says nothing."""
    try:
        declared = getattr(TOOLS.load(tool), "settings", None) if tool in TOOLS else None
    except UsageError:  # a package that is broken; `moot doctor` names it
        return None
    return declared if isinstance(declared, type) and issubclass(declared, BaseModel) else None


def _close(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"{f'; did you mean {close[0]!r}?' if close else ';'} known: {', '.join(known)}"


def _agent_types(root: Node, configuration: Configuration) -> list[ConfigError]:
    """As with tools: one that nobody knows may come with a package, and a run of it says that it is not there."""
    agents = configuration.agents.items()
    return [
        _at(place_of(root, ("agents", name, "agent_type")), f"agents.{name}.agent_type: {AGENTS.unknown(part.agent_type)}")
        for name, part in agents
        if part.agent_type not in AGENTS and _nearly(part.agent_type, AGENTS.names())
    ]


def _nearly(name: str, known: list[str]) -> bool:
    return bool(difflib.get_close_matches(name, known, n=1, cutoff=0.75))


def _at(place: Place, message: str) -> ConfigError:
    return ConfigError(message, file=place.source, line=place.line, column=place.column)


def _joined(problems: list[ConfigError]) -> ConfigError:
    problems = sorted(problems, key=lambda problem: (problem.file, problem.line, problem.column))
    first = problems[0]
    if len(problems) == 1:
        return first
    joined = ConfigError(first.message, fix=first.fix)
    joined.message = "\n".join(problem.message for problem in problems)
    joined.args = (joined.message,)
    joined.file, joined.line, joined.column = first.file, first.line, first.column
    return joined


def _dotted(path: tuple[str | int, ...]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
