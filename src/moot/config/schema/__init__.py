"""The schema of the configuration file: every key with its type and limits. Unknown keys are rejected."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from moot.config.schema.basics import (
    CheckLine,
    Count,
    Duration,
    FilePattern,
    HostName,
    Notify,
    Origin,
    Part,
    one_or_many,
    one_test,
    valid_expression,
)
from moot.config.schema.definitions import (
    CommandName,
    CommandParameterPart,
    CommandPart,
    CustomToolPart,
    MacroName,
    StepCheckPart,
    ToolPart,
    WorkflowStepPart,
)
from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.types.agent import Mode
from moot.types.cron import JOB_COMMANDS, DeliveryMode
from moot.types.limits import Period
from moot.types.model import Effort
from moot.types.task import EVENTS, NAME_CHARACTERS, VARIABLES, TaskEvent, TaskStatus
from moot.types.templates import fields_in
from moot.types.webhook import WEBHOOK_EVENTS, WebhookEvent


class ModelsPart(Part):
    main: str = ""
    small: str = ""
    compaction: str = ""
    image: str = ""
    transcription: str = ""
    fallback: list[str] = []


class ProviderPart(Part):
    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    dialect: str = ""
    base_url: str = Field(default="", pattern=r"^(https?://[^\s]+)?$")
    api_key: str = ""
    headers: dict[str, str] = {}
    models: dict[str, dict[str, Any]] = {}
    plan: str = ""
    priority: int | None = None
    enabled: bool = True
    timeout: Duration = 600.0


class ReasoningPart(Part):
    effort: Effort | None = None
    show: bool = True


class HistoryPart(Part):
    max_tokens: int | None = Field(default=None, ge=1)
    compact_at: float = Field(default=0.8, gt=0, le=1)
    keep: Count = 6


class SkipIfPart(Part):
    empty: Literal[True] | None = None
    equals: str | None = None
    contains: str | None = None
    matches: str | None = None


class RunHookPart(Part):
    tool: str
    arguments: dict[str, Any] = {}
    skip_if: Annotated[SkipIfPart | None, BeforeValidator(one_test)] = None


class AgentHooksPart(Part):
    before_run: list[RunHookPart] = []
    after_run: list[RunHookPart] = []


class HookCommandPart(Part):
    type: Literal["command"] = "command"
    command: str = Field(min_length=1)
    timeout: Annotated[Duration, Field(gt=0)] = 60.0
    required: bool = False


class HookGroupPart(Part):
    matcher: Annotated[str, BeforeValidator(valid_expression)] = ""
    hooks: list[HookCommandPart] = []


class HooksPart(Part):
    PreToolUse: list[HookGroupPart] = []
    PostToolUse: list[HookGroupPart] = []
    UserPromptSubmit: list[HookGroupPart] = []
    Stop: list[HookGroupPart] = []
    SubagentStop: list[HookGroupPart] = []
    SessionStart: list[HookGroupPart] = []
    SessionEnd: list[HookGroupPart] = []
    PreCompact: list[HookGroupPart] = []
    Notification: list[HookGroupPart] = []


class PromptPart(Part):
    parts: list[str] | None = None
    variables: dict[Annotated[str, Field(pattern=r"^[\w.-]{1,64}$")], str] = {}
    max_tokens: int | None = Field(default=None, ge=100)


class AgentPart(Part):
    description: str = ""
    agent_type: str = "moot"
    model: str = "main"
    instructions: str = ""
    rules: str = ""
    tools: list[str] | None = None
    allowed_uris: list[Annotated[str, Field(pattern=r"^~?/")]] = []
    skills: list[str] | None = None
    mcp: list[str] | None = None
    role: Literal["read", "write"] = "write"
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_steps: int | None = Field(default=None, ge=1)
    reasoning: ReasoningPart = ReasoningPart()
    history: HistoryPart = HistoryPart()
    fallback: list[str] = []
    hooks: AgentHooksPart = AgentHooksPart()
    options: dict[str, Any] = {}
    prompt: PromptPart = PromptPart()
    agents: list[str] = []
    isolation: Literal["none", "worktree"] = "none"
    output_format: str = ""
    hidden: bool = False
    beta: bool = False
    default: bool = False
    version: str = ""
    forked_from: str = ""


class McpPart(Part):
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = Field(default="", pattern=r"^(https?://[^\s]+)?$")
    protocol: Literal["http", "sse"] = "http"
    headers: dict[str, str] = {}
    enabled: bool = True
    trust_hints: bool = False


class SkillsPart(Part):
    indexes: list[Annotated[str, Field(pattern=r"^(https?://[^\s]+|~?/.+)$")]] = []


class RulePart(Part):
    tool: str
    action: Literal["allow", "ask", "deny"]
    match: str = "*"
    always: Literal["offer", "never"] = "offer"
    network: bool = False


class PermissionsPart(Part):
    mode: Literal["ask", "edits", "plan", "auto"] = "ask"
    rules: list[RulePart] = []
    timeout: Duration | None = None
    unattended: Literal["deny"] = "deny"


class SandboxPart(Part):
    enabled: bool = True
    network: bool = False
    writable: list[Annotated[str, Field(pattern=r"^~?/.*[^/]")]] = []
    required: bool = False


class ServerPart(Part):
    host: str = "127.0.0.1"
    port: int = Field(default=4747, ge=0, le=65535)
    allowed_hosts: list[HostName] = []
    allowed_origins: list[Origin] = []
    max_body: int = Field(default=32 * 1024 * 1024, ge=64 * 1024)
    workers: int = Field(default=1, ge=1, le=64)
    push_contact: str = Field(default="mailto:moot@example.com", pattern=r"^(mailto:[^\s@]+@[^\s@]+|https://[^\s]+)$", max_length=200)


class StoragePart(Part):
    url: str = "sqlite"
    durability: Literal["normal", "full"] = "normal"
    seal_after: Duration = 600.0


class KeepingPart(Part):
    keep_days: Count = 0
    archived_days: Count = 0


class RetentionPart(KeepingPart):
    trash_days: Count = 30
    projects: dict[str, KeepingPart] = {}


class ImportsPart(Part):
    watch: bool = False


class HostPart(Part):
    ssh: str = Field(pattern=r"^([A-Za-z0-9_.+][A-Za-z0-9_.+-]*@)?[A-Za-z0-9_][A-Za-z0-9_.:%-]*$", max_length=255)
    """Destination for ssh: a host name or an alias from `~/.ssh/config`, with or without a user name."""
    port: int | None = Field(default=None, ge=1, le=65535)
    identity: str = Field(default="", pattern=r"^(~?/.*)?$")
    home: str = Field(default="", pattern=r"^(/[^\x00-\x1f\x7f]*)?$")
    """Absolute path; empty for the user's home folder on that machine."""
    agents: list[str] = []
    timeout: Annotated[Duration, Field(gt=0)] = 60.0


