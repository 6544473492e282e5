"""All that a configuration says, frozen; one new `Settings` for each successful reload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from moot.types.agent import Agent, Mode
from moot.types.canonical import JsonObject, empty
from moot.types.limits import Limits
from moot.types.mcp import McpServer
from moot.types.retention import Retention


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One entry of `providers`."""

    name: str
    dialect: str = ""
    """Empty = the built-in provider's own."""
    base_url: str = ""
    """What the vendor's own SDK takes; empty = the built-in provider's own."""
    api_key: str = ""
    """Resolved; never shown, logged or stored."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    models: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Model name → `{context, max_output, modalities, tools, reasoning, wire_name, price…}`, laid over the catalogue."""
    plan: str = ""
    """`coding` = the vendor's second base URL for coding plans, where there is one."""
    priority: int | None = None
    """Smaller goes first for a bare model name; None = the built-in order."""
    enabled: bool = True
    timeout: float = 600.0
    """Seconds without a byte after which a stream is cut."""
    options: JsonObject = field(default_factory=empty)
    """Everything else under the entry: a provider's own."""
    home: Path = Path()
    """The home of this moot, below which a provider may keep files of its own; `Providers` sets it."""

    def __repr__(self) -> str:
        return f"ProviderSettings(name={self.name!r}, base_url={self.base_url!r})"


@dataclass(frozen=True, slots=True)
class Models:
    """The model types; each a `model@provider` or a bare name, empty = unset."""

    main: str = ""
    small: str = ""
    compaction: str = ""
    image: str = ""
    transcription: str = ""
    fallback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing permission."""

    tool: str
    action: Literal["allow", "ask", "deny"]
    match: str = "*"
    always: Literal["offer", "never"] = "offer"
    """never: what this rule asks about is allowed for one call at a time."""
    origin: str = ""
    """Layer and place that it was written at, as `user /home/me/…/config.yaml:3:5`."""


@dataclass(frozen=True, slots=True)
class Permissions:
    mode: Mode = "ask"
    rules: tuple[Rule, ...] = ()
    timeout: float = 300.0
    """Seconds that an approval stays open; 0 = for ever."""
    unattended: Literal["deny"] = "deny"


@dataclass(frozen=True, slots=True)
class Storage:
    url: str = "sqlite"
    durability: Literal["normal", "full"] = "normal"
    seal_after: float = 600.0
    """Seconds after its last event from which on a conversation's log may be sealed in the background; 0 = never."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where and for whom a server listens."""

    host: str = "127.0.0.1"
    port: int = 4747
    """0 = any free one."""
    allowed_hosts: tuple[str, ...] = ()
    """What a request's Host may say besides the address that is listened on, as `moot.example.com` or `moot.lan:4747`."""
    allowed_origins: tuple[str, ...] = ()
    """Pages of other origins that may call, as `https://app.example.com`."""
    max_body: int = 32 * 1024 * 1024
    """Bytes of a request's body."""


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """What comes in by itself."""

    watch: bool = False
    """A server follows what the agents on its machine write."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One configuration, resolved."""

    home: Path
    """`MOOT_HOME`, else the platform's data folder: config.yaml, data/, agents/, state/ lie in it."""
    models: Models = field(default_factory=Models)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict[str, ProviderSettings])
    """Those of the file, and built-in ones whose key stands in the environment."""
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    """Always has `default`."""
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
    """Counts successful loads."""

    @property
    def database(self) -> Path:
        return self.home / "data" / "moot.db"

    @property
    def owners(self) -> Path:
        return self.home / "state" / "owners"
