"""The frozen settings, and how they are built from a validated configuration. Each successful reload creates a new `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from moot.config.hooks import command_hooks, file_checks, run_hooks
from moot.plugins.registry import attribute
from moot.types.agent import Agent, HistorySettings, McpServer, Mode, PromptSettings
from moot.types.canonical import JsonObject, empty
from moot.types.command import CommandDefinition
from moot.types.command_tool import Check, CommandTool, schema_of
from moot.types.cron import Job
from moot.types.hooks import CommandHook, HookEvent
from moot.types.limits import Budget, Limits, Retention, RetentionRule
from moot.types.task import TaskWatcher
from moot.types.webhook import WEBHOOK_EVENTS, WebhookEvent


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One entry of `providers`."""

    name: str
    dialect: str = ""
    """Name of the dialect; empty for the dialect of the built-in provider."""
    base_url: str = ""
    """The base URL, in the form that the vendor's SDK accepts; empty for the base URL of the built-in provider."""
    api_key: str = ""
    """The resolved value. Never shown, logged or stored."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    models: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Properties that override those in the catalogue, keyed by model name:
    `{context, max_output, modalities, tools, reasoning, wire_name, price…}`.
    """
    plan: str = ""
    """Name of a plan that has its own base URL, such as `coding`; empty for the standard plan."""
    priority: int | None = None
    """Position in the lookup of model names without a provider. Smaller numbers come first. None for the built-in position."""
    enabled: bool = True
    timeout: float = 600.0
    """Number of seconds without data after which a stream is closed."""
    options: JsonObject = field(default_factory=empty)
    """All other keys of the entry. They are options of this provider."""
    home: Path = Path()
    """moot's home folder, where a provider may store files. Set by `Providers`."""

    def __repr__(self) -> str:
        return f"ProviderSettings(name={self.name!r}, base_url={self.base_url!r})"


@dataclass(frozen=True, slots=True)
class Models:
    """The models for each purpose, as `model@provider` or a bare name; empty if not set."""

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
    """`offer` or `never`. If it is `never`, calls that match this rule can be approved only one at a time."""
    network: bool = False
    """True if commands that match this allow rule may use the network."""
    origin: str = ""
    """Layer and place in which the rule is defined, such as `user /home/me/…/config.yaml:3:5`."""


@dataclass(frozen=True, slots=True)
class Permissions:
    mode: Mode = "ask"
    rules: tuple[Rule, ...] = ()
    timeout: float | None = None
    """Seconds until an approval request expires; 0 for never. None = five minutes, and never if a terminal shows the request."""
    unattended: Literal["deny"] = "deny"
    home: str = ""
    """Path of moot's home folder, whose files are protected; empty if unknown."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Settings of the sandbox for commands that are run by models."""

    enabled: bool = True
    network: bool = False
    """True if all commands may use the network."""
    writable: tuple[str, ...] = ()
    """Additional folders that commands may write to: absolute paths, or paths that start with `~/`."""
    required: bool = False
    """True if commands may not run without a sandbox."""


@dataclass(frozen=True, slots=True)
class Storage:
    url: str = "sqlite"
    durability: Literal["normal", "full"] = "normal"
    seal_after: float = 600.0
    """Number of seconds after a conversation's last event until its log may be sealed in the background; 0 for never."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Address and access settings of a server."""

    host: str = "127.0.0.1"
    port: int = 4747
    """Port to listen on; 0 for any free port."""
    allowed_hosts: tuple[str, ...] = ()
    """Additional values to accept in the Host header of requests, such as `moot.example.com` or `moot.lan:4747`."""
    allowed_origins: tuple[str, ...] = ()
    """Other origins whose pages may call the server, such as `https://app.example.com`."""
    max_body: int = 32 * 1024 * 1024
    """Maximum size of a request body, in bytes."""
    workers: int = 1
    """Number of processes that serve requests and run agents."""
    push_contact: str = "mailto:moot@example.com"
    """Address at which operators of push services can reach the server's owner: a `mailto:` or https URL."""


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """Settings for automatic imports."""

    watch: bool = False
    """True to import new conversations of agents on the server's machine automatically."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Another machine, from which `moot sync` imports conversations."""

    name: str
    ssh: str
    port: int | None = None
    identity: str = ""
    """Absolute path of the private key to use; empty = ssh chooses."""
    home: str = ""
    agents: tuple[str, ...] = ()
    """Names of the agents whose conversations are imported; empty = all."""
    timeout: float = 60.0
    """Maximum number of seconds without any data from the machine."""


def mirror_of(data: Path, host: str) -> Path:
    """Return the folder that contains the copies of another machine's files. `data` is the folder of the database."""
    return data / "hosts" / host


