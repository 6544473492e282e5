"""The setting `agents.NAME.options` of an outside agent. Errors say where in the configuration the problem is."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from moot.errors import ConfigError
from moot.types.canonical import JsonObject
from moot.types.run import RunRequest

SHARED = frozenset({"command", "args", "env"})
_ROLES = frozenset({"main", "small", "compaction", "image", "transcription", "fallback"})


@dataclass(frozen=True, slots=True)
class Launch:
    """The command line and environment of a program."""

    command: tuple[str, ...]
    """The command line, including `args`."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    """Environment variables to add to those that a child process usually gets."""


def launch_of(request: RunRequest, command: tuple[str, ...], known: Collection[str] = ()) -> Launch:
    """Parse the options; `command` is the default command line.
    Raise ConfigError if an option is invalid, or neither a shared nor a `known` option.
    """
    options = request.agent.options
    strangers = sorted(options.keys() - SHARED - set(known))
    if strangers:
        raise option_error(request, strangers[0], f"is unknown. Known options: {', '.join(sorted(SHARED | set(known)))}.")
    words = _words(request, "command") or command
    if not words:
        raise option_error(request, "command", "is missing. Expected a list of words, as in [my-agent, --stdio].")
    env = options.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(item, str | int | float) for item in env.values()):
        raise option_error(request, "env", f"is {env!r}. Expected names with their values, as in {{LANG: C.UTF-8}}.")
    return Launch((*words, *_words(request, "args")), {name: str(item) for name, item in env.items()})


def _words(request: RunRequest, name: str) -> tuple[str, ...]:
    value = request.agent.options.get(name, [])
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(str(word) for word in value)
    raise option_error(request, name, f"is {value!r}. Expected a list of words, as in [one, two].")


def text_of(request: RunRequest, name: str) -> str:
    """Return the value of an option, or an empty string if it is missing. Raise ConfigError if it is not a string."""
    value = request.agent.options.get(name, "")
    if isinstance(value, str):
        return value
    raise option_error(request, name, f"is {value!r}. Expected text.")


def choice_of(request: RunRequest, name: str, among: Collection[str]) -> str:
    """Return the value of an option, or an empty string if it is missing. Raise ConfigError if the value is not one of the choices."""
    value = text_of(request, name)
    if value and value not in among:
        raise option_error(request, name, f"is {value!r}. Expected one of: {', '.join(among)}.")
    return value


def directory_of(request: RunRequest) -> Path:
    """Return the agent's working directory."""
    return Path(request.conversation.directory or ".").absolute()


def model_of(request: RunRequest, default: str = "") -> str:
    """Return the requested model under the agent's own name for it, or an empty string for the agent's default."""
    wanted = request.run.model or default or request.agent.model
    return "" if wanted in _ROLES else wanted.rpartition("@")[0] or wanted


def double(program: str, behavior: str) -> JsonObject:
    """Return options that run a test double, which is a file in `testing/`, as the agent's program."""
    return {"command": [sys.executable, "-S", "-E", str(Path(__file__).parents[2] / "testing" / program), behavior]}


def option_error(request: RunRequest, name: str, problem: str) -> ConfigError:
    """Return the error for an option with an invalid value."""
    return ConfigError(f"The option agents.{request.agent.name}.options.{name} {problem}")
