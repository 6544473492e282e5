"""The settings and the slash commands of the channel on Discord."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moot.errors import ConfigError
from moot.types.canonical import JsonObject

_COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("new", "Start a new conversation", ""),
    ("stop", "Stop the current answer", ""),
    ("model", "Show or choose the model", "model"),
    ("agent", "Show or choose the agent", "agent"),
    ("effort", "Set how much the model reasons", "effort"),
    ("compact", "Summarize the older messages", "focus"),
    ("context", "Show what fills the context", ""),
    ("cost", "Show the cost of this conversation", ""),
    ("status", "Show the state of this conversation", ""),
)
"""Name, description and argument of the slash commands."""


DIRECT = "dm/"
"""The start of the names of direct chats."""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of the channel."""

    token: str = field(repr=False)
    users: frozenset[int]
    """The people who may talk to moot."""
    rooms: frozenset[int]
    """Guilds and channels in which they may."""
    api: str = ""
    """URL of another server with Discord's API; empty = Discord."""

    def allows(self, who: str) -> bool:
        """Return whether moot may be used in direct messages or a room `GUILD/CHANNEL[/THREAD]`."""
        return who.startswith(DIRECT) or not self.rooms.isdisjoint(int(id) for id in who.split("/") if id.isdecimal())


def slash_commands() -> list[dict[str, Any]]:
    """Return the slash commands in Discord's form."""
    option = {"type": 3, "description": "Shows the current value if empty", "required": False}
    return [
        {"name": name, "description": about, "options": [option | {"name": argument}] if argument else []}
        for name, about, argument in _COMMANDS
    ]


def read_options(settings: JsonObject) -> Options:
    """Return the checked settings. Raise ConfigError. Blocking: the token may be in a file."""
    for key in settings:
        if key not in ("token", "token_file", "users", "guilds", "channels", "api"):
            raise ConfigError(f"Unknown key channels.discord.{key}. Known: token, token_file, users, guilds, channels, api.")
    token, file, api = (_text(settings, key) for key in ("token", "token_file", "api"))
    if file:
        try:
            token = Path(file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"channels.discord.token_file can't be read: {file!r}.") from error
    if not token:
        raise ConfigError("channels.discord needs a token or a token_file.", fix="See docs/channels.md.")
    return Options(token, _ids(settings, "users"), _ids(settings, "guilds") | _ids(settings, "channels"), api.rstrip("/"))


def _text(settings: JsonObject, key: str) -> str:
    value = settings.get(key, "")
    if not isinstance(value, str):
        raise ConfigError(f"channels.discord.{key} must be text.")
    return value


def _ids(settings: JsonObject, key: str) -> frozenset[int]:
    values = settings.get(key, [])
    if isinstance(values, list) and all(isinstance(value, int | str) and str(value).isdecimal() for value in values):
        return frozenset(int(str(value)) for value in values)
    raise ConfigError(f"channels.discord.{key} must be a list of ids of Discord, such as [123456789012345678].")
