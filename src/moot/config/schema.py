"""The schema of the configuration file: every key with its type and limits. Unknown keys are rejected."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.types.agent import Mode
from moot.types.command_tool import COMMAND_CHARACTERS, problem_of, schema_of
from moot.types.cron import DeliveryMode
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.model import Effort
from moot.types.task import EVENTS, NAME_CHARACTERS, VARIABLES, TaskEvent, TaskStatus
from moot.types.templates import fields_in
from moot.types.webhook import WEBHOOK_EVENTS, WebhookEvent

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: Any) -> Any:
    """Convert a duration such as `5m`, `90s` or `1h` to seconds. Return other types unchanged; the field's validation checks them."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError("Expected seconds or a duration such as 90s, 5m or 1h.")
    return float(match[1]) * _SECONDS[match[2]]


def valid_notify(value: Any) -> Any:
    """Validate `ui.notify`."""
    words = cast("list[object]", value) if isinstance(value, list) else []
    if not (words and all(isinstance(word, str) for word in words)) and (words or value not in (True, False, "bell", "osc", "off")):
        raise ValueError("Expected bell, osc, off, true, or a program and its arguments as a list ([notify-send, moot]).")
    return cast("Any", value)


Notify = Annotated[Any, BeforeValidator(valid_notify)]
Duration = Annotated[float, BeforeValidator(seconds), Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]

_PORT = r"(:\d{1,5})?"
HostName = Annotated[str, Field(pattern=rf"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]){_PORT}$")]
Origin = Annotated[str, Field(pattern=rf"^https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]){_PORT}$")]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ModelsPart(_Part):
    main: str = ""
    small: str = ""
    compaction: str = ""
    image: str = ""
    transcription: str = ""
    fallback: list[str] = []


class ProviderPart(_Part):
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


class ReasoningPart(_Part):
    effort: Effort | None = None
    show: bool = True


class HistoryPart(_Part):
    max_tokens: int | None = Field(default=None, ge=1)
    compact_at: float = Field(default=0.8, gt=0, le=1)
    keep: Count = 6


def one_test(value: Any) -> Any:
    """Validate `skip_if`, which is the word `empty` or a mapping with one key. Return other types unchanged; the field checks them."""
    if isinstance(value, str):
        if value != "empty":
            raise ValueError("Expected empty, or one of {empty: true}, {equals: ..}, {contains: ..} and {matches: ..}.")
        return {"empty": True}
    if isinstance(value, dict) and len(cast("dict[str, object]", value)) != 1:
        raise ValueError("Expected exactly one of empty, equals, contains and matches.")
    return cast("Any", value)


class SkipIfPart(_Part):
    empty: Literal[True] | None = None
    equals: str | None = None
    contains: str | None = None
    matches: str | None = None


class RunHookPart(_Part):
    tool: str
    arguments: dict[str, Any] = {}
    skip_if: Annotated[SkipIfPart | None, BeforeValidator(one_test)] = None


class AgentHooksPart(_Part):
    before_run: list[RunHookPart] = []
    after_run: list[RunHookPart] = []


def valid_expression(value: Any) -> Any:
    """Validate a matcher, which is a regular expression or `*`."""
    if isinstance(value, str) and value != "*":
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"Expected a regular expression ({error}).") from None
    return value


class HookCommandPart(_Part):
    type: Literal["command"] = "command"
    command: str = Field(min_length=1)
    timeout: Annotated[Duration, Field(gt=0)] = 60.0
    required: bool = False


class HookGroupPart(_Part):
    matcher: Annotated[str, BeforeValidator(valid_expression)] = ""
    hooks: list[HookCommandPart] = []


class HooksPart(_Part):
    PreToolUse: list[HookGroupPart] = []
    PostToolUse: list[HookGroupPart] = []
    UserPromptSubmit: list[HookGroupPart] = []
    Stop: list[HookGroupPart] = []
    SubagentStop: list[HookGroupPart] = []
    SessionStart: list[HookGroupPart] = []
    SessionEnd: list[HookGroupPart] = []
    PreCompact: list[HookGroupPart] = []
    Notification: list[HookGroupPart] = []


