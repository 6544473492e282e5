"""The definitions of MCP servers in the user's configuration file: add, change, try and remove them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from moot.config.changes import remove_value, set_entry, with_entry
from moot.config.document import parse
from moot.config.home import read_text
from moot.config.loader import FILE
from moot.config.settings import Settings, build
from moot.config.tree import Place, interpolate_root, plain
from moot.config.validation import validated_json
from moot.errors import ConfigError, NotFound, UsageError
from moot.mcp.accepted import AcceptedTools
from moot.mcp.logins import LoginFile
from moot.mcp.servers import check_configured
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject

SECTION = "mcp"


def definition_of(settings: Settings, name: str) -> JsonObject:
    """Return a server's entry as it is written in the file, with unresolved `${VAR}` references. It contains secrets. This function blocks.

    Raise NotFound if the file does not contain the server.
    """
    path = settings.home / FILE
    root = plain(parse(read_text(path), Place("user", str(path))))
    entries = root.get(SECTION) if isinstance(root, dict) else None
    entry = entries.get(name) if isinstance(entries, dict) else None
    if not isinstance(entry, dict):
        raise NotFound(f"{path} contains no MCP server {name!r}.", fix="moot mcp list")
    return entry


def add_server(settings: Settings, name: str, fields: JsonObject) -> None:
    """Add a server to the configuration file. Raise UsageError if the name is in use, ConfigError if a field is invalid. This function
    blocks.
    """
    _check_new(settings, name)
    set_entry(settings.home / FILE, SECTION, name, fields, os.environ)


def change_server(settings: Settings, name: str, fields: JsonObject) -> None:
    """Set fields of a server in the configuration file. Null removes a field. This function blocks.

    Raise the same errors as `trial_server`.
    """
    _check_kept(settings, name, fields)
    set_entry(settings.home / FILE, SECTION, name, fields, os.environ)


def trial_server(settings: Settings, name: str, fields: JsonObject) -> McpServer:
    """Return the server that the fields define, as if they were saved. Nothing is written. This function blocks.

    Raise ConfigError if a field is invalid, or if a stored header would be sent to another site.
    """
    if name in settings.mcp:
        _check_kept(settings, name, fields)
    path = settings.home / FILE
    text = with_entry(path, SECTION, name, {**fields, "enabled": True}, os.environ).decode()
    root, _ = interpolate_root(parse(text, Place("user", str(path))), os.environ)
    return build(validated_json(root), settings.home).mcp[name]


def remove_server(settings: Settings, accepted: AcceptedTools, server: McpServer) -> None:
    """Remove a server from the configuration file, with its accepted tools and its login. This function blocks."""
    check_configured(server)
    remove_value(settings.home / FILE, f"{SECTION}.{server.name}", os.environ)
    accepted.forget(server.name)
    LoginFile(settings.home, server).delete()


def _check_new(settings: Settings, name: str) -> None:
    if name in settings.mcp:
        raise UsageError(f"An MCP server named {name!r} already exists.", fix=f"moot mcp remove {name}")


def _check_kept(settings: Settings, name: str, fields: JsonObject) -> None:
    """Raise ConfigError if the fields keep a header that is stored for another site. Otherwise a new address could be used to read it."""
    check_configured(settings.mcp[name])
    before = definition_of(settings, name)
    headers, url = fields.get("headers"), fields.get("url", before.get("url"))
    if not isinstance(headers, Mapping) or _site(url) == _site(before.get("url")):
        return
    if kept := [key for key, value in headers.items() if value is None]:
        message = "Enter the value again, because the address has changed."
        error = ConfigError(f"mcp.{name}.headers.{kept[0]}: {message}", file=str(settings.home / FILE))
        error.problems = tuple((f"mcp.{name}.headers.{key}", f"{key}: {message}") for key in kept)
        raise error


def _site(url: Json) -> tuple[str, str]:
    parts = urlsplit(url if isinstance(url, str) else "")
    return parts.scheme, parts.netloc
