"""Creation of agents as files in moot's home folder."""

from __future__ import annotations

from pathlib import Path

from moot.config.agents.files import FOLDER, NAME, SUFFIX, read_agent
from moot.config.changes import with_front_matter
from moot.config.home import lock_file, write_atomically
from moot.config.settings import Settings
from moot.errors import ConfigError, UsageError
from moot.types.agent import Agent
from moot.types.canonical import JsonObject


def new_path(settings: Settings, name: str) -> Path:
    """Return the path of the file for a new agent. Raise UsageError if the name is invalid or already used."""
    if not NAME.fullmatch(name):
        raise UsageError(f"Invalid agent name {name!r}: use letters, digits, - and _.")
    path = settings.home / FOLDER / f"{name}{SUFFIX}"
    if path.exists() or name in settings.agents:
        raise UsageError(f"Agent {name!r} already exists.", fix=f"Show it with 'moot agents show {name}'.")
    return path


def checked(settings: Settings | None, path: Path, text: str, name: str) -> Agent:
    """Return the agent defined by the text of a file. If it is invalid or has another name, raise ConfigError with line and column.

    Without settings, models are not checked.
    """
    agent, _ = read_agent(path, text, None if settings is None else settings.providers)
    if agent.name != name:
        raise ConfigError(
            f"The agent {name!r} can't be renamed to {agent.name!r}.", file=str(path), fix="Copy it, then remove the old one."
        )

    return agent


def create_agent(settings: Settings, name: str, values: JsonObject) -> Path:
    """Write a new agent to moot's home folder and return its path. Raise UsageError or ConfigError if it is invalid. Blocks."""
    path = new_path(settings, name)
    with lock_file(path.parent):
        if path.exists():
            raise UsageError(f"Agent {name!r} already exists.", fix=f"moot agents show {name}")
        write_agent(settings, path, with_front_matter("", values, path), name)
    return path


def write_agent(settings: Settings, path: Path, text: str, name: str) -> None:
    checked(settings, path, text, name)
    write_atomically(path, text.encode())
