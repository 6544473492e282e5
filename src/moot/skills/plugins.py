"""Installing, accepting, updating and removing plugins. A plugin is read, shown and accepted before anything is written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import cast

from anyio import to_thread

from moot.config.agents.claude_code import MANIFEST, MARKETPLACE, PLUGIN_FOLDER
from moot.config.agents.files import PLUGIN_FIELDS, read_agent
from moot.config.commands import read_command
from moot.config.home import lock_file
from moot.config.plugins.content import Files, digest_of, digest_of_files, entries, read_all
from moot.config.plugins.installed import (
    FOLDER,
    IGNORED,
    Decision,
    Installed,
    decide,
    decisions,
    installed_plugin,
    installed_plugins,
    plugin_folder,
)
from moot.config.plugins.layout import PARTS, Plugin, data_folder, manifest_of, read_json, read_plugin, with_folder
from moot.errors import ConfigError, NotFound, Refused, UsageError
from moot.plugins.registry import hint
from moot.skills.content import FILE_BYTES, hidden_findings, read_document
from moot.skills.decisions import forget_below
from moot.skills.installation import inside, read_package
from moot.skills.package import commit_of, read_commit, text_of, write_files
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.skill import SKILL_FILE, Finding

SKIPPED = frozenset((".git", "__pycache__", ".DS_Store"))
"""Files that are not installed."""

_NOT_IN_MANIFEST = frozenset(("source", "strict", "category", "tags"))
"""Fields of a marketplace entry that don't describe the plugin itself."""

_OURS = re.compile(r"\.new|[0-9a-f]{16}(-\d+)?")
"""Matches the names of folders with the content of a plugin."""

_REPOSITORY = re.compile(r"(https|ssh)://\S+\.git/?|[\w.-]+@[\w.-]+:\S+|ssh://\S+")


@dataclass(frozen=True, slots=True)
class PluginCandidate:
    """A plugin before it is installed."""

    plugin: Plugin
    files: Files
    digest: str
    source: JsonObject
    findings: tuple[Finding, ...] = ()
    """Hidden text in its files, which a person may overlook."""
    left_out: tuple[str, ...] = ()
    """Names of agents that can't be used. The plugin's `lost` has the reasons."""

    @property
    def name(self) -> str:
        return self.plugin.name


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Source:
    """A folder, a commit, or the files of an archive."""

    place: str
    base: Path
    commit: str = ""
    archive: Files | None = None
    is_foreign: bool = False
    """True if a marketplace and not a person names it. It must then be on the public network."""

    async def files(self, path: str) -> Files:
        """Return the files of a folder in the source. Raise the same errors as `read_package`."""
        if self.is_foreign:
            return await read_commit(self.place, self.commit, path, SKIPPED, public=True)
        if self.archive is None:
            return (await read_package(self.place, self.base, commit=self.commit, path=path, skipped=SKIPPED))[0]
        return inside(self.archive, path, self.place)


async def read_plugin_source(source: str, home: Path, base: Path, *, commit: str = "", path: str = "", plugin: str = "") -> PluginCandidate:
    """Check the plugin in a folder, an archive, the URL of an archive, or a Git repository, and return it.

    Without `commit`, the latest commit of a repository's default branch is used. `plugin` is a name in the source's marketplace. Raise
    NotFound if the source or plugin does not exist, Refused if it can't be used, UsageError if the arguments are invalid.
    """
    if not commit and _REPOSITORY.fullmatch(source):
        commit = await commit_of(source)
    place = _absolute(source, base)
    opened = await _opened(place, base, commit)
    path = path.strip("/")
    facts: JsonObject = {"source": place, "path": path, "plugin": plugin, "commit": commit}
    marketplace, has_manifest = await _marketplace(opened, path)
    if marketplace is None and plugin:
        raise UsageError(f"{source!r} has no {PLUGIN_FOLDER}/{MARKETPLACE}, so it is not a marketplace.", fix="Omit --plugin.")
    if marketplace is None or (has_manifest and not plugin):
        files, name = await opened.files(path), PurePosixPath(path or source.rstrip("/").removesuffix(".git")).name
    else:
        entry = _entry(marketplace, plugin)
        name = str(entry["name"])
        files, where = await _files_of(entry, marketplace, opened, path)
        files = _with_entry(files, entry)
        facts |= {"plugin": name, **where}
    return await to_thread.run_sync(candidate_of, files, _fallback(name), home, facts)


