"""Load settings from defaults, files, environment variables and flags. Later layers take precedence."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from moot.config.agents.builtin import BUILT_IN, built_in_node
from moot.config.agents.files import FOLDER, home_layer, markdown_files
from moot.config.cache import Memory
from moot.config.effects import without_effect
from moot.config.home import KEY_VARIABLES, home_of, read_text, stamp_of
from moot.config.hooks import CHECK_SECTIONS, command_hooks, file_checks
from moot.config.plugins.installed import agents_layer, has_plugins, plugin_notes, plugins_stamp, secrets_in, used_plugins, with_plugins
from moot.config.secrets import secrets_of
from moot.config.settings import Settings, build
from moot.config.tree import Node, Place, environment_layer, find, flag_layer, interpolate_root, merge, place_of, plain_configuration
from moot.config.trust import check_project, is_trusted, trust_list, trusted_files, with_lists_of
from moot.errors import ConfigError
from moot.plugins import PROVIDERS, TOOLS
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject

SECTIONS = (
    *(
        "models",
        "providers",
        "agents",
        "mcp",
        "skills",
        "permissions",
        "sandbox",
        "hooks",
        "formatters",
        "checks",
        "cron",
        "task_watchers",
        "webhooks",
        "outgoing_webhooks",
    ),
    *("channels", "commands", "macros", "tools", "server", "storage", "retention", "imports", "hosts", "limits", "budgets", "keys", "ui"),
    "telemetry",
)
FILE = "config.yaml"

PATIENCE = 0.5
"""Maximum number of seconds to wait for a configuration file that had content before and is now missing or empty."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of one successful load."""

    settings: Settings
    origin: Mapping[str, str]
    """Layer and place of each value, keyed by dotted key: `user /home/me/.local/share/moot/config.yaml:3:5`, `environment MOOT_…`."""
    secrets: tuple[str, ...]
    """All secret texts in the configuration, longest first. They must never be shown."""
    configuration: JsonObject
    """The merged values, including all defaults, under the keys that the configuration file uses. Contains secrets."""
    notes: tuple[str, ...] = ()
    """Messages for the user that are not errors."""
    is_file_empty: bool = True
    """True if the user's file does not exist or contains nothing."""
    project: Path | None = None
    """The project's configuration file if it is in use; None if there is none or it is not trusted."""
    root: Node = field(default=Node({}, Place("default", "")), repr=False)
    """The merged tree with places. Contains secrets."""
    unset: tuple[ConfigError, ...] = ()
    """Environment variables that are not set although MCP servers refer to them. These servers are disabled."""

    @property
    def doubt(self) -> ConfigError | None:
        """Problems that matter only when a setting is used, and keys without effect,
        as reported by `moot config check`; None if there are none.
        """
        return attribute("moot.config.validation:find_warnings")(self.root, [*without_effect(self.root), *self.unset])


