"""Read the content of a plugin: its manifest, and the commands, agents, skills, hooks and MCP servers in its files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import cast, get_args

from moot.config.agents.claude_code import MANIFEST, PLUGIN_DATA, PLUGIN_ROOT, PROJECT_FOLDER, TOOL_NAMES
from moot.config.home import MAX_BYTES
from moot.config.hooks import translated_matcher
from moot.config.plugins.content import Files
from moot.errors import Refused
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject, loads_object
from moot.types.command import COMMAND_NAME
from moot.types.hooks import CommandHook, HookEvent
from moot.types.skill import SKILL_FILE
from moot.types.templates import fill_line

NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
NAME_CHARACTERS = 64
SERVER_PREFIX = "plugin_"
"""Prefix of the names of plugins' MCP servers, which have the form `plugin_PLUGIN_SERVER`."""

_COMMANDS, _AGENTS, _SKILLS = "commands", "agents", "skills"
_HOOKS, _SERVERS = "hooks/hooks.json", ".mcp.json"
_SERVER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHELL_LINE = re.compile(r"!`([^`\n]+)`")
_SERVER_FIELDS = frozenset(("type", "command", "args", "env", "url", "headers"))
_PROTOCOLS = {"": "http", "http": "http", "streamable-http": "http", "sse": "sse"}
_HOOK_FIELDS = frozenset(("type", "command", "args", "timeout", "statusMessage"))
_TIMEOUT = 60.0
"""Number of seconds after which a hook that has no time limit of its own is stopped."""
_EVENTS = frozenset(get_args(HookEvent))
_FACTS = frozenset(
    (
        *("$schema", "name", "displayName", "version", "description", "author", "homepage", "repository", "license", "keywords"),
        *("category", "tags"),
    )
)
"""Fields of a manifest that describe the plugin."""
PARTS = ("commands", "agents", "skills", "hooks", "mcpServers")
"""Fields of a manifest that list parts of the plugin that moot uses."""
_ELSEWHERE = {
    "bin": "programs for the shell's PATH",
    "output-styles": "output styles",
    "themes": "themes",
    "monitors": "monitors",
    "workflows": "workflows",
    ".lsp.json": "language servers",
    "settings.json": "settings",
}
"""Files and folders of plugins that have no equivalent in moot."""


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A command or an agent in a plugin."""

    name: str
    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Plugin:
    """The content of a plugin."""

    name: str
    folder: Path
    """The folder in which the plugin is or will be installed."""
    version: str = ""
    description: str = ""
    commands: tuple[PluginFile, ...] = ()
    """The commands. Their names start with the plugin's name: `PLUGIN:COMMAND`."""
    agents: tuple[PluginFile, ...] = ()
    skills: tuple[str, ...] = ()
    """Paths of the skills' folders in the plugin."""
    hooks: tuple[tuple[HookEvent, CommandHook], ...] = ()
    servers: tuple[McpServer, ...] = ()
    """The MCP servers. References to environment variables in them are not replaced."""
    lost: tuple[str, ...] = ()
    """Parts of the plugin that moot doesn't use, each with the reason."""

    @property
    def is_empty(self) -> bool:
        """True if the plugin contains nothing that moot can use."""
        return not (self.commands or self.agents or self.skills or self.hooks or self.servers)


def manifest_of(files: Files) -> JsonObject:
    """Return the manifest of a plugin, which is empty if the plugin has none. Raise Refused if the manifest is not valid JSON."""
    return read_json(files, MANIFEST) if MANIFEST in files else {}


def is_name(name: str) -> bool:
    """Return True if this is a valid name for a plugin."""
    return len(name) <= NAME_CHARACTERS and NAME.fullmatch(name) is not None and "__" not in name


def read_plugin(files: Files, name: str, folder: Path) -> Plugin:
    """Return the content of a plugin, with paths in its final folder. `name` is used if the manifest has none.
    Raise Refused if the plugin can't be used.
    """
    manifest = manifest_of(files)
    name = str(manifest.get("name") or name)
    if not is_name(name):
        raise Refused(
            f"Invalid plugin name {name!r}: use at most {NAME_CHARACTERS} lowercase letters, digits, - and _.",
            fix=f"Set `name` in {MANIFEST}.",
        )
    return _Reader(files, manifest, name, folder).plugin()


