"""Routes for plugins: list and show them, install exactly what was shown, and enable, accept and delete them."""

from __future__ import annotations

from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeAlias

from anyio import to_thread
from fastapi import Path
from pydantic import Field

from moot.config.plugins.installed import Installed, PluginStatus, installed_plugin, installed_plugins
from moot.errors import UsageError
from moot.guard.hidden import spelled_out
from moot.mcp.accepted import AcceptedTools
from moot.server.auth import Operator, Router
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.problems import Problem
from moot.server.state import CurrentServer, Server
from moot.skills.plugins import (
    PluginCandidate,
    accept,
    install,
    installed_candidate,
    installed_json,
    plugin_json,
    read_plugin_source,
    remove,
    set_enabled,
    texts_of,
)
from moot.types.hooks import HookEvent
from moot.types.skill import Finding


class PluginHookOut(Out):
    """A hook in a plugin."""

    event: HookEvent
    matcher: str
    command: str
    timeout: float
    """Seconds after which the command is stopped."""


class PluginServerOut(Out):
    """An MCP server in a plugin. References to environment variables are not replaced."""

    name: str
    command: str
    args: list[str]
    env: dict[str, str]
    url: str
    headers: dict[str, str]


class PluginContentOut(Out):
    """The content of a plugin."""

    name: str
    version: str
    description: str
    commands: list[str]
    agents: list[str]
    skills: list[str]
    hooks: list[PluginHookOut]
    mcp_servers: list[PluginServerOut]
    not_installed: list[str]
    """Parts of the plugin that moot doesn't use, each with the reason."""
    digest: str
    """Hash of all files."""
    source: dict[str, Any]


class PluginOut(PluginContentOut):
    """An installed plugin."""

    status: PluginStatus
    problem: str
    """Why the plugin is not used; empty if it is used or disabled."""
    folder: ShownPath


class PluginFindingOut(Out, of=Finding, fields="file line text is_error hides"):
    """Text in a plugin that viewers don't show but models read."""


class PluginTextOut(Out):
    """A text in a plugin: a command, an agent, a skill, or another file if the plugin has hooks or starts MCP servers."""

    title: str
    text: str
    """The text, or the size and hash of a binary or large file. Hidden characters are shown as names such as `<U+200B>`."""


class PluginCandidateOut(PluginContentOut):
    """A plugin with its texts, before it is installed or accepted."""

    files: list[ShownPath]
    texts: list[PluginTextOut]
    findings: list[PluginFindingOut]


class PluginSourceIn(In):
    """The source of a plugin."""

    source: Annotated[str, Field(min_length=1, max_length=4096)]
    """Absolute path of a folder or an archive on the server's machine, URL of an archive, or Git repository."""
    plugin: Annotated[str, Field(max_length=64)] = ""
    """Name of the plugin, if the source is a marketplace with several plugins."""
    commit: Annotated[str, Field(max_length=64)] = ""
    """Full hash of a commit in a Git repository. Defaults to the latest commit."""
    path: Annotated[str, Field(max_length=1000)] = ""
    """Folder in the source."""


class PluginInstallIn(PluginSourceIn):
    """A plugin to install."""

    digest: Annotated[str, Field(min_length=64, max_length=64)]
    """The `digest` from the preview. Only this content is installed."""
    update: bool = False
    """Replace the plugin if it is installed."""


class PluginDigestIn(In):
    """The content to accept."""

    digest: Annotated[str, Field(min_length=64, max_length=64)]
    """The `digest` of the content that you have reviewed."""


class PluginIn(In):
    """The changes to a plugin."""

    enabled: bool


PluginName: TypeAlias = Annotated[str, Path(max_length=64, description="Name of the plugin.")]

router = Router(prefix="/api/plugins", tags=["plugins"])


def _shown(found: Installed) -> PluginOut:
    return PluginOut.model_validate(installed_json(found))


def _candidate(candidate: PluginCandidate) -> PluginCandidateOut:
    return PluginCandidateOut.model_validate(
        {
            **plugin_json(candidate.plugin, candidate.left_out),
            "digest": candidate.digest,
            "source": candidate.source,
            "files": sorted(candidate.files),
            "texts": [{"title": title, "text": spelled_out(text)} for title, text in texts_of(candidate)],
            "findings": [PluginFindingOut.of(finding) for finding in candidate.findings],
        }
    )