class PromptPart(_Part):
    parts: list[str] | None = None
    variables: dict[Annotated[str, Field(pattern=r"^[\w.-]{1,64}$")], str] = {}
    max_tokens: int | None = Field(default=None, ge=100)


class AgentPart(_Part):
    description: str = ""
    agent_type: str = "moot"
    model: str = "main"
    instructions: str = ""
    rules: str = ""
    tools: list[str] | None = None
    allowed_uris: list[Annotated[str, Field(pattern=r"^~?/")]] = []
    skills: list[str] = []
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


class McpPart(_Part):
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = Field(default="", pattern=r"^(https?://[^\s]+)?$")
    protocol: Literal["http", "sse"] = "http"
    headers: dict[str, str] = {}
    enabled: bool = True
    trust_hints: bool = False


class RulePart(_Part):
    tool: str
    action: Literal["allow", "ask", "deny"]
    match: str = "*"
    always: Literal["offer", "never"] = "offer"
    network: bool = False


class PermissionsPart(_Part):
    mode: Literal["ask", "edits", "plan", "auto"] = "ask"
    rules: list[RulePart] = []
    timeout: Duration = 300.0
    unattended: Literal["deny"] = "deny"


class SandboxPart(_Part):
    enabled: bool = True
    network: bool = False
    writable: list[Annotated[str, Field(pattern=r"^~?/.*[^/]")]] = []
    required: bool = False


class ServerPart(_Part):
    host: str = "127.0.0.1"
    port: int = Field(default=4747, ge=0, le=65535)
    allowed_hosts: list[HostName] = []
    allowed_origins: list[Origin] = []
    max_body: int = Field(default=32 * 1024 * 1024, ge=64 * 1024)


class StoragePart(_Part):
    url: str = "sqlite"
    durability: Literal["normal", "full"] = "normal"
    seal_after: Duration = 600.0


class KeepingPart(_Part):
    keep_days: Count = 0
    archived_days: Count = 0


class RetentionPart(KeepingPart):
    trash_days: Count = 30
    projects: dict[str, KeepingPart] = {}


class ImportsPart(_Part):
    watch: bool = False


class CronPart(_Part):
    prompt: str
    cron: str = ""
    every: Duration = 0.0
    at: str = ""
    tz: str = ""
    """Time zone; empty for that of this machine."""
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
            raise ValueError("Expected conversation or fresh, not both.")
        if not self.prompt.strip():
            raise ValueError("The prompt is empty.")
        try:
            attribute("moot.config.schedules:check_schedule")(self.cron, self.every, self.at, self.tz or "UTC")
        except UsageError as error:
            raise ValueError(error.advice()) from error
        return self


JobName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class TaskWatcherPart(_Part):
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


class LimitsPart(_Part):
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


class UiPart(_Part):
    theme: Literal["auto", "dark", "light", "no-color"] = "auto"
    animations: bool = True
    notify: Notify = True
    progress: bool = False
    title: bool = False
    statusline: list[str] = []


class WebhookPart(_Part):
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


Text = Annotated[str, Field(max_length=COMMAND_CHARACTERS)]


def as_words(value: Any) -> Any:
    """Validate `command`, which is a shell line or a list of words."""
    words = cast("list[object]", value) if isinstance(value, list) else []
    if not all(isinstance(word, str) for word in words) or not (words or isinstance(value, str)):
        raise ValueError("Expected a shell line, or a command as a list of words ([ruff, check, '{{path}}']).")
    return cast("Any", value)