def with_folder(text: str, folder: Path) -> str:
    """Return the text with the variables for the plugin's folders replaced."""
    return text.replace(f"${{{PLUGIN_ROOT}}}", str(folder)).replace(f"${{{PLUGIN_DATA}}}", str(data_folder(folder)))


def _with_quoted_folder(text: str, folder: Path) -> str:
    """Return the text with the variables for the plugin's folders replaced.
    In shell lines, the values are quoted as their position requires.

    Raise KeyError or ValueError if that is not possible.
    """
    variables = {"root": str(folder), "data": str(data_folder(folder))}

    def quoted(found: re.Match[str]) -> str:
        marked = found[1].replace(f"${{{PLUGIN_ROOT}}}", "{{root}}").replace(f"${{{PLUGIN_DATA}}}", "{{data}}")
        if marked == found[1]:
            return found[0]
        if "`" in str(folder):
            raise ValueError("The path of moot's home contains a backtick.")
        return f"!`{fill_line(marked, variables)}`"

    is_plain = shlex.quote(str(folder)) == str(folder)
    return with_folder(text if is_plain else _SHELL_LINE.sub(quoted, text), folder)


def data_folder(folder: Path) -> Path:
    """Return the folder for the files that an installed plugin writes."""
    return folder.parent / "data"


