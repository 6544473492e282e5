"""The interface of tools that a model may call, and the context that a call may access."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from moot.types.agent import Mode
from moot.types.approval import Effect
from moot.types.blob import Blobs
from moot.types.canonical import Json, JsonObject
from moot.types.command_tool import Check
from moot.types.knowledge import MemoryFolder
from moot.types.message import Part
from moot.types.model import ModelRole
from moot.types.sandbox import Access, Confinement

if TYPE_CHECKING:
    from pydantic import BaseModel

    from moot.types.children import Children
    from moot.types.cron import Jobs
    from moot.types.knowledge import KnowledgeSearch
    from moot.types.media import MediaModels
    from moot.types.search import HistorySearch
    from moot.types.skill import SkillAccess
    from moot.types.task import ProjectTasks


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """The content to show for a tool call.

    Each user interface renders it in its own way and sanitizes it, because the text is untrusted.
    """

    title: str
    """One line, e.g. `Read src/app.py`."""
    detail: str = ""
    """Text shown after the title, e.g. `lines 1-40 of 212`."""
    body: str = ""
    """Further content, which user interfaces collapse if it is long."""
    language: str = "text"
    """Rendering of the body: text, markdown, diff, json, or a programming language's name."""


@dataclass(frozen=True, slots=True)
class FullOutput:
    """The location of a complete output if the model gets only a part."""

    blob: str
    """SHA-256 of the blob with the output."""
    size: int
    """Size of the output in bytes."""
    rows: int
    tail: str
    """The last few kilobytes of the output, for people."""
    media_type: str = "text/plain; charset=utf-8"

    def to_json(self) -> JsonObject:
        return {"blob": self.blob, "size": self.size, "rows": self.rows, "tail": self.tail, "mediaType": self.media_type}


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a call; a failure is an output with `error`."""

    text: str
    """The text for the model, before truncation to `limits.TOOL_OUTPUT_CHARACTERS`."""
    value: Json = None
    """The output for clients; None = the text."""
    error: bool = False
    files: tuple[Part, ...] = ()
    """File parts that the model should see (images)."""
    whole: FullOutput | None = None
    """Set by a tool that has shortened its text itself."""
    structured: bool = False
    """True if models get `value` as the output, unless `text` has to be truncated."""
    empty: bool = False
    """True if the tool found or printed nothing, and the text only states that."""


@dataclass(frozen=True, slots=True)
class Option:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of ask_user."""

    header: str
    """A label of one or two words."""
    text: str
    options: tuple[Option, ...] = ()
    """Options to choose from; empty = free text only."""
    multiple: bool = False
    edits: str = ""
    """Name of the argument that `text` shows, if the user may edit it. The last item of the reply is then the edited text."""


@dataclass(frozen=True, slots=True)
class ToolServices:
    """Parts of moot that some tools use."""

    media: MediaModels
    """The image and transcription models."""
    children: Children
    """The sub-agents of this run. Sub-agents started by a call belong to that call."""
    jobs: Jobs
    """The cron jobs of the conversation's owner."""
    tasks: ProjectTasks
    """The tasks of the conversation's project."""
    administration: Administration
    """moot's configuration, within the rights of the run."""
    skills: SkillAccess
    """The skills that the run may use."""
    plan_mode: PlanMode


class PlanMode(Protocol):
    """The end of a run's read-only mode `plan`, after the user has accepted a plan."""

    async def leave(self, mode: Mode) -> None:
        """Store the mode in the conversation and use it for the rest of the run."""
        ...