class CustomToolPart(_Part):
    """A custom tool: an entry of `tools` with a command."""

    command: Annotated[Any, BeforeValidator(as_words)]
    description: str = Field(min_length=1, max_length=2_000)
    parameters: dict[str, Any] = {}
    cwd: str = Field(default="", max_length=1_000)
    timeout: Annotated[Duration, Field(gt=0, le=3_600)] = 120.0
    network: bool = False
    read_only: bool = False
    env: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    max_output: int = Field(default=TOOL_OUTPUT_CHARACTERS, ge=1_000, le=TOOL_OUTPUT_CHARACTERS)
    hidden: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        command = self.command if isinstance(self.command, str) else tuple(cast("list[str]", self.command))
        if not "".join(command).strip():
            raise ValueError("The command is empty.")
        if self.cwd.startswith(("/", "~")) or ".." in self.cwd.split("/"):
            raise ValueError("Expected a cwd below the conversation's folder, without '..'.")
        if self.network and self.read_only:
            raise ValueError("A tool with read_only can't have network, because it runs without approval.")
        if self.parameters.get("type", "object") != "object":
            raise ValueError("Expected parameters as a JSON Schema of the type object.")
        schema = schema_of(self.parameters, command)
        fault = attribute("moot.guard.json_schema_evaluation:schema_fault")(schema)
        if problem := fault or problem_of(command, schema):
            raise ValueError(f"parameters: {fault}" if fault else problem)
        return self


def is_custom_tool(value: Any) -> bool:
    """Return True if an entry of `tools` defines a custom tool, and does not contain settings of another tool."""
    return isinstance(value, CustomToolPart) or (isinstance(value, dict) and "command" in value)


SETTINGS, CUSTOM = "settings", "custom"
"""The kinds of entries of `tools`. Pydantic includes them in the paths of errors."""

ToolPart = Annotated[
    Annotated[CustomToolPart, Tag(CUSTOM)] | Annotated[dict[str, Any], Tag(SETTINGS)],
    Discriminator(lambda value: CUSTOM if is_custom_tool(value) else SETTINGS),
]


class OutgoingWebhookPart(_Part):
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


class Configuration(_Part):
    """The complete configuration file."""

    models: ModelsPart = ModelsPart()
    providers: dict[str, ProviderPart] = {}
    agents: dict[str, AgentPart] = {}
    mcp: dict[str, McpPart] = {}
    permissions: PermissionsPart = PermissionsPart()
    sandbox: SandboxPart = SandboxPart()
    hooks: HooksPart = HooksPart()
    cron: dict[JobName, CronPart] = {}
    task_watchers: dict[JobName, TaskWatcherPart] = {}
    webhooks: dict[str, WebhookPart] = {}
    outgoing_webhooks: dict[JobName, OutgoingWebhookPart] = {}
    channels: dict[str, dict[str, Any]] = {}
    commands: dict[str, Any] = {}
    tools: dict[Annotated[str, Field(max_length=200)], ToolPart] = {}
    server: ServerPart = ServerPart()
    storage: StoragePart = StoragePart()
    retention: RetentionPart = RetentionPart()
    imports: ImportsPart = ImportsPart()
    limits: LimitsPart = LimitsPart()
    ui: UiPart = UiPart()


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
    ("mcp", "*"): McpPart,
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
    ("cron", "*"): CronPart,
    ("cron", "*", "hooks"): AgentHooksPart,
    ("cron", "*", "hooks", "*", "*"): RunHookPart,
    ("cron", "*", "hooks", "*", "*", "skip_if"): SkipIfPart,
    ("task_watchers", "*"): TaskWatcherPart,
    ("tools", "*"): CustomToolPart,
    ("limits",): LimitsPart,
    ("ui",): UiPart,
}
"""The pydantic models of the sections, by path. `*` matches any name or index."""



def fields_at(path: tuple[str, ...]) -> list[str]:
    """Return the keys known at a path; empty if any key is allowed there."""
    for shape, part in SHAPES.items():
        if len(shape) == len(path) and all(step in ("*", at) for step, at in zip(shape, path, strict=True)):
            return list(part.model_fields)
    return []
