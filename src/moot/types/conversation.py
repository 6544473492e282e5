"""Conversations and projects: their values and their interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from moot.errors import UsageError
from moot.types.agent import Mode
from moot.types.approval import Grant
from moot.types.canonical import Json, JsonObject, empty
from moot.types.message import Message
from moot.types.model import Detail, Effort
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
"""The id of the default project, which always exists."""
LOCAL_HOST = "local"
"""The name of this machine in filters. No other machine can have this name."""


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str
    description: str = ""
    root_path: str | None = None
    """Absolute path of the project's folder, unique among projects; None = no folder."""
    context: str = ""
    rules: str = ""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch."""
    owner: str = LOCAL_USER
    updated_at: int = 0
    """Time of the last change of the project's settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSettings:
    """The settings of a conversation. They apply to every prompt that doesn't set its own. None = not set."""

    mode: Mode | None = None
    model: str | None = None
    effort: Effort | None = None
    detail: Detail | None = None
    """Detail of the images in a prompt that don't set their own."""
    agent: str | None = None
    tools: tuple[str, ...] | None = None
    """Names of the tools to offer; () = none."""
    allowed_uris: tuple[str, ...] | None = None
    network: bool | None = None
    """True if commands may use the network."""
    skills: tuple[str, ...] | None = None
    """Names of skills whose instructions are in the prompt, in this order; () = no skills."""
    web_search: bool | None = None
    """True to offer `web_search` and `fetch_url` and ask the model to cite its sources; False to not offer `web_search`."""

    @staticmethod
    def of(conversation: Conversation) -> ConversationSettings:
        """Return the settings of a conversation. Unknown keys and invalid values are left out."""
        found: JsonObject = {key: value for key, value in conversation.settings.items() if key in STORED_SETTINGS and _is_valid(key, value)}
        columns: JsonObject = {
            "agent": conversation.agent if conversation.agent != "default" else None,
            "allowed_uris": list(conversation.allowed_uris) or None,
        }
        values = {
            key: tuple(str(item) for item in cast("list[Json]", value)) if isinstance(value, list) else value
            for key, value in {**found, **columns}.items()
        }
        return ConversationSettings(**cast("dict[str, Any]", values))

    def to_json(self) -> JsonObject:
        """Return the settings that have a value."""
        values = {name: getattr(self, name) for name in SETTINGS}
        return {
            name: list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None
        }

    def for_run(self) -> JsonObject:
        """Return the effort, the tools and the web search in the form of `Prompt.settings`."""
        tools = None if self.tools is None else list[Json](self.tools) or False
        values: JsonObject = {"effort": self.effort, "tools": tools, "web_search": self.web_search}
        return {name: value for name, value in values.items() if value is not None}


_EXPECTED: Mapping[str, str] = {
    "mode": f"one of {', '.join(get_args(Mode))}",
    "model": "text",
    "effort": f"one of {', '.join(get_args(Effort))}",
    "detail": f"one of {', '.join(get_args(Detail))}",
    "agent": "text",
    "tools": "a list of names, such as [read_file]",
    "allowed_uris": "a list of absolute paths, such as [/srv/data]",
    "network": "true or false",
    "skills": "a list of names, such as [release]",
    "web_search": "true or false",
}
SETTINGS = tuple(_EXPECTED)
"""The names of all settings."""

STEP_SETTINGS = ("mode", "effort", "tools", "web_search")
"""Settings that a run reads at each step unless its prompt sets its own. Agent and model are fixed when a prompt is sent."""

STORED_SETTINGS = ("mode", "model", "effort", "detail", "tools", "network", "skills", "web_search")
"""Settings in `Conversation.settings`. The others are columns. The column `model` is the model set here, else that of the last run."""


def check_settings(changes: JsonObject) -> None:
    """Raise UsageError for an unknown setting or an invalid value. None is valid, because it removes a setting."""
    for key, value in changes.items():
        if key not in SETTINGS:
            raise UsageError(f"Unknown setting {key!r}.", fix=f"Available settings: {', '.join(SETTINGS)}.")
        if value is not None and not _is_valid(key, value):
            raise UsageError(f"Invalid value {value!r} for the setting {key!r}: expected {_EXPECTED[key]}.")


def _is_valid(key: str, value: Json) -> bool:
    match key:
        case "mode":
            return value in get_args(Mode)
        case "effort":
            return value in get_args(Effort)
        case "detail":
            return value in get_args(Detail)
        case "network" | "web_search":
            return isinstance(value, bool)
        case "tools" | "allowed_uris" | "skills":
            return isinstance(value, list) and all(isinstance(item, str) and item for item in value)
        case _:
            return isinstance(value, str) and value != ""


