"""Conversations and the projects that contain them."""

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
    """ms since the epoch, like all times in listings."""
    owner: str = LOCAL_USER


@dataclass(frozen=True, slots=True)
class Conversation:
    """A row of the `conversation` table; the sums change only when a run ends."""

    id: str
    no: int = 0
    """The integer key of its log; 0 = not stored yet."""
    project: str = DEFAULT_PROJECT
    """Empty when storing a new conversation = the project whose root contains the directory."""
    key: str | None = None
    """Unique name for find-or-create, such as `discord:USER` or `cron:NAME`."""
    client_id: str | None = None
    title: str = ""
    title_source: TitleSource = "none"
    agent: str = "default"
    agent_type: str = "moot"
    model: str = ""
    """`model@provider` of the last run; empty = the agent's default."""
    parent: str | None = None
    parent_tool_call: str | None = None
    forked_from: str | None = None
    forked_from_message: str | None = None
    directory: str = ""
    """Absolute base of relative paths and working directory of commands."""
    allowed_uris: tuple[str, ...] = ()
    """Absolute folders that tools may touch; empty = only `directory`."""
    is_task_finished: bool = False
    settings: JsonObject = field(default_factory=empty)
    head: str | None = None
    """The last message of the shown branch."""
    origin: JsonObject | None = None
    """`{format, source_id, path}` of an imported conversation."""
    message_count: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Nano-dollars of the priced runs; None = no run was priced."""
    unpriced_runs: int = 0
    context_usage: float | None = None
    """0 to 1; None = unknown."""
    created_at: int = 0
    updated_at: int = 0
    """Time of the last activity, ms."""
    archived_at: int | None = None
    deleted_at: int | None = None
    owner: str = LOCAL_USER
    """The owner of the conversation and of everything in it: messages, runs, approvals. Never changes."""

    @property
    def came_from(self) -> str:
        """The format it was imported from; empty if it was created here."""
        return str((self.origin or {}).get("format") or "")

    @property
    def follows(self) -> bool:
        """True if it mirrors a source that other programs write, so that prompts continue it in a copy. A complete recording is ours."""
        return self.origin is not None and "events" not in self.origin

    @property
    def next_model(self) -> str:
        """The default model of the next prompt; empty = the agent's. The model of a mirrored source may not be available here."""
        return "" if self.follows else self.model
