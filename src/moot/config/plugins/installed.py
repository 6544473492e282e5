"""Installed plugins, and their agents, hooks and MCP servers as part of the configuration.

The file `plugins/plugins.json` in moot's home lists the plugins, and each has a folder, `plugins/NAME/HASH/`. An entry in the file records
the decision to use exactly this content. A folder without an entry is not used, so an interrupted installation has no effect. If a plugin's
files change afterwards, the whole plugin is disabled until a person accepts it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from moot.config.agents.files import LAYER, PLUGIN_FIELDS, Parse, agent_file
from moot.config.home import Stamp, lock_file, read_text, stamp_of, write_atomically
from moot.config.plugins.content import digest_of_files, entries, parents_of, read_all, stamps_of
from moot.config.plugins.layout import Plugin, data_folder, is_name, read_plugin
from moot.config.tree import Node, Place, from_json, interpolate, plain
from moot.errors import ConfigError, MootError, NotFound, Refused
from moot.plugins.registry import hint
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject, dumps, empty, loads_object
from moot.types.hooks import CommandHook, HookEvent

if TYPE_CHECKING:
    from moot.config.settings import Settings


FOLDER = "plugins"
FILE = "plugins.json"
_VERSION = 1

PluginStatus: TypeAlias = Literal["enabled", "disabled", "changed", "invalid"]

IGNORED = frozenset((".DS_Store",))
"""Files that the system creates in folders automatically.
All other files belong to the content, because a plugin's programs run in its folder.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision about a plugin."""

    folder: str
    """Name of the folder that contains the content, inside the plugin's folder."""
    digest: str
    """Hash of the content that the decision applies to."""
    source: JsonObject = field(default_factory=empty)
    enabled: bool = True
    left_out: tuple[str, ...] = ()
    """Names of agents that are not used because they contain mistakes."""

    def to_json(self) -> JsonObject:
        left: list[Json] = [*self.left_out]
        return {"folder": self.folder, "digest": self.digest, "source": self.source, "enabled": self.enabled, "left_out": left}


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed plugin."""

    name: str
    decision: Decision
    status: PluginStatus
    plugin: Plugin | None
    """The content; None if it can't be read."""
    digest: str = ""
    """Hash of the content; empty if it can't be read."""
    problem: str = ""
    """The reason why the plugin is not used; empty if it is used or has been disabled."""

    @property
    def servers(self) -> tuple[McpServer, ...]:
        """The plugin's MCP servers; none if its content can't be read."""
        return self.plugin.servers if self.plugin is not None else ()


def plugin_folder(home: Path, name: str) -> Path:
    """Return the folder of a plugin, which contains its content and the files that it writes itself."""
    return home / FOLDER / name


def decisions(home: Path) -> dict[str, Decision]:
    """Return the decision about each plugin. If the file has not changed, it is not read again. An invalid file counts as empty."""
    return _decided(home)[1]


def has_plugins(home: Path) -> bool:
    """Return True if any plugin is enabled, so that callers know whether plugin folders must be read, which may take some milliseconds."""
    return any(decision.enabled for decision in decisions(home).values())


def _decided(home: Path) -> tuple[Stamp, dict[str, Decision], str]:
    """Return the state of the file, the decisions in it, and the reason if it can't be read."""
    path = _path(home)
    now = stamp_of(path)
    known = _decisions.get(home)
    if known is None or known[0] != now:
        try:
            known = now, _parsed(read_text(path), path), ""
        except ConfigError as error:
            known = now, dict[str, Decision](), f"No plugin is used: {error}"
        _decisions[home] = known
    return known


_decisions: dict[Path, tuple[Stamp, dict[str, Decision], str]] = {}


def decide(home: Path, name: str, change: Callable[[Decision | None], Decision | None]) -> None:
    """Store a new decision about a plugin; None removes the decision. Raise ConfigError if the file can't be written."""
    path = _path(home)
    with lock_file(path):
        current = _parsed(read_text(path), path)
        found = change(current.pop(name, None))
        if found is not None:
            current[name] = found
        plugins: JsonObject = {each: decision.to_json() for each, decision in sorted(current.items())}
        write_atomically(path, dumps({"version": _VERSION, "plugins": plugins}))


def installed_plugins(home: Path) -> list[Installed]:
    """Return all installed plugins, sorted by name. This function blocks; unchanged files are not read again."""
    return [_installed(home, name, decision) for name, decision in decisions(home).items()]


def installed_plugin(home: Path, name: str) -> Installed:
    """Return an installed plugin. Raise NotFound if it is not installed."""
    known = decisions(home)
    if name not in known:
        raise NotFound(f"Plugin {name!r} is not installed.{hint(name, list(known))}", fix="moot plugins list")
    return _installed(home, name, known[name])


def used_plugins(home: Path) -> list[Plugin]:
    """Return the plugins that are enabled and unchanged, without agents that contain mistakes. This function blocks."""
    return [_used(each) for each in installed_plugins(home) if each.status == "enabled" and each.plugin is not None]