class Confines(Protocol):
    """The part of a tool's context for running commands."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """The configured formatters and checks for files of this conversation."""
        ...

    async def confinement(self, command: str, access: Access = "sandbox") -> Confinement | None:
        """Return the sandbox in which a command must run, or None for no sandbox. Raise Refused if one is required but not available."""
        ...


class Sources(Protocol):
    """The part of a tool's context for searching earlier conversations, memory and documents, and for citing web pages."""

    @property
    def past(self) -> HistorySearch:
        """Earlier conversations of the same owner."""
        ...

    @property
    def memory(self) -> tuple[MemoryFolder, ...]:
        """The memory folders that the call may use, the most specific last."""
        ...

    @property
    def knowledge(self) -> KnowledgeSearch:
        """Documents of the same owner, and of the conversation's project."""
        ...

    async def cite(self, pages: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        """Add web pages (URL and title) to the answer's sources. Return their numbers, with which the model cites them, from 1.

        A page that is already a source keeps its number.
        """
        ...


class ToolContext(Confines, Sources, Protocol):
    """The context of a running tool call. The runtime creates one for each call."""

    @property
    def directory(self) -> Path:
        """Base of relative paths, and working directory of commands."""
        ...

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders that may be accessed; `directory` is inside one of them."""
        ...

    @property
    def settings(self) -> JsonObject:
        """`tools.<name>` of the configuration."""
        ...

    @property
    def key(self) -> str:
        """`<run>/<tool key>`: stable for the same call after a crash; use it as an idempotency key."""
        ...

    @property
    def blobs(self) -> Blobs: ...

    @property
    def services(self) -> ToolServices:
        """Other parts of moot, such as media models and sub-agents."""
        ...

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """Return an object that lives as long as the conversation is cached (processes, todo lists); `make` creates it on first use."""
        ...

    async def ask(self, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
        """Return the replies, one tuple of texts per question. May end the leg by raising `Parked`; the tool then starts again later."""
        ...

    async def ask_and_wait(self, title: str, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...] | None:
        """Return the replies as `ask` does, but wait for them within the call.

        This is for tools that can't start again. Without a person, or if the person refuses, all replies are empty. Return None if no one
        answered in time.
        """
        ...

    async def client_output(self, arguments: JsonObject) -> JsonObject:
        """Return the client's output of its own tool: `{"output": …}` or `{"error": "…"}`. May end the leg, like `ask`."""
        ...

    async def report(self, value: Json) -> None:
        """Show a preliminary output, which replaces the previous one."""
        ...

    async def note(self, body: JsonObject) -> None:
        """Record a fact durably in the journal, such as a process group that must not outlive a crash (`{"pgid", "started"}`)."""
        ...


class Tool(Protocol):
    """A tool that a model may call. Instances are stateless."""

    name: str
    description: str
    arguments: type[BaseModel]
    concurrent: bool
    """True if it may run in parallel with other concurrent calls of the step."""
    idempotent: bool
    """True if running it twice has the same effect as once, so that the call may be repeated if its outcome is unknown."""
    effects: frozenset[Effect]
    hidden: bool
    """True if only agents that name the tool in their list get it."""
    beta: bool
    badge: str
    """A short label that is shown next to the name; empty = none."""
    examples: tuple[JsonObject, ...]
    """Examples for models, see `ToolDefinition.examples`."""

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        """Run the call. A model's mistake is reported as an output with `error`, not as an exception. Cancellation passes through."""
        ...

    def doing(self, arguments: Any) -> View:
        """Return the view for a running call."""
        ...

    def done(self, arguments: Any, output: ToolOutput) -> View:
        """Return the view for a finished call."""
        ...


@runtime_checkable
class HasSettings(Protocol):
    """Optional capability: declare the tool's settings, so that `moot config check` can validate them."""

    settings: type[BaseModel]
    """Model of `tools.<name>`, the section in `ToolContext.settings`."""


class HasSchema(Protocol):
    """Optional capability: define the arguments by a JSON Schema instead of a model."""

    schema: JsonObject

    async def find_problem(self, input: JsonObject) -> str:
        """Return why the arguments don't match the schema; empty if they do."""
        ...


class HasIdentity(Protocol):
    """Optional capability: bind approvals to more than the tool's definition, such as the server that provides it."""

    rule_name: str
    """The name of the tool in permission rules, approvals and hooks. Without this capability, they use `name`."""

    def identity(self) -> JsonObject: ...


@runtime_checkable
class Available(Protocol):
    """Optional capability: report whether the required configuration is present. If it is not, the tool is not offered."""

    def available(self, settings: JsonObject) -> bool: ...


@runtime_checkable
class NeedsModel(Protocol):
    """Optional capability: the tool needs a model of a certain type and is not offered until such a model is configured."""

    model_type: ModelRole | None
    """Type of the model; None = no model is needed."""


class Administration(Protocol):
    """The configuration, for runs of the local user. Changes never give more rights than the run has.

    All methods raise Refused for runs of other users.
    """

    async def read(self, key: str) -> Json:
        """Return the value at a dotted key, including defaults, with secrets masked. An empty key returns the whole configuration.

        Raise NotFound if there is no such key.
        """
        ...

    async def change(self, key: str, value: Json) -> Json:
        """Set a key in the user's file and return the previous value.

        Raise Refused if the key may not be changed, UsageError for an invalid value.
        """
        ...

    async def create_agent(self, name: str, values: JsonObject) -> str:
        """Write a new agent to moot's home and return the path of its file.

        Raise Refused if the agent would get a right that the run lacks, UsageError for an invalid definition.
        """
        ...
