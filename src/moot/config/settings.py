"""The frozen settings, and building them from a validated configuration. Each successful reload creates a new `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from moot.types.agent import Agent, HistorySettings, McpServer, Mode
from moot.types.canonical import JsonObject, empty
from moot.types.limits import Limits, Retention, RetentionRule


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One entry of `providers`."""

    name: str
    dialect: str = ""
    """Empty = the built-in provider's dialect."""
    base_url: str = ""
    """The base URL in the form that the vendor's SDK takes. Empty = the built-in provider's URL."""
    api_key: str = ""
    """Resolved. Never shown, logged or stored."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    models: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Model name → `{context, max_output, modalities, tools, reasoning, wire_name, price…}`, which override the catalogue."""
    plan: str = ""
    """`coding` selects the vendor's base URL for coding plans, if there is one."""
    priority: int | None = None
    """Providers with smaller numbers are searched first for a bare model name. None = the built-in order."""
    enabled: bool = True
    timeout: float = 600.0
    """Seconds without data after which a stream is closed."""
    options: JsonObject = field(default_factory=empty)
    """All other keys of the entry: options specific to the provider."""
    home: Path = Path()
    """moot's home folder, where a provider may keep files. Set by `Providers`."""

    def __repr__(self) -> str:
        return f"ProviderSettings(name={self.name!r}, base_url={self.base_url!r})"


@dataclass(frozen=True, slots=True)
class Models:
    """The model for each purpose: `model@provider`, a bare name, or empty if unset."""

    main: str = ""
    small: str = ""
    compaction: str = ""
    image: str = ""
    transcription: str = ""
    fallback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A permission rule."""

    tool: str
    action: Literal["allow", "ask", "deny"]
    match: str = "*"
    always: Literal["offer", "never"] = "offer"
    """`never` = no lasting permission: calls that match this rule can only be approved one at a time."""
    origin: str = ""
    """Layer and place where the rule was written, such as `user /home/me/…/config.yaml:3:5`."""


@dataclass(frozen=True, slots=True)
class Permissions:
    mode: Mode = "ask"
    rules: tuple[Rule, ...] = ()
    timeout: float = 300.0
    """Seconds until an approval request expires; 0 = never."""
    unattended: Literal["deny"] = "deny"


@dataclass(frozen=True, slots=True)
class Storage:
    url: str = "sqlite"
    durability: Literal["normal", "full"] = "normal"
    seal_after: float = 600.0
    """Seconds after a conversation's last event before its log may be sealed in the background; 0 = never."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Address and access settings of a server."""

    host: str = "127.0.0.1"
    port: int = 4747
    """0 = any free port."""
    allowed_hosts: tuple[str, ...] = ()
    """Further values that a request's Host header may have, such as `moot.example.com` or `moot.lan:4747`."""
    allowed_origins: tuple[str, ...] = ()
    """Other origins whose pages may call the server, such as `https://app.example.com`."""
    max_body: int = 32 * 1024 * 1024
    """Maximum size of a request body, in bytes."""


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """Settings for automatic imports."""

    watch: bool = False
    """Import new conversations of agents on the server's machine automatically."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One complete, resolved configuration."""

    home: Path
    """`MOOT_HOME` or else the platform's data folder. Contains config.yaml, data/, agents/ and state/."""
    models: Models = field(default_factory=Models)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict[str, ProviderSettings])
    """Configured providers, and built-in ones whose key is set in the environment."""
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    """Always contains `default`."""
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    permissions: Permissions = field(default_factory=Permissions)
    storage: Storage = field(default_factory=Storage)
    server: ServerSettings = field(default_factory=ServerSettings)
    retention: Retention = field(default_factory=Retention)
    imports: ImportSettings = field(default_factory=ImportSettings)
    limits: Limits = field(default_factory=Limits)
    tools: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    channels: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    ui: JsonObject = field(default_factory=empty)
    generation: int = 1
    """Number of successful loads."""

    @property
    def database(self) -> Path:
        return self.home / "data" / "moot.db"

    @property
    def owners(self) -> Path:
        return self.home / "state" / "owners"


NANO = 1_000_000_000

_Part: TypeAlias = dict[str, Any]  # a section of a validated configuration


def build(configuration: JsonObject, home: Path) -> Settings:
    """Return the settings for a complete, validated configuration, as returned by `check`."""
    whole = cast("_Part", configuration)
    permissions, retention = whole["permissions"], whole["retention"]
    return Settings(
        home=home,
        models=Models(**_tupled(whole["models"])),
        providers={name: _provider(name, part) for name, part in whole["providers"].items()},
        agents={"default": Agent()} | {name: _agent(name, part) for name, part in whole["agents"].items()},
        mcp={name: McpServer(name, **_tupled(part)) for name, part in whole["mcp"].items()},
        permissions=Permissions(**permissions | {"rules": tuple(Rule(**rule) for rule in permissions["rules"])}),
        storage=Storage(**whole["storage"]),
        retention=Retention(**retention | {"projects": {name: RetentionRule(**rule) for name, rule in retention["projects"].items()}}),
        imports=ImportSettings(**whole["imports"]),
        server=ServerSettings(**_tupled(whole["server"])),
        limits=Limits(**{**whole["limits"], "cost": round(whole["limits"]["cost"] * NANO)}),
        tools=whole["tools"],
        channels=whole["channels"],
        ui=whole["ui"],
    )


def _tupled(part: _Part) -> _Part:
    return {key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for key, value in part.items()}


_PROVIDER = ("dialect", "base_url", "api_key", "headers", "models", "plan", "priority", "enabled", "timeout")


def _provider(name: str, part: _Part) -> ProviderSettings:
    known = {key: part[key] for key in _PROVIDER}
    return ProviderSettings(name=name, **known, options={key: value for key, value in part.items() if key not in _PROVIDER})


def _agent(name: str, part: _Part) -> Agent:
    fields = {key: value for key, value in _tupled(part).items() if key not in ("reasoning", "history", "hooks")}
    reasoning, history = part["reasoning"], HistorySettings(**part["history"])
    return Agent(name, **fields, effort=reasoning["effort"], show_reasoning=reasoning["show"], history=history)