TEMPORARY_MS = 24 * 3_600_000
"""Time from the last prompt until a temporary conversation is purged, in milliseconds."""
MOST_TAGS = 20
"""Maximum number of a conversation's tags."""
_TAG = re.compile(r"[^\W_][\w-]{0,29}")


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags sorted and without repetitions. Raise UsageError if one is invalid or there are too many."""
    found = sorted(set(tags))
    for tag in found:
        if not _TAG.fullmatch(tag) or tag != tag.lower():
            raise UsageError(
                f"Invalid tag {tag!r}: a tag is a word of at most 30 lowercase letters, digits, '-' and '_'.", fix="For example: release-2"
            )
    if len(found) > MOST_TAGS:
        raise UsageError(f"A conversation can have at most {MOST_TAGS} tags, not {len(found)}.", fix="Remove some tags first.")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A row of the `conversation` table. The sums change only when a run ends."""

    id: str
    no: int = 0
    """Integer key of the conversation in the store; 0 = not stored yet."""
    project: str = DEFAULT_PROJECT
    """Id of the project. If it is empty in a new conversation, the project whose root contains the directory is used."""
    key: str | None = None
    """Unique name for find-or-create, such as `discord:USER` or `cron:NAME`."""
    client_id: str | None = None
    title: str = ""
    title_source: TitleSource = "none"
    agent: str = "default"
    agent_type: str = "moot"
    model: str = ""
    """Model for the next prompt: the one in `settings`, else `model@provider` of the last run; empty = the agent's default."""
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
    """The stored settings, to be read with `own_settings`. Keys that this version doesn't know are kept."""
    head: str | None = None
    """Id of the last message of the branch that is shown; None = there are no messages."""
    origin: JsonObject | None = None
    """`{format, source_id, path}` of an imported conversation."""
    message_count: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Cost in nano-dollars of the steps with a known price; None = no price is known."""
    unpriced_runs: int = 0
    """Number of runs whose cost is completely or partly unknown."""
    context_usage: float | None = None
    """Share of the model's context window that the last answer used, from 0 to 1; None = unknown."""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch."""
    updated_at: int = 0
    """Time of the last activity, in milliseconds since the epoch."""
    archived_at: int | None = None
    """Time of archiving, in milliseconds since the epoch; None = not archived."""
    deleted_at: int | None = None
    """Time of deletion, in milliseconds since the epoch; None = not deleted."""
    owner: str = LOCAL_USER
    """Id of the user who owns the conversation and everything in it: messages, runs, approvals. Never changes."""
    last_model: str = ""
    """`model@provider` that the last run used, or the model of an imported conversation; empty = none yet."""
    host: str = ""
    """Name of the machine in the configuration that it was imported from; empty = this machine."""
    pinned_at: int | None = None
    """Time of pinning, in milliseconds since the epoch; None = not pinned."""
    expires_at: int | None = None
    """Time after which a temporary conversation is purged, in milliseconds since the epoch; None = not temporary.

    In a new conversation, any number makes it temporary: the store sets the time. Sub-agents of a temporary conversation are temporary too.
    """
    grants: tuple[Grant, ...] = ()
    """Permissions for the rest of the conversation. Answers create grants; `Grants.revoke` removes them."""
    tags: tuple[str, ...] = ()
    """Lowercase words, sorted."""

    @property
    def came_from(self) -> str:
        """The program, agent type or format that the conversation was imported from; empty if it was created here."""
        origin = self.origin or {}
        return str(origin.get("program") or origin.get("agent_type") or origin.get("format") or "")

    @property
    def editor(self) -> str:
        """Name of the editor in which the conversation was started; empty if it was started elsewhere."""
        kind, _, rest = (self.key or "").partition(":")
        return rest.partition(":")[0] if kind == "editor" else ""

    @property
    def own_settings(self) -> ConversationSettings:
        """The conversation's settings, including those stored as columns."""
        return ConversationSettings.of(self)

    @property
    def shown_model(self) -> str:
        """The model to show in lists: that of the next prompt, else that of the last run; empty = neither is known."""
        return self.model or self.last_model

    @property
    def follows(self) -> bool:
        """True if the conversation mirrors a source that other programs write, so that prompts continue it in a copy.

        False for a complete recording.
        """
        return self.origin is not None and "events" not in self.origin

    @property
    def next_model(self) -> str:
        """The default model of the next prompt; empty = the agent's model.

        It is always empty for a mirrored conversation, because the source's model may not be available here.
        """
        return "" if self.follows else self.model


@dataclass(frozen=True, slots=True)
class ListChoices:
    """The values by which the list of conversations can be filtered."""

    agents: tuple[str, ...]
    """Names of agents. For imported conversations, the agent, program or format that they were imported from."""
    models: tuple[str, ...]
    hosts: tuple[str, ...]
    """Names of the other machines from which conversations were imported."""
    calls: int
    """Number of active conversations that programs created by calling `/v1`."""
    latest_call: int | None
    """Time of the latest activity in these conversations, in milliseconds since the epoch; None = there are none."""
    tags: tuple[str, ...] = ()