def load(*, home: Path | None = None, environ: Mapping[str, str], flags: Mapping[str, Json] | None = None, directory: Path) -> Loaded:
    """Return the effective configuration for a folder. Raise ConfigError if it is invalid. No file or folder is created."""
    home = home or home_of(environ)
    variables, unused = environment_layer(environ, SECTIONS)
    notes = [f"The environment variable {name} is ignored: it does not name a section, as in MOOT_SERVER__PORT." for name in unused]
    memory, place = Memory(home), Place("user", str(home / FILE))
    text = _text_of(home / FILE, memory)
    file = memory.tree(text, place, lambda: attribute("moot.config.document:parse")(text, place)) if text else Node({}, place)
    known = {"providers": PROVIDERS.names(), "tools": TOOLS.names()} if variables.value else {}
    root, lost = home_layer(home, memory.part)
    plugins, notes = used_plugins(home), [*notes, *lost, *plugin_notes(home)]
    if plugins:
        root = merge(root, agents_layer(plugins, memory.part))
    own = find(root, "agents")
    files = own if isinstance(own, dict) else dict[str, Node]()
    project = _project_layer(directory, home, notes)
    for layer in (file, *((with_lists_of(file, project),) if project is not None else ()), variables, flag_layer(flags or {})):
        root = merge(root, layer, known)
    root, unset = interpolate_root(root, environ)
    root = _with_built_in(_with_keys(root, environ), files)
    configuration = memory.checked(plain_configuration(root), lambda: attribute("moot.config.validation:validated_json")(root))
    notes += [error.message for error in without_effect(root)]
    notes += [f"{error.message} The MCP server {name!r} is disabled until it is set." for name, error in unset.items()]
    settings = build(configuration, home)
    if unset:
        servers = {name: replace(settings.mcp[name], problem=error.message) for name, error in unset.items()}
        settings = replace(settings, mcp={**settings.mcp, **servers})
    rules = settings.permissions.rules
    placed = tuple(replace(rule, origin=str(place_of(root, ("permissions", "rules", at)))) for at, rule in enumerate(rules))
    agents = {name: replace(agent, origin=_origin_of_agent(root, name, files)) for name, agent in settings.agents.items()}
    settings = replace(settings, permissions=replace(settings.permissions, rules=placed), agents=agents)
    if settings.commands:
        in_file = attribute("moot.config.commands:placed")
        settings = replace(settings, commands={name: in_file(command, root) for name, command in settings.commands.items()})
    used = project_file(directory) if project is not None else None
    if used is not None and settings.hooks:
        settings = replace(settings, hooks=command_hooks(cast("JsonObject", configuration["hooks"]), _places_of_hooks(root, used)))
    if used is not None and settings.checks:
        settings = replace(settings, checks=file_checks(configuration, _places_of_checks(root, used)))
    secrets = secrets_of(configuration)
    if plugins:
        settings, lost = with_plugins(settings, plugins, environ)
        secrets, notes = tuple(sorted({*secrets, *secrets_of(secrets_in(settings))}, key=len, reverse=True)), [*notes, *lost]
    return Loaded(settings, _origin(root), secrets, configuration, tuple(notes), not text.strip(), used, root, tuple(unset.values()))


def _with_built_in(root: Node, own: Mapping[str, Node]) -> Node:
    """Merge entries of built-in agents with their definitions, so that `explorer: {model: small}` changes one field.

    An entry with instructions or with another agent type is a complete definition.
    """
    agents = find(root, "agents")
    named = [name for name in BUILT_IN if isinstance(agents, dict) and name in agents and name not in own]
    named = [name for name in named if (find(root, "agents", name, "agent_type") or "moot") == "moot"]
    named = [name for name in named if find(root, "agents", name, "instructions") is None]
    place = Place("default", "")
    return merge(Node({"agents": Node({name: built_in_node(name) for name in named}, place)}, place), root) if named else root


def _origin_of_agent(root: Node, name: str, files: Mapping[str, Node]) -> str:
    """Return the Markdown file that defines an agent, or the layer and place of its entry in the configuration."""
    return files[name].place.source if name in files else str(place_of(root, ("agents", name), key=True))


def _places_of_hooks(root: Node, project: Path) -> dict[tuple[str, int], str]:
    """Return the project's folder for each entry of `hooks` in the project's file. The keys are event and index."""
    events = find(root, "hooks")
    return {
        (event, at): str(project.parent.parent)
        for event, groups in (events.items() if isinstance(events, dict) else ())
        for at, group in enumerate(groups.value if isinstance(groups.value, list) else ())
        if group.place.layer == "project"
    }


def _places_of_checks(root: Node, project: Path) -> dict[tuple[str, str, int], str]:
    """Return the project's folder for each formatter and check in the project's file. The keys are section, pattern and index."""
    sections = {name: found for name in CHECK_SECTIONS if isinstance(found := find(root, name), dict)}
    return {
        (section, pattern, at): str(project.parent.parent)
        for section, found in sections.items()
        for pattern, commands in found.items()
        for at, command in enumerate(commands.value if isinstance(commands.value, list) else ())
        if command.place.layer == "project"
    }


def _text_of(file: Path, memory: Memory) -> str:
    """Return the file's text. Wait if another program is replacing the file, so that its deny rules are not missed."""
    end = time.monotonic() + PATIENCE
    while not (text := read_text(file)).strip() and memory.knows_file:
        if time.monotonic() > end:
            memory.forget_file()  # it was removed on purpose
            break
        time.sleep(0.02)
    return text