def read_json(files: Files, path: str) -> JsonObject:
    """Return the JSON object in a file. Raise Refused if it is not valid or is too large."""
    if len(files[path]) > MAX_BYTES:
        raise Refused(f"{path!r} is larger than {MAX_BYTES >> 10} KiB.")
    try:
        return loads_object(files[path].removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise Refused(f"{path!r} is not a valid JSON object: {error}") from error


class _Reader:
    """Reader for the parts of a plugin. It also collects the parts that moot doesn't use."""

    def __init__(self, files: Files, manifest: JsonObject, name: str, folder: Path) -> None:
        self._files, self._manifest, self._name, self._folder = files, manifest, name, folder
        self._lost: list[str] = []

    def plugin(self) -> Plugin:
        """Return the plugin. Raise Refused if one of its files is not valid."""
        facts = self._manifest
        found = Plugin(
            self._name,
            self._folder,
            str(facts.get("version") or ""),
            str(facts.get("description") or ""),
            tuple(self._markdown("commands", _COMMANDS)),
            tuple(self._markdown("agents", _AGENTS)),
            tuple(self._skills()),
            tuple(self._hooks()),
            tuple(self._servers()),
        )
        self._unused()
        return replace(found, lost=tuple(sorted(self._lost)))

    def _unused(self) -> None:
        for key in self._manifest.keys() - _FACTS - {*PARTS}:
            self._lost.append(f"{key} in {MANIFEST}: moot has nothing like it")
        tops = {path.partition("/")[0] for path in self._files}
        self._lost += [f"{top}: moot has no {what}" for top, what in _ELSEWHERE.items() if top in tops]

    # ── files ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _places(self, key: str, default: str, *, adds: bool = False) -> list[str]:
        """Return the paths of a part: those in the manifest either replace the default path or are added to it."""
        given = self._manifest.get(key)
        places = [default] if given is None or adds else []
        for place in given if isinstance(given, list) else [] if given is None else [given]:
            if not isinstance(place, str):
                self._lost.append(f"{key} in {MANIFEST}: only paths are supported here")
            elif place.startswith("/") or ".." in PurePosixPath(place).parts:
                self._lost.append(f"{key} {place!r}: outside of the plugin")
            else:
                path = PurePosixPath(place).as_posix()
                places.append("" if path == "." else path)
        return places

    def _markdown(self, key: str, default: str) -> Iterator[PluginFile]:
        seen: set[str] = set()
        for place in self._places(key, default):
            paths = (
                [place] if place in self._files else sorted(path for path in self._files if path.startswith(f"{place}/" if place else ""))
            )
            if not paths and place != default:
                self._lost.append(f"{key} {place!r}: no such file")
            for path in paths:
                inside = PurePosixPath(path).relative_to(place) if path != place else PurePosixPath(PurePosixPath(path).name)
                name = ":".join((self._name, *inside.with_suffix("").parts))
                if not path.endswith(".md") or inside.name == SKILL_FILE:
                    continue
                if name in seen:
                    self._lost.append(f"{path}: another file has the same name")
                    continue
                seen.add(name)
                yield from self._file(name, path)

    def _file(self, name: str, path: str) -> Iterator[PluginFile]:
        """Yield the command or agent in a file if it can be used."""
        if not re.fullmatch(COMMAND_NAME, name):
            self._lost.append(f"{path}: invalid name {name!r}; use letters, digits, - and _")
        elif len(self._files[path]) > MAX_BYTES:
            self._lost.append(f"{path}: larger than {MAX_BYTES >> 10} KiB")
        else:
            try:
                text = _with_quoted_folder(self._files[path].decode("utf-8-sig", "replace"), self._folder)
            except (KeyError, ValueError) as error:
                self._lost.append(f"{path}: a shell line can't be used: {error}")
            else:
                yield PluginFile(name, self._folder / path, text)

    def _skills(self) -> Iterator[str]:
        found: dict[str, None] = {}
        for place in self._places("skills", _SKILLS, adds=True):
            own = f"{place}/{SKILL_FILE}" if place else SKILL_FILE
            prefix = f"{place}/" if place else ""
            inside = sorted(path for path in self._files if path.startswith(prefix) and path.removeprefix(prefix).count("/") == 1)
            below = [path.removesuffix(f"/{SKILL_FILE}") for path in inside if path.endswith(f"/{SKILL_FILE}")]
            found |= dict.fromkeys([place] if own in self._files else below)
            if place != _SKILLS and own not in self._files and not below:
                self._lost.append(f"skills {place!r}: no {SKILL_FILE} there")
        if not found and SKILL_FILE in self._files and "skills" not in self._manifest:
            found[""] = None
        yield from found

    # ── hooks ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sections(self, key: str, default: str, inner: str) -> Iterator[tuple[str, JsonObject]]:
        """Yield the objects of a part: those in its default file, in other files, and in the manifest."""
        given = self._manifest.get(key)
        items = given if isinstance(given, list) else [given]
        inline = [item for item in items if isinstance(item, dict)]
        if given is not None and len(inline) + sum(isinstance(item, str) for item in items) < len(items):
            self._lost.append(f"{key} in {MANIFEST}: neither a path nor an object")
        paths = [default, *(item for item in items if isinstance(item, str))]
        for path in dict.fromkeys(PurePosixPath(path).as_posix() for path in paths):
            if path in self._files:
                section = read_json(self._files, path)
                yield path, cast("JsonObject", section.get(inner)) if isinstance(section.get(inner), dict) else section
            elif path != default:
                self._lost.append(f"{key} {path!r}: no such file")
        for section in inline:
            yield MANIFEST, cast("JsonObject", section.get(inner)) if isinstance(section.get(inner), dict) else section

    def _hooks(self) -> Iterator[tuple[HookEvent, CommandHook]]:
        for path, section in self._sections("hooks", _HOOKS, "hooks"):
            for event, groups in section.items():
                if event == "description":
                    continue
                if event not in _EVENTS or not isinstance(groups, list):
                    self._lost.append(f"hook {event} in {path}: moot has no such event")
                    continue
                for group in groups:
                    yield from self._group(cast("HookEvent", event), group)

    def _group(self, event: HookEvent, group: Json) -> Iterator[tuple[HookEvent, CommandHook]]:
        facts = group if isinstance(group, dict) else {}
        matcher = facts.get("matcher") or ""
        ours = _matcher(event, matcher)
        hooks = facts.get("hooks")
        if not isinstance(hooks, list):
            self._lost.append(f"hook {event}: a group without a list of hooks")
        for hook in hooks if isinstance(hooks, list) else []:
            problem = self._problem(hook) if ours is not None else f"nothing in moot matches {matcher!r}"
            if problem or not isinstance(hook, dict):
                shown = hook.get("command") or hook.get("type") if isinstance(hook, dict) else hook
                self._lost.append(f"hook {event} {shown!r}: {problem}")
                continue
            words = hook.get("args")
            line = str(hook["command"])
            if isinstance(words, list):
                line = shlex.join([with_folder(str(word), self._folder) for word in (line, *words)])
            limit = hook.get("timeout")
            yield (
                event,
                CommandHook(
                    line,
                    ours or "",
                    float(limit) if isinstance(limit, int | float) else _TIMEOUT,
                    plugin=self._name,
                    env=(*self._variables().items(), (PROJECT_FOLDER, "")),
                ),
            )

    def _variables(self) -> dict[str, str]:
        """Return the environment variables for a plugin's programs.
        They keep Python from writing compiled files, which would change the plugin.
        """
        return {PLUGIN_ROOT: str(self._folder), PLUGIN_DATA: str(data_folder(self._folder)), "PYTHONDONTWRITEBYTECODE": "1"}

    def _problem(self, hook: Json) -> str:
        """Return the reason why a hook can't be used, or an empty string if it can."""
        if not isinstance(hook, dict):
            return "not an object"
        if hook.get("type", "command") != "command":
            return f"moot has no hooks of the type {hook.get('type')!r}"
        if not isinstance(hook.get("command"), str) or not str(hook["command"]).strip():
            return "no command"
        limit = hook.get("timeout")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0):
            return "invalid timeout"
        if unknown := sorted(hook.keys() - _HOOK_FIELDS):
            return f"moot has no field {unknown[0]!r} here"
        return _unresolved(hook)

    # ── MCP servers ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _servers(self) -> Iterator[McpServer]:
        seen: set[str] = set()
        for _, section in self._sections("mcpServers", _SERVERS, "mcpServers"):
            for name, facts in section.items():
                full = f"{SERVER_PREFIX}{self._name}_{name}"
                problem = "another server has the same name" if full in seen else _server_problem(full, facts)
                if problem:
                    self._lost.append(f"MCP server {name!r}: {problem}")
                    continue
                seen.add(full)
                yield self._server(full, cast("JsonObject", facts))

    def _server(self, name: str, facts: JsonObject) -> McpServer:
        def filled(key: str) -> Mapping[str, str]:
            return {each: with_folder(str(value), self._folder) for each, value in cast("JsonObject", facts.get(key) or {}).items()}

        command = with_folder(str(facts.get("command") or ""), self._folder)
        return McpServer(
            name,
            command,
            tuple(with_folder(str(word), self._folder) for word in cast("list[Json]", facts.get("args") or [])),
            {**self._variables(), **filled("env")} if command else {},
            "" if command else with_folder(str(facts.get("url")), self._folder),
            "sse" if facts.get("type") == "sse" else "http",
            {} if command else filled("headers"),
            plugin=self._name,
        )


