"""Validation of the merged configuration. Every problem is reported with file, line, column, key and the closest known name."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from moot.config.schema import Configuration, fields_at
from moot.config.secrets import is_secret
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


def validated_json(root: Node) -> JsonObject:
    """Return the whole configuration in the shape of the file, with all defaults. Raise ConfigError as `check` does."""
    return cast("JsonObject", validate(root).model_dump(mode="json"))


def validate(root: Node) -> Configuration:
    """Return the validated configuration. Raise ConfigError listing every problem, in file order."""
    try:
        configuration = Configuration.model_validate(plain(root))
    except ValidationError as error:
        root, changed = _as_text(root, error)
        if changed:
            return validate(root)
        problems = [_problem(root, cast("dict[str, Any]", item)) for item in error.errors(include_url=False)]
        raise _joined(problems) from None  # pydantic quotes values, which may be secrets
    problems = [
        problem
        for find in (_misspelled_options, _custom_providers, _misspelled_tools, _misspelled_agent_types, _mcp_servers)
        for problem in find(root, configuration)
    ]
    if problems:
        raise _joined(problems)
    return configuration


def _as_text(root: Node, error: ValidationError) -> tuple[Node, bool]:
    """Turn unquoted numbers from environment variables back into text where text is expected, such as an API key made of digits."""
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
        return _at(place, f"{_dotted(path[:-1])}: required key {path[-1]!r} is missing")
    shown = "" if is_secret(path) or isinstance(item.get("input"), dict | list) else f", got {item.get('input')!r}"
    if kind == "literal_error":
        expected = str(item["ctx"]["expected"])
        close = difflib.get_close_matches(str(item.get("input")), _QUOTED.findall(expected), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return _at(place, f"{_dotted(path)}: expected {expected}{shown}{hint}")
    if kind == "string_pattern_mismatch":
        return _at(place, f"{_dotted(path)}: expected a URL starting with http:// or https://{shown}")
    if kind in _EXPECTED:
        return _at(place, f"{_dotted(path)}: expected {_EXPECTED[kind]}{shown}")
    message = str(item["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return _at(place, f"{_dotted(path)}: {message}{shown}")


def _unknown(path: tuple[str | int, ...]) -> str:
    above, key = tuple(str(step) for step in path[:-1]), str(path[-1])
    known = fields_at(above)
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    where = f" in {_dotted(path[:-1])}" if above else ""
    return (
        f"unknown key {key!r}{where}{hint} known: {', '.join(known)}" if hint else f"unknown key {key!r}{where}; known: {', '.join(known)}"
    )


def _misspelled_options(root: Node, configuration: Configuration) -> list[ConfigError]:
    """Report provider options that look like a misspelled known key. Other unknown options are allowed."""
    found: list[ConfigError] = []
    for name, part in configuration.providers.items():
        known = list(type(part).model_fields)
        for key in part.model_extra or {}:
            if _nearly(key, known):
                found.append(_at(place_of(root, ("providers", name, key), key=True), _unknown(("providers", name, key))))
    return found


def _custom_providers(root: Node, configuration: Configuration) -> list[ConfigError]:
    """Report custom providers without a base URL, and unknown dialects."""
    found: list[ConfigError] = []
    for name, part in configuration.providers.items():
        if name not in PROVIDERS and part.enabled and not part.base_url:
            words = f"{PROVIDERS.unknown(name)} A custom provider needs base_url."
            found.append(_at(place_of(root, ("providers", name), key=True), words))
        if part.dialect and part.dialect not in DIALECTS:
            path = ("providers", name, "dialect")
            close = difflib.get_close_matches(part.dialect, DIALECTS.names(), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ";"
            found.append(
                _at(place_of(root, path), f"{_dotted(path)}: unknown dialect {part.dialect!r}{hint} known: {', '.join(DIALECTS.names())}")
            )
    return found


def _misspelled_tools(root: Node, configuration: Configuration) -> list[ConfigError]:
    """Report names that look like a misspelled built-in tool. Other unknown names are allowed: a package may add the tool later."""
    agents = configuration.agents.items()
    named = [(name, ("agents", agent, "tools", at)) for agent, part in agents for at, name in enumerate(part.tools or ())]
    configured = [(name, ("tools", name)) for name in configuration.tools]
    return [
        _at(place_of(root, path, key=path[0] == "tools"), f"{_dotted(path if path[0] == 'agents' else path[:1])}: {TOOLS.unknown(name)}")
        for name, path in [*named, *configured]
        if name not in TOOLS and _nearly(name, TOOLS.names())
    ]


def _mcp_servers(root: Node, configuration: Configuration) -> list[ConfigError]:
    """Report invalid MCP servers, and agents that name a server that is not configured."""
    found: list[ConfigError] = []
    for name, part in configuration.mcp.items():
        place = place_of(root, ("mcp", name), key=True)
        if not _SERVER.fullmatch(name):
            found.append(_at(place, f"mcp: invalid server name {name!r}; use only letters, digits, _ and -"))
        if bool(part.command) == bool(part.url):
            found.append(_at(place, f"mcp.{name}: expected a command, as in {{command: npx, args: [..]}}, or a url"))
        for key in ("headers",) if part.command else ("args", "env"):
            if getattr(part, key):
                why = "headers apply only to servers with a url" if part.command else f"{key} applies only to servers with a command"
                found.append(_at(place_of(root, ("mcp", name, key), key=True), f"mcp.{name}.{key}: {why}"))
    for agent, part in configuration.agents.items():
        for at, name in enumerate(part.mcp or ()):
            if name not in configuration.mcp:
                path = ("agents", agent, "mcp", at)
                hint = _close(name, sorted(configuration.mcp)) if configuration.mcp else "; no servers are configured in the section mcp"
                found.append(_at(place_of(root, path), f"{_dotted(path)}: unknown MCP server {name!r}{hint}"))
    return found


def find_warnings(root: Node) -> ConfigError | None:
    """Return problems that matter only when the setting is used, or None.

    These are unknown models of custom providers, models of unknown providers, and invalid settings of tools.
    """
    configuration = validate(root)
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
    for name, settings in configuration.tools.items():
        if (model := _settings_of(name)) is None:
            continue
        known = sorted(model.model_fields)
        for key in settings:
            if key not in known and model.model_config.get("extra") != "allow":
                hint = _close(key, known) if known else "; the tool has no settings"
                found.append(_at(place_of(root, ("tools", name, key), key=True), f"tools.{name}: unknown setting {key!r}{hint}"))
        try:
            model.model_validate({key: value for key, value in settings.items() if key in known})
        except ValidationError as error:
            faults = [cast("dict[str, Any]", item) for item in error.errors(include_url=False)]
            found += [_problem(root, {**item, "loc": ("tools", name, *item["loc"])}) for item in faults]
    return found


def _settings_of(tool: str) -> type[BaseModel] | None:
    """Return the settings model that the tool declares, or None."""
    try:
        declared = getattr(TOOLS.load(tool), "settings", None) if tool in TOOLS else None
    except UsageError:  # a broken package, which `moot doctor` reports
        return None
    return declared if isinstance(declared, type) and issubclass(declared, BaseModel) else None


def _close(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"{f'; did you mean {close[0]!r}?' if close else ';'} known: {', '.join(known)}"


def _misspelled_agent_types(root: Node, configuration: Configuration) -> list[ConfigError]:
    """Report names that look like a misspelled agent type. Other unknown names are allowed: a package may add the type later."""
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
