"""The schema of the configuration file: every key with its type and limits. Unknown keys are rejected."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from moot.types.model import Effort

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: Any) -> Any:
    """Convert a duration such as `5m`, `90s` or `1h` to seconds. Other types are left for the field's validation."""
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


class AgentHooksPart(_Part):
    before_run: list[Any] = []
    after_run: list[Any] = []


class AgentPart(_Part):
    description: str = ""
    agent_type: str = "moot"
    model: str = "main"
    instructions: str = ""
    rules: str = ""
    tools: list[str] | None = None
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


class McpPart(_Part):
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = Field(default="", pattern=r"^(https?://[^\s]+)?$")
    protocol: Literal["http", "sse"] = "http"
    headers: dict[str, str] = {}
    enabled: bool = True


class RulePart(_Part):
    tool: str
    action: Literal["allow", "ask", "deny"]
    match: str = "*"
    always: Literal["offer", "never"] = "offer"


class PermissionsPart(_Part):
    mode: Literal["ask", "edits", "plan", "auto"] = "ask"
    rules: list[RulePart] = []
    timeout: Duration = 300.0
    unattended: Literal["deny"] = "deny"


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
    """Dollars."""
    tokens: Count = 0
    uploads: Count = 1 << 30
    seconds: Duration = 0.0


class UiPart(_Part):
    theme: Literal["auto", "dark", "light", "no-color"] = "auto"
    animations: bool = True
    notify: Notify = True
    progress: bool = False
    title: bool = False
    statusline: list[str] = []


class Configuration(_Part):
    """The whole file."""

    models: ModelsPart = ModelsPart()
    providers: dict[str, ProviderPart] = {}
    agents: dict[str, AgentPart] = {}
    mcp: dict[str, McpPart] = {}
    permissions: PermissionsPart = PermissionsPart()
    hooks: dict[str, Any] = {}
    cron: dict[str, Any] = {}
    webhooks: dict[str, Any] = {}
    channels: dict[str, dict[str, Any]] = {}
    commands: dict[str, Any] = {}
    tools: dict[str, dict[str, Any]] = {}
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
    ("mcp", "*"): McpPart,
    ("permissions",): PermissionsPart,
    ("permissions", "rules", "*"): RulePart,
    ("server",): ServerPart,
    ("storage",): StoragePart,
    ("retention",): RetentionPart,
    ("retention", "projects", "*"): KeepingPart,
    ("imports",): ImportsPart,
    ("limits",): LimitsPart,
    ("ui",): UiPart,
}
"""The models of the sections, by path. `*` matches any name or index."""


def fields_at(path: tuple[str, ...]) -> list[str]:
    """Return the keys known at a path, or none if any key is allowed there."""
    for shape, part in SHAPES.items():
        if len(shape) == len(path) and all(step in ("*", at) for step, at in zip(shape, path, strict=True)):
            return list(part.model_fields)
    return []