class CronPart(Part):
    prompt: str
    cron: str = ""
    every: Duration = 0.0
    at: str = ""
    tz: str = ""
    """Time zone; empty for this machine's time zone."""
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    conversation: str | None = None
    fresh: bool = False
    directory: str = Field(default="", pattern=r"^(~?/.*)?$")
    project: str = ""
    deliver: str = Field(default="log", pattern=r"^[a-z][a-z0-9_-]*(:.+)?$")
    delivery: DeliveryMode = "always"
    wake: bool = True
    catch_up: bool = True
    retries: int = Field(default=0, ge=0, le=10)
    unattended: Literal["deny", "ask"] = "deny"
    hooks: AgentHooksPart = AgentHooksPart()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.fresh and self.conversation is not None:
            raise ValueError("Expected either `conversation` or `fresh`, not both.")
        if not self.prompt.strip():
            raise ValueError("The prompt is empty.")
        first = self.prompt.split()[0]
        if self.prompt[0] == "/" and first[1:] in JOB_COMMANDS and (self.retries or not self.wake or self.delivery == "tool"):
            raise ValueError(f"A job that runs {first} can't have `retries`, `wake: false` or `delivery: tool`, because it runs no agent.")
        try:
            attribute("moot.config.schedules:check_schedule")(self.cron, self.every, self.at, self.tz or "UTC")
        except UsageError as error:
            raise ValueError(error.advice()) from error
        return self