def _absolute(source: str, base: Path) -> str:
    """Return a local path as an absolute one, and other sources unchanged."""
    place = (base / Path(source).expanduser()).absolute()
    return str(place) if "://" not in source and (place.exists() or not _REPOSITORY.fullmatch(source)) else source


def _fallback(name: str) -> str:
    """Return a folder's name as the name of a plugin without a manifest."""
    return re.sub(r"[^a-z0-9]+", "-", name.partition(".")[0].lower()).strip("-") or "plugin"


async def _opened(place: str, base: Path, commit: str) -> _Source:
    """Return a source. An archive is read at once. If one folder contains everything in it, paths are relative to that folder."""
    if commit or (base / place).is_dir():
        return _Source(place, base, commit)
    files, _, _ = await read_package(place, base, skipped=SKIPPED)
    tops = {name.partition("/")[0] for name in files}
    if len(tops) == 1 and not any(name in tops for name in (PLUGIN_FOLDER, *files)):
        files = {name.partition("/")[2]: data for name, data in files.items()}
    return _Source(place, base, archive=files)


async def _marketplace(opened: _Source, path: str) -> tuple[JsonObject | None, bool]:
    """Return the marketplace in a folder, or None, and whether the folder is a plugin."""
    try:
        files = await opened.files(f"{path}/{PLUGIN_FOLDER}" if path else PLUGIN_FOLDER)
    except NotFound:
        return None, False
    has_manifest = PurePosixPath(MANIFEST).name in files
    return (read_json(files, MARKETPLACE) if MARKETPLACE in files else None), has_manifest


def marketplace_entries(marketplace: JsonObject) -> list[JsonObject]:
    """Return the valid entries of a marketplace."""
    listed = marketplace.get("plugins")
    found = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return [entry for entry in found if isinstance(entry.get("name"), str) and entry.get("source")]


def _entry(marketplace: JsonObject, plugin: str) -> JsonObject:
    known = {str(entry["name"]): entry for entry in reversed(marketplace_entries(marketplace))}
    if not known:
        raise Refused("The marketplace lists no plugins.")
    if not plugin and len(known) > 1:
        names = sorted(known)
        shown = f"{', '.join(names[:20])}{' …' if len(names) > 20 else ''}"
        raise UsageError(f"The marketplace lists {len(known)} plugins: {shown}.", fix="Choose one with --plugin NAME.")
    if plugin and plugin not in known:
        raise NotFound(f"The marketplace has no plugin {plugin!r}.{hint(plugin, list(known))}")
    return known[plugin] if plugin else next(iter(known.values()))


async def _files_of(entry: JsonObject, marketplace: JsonObject, opened: _Source, top: str) -> tuple[Files, JsonObject]:
    """Return the files of an entry, and the repository and commit if they are not in the marketplace itself."""
    source = entry["source"]
    if isinstance(source, str):
        metadata = marketplace.get("metadata")
        root = metadata.get("pluginRoot") if isinstance(metadata, dict) and not source.startswith(".") else ""
        path = PurePosixPath(top, str(root or ""), source)
        if path.is_absolute() or ".." in path.parts:
            raise Refused(f"{source!r} is outside the marketplace.")
        return await opened.files("" if str(path) == "." else str(path)), {}
    facts = cast("JsonObject", source) if isinstance(source, dict) else {}
    kind = str(facts.get("source") or "")
    url = f"https://github.com/{facts.get('repo')}.git" if kind == "github" else str(facts.get("url") or "")
    if kind not in ("github", "url", "git-subdir") or url.startswith("/"):
        raise Refused(
            f"Marketplace plugins can't be installed from {kind or source!r}.", fix="Download the plugin, and install its folder."
        )
    commit = str(facts.get("sha") or "") or await commit_of(url, str(facts.get("ref") or "HEAD"), public=True)
    path = str(facts.get("path") or "").removeprefix("./").strip("/")
    return await _Source(url, Path("/"), commit, is_foreign=True).files(path), {"from": {"url": url, "commit": commit, "path": path}}