def _matcher(event: str, matcher: Json) -> str | None:
    """Return the matcher converted for moot, or None if it is not valid or can't match anything."""
    found = translated_matcher(event, matcher, TOOL_NAMES) if isinstance(matcher, str) else None
    try:
        re.compile("" if found in (None, "*") else found or "")
    except (re.error, RecursionError, OverflowError):
        return None
    return found


def _server_problem(name: str, facts: Json) -> str:
    """Return the reason why an MCP server can't be used, or an empty string if it can."""
    if not _SERVER.fullmatch(name) or "__" in name:
        return f"its name would be {name!r}; use at most 64 letters, digits, - and single _"
    if not isinstance(facts, dict):
        return "not an object"
    if unknown := sorted(facts.keys() - _SERVER_FIELDS):
        return f"moot has no field {unknown[0]!r} here"
    command, url = facts.get("command") or "", facts.get("url") or ""
    if not isinstance(command, str) or not isinstance(url, str) or bool(command) == bool(url):
        return "it needs either a command or a url"
    if url and not url.startswith(("https://", "http://")):
        return "its url does not start with http:// or https://"
    if (facts.get("type") or "") not in (("", "stdio") if command else _PROTOCOLS):
        return f"unknown type {facts.get('type')!r}"
    texts = {"args": list, "env": dict, "headers": dict}
    if wrong := next((key for key, kind in texts.items() if facts.get(key) is not None and not isinstance(facts[key], kind)), ""):
        return f"invalid {wrong}"
    return _unresolved(facts)


def _unresolved(value: JsonObject) -> str:
    """Return a problem if a value contains a NUL, or refers to settings that the user would enter when installing the plugin."""
    texts = list(_texts(value))
    if any("\0" in text for text in texts):
        return "it contains a NUL character"
    return "it needs values that users enter at installation" if any("${user_config." in text for text in texts) else ""


def _texts(value: Json) -> Iterator[str]:
    """Yield all texts in a value, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for item in value.items() for each in item for text in _texts(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in _texts(each))