@dataclass(frozen=True, slots=True)
class Webhook:
    """One entry of `webhooks`, which turns each delivery into a prompt."""

    prompt: str
    """Template of the prompt, with `{{field.path}}` for fields of the payload."""
    secret: str = field(default="", repr=False)
    """The resolved value. Never shown, logged or stored."""
    secret_file: str = ""
    """File that contains the secret instead."""
    auth: Literal["hmac", "bearer"] = "hmac"
    tolerance: float = 300.0
    """Maximum difference in seconds between a signature's timestamp and the server's clock."""
    delivery: str = ""
    """Template of the delivery's id, used to detect repeated deliveries.
    If empty, the header `webhook-id` is used, or else the signature.
    """
    conversation: str = ""
    """Template of a key. Deliveries with the same key continue the same conversation. If empty, each delivery starts a new conversation."""

    directory: str = ""
    agent: str = ""
    model: str = ""
    unattended: Literal["deny", "ask"] = "deny"
    """Handling of calls that need approval: `deny` denies them, `ask` lets them wait in the inbox."""
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class OutgoingWebhook:
    """One entry of `outgoing_webhooks`: a URL and the events that are sent to it."""

    url: str = field(repr=False)
    """The URL. Never shown, logged or stored, because it may contain a secret."""
    secret: str = field(default="", repr=False)
    """The resolved value. Never shown, logged or stored."""
    secret_file: str = ""
    """File that contains the secret instead."""
    events: tuple[WebhookEvent, ...] = WEBHOOK_EVENTS
    project: str = ""
    """Name or id of the project whose runs are reported; empty for any."""
    agent: str = ""
    conversation: str = ""
    """Id or key of the conversation whose runs are reported; empty for any."""
    text: bool = False
    """True to also send the text of the answer."""
    private: bool = False
    """True to allow addresses in private networks."""
    timeout: float = 10.0
    """Timeout of a request in seconds."""
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Settings of OpenTelemetry. Changes take effect at the next start."""

    enabled: bool = False
    endpoint: str = ""
    """Base URL of the collector; empty = the OTEL_* environment variables decide."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Headers to send to the collector. Never shown, logged or stored."""
    content: bool = False
    """True to also send prompts, answers, and the arguments and results of tools."""
    propagate: bool = False
    """True to send the header `traceparent` to model providers."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One complete, resolved configuration."""

    home: Path
    """Moot's home folder: `MOOT_HOME`, or `moot` in the platform's data folder. Contains config.yaml, data/, agents/ and state/."""
    models: Models = field(default_factory=Models)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict[str, ProviderSettings])
    """Configured providers, and built-in providers whose key is set in the environment, keyed by name."""
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    """The agents in the configuration and in the folder `agents` of moot's home, keyed by name."""
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    skill_indexes: tuple[str, ...] = ()
    """URLs or absolute paths of indexes of skills and agents."""
    permissions: Permissions = field(default_factory=Permissions)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    storage: Storage = field(default_factory=Storage)
    server: ServerSettings = field(default_factory=ServerSettings)
    retention: Retention = field(default_factory=Retention)
    imports: ImportSettings = field(default_factory=ImportSettings)
    hosts: Mapping[str, HostSettings] = field(default_factory=dict[str, HostSettings])
    """Other machines, keyed by name."""
    limits: Limits = field(default_factory=Limits)
    budgets: tuple[Budget, ...] = ()
    hooks: Mapping[HookEvent, tuple[CommandHook, ...]] = field(default_factory=dict["HookEvent", "tuple[CommandHook, ...]"])
    """Commands to run, keyed by event. Events without hooks are omitted."""
    cron: Mapping[str, Job] = field(default_factory=dict[str, Job])
    task_watchers: Mapping[str, TaskWatcher] = field(default_factory=dict[str, TaskWatcher])
    tools: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Settings of tools, keyed by name."""
    custom_tools: Mapping[str, CommandTool] = field(default_factory=dict[str, CommandTool])
    commands: Mapping[str, CommandDefinition] = field(default_factory=dict[str, CommandDefinition])
    """Slash commands in the section `commands`. Those defined in files are not included."""
    macros: Mapping[str, str] = field(default_factory=dict[str, str])
    """Texts that replace `@{NAME}` in prompts, keyed by name."""
    checks: tuple[Check, ...] = ()
    """Formatters and checks for files, in the order in which they run."""
    channels: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    webhooks: Mapping[str, Webhook] = field(default_factory=dict[str, Webhook])
    outgoing_webhooks: Mapping[str, OutgoingWebhook] = field(default_factory=dict[str, OutgoingWebhook])
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Keyboard shortcuts of the terminal that differ from the default ones, by action."""
    ui: JsonObject = field(default_factory=empty)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    generation: int = 1
    """Number of successful loads, starting with 1."""

    @property
    def database(self) -> Path:
        return self.home / "data" / "moot.db"

    @property
    def owners(self) -> Path:
        return self.home / "state" / "owners"


NANO = 1_000_000_000

_Part: TypeAlias = dict[str, Any]  # a section of a validated configuration