def _with_entry(files: Files, entry: JsonObject) -> Files:
    """Return the files with the marketplace's facts added to the manifest. If `strict` is false, they replace the manifest's own."""
    own = manifest_of(files)
    facts = {key: value for key, value in entry.items() if key not in _NOT_IN_MANIFEST}
    if entry.get("strict") is False:
        merged = {**own, **facts}
    else:
        both: JsonObject = {key: [*_listed(own[key]), *_listed(facts[key])] for key in PARTS if key in own and key in facts}
        merged = {**facts, **own, **both}
    if merged == own:
        return files
    if any(path.casefold() == PLUGIN_FOLDER for path in files):
        raise Refused(f"The plugin's {PLUGIN_FOLDER!r} is a file, but must be a folder.")
    return {**files, MANIFEST: dumps(merged)}


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


# ── checking ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def candidate_of(files: Files, name: str, home: Path, source: JsonObject, folder: Path | None = None) -> PluginCandidate:
    """Check a plugin as it would be installed in moot's home, and return it. Raise Refused if it can't be used. Blocks."""
    digest = digest_of_files(files)
    name = str(manifest_of(files).get("name") or name)
    plugin = read_plugin(files, name, folder or plugin_folder(home, name) / digest[:16])
    lost, left_out = _problems(plugin, files)
    readable = ((path, text_of(files, path)) for path, data in sorted(files.items()) if _is_text(data))
    findings = [finding for file, text in (*readable, *_decoded(plugin)) for finding in hidden_findings(file, text)]
    checked = replace(plugin, lost=(*plugin.lost, *lost))
    return PluginCandidate(checked, files, digest, source, tuple(findings), tuple(left_out))


def _is_text(data: bytes) -> bool:
    """Return whether a file is checked and shown as text. A NUL in a script or in valid UTF-8 doesn't make it a binary file."""
    if len(data) > FILE_BYTES:
        return False
    if b"\0" not in data or data.startswith(b"#!"):
        return True
    try:
        data.decode()
    except ValueError:
        return False
    return True


def _decoded(plugin: Plugin) -> Iterator[tuple[str, str]]:
    """Yield the texts in the plugin's JSON files, each with a name. The files may hide characters as `\\u200b`."""
    yield MANIFEST, f"{plugin.version}\n{plugin.description}"
    for event, hook in plugin.hooks:
        yield f"hook {event}", f"{hook.matcher}\n{hook.command}"
    for server in plugin.servers:
        given = {**server.env, **server.headers}
        yield f"MCP server {server.name}", "\n".join((server.command, *server.args, server.url, *given, *given.values()))


def _problems(plugin: Plugin, files: Files) -> tuple[list[str], list[str]]:
    """Return the unsupported parts of commands, agents and skills, and the names of agents that can't be used."""
    lost, left_out = list[str](), list[str]()
    for command in plugin.commands:
        try:
            notes = read_command(command.name, command.path, command.text, foreign=True).notes
            lost += [f"command {command.name}: {note}" for note in notes]
        except ConfigError as error:
            lost.append(f"command {command.name}: {error.message}")
    for agent in plugin.agents:
        try:
            read, notes = read_agent(agent.path, agent.text, foreign=True, known=PLUGIN_FIELDS)
            lost += [f"agent {agent.name}: {note.partition(': ')[2]}" for note in notes]
            if read.name != agent.path.stem:
                lost.append(f"agent {agent.name}: its name {read.name!r}; plugin agents are named after their files")
        except ConfigError as error:
            lost.append(f"agent {agent.name}: {error.message}")
            left_out.append(agent.name)
    for skill in plugin.skills:
        name = PurePosixPath(skill or plugin.name).name
        text = with_folder(text_of(files, f"{skill}/{SKILL_FILE}" if skill else SKILL_FILE), plugin.folder)
        errors = [finding for finding in read_document(text, name, lenient=True).findings if finding.is_error]
        lost += [f"skill {plugin.name}:{name}: {finding.text}" for finding in errors[:1]]
    return lost, left_out