def project_file(directory: Path) -> Path:
    """Return the path of a project's configuration file, which is used only if it is trusted."""
    return directory.absolute() / ".moot" / FILE


def _project_layer(directory: Path, home: Path, notes: list[str]) -> Node | None:
    """Return the project's configuration if it is trusted. Otherwise add a note and return None."""
    path = project_file(directory)
    if not path.is_file() or path == home / FILE:
        return None
    text = read_text(path)
    if not is_trusted(home, path, text):
        changed = str(path.resolve()) in trusted_files(home)
        why = "it or a program of its hooks has changed since it was trusted" if changed else "the project is not trusted"
        notes.append(f"{path} is ignored because {why}. Review it, then run 'moot trust {path.parent.parent}'.")
        return None
    return attribute("moot.config.document:parse")(text, Place("project", str(path)))


class Loader:
    """The current configuration of a running process. If a reload fails, the last valid configuration stays in use.

    A reload also fails if an agent refers to an unknown tool, agent type, provider or model,
    unless it already does so in the current configuration.
    """

    def __init__(self, *, home: Path | None = None, environ: Mapping[str, str], flags: Mapping[str, Json] | None = None, directory: Path):
        self._home = home or home_of(environ)
        self._file = self._home / FILE
        self._decisive = (self._file, project_file(directory), trust_list(self._home))
        self._load = lambda: load(home=home, environ=environ, flags=flags, directory=directory)
        self.seen = self.stamp()
        """The stamp of the files when they were last read."""
        self.current = self._load()
        self.error: ConfigError | None = None
        """The error of the last reload; None if the reload succeeded."""

    def reload(self) -> bool:
        """Load the configuration again. On success, increment `generation` and return True; otherwise set `error` and return False."""
        self.seen = self.stamp()  # taken before the file is read, so that a concurrent change is not missed
        try:
            loaded = self._load()
            if loaded.is_file_empty and not self.current.is_file_empty:
                raise self._lost()
            if loaded.project is None:
                check_project(self.current.project, self._home)
            if find(loaded.root, "agents") is not None:
                attribute("moot.config.validation:refuse_agents")(loaded.root, self.current.root)
        except ConfigError as error:
            self.error = error
            return False
        generation = self.current.settings.generation + 1
        self.current = replace(loaded, settings=replace(loaded.settings, generation=generation))
        self.error = None
        return True

    def _lost(self) -> ConfigError:
        # an editor or a synchronization tool may be writing it; without it, deny rules would not apply
        problem = "is empty" if self._file.exists() else "no longer exists"
        return ConfigError(
            f"The file {problem}, so the last valid configuration remains in use.",
            file=str(self._file),
            fix="Restore the file, or restart moot to run without it.",
        )

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes whenever one of the configuration's files is changed, replaced or removed."""
        return (*map(stamp_of, (*self._decisive, *markdown_files(self._home / FOLDER))), *plugins_stamp(self._home))

    @property
    def has_plugins(self) -> bool:
        """True if `stamp` has to list the folders of plugins, which may take some milliseconds."""
        return has_plugins(self._home)


def _with_keys(root: Node, environ: Mapping[str, str]) -> Node:
    """Return the tree with API keys from vendors' environment variables, for built-in providers whose key is not configured.

    The key is not added to entries with a `base_url`, because a vendor's key must be sent only to that vendor.
    """
    found: dict[str, Node] = {}
    for name, candidates in KEY_VARIABLES.items():
        variable = next((variable for variable in candidates if environ.get(variable)), None)
        if variable is None or find(root, "providers", name, "base_url") or find(root, "providers", name, "api_key"):
            continue
        place = Place("environment", variable)
        found[name] = Node({"api_key": Node(environ[variable], place, environ[variable])}, place)
    return merge(Node({"providers": Node(found, Place("environment", ""))}, root.place), root) if found else root


def _origin(node: Node, path: str = "") -> dict[str, str]:
    if isinstance(node.value, dict) and (node.value or not path):
        origin: dict[str, str] = {}
        for key, child in node.value.items():
            if child.value is not None:
                origin |= _origin(child, f"{path}.{key}" if path else key)
        return origin
    return {path: str(node.place)}