def build(configuration: JsonObject, home: Path) -> Settings:
    """Return the settings for a complete, validated configuration, such as `validated_json` returns."""
    whole = cast("_Part", configuration)
    permissions, retention = whole["permissions"], whole["retention"]
    return Settings(
        home=home,
        models=Models(**_tupled(whole["models"])),
        providers={name: _provider(name, part) for name, part in whole["providers"].items()},
        agents={name: agent_of(name, part) for name, part in whole["agents"].items()},
        mcp={name: McpServer(name, **_tupled(part)) for name, part in whole["mcp"].items()},
        skill_indexes=tuple(str(Path(place).expanduser()) if place.startswith("~") else place for place in whole["skills"]["indexes"]),
        permissions=Permissions(**permissions | {"rules": tuple(Rule(**rule) for rule in permissions["rules"]), "home": str(home)}),
        sandbox=SandboxSettings(**_tupled(whole["sandbox"])),
        storage=Storage(**whole["storage"]),
        retention=Retention(**retention | {"projects": {name: RetentionRule(**rule) for name, rule in retention["projects"].items()}}),
        imports=ImportSettings(**whole["imports"]),
        hosts={name: _host(name, part) for name, part in whole["hosts"].items()},
        server=ServerSettings(**_tupled(whole["server"])),
        limits=Limits(**{**whole["limits"], "cost": round(whole["limits"]["cost"] * NANO)}),
        budgets=tuple(_budget(name, part) for name, part in whole["budgets"].items()),
        hooks=command_hooks(whole["hooks"]),
        cron={name: job_of(name, part, configured=True) for name, part in whole["cron"].items()},
        task_watchers={name: _watcher(name, part) for name, part in whole["task_watchers"].items()},
        tools={name: part for name, part in whole["tools"].items() if "command" not in part},
        custom_tools={name: _custom_tool(name, part) for name, part in whole["tools"].items() if "command" in part},
        commands=_commands(whole["commands"], home),
        macros=whole["macros"],
        checks=file_checks(whole),
        channels=whole["channels"],
        webhooks={name: Webhook(**part) for name, part in whole["webhooks"].items()},
        outgoing_webhooks={name: OutgoingWebhook(**_tupled(part)) for name, part in whole["outgoing_webhooks"].items()},
        keys={name: tuple(chords) for name, chords in whole["keys"].items()},
        ui=whole["ui"],
        telemetry=TelemetrySettings(**whole["telemetry"]),
    )


def job_of(name: str, part: _Part, **more: Any) -> Job:
    """Return the job defined by a validated section `cron.NAME`. `more` contains fields that are not in the configuration."""
    own = part | {"tz": part["tz"] or attribute("moot.config.schedules:local_zone")()}
    own["hooks"] = part["hooks"] if any(part["hooks"].values()) else {}
    if own["directory"]:
        own["directory"] = str(Path(own["directory"]).expanduser())
    return Job(name, **own | more)


def _budget(name: str, part: _Part) -> Budget:
    own = part | {"cost": round(part["cost"] * NANO), "tz": part["tz"] or attribute("moot.config.schedules:local_zone")()}
    return Budget(name, **own)


def _host(name: str, part: _Part) -> HostSettings:
    own = part | {"identity": str(Path(part["identity"]).expanduser()) if part["identity"] else ""}
    return HostSettings(name, **_tupled(own))


def _watcher(name: str, part: _Part) -> TaskWatcher:
    directory = part["directory"]
    more: _Part = {key: frozenset(part[key]) for key in ("events", "statuses", "tags")}
    more["directory"] = str(Path(directory).expanduser()) if directory else ""
    return TaskWatcher(name, **part | more)


def _custom_tool(name: str, part: _Part) -> CommandTool:
    command = part["command"] if isinstance(part["command"], str) else tuple(cast("list[str]", part["command"]))
    part = part | {"command": command, "parameters": schema_of(part["parameters"], command)}
    return CommandTool(name, **part)


def _commands(section: _Part, home: Path) -> Mapping[str, CommandDefinition]:
    if not section:
        return {}
    define = attribute("moot.config.commands:definition")
    return {name: define(name, part, str(home / "config.yaml")) for name, part in section.items()}


def _tupled(part: _Part) -> _Part:
    return {key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for key, value in part.items()}


_PROVIDER = ("dialect", "base_url", "api_key", "headers", "models", "plan", "priority", "enabled", "timeout")


def _provider(name: str, part: _Part) -> ProviderSettings:
    known = {key: part[key] for key in _PROVIDER}
    return ProviderSettings(name=name, **known, options={key: value for key, value in part.items() if key not in _PROVIDER})


def agent_of(name: str, part: _Part) -> Agent:
    """Return the agent defined by a complete, validated entry of `agents`."""
    fields = {key: value for key, value in _tupled(part).items() if key != "reasoning"}
    fields |= {"history": HistorySettings(**part["history"]), "prompt": PromptSettings(**_tupled(part["prompt"]))}
    reasoning = part["reasoning"]
    fields["allowed_uris"] = tuple(str(Path(folder).expanduser()) for folder in part["allowed_uris"])
    fields["hooks"] = run_hooks(part["hooks"])
    return Agent(name, **fields, effort=reasoning["effort"], show_reasoning=reasoning["show"])