JobName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class TaskWatcherPart(Part):
    prompt: str = Field(min_length=1, max_length=100_000)
    project: str = ""
    events: list[TaskEvent] = Field(default=[*EVENTS], min_length=1)
    statuses: list[TaskStatus] = []
    tags: list[str] = []
    assignee: str = Field(default="", max_length=NAME_CHARACTERS)
    debounce: Duration = Field(default=5.0, le=86_400)
    max_runs: int = Field(default=1, ge=1, le=100)
    fresh: bool = False
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    directory: str = Field(default="", pattern=r"^(~?/.*)?$")
    unattended: Literal["deny", "ask"] = "deny"
    enabled: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        if unknown := next((name for name in fields_in(self.prompt) if name not in VARIABLES), None):
            raise ValueError(f"Unknown variable {unknown!r} in the prompt. Known: {', '.join(sorted(VARIABLES))}")
        return self


class LimitsPart(Part):
    runs_per_user: Count = 3
    subagents_per_user: Count = 20
    subagents_per_run: Count = 8
    depth: Count = 3
    steps: Count = 50
    repeats: Count = 3
    per_provider: Count = 0
    cached_conversations: Count = 20
    cost: float = Field(default=0.0, ge=0, le=1_000_000, allow_inf_nan=False)
    """Maximum cost in US dollars; 0 for no limit."""
    tokens: Count = 0
    uploads: Count = 1 << 30
    seconds: Duration = 0.0
    wait_for_reset: Duration = 0.0


