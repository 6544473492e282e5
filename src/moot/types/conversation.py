"""The durable, ordered record of one exchange of thoughts, and the folder it lies in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.types.canonical import JsonObject, empty
from moot.types.token import LOCAL_USER
from moot.types.usage import Usage

TitleSource: TypeAlias = Literal["none", "first-line", "model", "user"]

DEFAULT_PROJECT = "default"
"""The id of the project that always exists."""


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str
    description: str = ""
    root_path: str | None = None
    """Absolute; unique when set."""
    context: str = ""
    rules: str = ""
    created_at: int = 0
    """ms since the epoch, as all listing times."""
    owner: str = LOCAL_USER


@dataclass(frozen=True, slots=True)
class Conversation:
    """The row of `conversation`; sums change only when a run ends."""

    id: str
    no: int = 0
    """The integer that the log is keyed by; 0 = not stored yet."""
    project: str = DEFAULT_PROJECT
    """Empty in one that is to be stored: the project whose root holds the directory."""
    key: str | None = None
    """Unique name to find or create it by, such as `discord:USER` or `cron:NAME`."""
    client_id: str | None = None
    title: str = ""
    title_source: TitleSource = "none"
    agent: str = "default"
    agent_type: str = "moot"
    model: str = ""
    """`model@provider` that it was last run with; empty = the agent's own."""
    parent: str | None = None
    parent_tool_call: str | None = None
    forked_from: str | None = None
    forked_from_message: str | None = None
    directory: str = ""
    """Absolute; where relative paths and commands start."""
    allowed_uris: tuple[str, ...] = ()
    """Absolute folders that tools may touch; empty = `directory` alone."""
    is_task_finished: bool = False
    settings: JsonObject = field(default_factory=empty)
    head: str | None = None
    """The message that the shown branch ends with."""
    origin: JsonObject | None = None
    """`{format, source_id, path}` of an import."""
    message_count: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Nano-dollars of the priced runs; None = none was priced."""
    unpriced_runs: int = 0
    context_usage: float | None = None
    """0 to 1; None = unknown."""
    created_at: int = 0
    updated_at: int = 0
    """The last activity, ms."""
    archived_at: int | None = None
    deleted_at: int | None = None
    owner: str = LOCAL_USER
    """Whose it is, and with it all that hangs on it: messages, runs, approvals. Never changes."""

    @property
    def came_from(self) -> str:
        """The format of what it was brought in from; empty for one that began here."""
        return str((self.origin or {}).get("format") or "")

    @property
    def follows(self) -> bool:
        """Whether it follows a source that others write, so that it is gone on with in a copy. What was brought in whole is ours."""
        return self.origin is not None and "events" not in self.origin

    @property
    def next_model(self) -> str:
        """The model of the next prompt that names none; empty = the agent's own. What a source was made with need not be here."""
        return "" if self.follows else self.model
