"""The commands of `moot plugins`."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

from anyio import to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.commands.extensions.skills import Yes, confirmed, report_findings
from moot.cli.console.format import format_bytes, plural, print_table
from moot.cli.console.lines import write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.output import Out
from moot.config.home import home_of
from moot.config.plugins.installed import Installed, installed_plugin, installed_plugins, plugin_notes
from moot.errors import UsageError
from moot.guard.hidden import spelled_out
from moot.mcp.accepted import AcceptedTools
from moot.skills.plugins import (
    PluginCandidate,
    accept,
    check_usable,
    install,
    installed_candidate,
    installed_json,
    plugin_json,
    read_plugin_source,
    remove,
    set_enabled,
    texts_of,
)
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject

Name = Annotated[str, Parameter(metavar="NAME", help="Name of the plugin.")]
Commit = Annotated[str, Parameter(metavar="HASH", help="Full hash of the Git commit to install. Defaults to the latest commit.")]

_LINES = 200
"""Maximum number of lines of each file to show before a plugin is installed."""


def list_plugins(*, json: AsJson = False, output: Out) -> None:
    """Print the installed plugins."""
    home = home_of(os.environ)
    found = installed_plugins(home)
    if json:
        output.json({"data": list[Json](installed_json(each) for each in found)})
        return
    if found:
        print_table(output, ["NAME", "STATUS", "VERSION", "CONTENT"], [_row(each) for each in found])
    else:
        output.say("moot: no plugins; add one with: moot plugins install FOLDER", "dim")
    for note in plugin_notes(home):
        output.say(f"moot: {note}", "yellow")


def _row(found: Installed) -> list[str]:
    plugin = found.plugin
    if plugin is None:
        return [found.name, found.status, "-", "-"]
    parts = (
        (plugin.commands, "command"),
        (plugin.agents, "agent"),
        (plugin.skills, "skill"),
        (plugin.hooks, "hook"),
        (plugin.servers, "MCP server"),
    )
    return [found.name, found.status, plugin.version or "-", ", ".join(plural(len(items), word) for items, word in parts if items)]


async def show_plugin(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Print an installed plugin: its commands, agents, skills, hooks and MCP servers, and the parts that moot doesn't use."""
    home = home_of(os.environ)
    found = await to_thread.run_sync(installed_plugin, home, name)
    if json:
        output.json(installed_json(found))
        return
    output.say(f"{name}: {found.status}", "bold")
    if found.problem:
        output.say(f"moot: {found.problem}", "yellow")
    output.line(f"source: {output.to_json(found.decision.source)}")
    if found.plugin is not None:
        _show(output, await to_thread.run_sync(installed_candidate, home, name))


