"""`agents.NAME.options` of an outside agent, with errors that name the place in the configuration."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from moot.errors import ConfigError
from moot.types.canonical import JsonObject
from moot.types.run import RunRequest

SHARED = frozenset({"command", "args", "env"})


@dataclass(frozen=True, slots=True)
class Launch:
    """The command line and environment of a program."""

    command: tuple[str, ...]
    """The command line, including `args`."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    """Added to the environment of a child process."""


def launch_of(request: RunRequest, command: tuple[str, ...], known: Collection[str] = ()) -> Launch:
    """Parse the options; `command` is the default. Raise ConfigError, also for an option that is neither shared nor `known`."""
    options = request.agent.options
    strangers = sorted(options.keys() - SHARED - set(known))
    if strangers:
        raise ConfigError(f"{_place(request, strangers[0])} is not known; known: {', '.join(sorted(SHARED | set(known)))}")
    words = words_of(request, "command") or command
    if not words:
        raise ConfigError(f"{_place(request, 'command')} is missing; expected a list of words, as in [my-agent, --stdio]")
    return Launch((*words, *words_of(request, "args")), _environment(request, options))


def _environment(request: RunRequest, options: JsonObject) -> dict[str, str]:
    value = options.get("env", {})
    if isinstance(value, dict) and all(isinstance(item, str | int | float) for item in value.values()):
        return {name: str(item) for name, item in value.items()}
    raise ConfigError(f"{_place(request, 'env')} is {value!r}; expected names with their values, as in {{LANG: C.UTF-8}}")


def words_of(request: RunRequest, name: str) -> tuple[str, ...]:
    """Return a list of strings; empty if it is missing. Raise ConfigError."""
    value = request.agent.options.get(name, [])
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(str(word) for word in value)
    raise ConfigError(f"{_place(request, name)} is {value!r}; expected a list of words, as in [one, two]")


def text_of(request: RunRequest, name: str) -> str:
    """Return a string; empty if it is missing. Raise ConfigError."""
    value = request.agent.options.get(name, "")
    if isinstance(value, str):
        return value
    raise ConfigError(f"{_place(request, name)} is {value!r}; expected a text")


def choice_of(request: RunRequest, name: str, among: Collection[str]) -> str:
    """Return one of the choices; empty if it is missing. Raise ConfigError."""
    value = text_of(request, name)
    if value and value not in among:
        raise ConfigError(f"{_place(request, name)} is {value!r}; expected one of: {', '.join(among)}")
    return value


def directory_of(request: RunRequest) -> Path:
    """Return the agent's working directory."""
    return Path(request.conversation.directory or ".").absolute()


def _place(request: RunRequest, name: str) -> str:
    return f"agents.{request.agent.name}.options.{name}"
