"""The agents, hooks and MCP servers of installed plugins as part of the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from moot.config.agents.files import LAYER, PLUGIN_FIELDS, Parse, agent_file
from moot.config.plugins.layout import Plugin
from moot.config.tree import Node, Place, from_json, interpolate, plain
from moot.errors import ConfigError
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject
from moot.types.hooks import CommandHook, HookEvent

if TYPE_CHECKING:
    from moot.config.settings import Settings


def agents_layer(plugins: Sequence[Plugin], parse: Parse) -> Node:
    """Return the agents of plugins, named `PLUGIN:AGENT`, as a layer of the configuration. Raise ConfigError if an agent is invalid.

    Parts without an equivalent were already shown when the plugin was installed.
    """
    place = Place(LAYER, "plugins")
    files = [agent for plugin in plugins for agent in plugin.agents]
    agents = {file.name: agent_file(file.path, file.text, foreign=True, parse=parse, known=PLUGIN_FIELDS).node for file in files}
    return Node({"agents": Node(agents, place)} if agents else {}, Place("default", ""))


def with_plugins(settings: Settings, plugins: Sequence[Plugin], environ: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Return the settings with the hooks and MCP servers of plugins added after the user's own, and notes.

    A server whose environment variables are not set is disabled.
    """
    hooks: dict[HookEvent, tuple[CommandHook, ...]] = dict(settings.hooks)
    servers: dict[str, McpServer] = {}
    notes: list[str] = []
    for plugin in plugins:
        for event, hook in plugin.hooks:
            hooks[event] = (*hooks.get(event, ()), hook)
        for server in plugin.servers:
            if server.name in servers:
                why = f"The plugin {servers[server.name].plugin!r} has a server of the same name. Remove one of them."
                notes.append(f"The MCP server {server.name!r} of the plugin {plugin.name!r} is not used. {why}")
                continue
            servers[server.name], problem = _resolved(server, environ)
            notes += [problem] if problem else []
    return replace(settings, hooks=hooks, mcp={**servers, **settings.mcp}), notes


def secrets_in(settings: Settings) -> JsonObject:
    """Return the values of plugins' MCP servers that may be secret, in the same structure as in the configuration."""
    servers = [server for server in settings.mcp.values() if server.plugin]
    return {"mcp": {server.name: {"env": {**server.env}, "headers": {**server.headers}} for server in servers}}


def _resolved(server: McpServer, environ: Mapping[str, str]) -> tuple[McpServer, str]:
    """Replace references to environment variables in a server. Return the server, and the reason why it can't be used (empty if it can)."""
    facts: JsonObject = {
        "command": server.command,
        "args": list[Json](server.args),
        "env": {**server.env},
        "url": server.url,
        "headers": {**server.headers},
    }
    try:
        found = cast("JsonObject", plain(interpolate(from_json(facts, Place("user", f"plugin {server.plugin}")), environ)))
    except ConfigError as error:
        return replace(server, enabled=False, problem=error.message), f"The MCP server {server.name!r} is disabled: {error.message}"
    return (
        replace(
            server,
            command=str(found["command"]),
            args=tuple(cast("list[str]", found["args"])),
            env=cast("dict[str, str]", found["env"]),
            url=str(found["url"]),
            headers=cast("dict[str, str]", found["headers"]),
        ),
        "",
    )
