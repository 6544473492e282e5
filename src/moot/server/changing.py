"""Changes of the configuration that come over the wire: written into the person's file, checked first, and in force at once.

Most of what a configuration holds may be changed by whoever has the scope `admin`. What names programs, addresses that keys go to, or
doors may be changed from this machine alone; so may values that would be read as variables of the environment, for they can hold secrets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from ipaddress import ip_address

from anyio import to_thread
from fastapi import Request

from moot.config.loading import FILE
from moot.config.writing import set_values
from moot.errors import Refused
from moot.server.state import Server
from moot.types.canonical import Json

__all__ = ["changed", "check_place", "is_local", "write"]

ANYWHERE = ("models", "permissions", "limits", "ui", "agents")
"""Sections that name nothing that is run or called."""

HERE = frozenset({"agent_type", "options", "hooks"})
"""Settings of an agent that may name a program."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def is_local(request: Request) -> bool:
    """Whether the caller sits at this machine, with no proxy between."""
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def check_place(values: Mapping[str, Json], *, local: bool) -> None:
    """Raises Refused for a value that may be set from this machine alone and was not."""
    if local:
        return
    for key, value in values.items():
        steps = key.split(".")
        if steps[0] not in ANYWHERE or (steps[0] == "agents" and (HERE & {*steps} or _names_program(value))):
            raise Refused(f"{key} can be set from the server's own machine alone", fix=f"moot config set {key} VALUE")
        if _holds_variable(value):
            raise Refused(f"{key}: '${{' would be read as a variable of the server's environment", fix="set it on the server's own machine")


async def write(server: Server, values: Mapping[str, Json]) -> None:
    """Writes the values, all or none, and takes them up. Raises ConfigError when the file would be wrong then."""
    await to_thread.run_sync(partial(set_values, server.engine.settings.home / FILE, values, os.environ))
    await changed(server)


async def changed(server: Server) -> None:
    """Takes up what was just written. Raises ConfigError when something else in the file is wrong."""
    if not await server.configuration.reload() and (error := server.configuration.error) is not None:
        raise error


def _names_program(value: Json) -> bool:
    """Whether a whole agent, or all of them, brings such a setting along."""
    if isinstance(value, dict):
        return any(name in HERE or _names_program(item) for name, item in value.items())
    return False


def _holds_variable(value: Json) -> bool:
    if isinstance(value, dict):
        return any("${" in name or _holds_variable(item) for name, item in value.items())
    if isinstance(value, list):
        return any(_holds_variable(item) for item in value)
    return isinstance(value, str) and "${" in value
