"""Settings and slash commands of the Discord channel."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moot.errors import ConfigError
from moot.types.canonical import JsonObject

_COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("new", "Start a new conversation", ""),
    ("stop", "Stop the current answer", ""),
    ("undo", "Undo the last prompt: its messages, files, or both", "part"),
    ("redo", "Redo what was undone", "part"),
    ("model", "Show or choose the model", "model"),
    ("agent", "Show or choose the agent", "agent"),
    ("effort", "Set how much the model reasons", "effort"),
    ("compact", "Summarize the older messages", "focus"),
    ("context", "Show what fills the context", ""),
    ("cost", "Show the cost of this conversation", ""),
    ("status", "Show the state of this conversation", ""),
)
"""Name, description and argument of each slash command."""


DIRECT = "dm/"
"""Prefix of rooms that are direct messages."""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of the section `channels.discord`."""

    token: str = field(repr=False)
    users: frozenset[int]
    """Discord ids of the people who may talk to moot."""
    rooms: frozenset[int]
    """Discord ids of the guilds and channels in which people may talk to moot."""
    api: str = ""
    """URL of a server that implements Discord's API; empty = Discord itself."""

    def allows(self, who: str) -> bool:
        """Return True if moot may be used in the room `who`, such as `dm/CHANNEL` or `GUILD/CHANNEL/THREAD`."""
        return who.startswith(DIRECT) or not self.rooms.isdisjoint(int(id) for id in who.split("/") if id.isdecimal())


def slash_commands() -> list[dict[str, Any]]:
    """Return the slash commands in the format of Discord's API."""
    option = {"type": 3, "description": "Shows the current value if empty", "required": False}
    return [
        {"name": name, "description": about, "options": [option | {"name": argument}] if argument else []}
        for name, about, argument in _COMMANDS
    ]


def read_options(settings: JsonObject) -> Options:
    """Return the validated settings. Raise ConfigError if one is invalid. This blocks, because the token may be read from a file."""
    for key in settings:
        if key not in ("token", "token_file", "users", "guilds", "channels", "api"):
            raise ConfigError(f"Unknown key channels.discord.{key}. Known keys: token, token_file, users, guilds, channels, api.")
    token, file, api = (_text(settings, key) for key in ("token", "token_file", "api"))
    if file:
        try:
            token = Path(file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"channels.discord.token_file can't be read: {file!r}.") from error
    if not token:
        raise ConfigError("channels.discord requires `token` or `token_file`.", fix="See docs/channels.md.")
    return Options(token, _ids(settings, "users"), _ids(settings, "guilds") | _ids(settings, "channels"), api.rstrip("/"))


def _text(settings: JsonObject, key: str) -> str:
    value = settings.get(key, "")
    if not isinstance(value, str):
        raise ConfigError(f"channels.discord.{key} must be a string.")
    return value


def _ids(settings: JsonObject, key: str) -> frozenset[int]:
    values = settings.get(key, [])
    if isinstance(values, list) and all(isinstance(value, int | str) and str(value).isdecimal() for value in values):
        return frozenset(int(str(value)) for value in values)
    raise ConfigError(f"channels.discord.{key} must be a list of Discord ids, such as [123456789012345678].")
