"""Conversations and projects: their values and their interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from moot.types.canonical import JsonObject, empty
from moot.types.message import Message
from moot.types.token import LOCAL_USER
from moot.types.usage import Usage

Item = TypeVar("Item", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: Sequence[Item]
    next_cursor: str | None = None
    """Cursor of the next page, to pass back unchanged; None = this is the last page."""


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


class Conversations(Protocol):
    """Conversations and their messages. Lists are sorted by latest activity first."""

    async def create(self, conversation: Conversation) -> Conversation:
        """Store a conversation and return it with its `no` and times. Raise Busy if its id or key exists."""
        ...

    async def get(self, reference: str) -> Conversation:
        """Find by id, client id, unique prefix (4 characters or more) or exact title. Raise NotFound, naming candidates if ambiguous."""
        ...

    async def by_key(self, key: str) -> Conversation | None:
        """Find by key. Keys are unique per owner; in the view of all owners, only the local user's keys are found."""
        ...

    async def by_client_id(self, client_id: str) -> Conversation | None:
        """Find by exact id or client id."""
        ...

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        directory: str | None = None,
        project: str | None = None,
        deleted: bool = False,
        archived: bool | None = False,
        query: str = "",
        parent: str | None = None,
    ) -> Page[Conversation]:
        """List the conversations whose title, model, agent, origin or directory contains each word of the query, ignoring case.

        With `parent`, list only its sub-agents' conversations. Raise UsageError for an invalid cursor.
        """
        ...

    async def rename(self, id: str, title: str, source: Literal["first-line", "model", "user"]) -> Conversation:
        """Set the title, unless the user has set one and `source` is not `user`."""
        ...

    async def set_settings(self, id: str, settings: JsonObject) -> Conversation:
        """Replace the settings, except `grants`, which only answers and `Grants` change."""
        ...

    async def update(
        self,
        id: str,
        *,
        agent: tuple[str, str] | None = None,
        model: str | None = None,
        archived: bool | None = None,
        project: str | None = None,
        touch: bool = False,
    ) -> Conversation:
        """Set the given fields; `agent` is (agent, agent_type). `touch` sets the last activity to now.

        Agent and model set here persist: a run in progress does not replace them by its own.
        """
        ...

    async def delete(self, id: str, *, restore: bool = False) -> Conversation:
        """Mark as deleted, or restore, with a `tree` event; data is lost only in a purge. Raise Busy while a run is running."""
        ...

    async def branch(self, id: str, *, head: str | None = None, limit: int | None = None) -> list[Message]:
        """Return the last `limit` messages of the shown branch (or the one ending with `head`), oldest first, live ones folded to date."""
        ...

    async def message(self, reference: str, *, conversation: str | None = None) -> Message:
        """Return a message, a live one folded to date. With `conversation`, client ids are accepted too. Raise NotFound."""
        ...

    async def add_message(
        self, message: Message, *, raw: bytes | None = None, body: JsonObject | None = None, move_head: bool = True
    ) -> Message:
        """Store a complete message outside any run (an import, an edit, a system line) as one `message` event."""
        ...


class Projects(Protocol):
    """Projects. `default` always exists; each owner has their own."""

    async def get(self, reference: str) -> Project:
        """Find by id or exact name. Raise NotFound."""
        ...

    async def at(self, root_path: str | None) -> Project:
        """Return the project with that root, or the default project if there is none."""
        ...

    async def list(self, *, limit: int = 50, cursor: str | None = None, query: str = "") -> Page[Project]:
        """List the projects whose name, description or root contains each word of the query: the default project, then by name.

        Raise UsageError for an invalid cursor.
        """
        ...

    async def create(self, project: Project) -> Project:
        """Store a project and return it with its creation time. Raise Busy if its id or root exists."""
        ...

    async def update(
        self,
        id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        root_path: str | None = None,
        context: str | None = None,
        rules: str | None = None,
    ) -> Project:
        """Set the given fields; an empty root removes it. Raise NotFound, or Busy if another project has that root."""
        ...
