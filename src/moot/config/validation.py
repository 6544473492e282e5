"""Validation of the merged configuration. Every problem is reported with file, line, column, key and the closest known name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, ValidationError

from moot.config import hooks
from moot.config.plugins.layout import SERVER_PREFIX
from moot.config.schema import Configuration, fields_at
from moot.config.schema.definitions import CUSTOM, SETTINGS, CustomToolPart
from moot.config.secrets import is_secret
from moot.config.tree import Node, Place, place_of, plain_configuration
from moot.errors import ConfigError, UsageError
from moot.plugins import AGENTS, DIALECTS, FORMATS, PROMPT_PARTS, PROVIDERS, TOOLS
from moot.plugins.registry import attribute, hint
from moot.types.canonical import JsonObject
from moot.types.command import CommandParameter, argument_names
from moot.types.command_tool import NAME
from moot.types.conversation import LOCAL_HOST
from moot.types.format import HasLocations, HasVariants
from moot.types.macro import cycles
from moot.types.prompt import PART_ORDER
from moot.types.workflow import problems_of

_Path: TypeAlias = tuple[str | int, ...]

_QUOTED = re.compile(r"'([^']*)'")
_SERVER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEY = "[key]"
"""Last step of the path of an invalid key, as pydantic reports it."""

_FOLDER = "an absolute path or one starting with ~/"
_PATTERNS: dict[str | int, str] = {
    "allowed_uris": _FOLDER,
    "writable": _FOLDER,
    "directory": _FOLDER,
    "deliver": "log or KIND:TARGET",
    "ssh": "a host name, or USER@HOST",
    "identity": _FOLDER,
    "home": "an absolute path",
    _KEY: "a name of at most 64 letters, digits and the characters . _ -",
}
"""For keys whose values must match a pattern, a description of the value. Values of all other keys with a pattern are URLs."""

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
    """Return the complete configuration as JSON, including all defaults, under the keys that the file uses.
    Raise ConfigError as `validate` does.
    """
    return cast("JsonObject", validate(root).model_dump(mode="json"))


def validate(root: Node) -> Configuration:
    """Return the validated configuration. If it is invalid, raise ConfigError listing all problems in file order."""
    try:
        configuration = Configuration.model_validate(plain_configuration(root))
    except ValidationError as error:
        changed = False
        # unquoted numbers from environment variables are converted back to text where text is expected, such as an API key made of digits
        for item in error.errors(include_url=False, include_input=False):
            if item["type"] == "string_type":
                root, hit = _retext(root, _as_written(item["loc"]))
                changed = changed or hit
        if changed:
            return validate(root)
        problems = _Problems(root)
        for item in error.errors(include_url=False):
            problems.add_invalid(cast("dict[str, Any]", item))
        raise joined(problems) from None  # pydantic quotes values, which may be secrets
    problems = _Problems(root)
    for find in (_providers, _tools_and_agent_types, _mcp_servers, _sandbox, _commands, _macros, _keys, _hosts):
        find(problems, configuration)
    if problems:
        raise joined(problems)
    return configuration


def checked_job(name: str, values: JsonObject) -> JsonObject:
    """Return the validated section `cron.NAME` with all defaults. If it is invalid, raise UsageError listing all problems."""
    problems = _Problems(Node({}, Place("default", "")))
    try:
        checked = Configuration.model_validate({"cron": {name: values}})
    except ValidationError as error:
        for item in error.errors(include_url=False):
            problems.add_invalid(cast("dict[str, Any]", item))
        raise UsageError(
            "\n".join(text.removeprefix(f"cron.{name}").removeprefix(".").removeprefix(": ") for text in problems.texts)
        ) from None
    return cast("JsonObject", checked.cron[name].model_dump(mode="json"))


def _retext(node: Node, path: _Path) -> tuple[Node, bool]:
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


class _Problems(list[ConfigError]):
    def __init__(self, root: Node) -> None:
        self._root = root
        self.texts: list[str] = []
        """The messages without places."""

    def add(self, path: _Path, message: str, *, key: bool = False, shown: _Path | None = None) -> None:
        """Add a problem with the value at a path or with the value's key.
        The message starts with the path, or with `shown` if it is set.
        """
        place = place_of(self._root, path, key=key)
        prefix = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in (path if shown is None else shown)).lstrip(".")
        self.texts.append(f"{prefix}: {message}" if prefix else message)
        self.append(ConfigError(self.texts[-1], file=place.source, line=place.line, column=place.column))
        self[-1].problems = ((".".join(map(str, path)), message),)

    def add_invalid(self, item: dict[str, Any]) -> None:
        """Add a pydantic validation error."""
        path, kind = _as_written(item["loc"]), str(item["type"])
        if kind == "extra_forbidden":
            self.add_unknown(path)
            return
        if kind == "missing":
            self.add(path, f"The required key {path[-1]!r} is missing.", shown=path[:-1])
            return
        hidden = is_secret(path) or isinstance(item.get("input"), dict | list)
        got = "" if hidden else f", got {item.get('input')!r}"
        if kind == "literal_error":
            expected = str(item["ctx"]["expected"])
            self.add(path, f"Expected {expected}{got}.{hint(str(item.get('input')), _QUOTED.findall(expected))}")
        elif kind == "string_pattern_mismatch":
            # the last name in the path is that of the key; indexes of lists may follow it
            wanted = next((_PATTERNS[step] for step in reversed(path) if step in _PATTERNS), "a URL starting with http:// or https://")
            self.add(path, f"Expected {wanted}{got}.", shown=path[:-1] if path[-1] == _KEY else None)
        elif kind in _EXPECTED and item.get("input") is None:
            self.add(path, f"The value is missing. Expected {_EXPECTED[kind]}.", key=True)
        elif kind in _EXPECTED:
            self.add(path, f"Expected {_EXPECTED[kind]}{got}.")
        elif kind == "string_too_short" and item["ctx"]["min_length"] == 1:
            self.add(path, "The text is empty.")
        elif kind == "value_error":
            reason = str(item["ctx"]["error"]).rstrip(".")
            self.add(path, f"{reason[:1].upper()}{reason[1:]}{got}.")
        else:
            self.add(path, f"The value {str(item['msg']).removeprefix('Input ')}{got}.")

    def add_unknown(self, path: _Path) -> None:
        """Add an unknown key."""
        self.add(
            path, f"Unknown key {str(path[-1])!r}.{_known(str(path[-1]), fields_at(tuple(map(str, path[:-1]))))}", key=True, shown=path[:-1]
        )


def _as_written(path: _Path) -> _Path:
    """Return the path as in the file, without the kind that pydantic adds for an entry of `tools`."""
    return (*path[:2], *path[3:]) if path[:1] == ("tools",) and path[2:3] in ((CUSTOM,), (SETTINGS,)) else path


def _known(name: str, known: Sequence[str]) -> str:
    return f"{hint(name, known)} Known: {', '.join(known)}." if known else ""


def _is_misspelled(name: str, known: Sequence[str]) -> bool:
    """Return True if an unknown name looks like a misspelled known name.
    Other unknown names are allowed, because a package may add them later.
    """
    return name not in known and bool(difflib.get_close_matches(name, known, n=1, cutoff=0.75))


def _providers(problems: _Problems, configuration: Configuration) -> None:
    for name, part in configuration.providers.items():
        for key in part.model_extra or {}:
            if _is_misspelled(key, list(type(part).model_fields)):
                problems.add_unknown(("providers", name, key))
        if name not in PROVIDERS and part.enabled and not part.base_url:
            problems.add(("providers", name), f"{PROVIDERS.unknown(name)} A custom provider needs base_url.", key=True, shown=())
        if part.dialect and part.dialect not in DIALECTS:
            problems.add(("providers", name, "dialect"), f"Dialect {part.dialect!r} not found.{_known(part.dialect, DIALECTS.names())}")


def _hosts(problems: _Problems, configuration: Configuration) -> None:
    for name, part in configuration.hosts.items():
        if name.casefold() == LOCAL_HOST:
            problems.add(("hosts", name), "The name 'local' stands for this machine. Choose another one.", key=True)
        known = _agent_names() if part.agents else []
        for path, agent in _listed(("hosts", name, "agents"), part.agents):
            if agent not in known:
                problems.add(path, f"Agent {agent!r} not found.{_known(agent, known)}")


def _agent_names() -> list[str]:
    """Return the names of formats with standard locations, and of other programs that store files in these formats."""
    formats = [FORMATS.make(name) for name in FORMATS.names()]
    names = {name for name, format in zip(FORMATS.names(), formats, strict=True) if isinstance(format, HasLocations)}
    programs = {program for format in formats if isinstance(format, HasVariants) for program, _ in format.variants(Path.home(), {})}
    return sorted(names | programs)


def _tools_and_agent_types(problems: _Problems, configuration: Configuration) -> None:
    known = tool_names(configuration)
    for agent, part in configuration.agents.items():
        for at, name in enumerate(part.tools or ()):
            if _is_misspelled(name, known):
                problems.add(("agents", agent, "tools", at), TOOLS.unknown(name))
        if _is_misspelled(part.agent_type, AGENTS.names()):
            hint = _known(part.agent_type, AGENTS.names())
            problems.add(("agents", agent, "agent_type"), f"Agent type {part.agent_type!r} not found.{hint}")
    for name, tool in configuration.tools.items():
        if isinstance(tool, CustomToolPart):
            _custom_tool(problems, name)
        elif _is_misspelled(name, TOOLS.names()):
            problems.add(("tools", name), TOOLS.unknown(name), key=True, shown=("tools",))


def _custom_tool(problems: _Problems, name: str) -> None:
    if name in TOOLS and not TOOLS.package(name):
        problems.add(("tools", name), f"The name {name!r} is taken by a built-in tool. Rename the custom tool.", key=True, shown=("tools",))
    elif not NAME.fullmatch(name) or "__" in name:
        message = f"Invalid tool name {name!r}. Use at most 64 letters, digits, _ and -, starting with a letter, without '__'."
        problems.add(("tools", name), message, key=True, shown=("tools",))


def tool_names(configuration: Configuration) -> list[str]:
    """Return the names of all tools, including custom tools."""
    return [*TOOLS.names(), *(name for name, part in configuration.tools.items() if isinstance(part, CustomToolPart))]


def _commands(problems: _Problems, configuration: Configuration) -> None:
    for name, part in configuration.commands.items():
        path, names = ("commands", name), [one.name for one in part.parameters]
        for at, parameter in enumerate(names):
            if parameter in names[:at]:
                problems.add((*path, "parameters", at, "name"), f"The parameter {parameter!r} is defined twice. Rename one of them.")
        if part.type != "workflow":
            if part.steps:
                problems.add((*path, "steps"), "Only a workflow has steps. Add 'type: workflow', or remove the steps.", key=True)
            elif not part.prompt.strip():
                problems.add(path, "The prompt is empty.")
            continue
        if part.prompt:
            problems.add((*path, "prompt"), "A workflow has no prompt of its own. Move this text into the prompt of a step.")
        if not part.steps:
            problems.add((*path, "type"), "A workflow needs steps. Add a list named steps, in which each step has a prompt.")
        steps = attribute("moot.config.commands:steps_of")([step.model_dump(mode="json") for step in part.steps])
        for at, key, problem in problems_of(steps, argument_names(map(CommandParameter, names))):
            problems.add((*path, "steps", at, *key), problem)


def _keys(problems: _Problems, configuration: Configuration) -> None:
    for action, problem in attribute("moot.types.shortcuts:problems_of")(configuration.keys) if configuration.keys else ():
        problems.add(("keys", action), problem)


def _macros(problems: _Problems, configuration: Configuration) -> None:
    for path in cycles(configuration.macros):
        problems.add(("macros", path[0]), f"The macro contains itself: {' → '.join(path)}.")


def _mcp_servers(problems: _Problems, configuration: Configuration) -> None:
    for name, part in configuration.mcp.items():
        path = ("mcp", name)
        if not _SERVER.fullmatch(name) or "__" in name:
            problems.add(path, f"Invalid server name {name!r}. Use only letters, digits, - and single _.", key=True, shown=("mcp",))
        if bool(part.command) == bool(part.url):
            problems.add(path, "Expected a command, as in {command: npx, args: [..]}, or a url.", key=True)
        for key in ("headers",) if part.command else ("args", "env"):
            if getattr(part, key):
                problems.add((*path, key), f"This applies only to servers with a {'url' if part.command else 'command'}.", key=True)
    for agent, part in configuration.agents.items():
        for at, name in enumerate(part.mcp or ()):
            if name not in configuration.mcp and not name.startswith(SERVER_PREFIX):  # plugins are not part of the tree
                hint = _known(name, sorted(configuration.mcp)) if configuration.mcp else " The section mcp configures no servers."
                problems.add(("agents", agent, "mcp", at), f"MCP server {name!r} not found.{hint}")


def _sandbox(problems: _Problems, configuration: Configuration) -> None:
    if configuration.sandbox.required and not configuration.sandbox.enabled:
        problems.add(("sandbox", "required"), "A required sandbox can't be turned off. Remove sandbox.enabled or sandbox.required.")
    for at, rule in enumerate(configuration.permissions.rules):
        if rule.network and (rule.action != "allow" or rule.tool not in ("shell", "*")):
            problems.add(("permissions", "rules", at, "network"), "This applies only to rules that allow commands of the tool 'shell'.")


def find_warnings(root: Node, others: Sequence[ConfigError] = ()) -> ConfigError | None:
    """Return problems that matter only when a setting is used, and those in `others`, as one error, or None if there are none.

    These problems are unknown models of custom providers, models of unknown providers, unknown tools and types of agents, unknown keys of
    providers and their models, invalid settings of tools, and hooks with unknown tools or variables.
    """
    configuration, problems = validate(root), _Problems(root)
    named: list[tuple[_Path, str]] = []
    for key, value in configuration.models.model_dump(exclude_none=True).items():
        named += [(("models", key), value)] if isinstance(value, str) else _listed(("models", key), value)
    _unknown_models(problems, configuration, named)
    _agents(problems, configuration)
    _provider_keys(problems, configuration)
    _tool_settings(problems, configuration)
    for path, message in hooks.problems(configuration):
        problems.add(path, message)
    problems.extend(others)
    return joined(problems) if problems else None


def refuse_agents(root: Node, before: Node, *, models: bool = True) -> None:
    """Raise ConfigError if an agent refers to an unknown tool, agent type, provider or model, unless it already does so in `before`.

    If `models` is False, providers and models are not checked, because the tree does not contain all of them.
    """
    problems, old = _Problems(root), _Problems(before)
    _agents(problems, validate(root), models=models)
    _agents(old, validate(before))
    added = [problem for text, problem in zip(problems.texts, problems, strict=True) if text not in old.texts]
    if added:
        raise joined(added)


def _agents(problems: _Problems, configuration: Configuration, *, models: bool = True) -> None:
    named: list[tuple[_Path, str]] = []
    known = tool_names(configuration)
    for agent, part in configuration.agents.items():
        for at, name in enumerate(part.tools or ()):
            if name not in known:
                problems.add(("agents", agent, "tools", at), TOOLS.unknown(name))
        for at, name in enumerate(part.prompt.parts or ()):
            if name not in (*PROMPT_PARTS.names(), *PART_ORDER):
                problems.add(("agents", agent, "prompt", "parts", at), PROMPT_PARTS.unknown(name))
        if part.agent_type not in AGENTS:
            problems.add(
                ("agents", agent, "agent_type"), f"Agent type {part.agent_type!r} not found.{_known(part.agent_type, AGENTS.names())}"
            )
        if part.agent_type == "moot":  # outside agents choose their models themselves
            named += [(("agents", agent, "model"), part.model), *_listed(("agents", agent, "fallback"), part.fallback)]
    if models:
        _unknown_models(problems, configuration, named)


def _listed(path: _Path, values: Sequence[str]) -> list[tuple[_Path, str]]:
    return [((*path, at), str(value)) for at, value in enumerate(values)]


_MODEL_KEYS = ("context", "max_output", "modalities", "tools", "reasoning", "small", "wire_name", "note", "price")


def _provider_keys(problems: _Problems, configuration: Configuration) -> None:
    for name, part in configuration.providers.items():
        for model, facts in part.models.items():
            for key in facts:
                if key not in _MODEL_KEYS:
                    path = ("providers", name, "models", model)
                    problems.add((*path, key), f"Unknown key {key!r}.{_known(key, _MODEL_KEYS)}", key=True, shown=path)
        if PROVIDERS.package(name):  # only the plugin knows which keys it reads
            continue
        try:
            options = tuple(str(option) for option in getattr(PROVIDERS.load(name if name in PROVIDERS else "custom"), "options", ()))
        except UsageError:  # a broken package, which `moot doctor` reports
            continue
        for key in part.model_extra or {}:
            if key not in options:
                known = sorted({*type(part).model_fields, *options})
                problems.add(("providers", name, key), f"Unknown key {key!r}.{_known(key, known)}", key=True, shown=("providers", name))


def _unknown_models(problems: _Problems, configuration: Configuration, named: Sequence[tuple[_Path, str]]) -> None:
    providers = {name: part.models for name, part in configuration.providers.items()}
    for path, text in named:
        if problem := model_problem(text, providers):
            problems.add(path, problem)


def model_problem(text: str, providers: Mapping[str, Collection[str]]) -> str:
    """Return the reason why a model can't be found, or an empty string if it may exist.
    `providers` contains the configured providers and the models that they list.

    The models of other providers are not known in advance.
    """
    model, at, provider = text.rpartition("@")
    known = sorted({*PROVIDERS.names(), *providers} - {"custom"})
    own = sorted(providers.get(provider, ())) if provider not in PROVIDERS else []
    if at and provider not in known:
        return f"Provider {provider!r} not found.{_known(provider, known)}"
    return f"Model {model!r} not found in providers.{provider}.models.{_known(model, own)}" if at and own and model not in own else ""


def _tool_settings(problems: _Problems, configuration: Configuration) -> None:
    for name, settings in configuration.tools.items():
        if isinstance(settings, CustomToolPart):
            continue
        try:
            model = getattr(TOOLS.load(name), "settings", None) if name in TOOLS else None
        except UsageError:  # a broken package, which `moot doctor` reports
            continue
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            continue
        known = sorted(model.model_fields)
        for key in settings:
            if key not in known and model.model_config.get("extra") != "allow":
                hint = _known(key, known) if known else " The tool has no settings."
                problems.add(("tools", name, key), f"Unknown setting {key!r}.{hint}", key=True, shown=("tools", name))
        try:
            model.model_validate({key: value for key, value in settings.items() if key in known})
        except ValidationError as error:
            for item in error.errors(include_url=False):
                problems.add_invalid({**item, "loc": ("tools", name, *item["loc"])})


def joined(problems: Sequence[ConfigError]) -> ConfigError:
    """Combine several problems into one error, sorted by place."""
    problems = sorted(problems, key=lambda problem: (problem.file, problem.line, problem.column))
    joined = ConfigError("\n".join(problem.message for problem in problems))
    joined.problems = tuple(one for problem in problems for one in problem.problems)
    joined.file, joined.line, joined.column = problems[0].file, problems[0].line, problems[0].column
    return joined