def plugin_notes(home: Path) -> list[str]:
    """Return a message for each plugin that is not used because of a problem. This function blocks."""
    problem = _decided(home)[2]
    return [problem] if problem else [each.problem for each in installed_plugins(home) if each.problem]


def check_unchanged(home: Path, name: str) -> None:
    """Raise Refused if a plugin is not in use, or its content is not what was accepted. Create its data folder if needed. This blocks."""
    decision = decisions(home).get(name)
    found = _installed(home, name, decision) if decision is not None else None
    if found is None or found.status != "enabled":
        raise Refused(found.problem if found is not None and found.problem else f"The plugin {name!r} is not in use.")
    with suppress(OSError):  # a full disk, which the plugin's program reports if it matters
        data_folder(plugin_folder(home, name) / found.decision.folder).mkdir(mode=0o700, exist_ok=True)


def plugins_stamp(home: Path) -> tuple[object, ...]:
    """Return a value that changes if a decision or a file of an enabled plugin is changed, added or removed. File contents are not read.

    The value includes the state of folders, so that a file that existed only for a moment is also noticed.
    """
    folders = [plugin_folder(home, name) / decision.folder for name, decision in decisions(home).items() if decision.enabled]
    return (stamp_of(_path(home)), *map(_state, folders))


def _state(folder: Path) -> object:
    try:
        listed = entries(folder, IGNORED)
    except (MootError, OSError) as error:
        return str(error)
    inside = {entry.path.rpartition("/")[0] for entry in listed}
    above = {parent for path in inside for parent in parents_of(path)}
    return stamps_of(listed), tuple(stamp_of(f"{folder}/{path}") for path in sorted({"", *inside, *above}))


def _used(found: Installed) -> Plugin:
    assert found.plugin is not None
    left = found.decision.left_out
    return replace(found.plugin, agents=tuple(agent for agent in found.plugin.agents if agent.name not in left)) if left else found.plugin


@dataclass(frozen=True, slots=True)
class _Read:
    """The content of a folder, and the state of its files."""

    stamps: object
    digest: str
    plugin: Plugin | None
    problem: str = ""


_cache: dict[Path, _Read] = {}


def _installed(home: Path, name: str, decision: Decision) -> Installed:
    read = _content(plugin_folder(home, name) / decision.folder, name)
    fix = f"Review it, then run 'moot plugins accept {name}'."
    if read.plugin is None:
        return Installed(name, decision, "invalid", None, read.digest, f"The plugin {name!r} is not used: {read.problem}")
    if read.digest != decision.digest:
        why = f"The plugin {name!r} is not used, because it has changed since it was accepted. {fix}"
        return Installed(name, decision, "changed", read.plugin, read.digest, why)
    return Installed(name, decision, "enabled" if decision.enabled else "disabled", read.plugin, read.digest)


def _content(folder: Path, name: str) -> _Read:
    """Return the content of a plugin. It is read again if one of its files has changed."""
    try:
        listed = entries(folder, IGNORED)
        stamps = stamps_of(listed)
        known = _cache.get(folder)
        if known is not None and known.stamps == stamps:
            return known
        files = read_all(folder, listed)
    except FileNotFoundError:
        return _Read(None, "", None, "its folder is missing. Install it again.")
    except (MootError, OSError) as error:
        return _Read(None, "", None, str(error))
    digest = digest_of_files(files)
    try:
        plugin = read_plugin(files, name, folder)
        if plugin.name != name:
            raise Refused(f"its manifest names {plugin.name!r}.")
        found = _Read(stamps, digest, plugin)
    except MootError as error:
        found = _Read(stamps, digest, None, str(error))
    _cache[folder] = found
    return found


def _path(home: Path) -> Path:
    return home / FOLDER / FILE


def _parsed(text: str, path: Path) -> dict[str, Decision]:
    """Return the decisions in a file's text. Raise ConfigError if the text is not valid."""
    try:
        plugins = loads_object(text.encode()).get("plugins") if text else {}
    except ValueError as error:
        raise ConfigError(f"The file is not valid JSON: {error}", file=str(path), fix="Restore or delete it.") from error
    listed = plugins.items() if isinstance(plugins, dict) else ()
    found = ((name, _decision(value)) for name, value in listed if isinstance(value, dict) and is_name(name))
    return {name: decision for name, decision in found if decision is not None}


def _decision(value: Mapping[str, Json]) -> Decision | None:
    folder, source, left = str(value.get("folder") or ""), value.get("source"), value.get("left_out")
    if not folder or os.sep in folder or folder.startswith("."):
        return None
    return Decision(
        folder,
        str(value.get("digest") or ""),
        source if isinstance(source, dict) else {},
        value.get("enabled") is True,
        tuple(map(str, left)) if isinstance(left, list) else (),
    )


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