async def install_plugin(
    source: Annotated[str, Parameter(metavar="SOURCE", help="Folder, .zip or .tar.gz archive, URL of an archive, or Git repository.")],
    /,
    *,
    plugin: Annotated[str, Parameter(metavar="NAME", help="Plugin to install, if SOURCE is a marketplace with several plugins.")] = "",
    commit: Commit = "",
    path: Annotated[str, Parameter(metavar="PATH", help="Folder in SOURCE.")] = "",
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Show everything that a plugin contains and would run, and install exactly this content in moot's home directory."""
    home = home_of(os.environ)
    candidate = await read_plugin_source(source, home, here(), commit=commit, path=path, plugin=plugin)
    _show(output, candidate)
    check_usable(candidate)
    if not await confirmed(_question("Install", candidate), yes, output):
        return 1
    folder = await to_thread.run_sync(install, home, candidate)
    write_done(output, json, _json(candidate), f"installed {candidate.name} in {folder}")
    return 0


async def update_plugin(
    name: Name,
    /,
    *,
    commit: Commit = "",
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Install the current content of a plugin's source, after showing all of it."""
    home = home_of(os.environ)
    found = await to_thread.run_sync(installed_plugin, home, name)
    facts = {key: str(found.decision.source.get(key) or "") for key in ("source", "path", "plugin")}
    candidate = await read_plugin_source(facts["source"], home, here(), commit=commit, path=facts["path"], plugin=facts["plugin"])
    if candidate.name != name:
        raise UsageError(
            f"The source of the plugin {name!r} now contains the plugin {candidate.name!r}.",
            fix="Install the new plugin, and remove the old one.",
        )
    if candidate.digest == found.decision.digest == found.digest:
        write_done(output, json, {"name": name, "updated": False, "digest": found.digest}, f"{name} is up to date")
        return 0
    _show(output, candidate)
    check_usable(candidate)
    if not await confirmed(_question("Update", candidate), yes, output):
        return 1
    await to_thread.run_sync(partial(install, home, candidate, update=True))
    AcceptedTools(home).forget_removed(found.servers, candidate.plugin.servers)
    write_done(output, json, {**_json(candidate), "updated": True}, f"updated {name}")
    return 0


async def accept_plugin(name: Name, /, *, yes: Yes = False, json: AsJson = False, output: Out) -> int:
    """Show the content of a plugin whose files have changed, and accept it."""
    home = home_of(os.environ)
    found = await to_thread.run_sync(installed_plugin, home, name)
    if found.status in ("enabled", "disabled"):
        raise UsageError(f"The plugin {name!r} has not changed since it was accepted.")
    candidate = await to_thread.run_sync(installed_candidate, home, name)
    _show(output, candidate)
    check_usable(candidate)
    if not await confirmed(_question("Accept", candidate), yes, output):
        return 1
    await to_thread.run_sync(accept, home, candidate)
    write_done(output, json, _json(candidate), f"accepted {name}")
    return 0


def enable_plugin(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Enable a disabled plugin."""
    set_enabled(home_of(os.environ), name, True)
    write_done(output, json, {"name": name, "enabled": True}, f"enabled {name}")


def disable_plugin(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Disable a plugin without deleting it."""
    set_enabled(home_of(os.environ), name, False)
    write_done(output, json, {"name": name, "enabled": False}, f"disabled {name}")


async def remove_plugin(name: Name, /, *, yes: Yes = False, json: AsJson = False, output: Out) -> int:
    """Delete a plugin and everything that it contains."""
    home = home_of(os.environ)
    found = await to_thread.run_sync(installed_plugin, home, name)
    parts = _parts(found)
    if not await confirmed(f"Delete the plugin {name} ({parts})?", yes, output):
        return 1
    await to_thread.run_sync(remove, home, name)
    AcceptedTools(home).forget_removed(found.servers)
    write_done(output, json, {"name": name, "removed": True, "content": installed_json(found)}, f"removed {name}: {parts}")
    return 0


def _parts(found: Installed) -> str:
    """Summarize the contents of a plugin in one line."""
    if found.plugin is None:
        return "its files"
    content = plugin_json(found.plugin, found.decision.left_out)
    names = {key: content[key] for key in ("commands", "agents", "skills")}
    parts = [f"{key} {', '.join(map(str, items))}" for key, items in names.items() if isinstance(items, list) and items]
    parts += [plural(len(found.plugin.hooks), "hook")] if found.plugin.hooks else []
    parts += [f"MCP servers {', '.join(server.name for server in found.plugin.servers)}"] if found.plugin.servers else []
    return "; ".join(parts) or "its files"


def _json(candidate: PluginCandidate) -> JsonObject:
    content = plugin_json(candidate.plugin, candidate.left_out)
    return {**content, "digest": candidate.digest, "source": candidate.source, "files": list[Json](sorted(candidate.files))}


def _question(verb: str, candidate: PluginCandidate) -> str:
    plugin = candidate.plugin
    runs = [plural(len(plugin.hooks), "hook")] if plugin.hooks else []
    runs += [plural(len(plugin.servers), "MCP server")] if plugin.servers else []
    return f"{verb} {candidate.name} and let its {' and '.join(runs)} run?" if runs else f"{verb} {candidate.name}?"


def _show(output: Output, candidate: PluginCandidate) -> None:
    """Print what a person must know about a plugin: its files, the texts that models read, and the commands that it runs."""
    plugin = candidate.plugin
    output.say(
        f"{' '.join(filter(None, (plugin.name, spelled_out(plugin.version))))}: {spelled_out(' '.join(plugin.description.split()))}", "bold"
    )
    for fact in ("commit", "from"):
        if value := candidate.source.get(fact):
            output.say(f"  {fact}: {spelled_out(value if isinstance(value, str) else output.to_json(value))}", "dim")
    for name, data in sorted(candidate.files.items()):
        output.say(f"  {spelled_out(name)}  {format_bytes(len(data))}", "dim")
    for title, text in texts_of(candidate):
        _show_text(output, title, text)
    if plugin.hooks:
        output.say("These hooks run outside the sandbox, with your permissions. They get moot's names for tools and arguments:", "yellow")
    for event, hook in plugin.hooks:
        output.say(f"  {event}{f' {spelled_out(hook.matcher)}' if hook.matcher else ''}: {spelled_out(hook.command)}")
    if plugin.servers:
        output.say("moot starts these MCP servers, or connects to them, when an agent uses them:", "yellow")
    for server in plugin.servers:
        _show_server(output, server)
    for lost in plugin.lost:
        output.say(f"not installed: {spelled_out(lost)}", "yellow")
    report_findings(output, here() / candidate.name, list(candidate.findings))
    output.say(f"  content hash: {candidate.digest}", "dim")


def _show_text(output: Output, title: str, text: str) -> None:
    lines = spelled_out(text).strip().splitlines()
    output.say(f"── {spelled_out(title)}", "yellow")
    output.say("\n".join(lines[:_LINES]))
    if len(lines) > _LINES:
        output.say(f"({len(lines) - _LINES:,} more lines)", "yellow")


def _show_server(output: Output, server: McpServer) -> None:
    output.say(f"  {server.name}: {spelled_out(server.url or ' '.join((server.command, *server.args)))}")
    for key, value in {**server.env, **server.headers}.items():
        output.say(f"    {spelled_out(key)}={spelled_out(value)}", "dim")