class Conversations(Protocol):
    """Conversations and their messages. Lists are sorted with the latest activity first."""

    async def create(self, conversation: Conversation) -> Conversation:
        """Store a conversation and return it with its `no` and times. Raise Busy if its id or key already exists."""
        ...

    async def get(self, reference: str) -> Conversation:
        """Return a conversation by id, client id, unique prefix (4 characters or more) or exact title.

        Raise NotFound if none or several match. In the latter case, the message lists the candidates.
        """
        ...

    async def by_key(self, key: str) -> Conversation | None:
        """Return the conversation with this key, or None. Keys are unique per owner; a view of all owners finds only the local user's."""
        ...

    async def by_client_id(self, client_id: str) -> Conversation | None:
        """Return the conversation with this exact id or client id, or None."""
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
        host: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: int | None = None,
        until: int | None = None,
        called: bool | None = None,
        tag: str | None = None,
        pinned: bool | None = None,
        pinned_first: bool = False,
    ) -> Page[Conversation]:
        """List the conversations whose title, model, agent, origin or directory contains each word of the query, ignoring case.

        With `parent`, list only its sub-agents' conversations. With `host`, list only the conversations of that machine; an empty `host`
        means this machine. `agent` and `model` are exact names, as in `choices`. `since` and `until` select the conversations active in a
        period, in ms: the last activity is at or after `since`, and the conversation was created before `until`. `called` selects or
        excludes the conversations that programs created by calling `/v1`. `tag` selects the conversations with a tag. `pinned` selects or
        excludes pinned conversations, and `pinned_first` lists them before the others. Raise UsageError for an invalid cursor.
        """
        ...

    async def choices(self) -> ListChoices:
        """Return the values by which the list can be filtered."""
        ...

    async def rename(self, id: str, title: str, source: Literal["first-line", "model", "user"]) -> Conversation:
        """Set the title, unless the user has set one and `source` is not `user`."""
        ...

    async def update(
        self,
        id: str,
        *,
        agent: tuple[str, str] | None = None,
        model: str | None = None,
        archived: bool | None = None,
        project: str | None = None,
        allowed_uris: tuple[str, ...] | None = None,
        settings: JsonObject | None = None,
        pinned: bool | None = None,
        tags: Iterable[str] | None = None,
        keep: bool = False,
        touch: bool = False,
    ) -> Conversation:
        """Set the given fields; `agent` is (agent, agent_type). `touch` sets the last activity to now.

        `settings` are merged into `Conversation.settings`; None removes a key. `model` is stored there too.
        `tags` replaces all tags. Raise UsageError if a tag is invalid. `keep` makes a temporary conversation and its sub-agents permanent.
        Agent and model set here are kept: a run in progress does not replace them with its own.
        """
        ...

    async def delete(self, id: str, *, restore: bool = False) -> Conversation:
        """Mark a conversation as deleted, or restore it. Only a purge removes data. Raise Busy if a run is in progress."""
        ...

    async def branch(
        self, id: str, *, head: str | None = None, limit: int | None = None, first: bool = False, after: str | None = None
    ) -> list[Message]:
        """Return the last `limit` messages of the current branch, or of the one ending with `head`, oldest first.

        With `first`, return the first `limit` messages, or those that follow the message `after`. Raise NotFound if `after` isn't on the
        branch. A message that is still being written includes its latest events.
        """
        ...

    async def message(self, reference: str, *, conversation: str | None = None) -> Message:
        """Return a message, with its latest events if it is being written.

        If `conversation` is set, client ids are accepted. Raise NotFound if there is no such message.
        """
        ...

    async def add_message(
        self, message: Message, *, raw: bytes | None = None, body: JsonObject | None = None, move_head: bool = True
    ) -> Message:
        """Store a complete message outside any run (an import, an edit, a system line) as one `message` event."""
        ...


class Projects(Protocol):
    """Projects. Each owner has their own, and always the project `default`."""

    async def get(self, reference: str) -> Project:
        """Return a project by id or exact name. Raise NotFound if none or several match."""
        ...

    async def around(self, directory: str) -> Project:
        """Return the project for new conversations in a folder: the project with the nearest root, or the default project."""
        ...

    async def list(self, *, limit: int = 50, cursor: str | None = None, query: str = "") -> Page[Project]:
        """List the projects whose name, description or root contains each word of the query: the default project first, then by name.

        Raise UsageError for an invalid cursor.
        """
        ...

    async def create(self, project: Project) -> Project:
        """Store a project and return it with its creation time. Raise Busy if another project has its id or root."""
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
        """Set the given fields and, if one changes, `updated_at`. An empty string removes the root.

        Raise NotFound, or Busy if another project has that root.
        """
        ...

    async def folders(self) -> Sequence[str]:
        """Return the folders of all conversations, including folders that are named only in the sources of imported conversations."""
        ...

    async def unplaced(self) -> Sequence[str]:
        """Return the folders of conversations whose repository is not known yet."""
        ...

    async def place(self, repositories: Mapping[str, str]) -> None:
        """Store the repositories of all conversations in the given folders."""
        ...

    async def move(self, old: str, new: str, *, dry_run: bool = False) -> int:
        """Replace a folder, and all folders in it, in conversations and projects. Return the number of changed conversations."""
        ...

    async def remove(self, id: str, *, dry_run: bool = False) -> int:
        """Remove a project with its tasks, and move its conversations to the default project, including deleted ones.

        Return the number of moved conversations, not counting deleted ones.

        Raise NotFound, or Busy for the default project.
        """
        ...