def check_usable(candidate: PluginCandidate) -> None:
    """Raise Refused if a plugin hides text, or contains nothing that moot can use."""
    if (error := next((finding for finding in candidate.findings if finding.is_error), None)) is not None:
        raise Refused(
            f"The plugin {candidate.name!r} contains hidden text: {error.file}:{error.line}: {error.text}", fix="Nothing was installed."
        )
    if candidate.plugin.is_empty:
        raise Refused(f"The plugin {candidate.name!r} contains nothing that moot can use.", fix="Nothing was installed.")


def installed_candidate(home: Path, name: str) -> PluginCandidate:
    """Return an installed plugin's checked content. Raise NotFound if it does not exist, Refused if it can't be used. Blocks."""
    decision = decisions(home).get(name) or installed_plugin(home, name).decision
    folder = plugin_folder(home, name) / decision.folder
    try:
        files = read_all(folder, entries(folder, IGNORED))
    except OSError as error:
        raise Refused(f"The files of the plugin {name!r} can't be read: {error.strerror}.", fix=f"moot plugins update {name}") from error
    found = candidate_of(files, name, home, decision.source, folder)
    if found.name != name:
        raise Refused(f"The manifest of the plugin {name!r} contains a different name: {found.name!r}.", fix=f"moot plugins update {name}")
    return found


# ── changing ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def install(home: Path, candidate: PluginCandidate, *, update: bool = False) -> Path:
    """Write a plugin to the home, and use exactly this content from now on. Raise Refused if it can't be used, UsageError if it exists.

    Blocks.

    The decision is stored last. Until then, the files are not used, so an interrupted installation changes nothing.
    """
    check_usable(candidate)
    name = candidate.name
    top = plugin_folder(home, name)
    with lock_file(home / FOLDER / ".install"):
        if name in decisions(home) and not update:
            raise UsageError(
                f"The plugin {name!r} is already installed.", fix=f"Update it with 'moot plugins update {name}', or remove it first."
            )
        _check_servers(home, candidate)
        _clean(home)
        folder = _free(top, candidate.digest[:16])
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = top / ".new"
        write_files(candidate.files, new)
        if digest_of(new, IGNORED) != candidate.digest:
            shutil.rmtree(new)
            raise Refused(f"The files of {name!r} could not be written unchanged.", fix="Check the file system.")
        new.rename(folder)
        data_folder(folder).mkdir(mode=0o700, exist_ok=True)

        def change(before: Decision | None) -> Decision:
            enabled = before.enabled if before is not None else True
            return Decision(folder.name, candidate.digest, candidate.source, enabled, candidate.left_out)

        decide(home, name, change)
        _clean(home)
    return folder


def _check_servers(home: Path, candidate: PluginCandidate) -> None:
    """Raise Refused if another installed plugin has an MCP server with the same full name, such as `b_c` in `a` and `c` in `a_b`."""
    others = [(found.name, found.plugin) for found in installed_plugins(home) if found.name != candidate.name]
    owners = {server.name: name for name, plugin in others if plugin is not None for server in plugin.servers}
    for server in candidate.plugin.servers:
        if owner := owners.get(server.name):
            raise Refused(f"The plugin {owner!r} already has an MCP server named {server.name!r}.", fix=f"moot plugins remove {owner}")


def _free(top: Path, name: str) -> Path:
    """Return a path that does not exist, so that the folder in use is never replaced."""
    names = (name, *(f"{name}-{number}" for number in range(2, 1_000)))
    return next(top / each for each in names if not (top / each).exists())


def _clean(home: Path) -> None:
    """Delete what interrupted installations and earlier versions have left. Other files are kept."""
    known = decisions(home)
    for top in sorted((home / FOLDER).iterdir()) if (home / FOLDER).is_dir() else ():
        used = known[top.name].folder if top.name in known else ""
        for folder in sorted(top.iterdir()) if top.is_dir() and not top.is_symlink() else ():
            if folder.name != used and _OURS.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)


def accept(home: Path, candidate: PluginCandidate) -> None:
    """Use the current content of an installed plugin that has changed. Raise Refused if it can't be used. Blocks."""
    check_usable(candidate)
    _check_servers(home, candidate)

    def change(before: Decision | None) -> Decision | None:
        return replace(before, digest=candidate.digest, left_out=candidate.left_out) if before is not None else None

    decide(home, candidate.name, change)


