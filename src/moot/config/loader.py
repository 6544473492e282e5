"""Loading of settings from defaults, the user's file, the environment and flags. Later layers win."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from moot.config.cache import Memory
from moot.config.home import KEY_VARIABLES, home_of, read_text
from moot.config.secrets import secrets_of
from moot.config.settings import Settings, build
from moot.config.tree import Node, Place, environment_layer, find, flag_layer, interpolate, merge, place_of, plain
from moot.errors import ConfigError
from moot.plugins import PROVIDERS, TOOLS
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject

SECTIONS = (
    *("models", "providers", "agents", "mcp", "permissions", "hooks", "cron", "webhooks", "channels", "commands", "tools"),
    *("server", "storage", "retention", "imports", "limits", "ui"),
)
NO_EFFECT_YET = ("hooks", "cron", "webhooks", "commands")
"""Sections that are validated but have no effect in this version."""
FILE = "config.yaml"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of one successful load."""

    settings: Settings
    origin: Mapping[str, str]
    """Dotted key → layer and place of its value: `user /home/me/.local/share/moot/config.yaml:3:5`, `environment MOOT_…`."""
    secrets: tuple[str, ...]
    """All secret texts in the configuration, longest first. They must never be shown."""
    configuration: JsonObject
    """The merged values in the shape of the file, with all defaults. Contains secrets."""
    notes: tuple[str, ...] = ()
    """Information for the user that is not an error."""
    root: Node = field(default=Node({}, Place("default", "")), repr=False)
    """The merged tree with places. Contains secrets."""

    @property
    def doubt(self) -> ConfigError | None:
        """Problems that matter only when the setting is used. `moot config check` reports them."""
        return attribute("moot.config.validation:find_warnings")(self.root)


def load(*, home: Path | None = None, environ: Mapping[str, str], flags: Mapping[str, Json] | None = None, directory: Path) -> Loaded:
    """Return the effective configuration for a folder. Raise ConfigError. Create nothing."""
    home = home or home_of(environ)
    variables, unused = environment_layer(environ, SECTIONS)
    notes = [f"The environment variable {name} is ignored: it does not name a section, as in MOOT_SERVER__PORT." for name in unused]
    memory, place, text = Memory(home), Place("user", str(home / FILE)), read_text(home / FILE)
    file = memory.tree(text, place, lambda: attribute("moot.config.document:parse")(text, place)) if text else Node({}, place)
    known = {"providers": PROVIDERS.names(), "tools": TOOLS.names()} if variables.value else {}
    root = Node({}, Place("default", ""))
    for layer in (file, variables, flag_layer(flags or {})):
        root = merge(root, layer, known)
    project = directory / ".moot" / FILE
    if project.is_file() and project != home / FILE:
        notes.append(f"{project} is ignored because the project is not trusted.")
    root = _with_keys(interpolate(root, environ), environ)
    configuration = memory.checked(plain(root), lambda: attribute("moot.config.validation:validated_json")(root))
    notes += [f"{section}: This section has no effect in this version." for section in NO_EFFECT_YET if configuration[section]]
    settings = build(configuration, home)
    rules = settings.permissions.rules
    placed = tuple(replace(rule, origin=str(place_of(root, ("permissions", "rules", at)))) for at, rule in enumerate(rules))
    settings = replace(settings, permissions=replace(settings.permissions, rules=placed))
    return Loaded(settings, _origin(root), secrets_of(configuration), configuration, tuple(notes), root)


class Loader:
    """The current configuration of a running process. If a reload fails, the last valid one stays in use."""

    def __init__(self, *, home: Path | None = None, environ: Mapping[str, str], flags: Mapping[str, Json] | None = None, directory: Path):
        self._file = (home or home_of(environ)) / FILE
        self._load = lambda: load(home=home, environ=environ, flags=flags, directory=directory)
        self._seen = self.stamp()
        self.current = self._load()
        self.error: ConfigError | None = None
        """Why the last reload failed, or None."""

    def reload(self) -> bool:
        """Load the configuration again. Return True if it succeeded, which increments `generation`, else set `error`."""
        self._seen = self.stamp()  # before the file is read, so that a concurrent change is not missed
        try:
            loaded = self._load()
        except ConfigError as error:
            self.error = error
            return False
        generation = self.current.settings.generation + 1
        self.current = replace(loaded, settings=replace(loaded.settings, generation=generation))
        self.error = None
        return True

    def stamp(self) -> tuple[int, int, int]:
        """Return a value that changes whenever the user's file is changed, replaced or removed."""
        try:
            status = self._file.stat()
        except OSError:
            return 0, 0, 0
        return status.st_mtime_ns, status.st_size, status.st_ino

    def is_stale(self) -> bool:
        """Return whether the file has changed since it was last read."""
        return self.stamp() != self._seen


def _with_keys(root: Node, environ: Mapping[str, str]) -> Node:
    """Give built-in providers the key from their vendor's environment variable, unless the configuration sets one.

    Entries with their own `base_url` don't get it: a vendor's key is only sent to that vendor.
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