class BudgetPart(Part):
    per: Period
    cost: float = Field(default=0.0, ge=0, le=1_000_000, allow_inf_nan=False)
    """Maximum cost in US dollars; 0 for no limit."""
    tokens: Count = 0
    user: str = ""
    project: str = ""
    agent: str = ""
    tz: str = ""
    """Time zone; empty for this machine's time zone."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.cost and not self.tokens:
            raise ValueError("Expected `cost` or `tokens`, or both.")
        try:
            attribute("moot.config.schedules:check_zone")(self.tz or "UTC")
        except UsageError as error:
            raise ValueError(error.advice()) from error
        return self


class UiPart(Part):
    theme: Literal["auto", "dark", "light", "no-color"] = "auto"
    animations: bool = True
    notify: Notify = True
    progress: bool = False
    title: bool = False
    statusline: list[str] = []
    vi: bool = False


class TelemetryPart(Part):
    enabled: bool = False
    endpoint: str = Field(default="", pattern=r"^(https?://[^\s@]+)?$")
    headers: dict[str, str] = {}
    content: bool = False
    propagate: bool = False


class WebhookPart(Part):
    prompt: str = Field(min_length=1)
    secret: str = ""
    secret_file: str = ""
    auth: Literal["hmac", "bearer"] = "hmac"
    tolerance: Duration = 300.0
    delivery: str = ""
    conversation: str = ""
    directory: str = ""
    agent: str = ""
    model: str = ""
    unattended: Literal["deny", "ask"] = "deny"
    enabled: bool = True


class OutgoingWebhookPart(Part):
    url: str = Field(pattern=r"^https?://[^\s]+$")
    secret: str = ""
    secret_file: str = ""
    events: list[WebhookEvent] = list(WEBHOOK_EVENTS)
    project: str = ""
    agent: str = ""
    conversation: str = ""
    text: bool = False
    private: bool = False
    timeout: Annotated[Duration, Field(gt=0, le=60)] = 10.0
    enabled: bool = True


class Configuration(Part):
    """The whole file."""

    models: ModelsPart = ModelsPart()
    providers: dict[str, ProviderPart] = {}
    agents: dict[str, AgentPart] = {}
    mcp: dict[str, McpPart] = {}
    skills: SkillsPart = SkillsPart()
    permissions: PermissionsPart = PermissionsPart()
    sandbox: SandboxPart = SandboxPart()
    hooks: HooksPart = HooksPart()
    formatters: dict[FilePattern, list[CheckLine]] = {}
    checks: dict[FilePattern, list[CheckLine]] = {}
    cron: dict[JobName, CronPart] = {}
    task_watchers: dict[JobName, TaskWatcherPart] = {}
    webhooks: dict[str, WebhookPart] = {}
    outgoing_webhooks: dict[JobName, OutgoingWebhookPart] = {}
    channels: dict[str, dict[str, Any]] = {}
    commands: dict[CommandName, CommandPart] = {}
    macros: dict[MacroName, Annotated[str, Field(min_length=1)]] = {}
    tools: dict[Annotated[str, Field(max_length=200)], ToolPart] = {}
    server: ServerPart = ServerPart()
    storage: StoragePart = StoragePart()
    retention: RetentionPart = RetentionPart()
    imports: ImportsPart = ImportsPart()
    hosts: dict[JobName, HostPart] = {}
    limits: LimitsPart = LimitsPart()
    budgets: dict[JobName, BudgetPart] = {}
    keys: dict[str, Annotated[list[str], BeforeValidator(one_or_many)]] = {}
    ui: UiPart = UiPart()
    telemetry: TelemetryPart = TelemetryPart()


SHAPES: dict[tuple[str, ...], type[BaseModel]] = {
    (): Configuration,
    ("models",): ModelsPart,
    ("providers", "*"): ProviderPart,
    ("agents", "*"): AgentPart,
    ("agents", "*", "reasoning"): ReasoningPart,
    ("agents", "*", "history"): HistoryPart,
    ("agents", "*", "hooks"): AgentHooksPart,
    ("agents", "*", "prompt"): PromptPart,
    ("agents", "*", "hooks", "*", "*"): RunHookPart,
    ("agents", "*", "hooks", "*", "*", "skip_if"): SkipIfPart,
    ("hooks",): HooksPart,
    ("hooks", "*", "*"): HookGroupPart,
    ("hooks", "*", "*", "hooks", "*"): HookCommandPart,
    ("commands", "*"): CommandPart,
    ("commands", "*", "parameters", "*"): CommandParameterPart,
    ("commands", "*", "steps", "*"): WorkflowStepPart,
    ("commands", "*", "steps", "*", "check"): StepCheckPart,
    ("mcp", "*"): McpPart,
    ("skills",): SkillsPart,
    ("permissions",): PermissionsPart,
    ("permissions", "rules", "*"): RulePart,
    ("sandbox",): SandboxPart,
    ("webhooks", "*"): WebhookPart,
    ("outgoing_webhooks", "*"): OutgoingWebhookPart,
    ("server",): ServerPart,
    ("storage",): StoragePart,
    ("retention",): RetentionPart,
    ("retention", "projects", "*"): KeepingPart,
    ("imports",): ImportsPart,
    ("hosts", "*"): HostPart,
    ("cron", "*"): CronPart,
    ("cron", "*", "hooks"): AgentHooksPart,
    ("cron", "*", "hooks", "*", "*"): RunHookPart,
    ("cron", "*", "hooks", "*", "*", "skip_if"): SkipIfPart,
    ("task_watchers", "*"): TaskWatcherPart,
    ("tools", "*"): CustomToolPart,
    ("limits",): LimitsPart,
    ("budgets", "*"): BudgetPart,
    ("ui",): UiPart,
    ("telemetry",): TelemetryPart,
}
"""The pydantic models of the sections, keyed by path. `*` matches any name or index."""


def fields_at(path: tuple[str, ...]) -> list[str]:
    """Return the keys known at a path; empty if any key is allowed there."""
    for shape, part in SHAPES.items():
        if len(shape) == len(path) and all(step in ("*", at) for step, at in zip(shape, path, strict=True)):
            return list(part.model_fields)
    return []