async def _read(server: Server, body: PluginSourceIn) -> PluginCandidate:
    if "://" not in body.source and not FilePath(body.source).is_absolute() and "@" not in body.source:
        raise UsageError(f"{body.source!r} is neither an absolute path nor a URL.")
    home = server.engine.settings.home
    return await read_plugin_source(body.source, home, FilePath("/"), commit=body.commit, path=body.path, plugin=body.plugin)


async def _found(server: Server, name: str) -> Installed:
    return await to_thread.run_sync(installed_plugin, server.engine.settings.home, name)


def _close(server: Server, found: Installed) -> None:
    """Close the connections to a plugin's MCP servers."""
    servers = server.engine.runtime.mcp
    if servers is None:
        return
    for each in found.servers:
        servers.close(each.name)


@router.get("")
async def list_plugins(server: CurrentServer, _: Operator) -> ListOut[PluginOut]:
    """List the installed plugins."""
    found = await to_thread.run_sync(installed_plugins, server.engine.settings.home)
    return ListOut(data=[_shown(each) for each in found])


@router.get("/{name}")
async def get_plugin(server: CurrentServer, _: Operator, name: PluginName) -> PluginOut:
    """Get an installed plugin."""
    return _shown(await _found(server, name))


@router.get("/{name}/content")
async def get_plugin_content(server: CurrentServer, _: Operator, name: PluginName) -> PluginCandidateOut:
    """Get the current content of an installed plugin with its texts, for example to accept it after a change."""
    return _candidate(await to_thread.run_sync(installed_candidate, server.engine.settings.home, name))


@router.post("/preview")
async def preview_plugin(server: CurrentServer, _: Operator, body: PluginSourceIn) -> PluginCandidateOut:
    """Read a plugin from a folder, an archive or a Git repository without installing anything."""
    return _candidate(await _read(server, body))


@router.post("", status_code=201)
async def install_plugin(server: CurrentServer, _: Operator, body: PluginInstallIn) -> PluginOut:
    """Install a plugin in moot's home, and let its hooks and MCP servers run. Return 409 if its content differs from the preview."""
    candidate = await _read(server, body)
    if candidate.digest != body.digest:
        raise Problem(409, f"The plugin {candidate.name!r} has changed since you loaded it.", fix="Load it again, and review it.")
    home = server.engine.settings.home
    before = await _found(server, candidate.name) if body.update else None
    await to_thread.run_sync(partial(install, home, candidate, update=body.update))
    if before is not None:
        _close(server, before)
        AcceptedTools(home).forget_removed(before.servers, candidate.plugin.servers)
    return _shown(await _found(server, candidate.name))


@router.patch("/{name}")
async def change_plugin(server: CurrentServer, _: Operator, name: PluginName, body: PluginIn) -> PluginOut:
    """Enable or disable an installed plugin."""
    await to_thread.run_sync(set_enabled, server.engine.settings.home, name, body.enabled)
    found = await _found(server, name)
    if not body.enabled:
        _close(server, found)
    return _shown(found)


@router.post("/{name}/accept")
async def accept_plugin(server: CurrentServer, _: Operator, name: PluginName, body: PluginDigestIn) -> PluginOut:
    """Accept the content of a plugin that has changed. Return 409 if `digest` is not its current content."""
    candidate = await to_thread.run_sync(installed_candidate, server.engine.settings.home, name)
    if candidate.digest != body.digest:
        raise Problem(409, f"The plugin {name!r} has changed since you loaded it.", fix="Load it again, and review it.")
    await to_thread.run_sync(accept, server.engine.settings.home, candidate)
    return _shown(await _found(server, name))


@router.delete("/{name}")
async def delete_plugin(server: CurrentServer, _: Operator, name: PluginName) -> PluginOut:
    """Delete a plugin with everything that it contains."""
    home = server.engine.settings.home
    found = await to_thread.run_sync(remove, home, name)
    _close(server, found)
    AcceptedTools(home).forget_removed(found.servers)
    return _shown(found)