def set_enabled(home: Path, name: str, enabled: bool) -> None:
    """Enable or disable an installed plugin. Raise NotFound if it does not exist, Refused if it has changed. Blocks."""
    found = installed_plugin(home, name)
    if enabled and found.problem:
        raise Refused(found.problem)
    decide(home, name, lambda before: replace(before, enabled=enabled) if before is not None else None)


def remove(home: Path, name: str) -> Installed:
    """Delete a plugin with all its files and the decisions about its skills, and return its last state.

    Raise NotFound if it does not exist, Refused if deleting fails. Blocks.
    """
    found = installed_plugin(home, name)
    with lock_file(home / FOLDER / ".install"):
        decide(home, name, lambda _: None)
        try:
            shutil.rmtree(plugin_folder(home, name))
        except FileNotFoundError:
            pass  # deleted by hand
        except OSError as error:
            raise Refused(
                f"The plugin {name!r} is no longer used, but its files can't be deleted: {error}.",
                fix=f"Delete {plugin_folder(home, name)}.",
            ) from error
    forget_below(home, plugin_folder(home, name))
    return found


# ── showing ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def plugin_json(plugin: Plugin, left_out: Sequence[str] = ()) -> JsonObject:
    """Return the content of a plugin as JSON. References to environment variables are not replaced."""
    return {
        "name": plugin.name,
        "version": plugin.version,
        "description": plugin.description,
        "commands": [command.name for command in plugin.commands],
        "agents": [agent.name for agent in plugin.agents if agent.name not in left_out],
        "skills": [f"{plugin.name}:{PurePosixPath(skill).name}" if skill else plugin.name for skill in plugin.skills],
        "hooks": [
            {"event": event, "matcher": hook.matcher, "command": hook.command, "timeout": hook.timeout} for event, hook in plugin.hooks
        ],
        "mcp_servers": [
            {
                "name": server.name,
                "command": server.command,
                "args": list[Json](server.args),
                "env": {**server.env},
                "url": server.url,
                "headers": {**server.headers},
            }
            for server in plugin.servers
        ],
        "not_installed": list[Json](plugin.lost),
    }


def texts_of(candidate: PluginCandidate) -> list[tuple[str, str]]:
    """Return what a person must read before a plugin is used: the texts for models, and all other files if it runs programs.

    Any file may be a part of a program, even if no hook or server mentions it. Binary and large files are described by size and hash.
    """
    plugin, files = candidate.plugin, candidate.files
    used = [("command /", file) for file in plugin.commands]
    used += [("agent ", file) for file in plugin.agents if file.name not in candidate.left_out]
    shown = [(f"{kind}{file.name}", file.text) for kind, file in used]
    known = {file.path.relative_to(plugin.folder).as_posix() for _, file in used}
    for skill in plugin.skills:
        path = f"{skill}/{SKILL_FILE}" if skill else SKILL_FILE
        shown.append((f"skill {plugin.name}:{PurePosixPath(skill or plugin.name).name}", text_of(files, path)))
        known.add(path)
    runs = bool(plugin.hooks) or any(server.command for server in plugin.servers)
    others = [(path, data) for path, data in sorted(files.items()) if path not in known] if runs else []
    return [*shown, *((path, text_of(files, path) if _is_text(data) else _facts_of(data)) for path, data in others)]


def _facts_of(data: bytes) -> str:
    kind = "A binary file" if len(data) <= FILE_BYTES else "A file that is too large to be shown"
    return f"({kind}: {len(data):,} bytes, SHA-256 {sha256(data).hexdigest()})"


def installed_json(found: Installed) -> JsonObject:
    """Return an installed plugin as JSON."""
    content = plugin_json(found.plugin or Plugin(found.name, Path()), found.decision.left_out)
    return {
        **content,
        "status": found.status,
        "problem": found.problem,
        "digest": found.digest,
        "source": found.decision.source,
        "folder": str(found.plugin.folder) if found.plugin is not None else "",
    }
