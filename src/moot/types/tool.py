"""The seam of a tool: what a model may call, and what the call may reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from moot.types.canonical import Json, JsonObject
from moot.types.effect import Effect
from moot.types.media import MediaModels
from moot.types.model import ModelRole
from moot.types.part import Part
from moot.types.search import Past
from moot.types.store import Blobs

if TYPE_CHECKING:  # a run that calls no tool imports no pydantic
    from pydantic import BaseModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """What a face draws for a call, in its own way; untrusted text, so faces strip it."""

    title: str
    """One line, e.g. `Read src/app.py`."""
    detail: str = ""
    """Behind the title, e.g. `lines 1-40 of 212`."""
    body: str = ""
    """More to see; faces fold it when it is long."""
    language: str = "text"
    """How to draw the body: text, markdown, diff, json, or a programming language's name."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Where all of an output is of which a model gets a part."""

    blob: str
    """SHA-256"""
    size: int
    """Bytes"""
    rows: int
    tail: str
    """The last few kilobytes, for people."""
    media_type: str = "text/plain; charset=utf-8"

    def to_json(self) -> JsonObject:
        return {"blob": self.blob, "size": self.size, "rows": self.rows, "tail": self.tail, "mediaType": self.media_type}


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """Exactly one per call; a failure is an output with `error`."""

    text: str
    """What the model reads, before it is cut to `limits.TOOL_OUTPUT_CHARACTERS`."""
    value: Json = None
    """What clients get as the call's output; None = the text."""
    error: bool = False
    files: tuple[Part, ...] = ()
    """File parts that the model should see (pictures)."""
    whole: Whole | None = None
    """Set by a tool that has shortened its text itself."""
    structured: bool = False
    """The call's output is `value` itself, for models too, unless `text` has to be cut."""


@dataclass(frozen=True, slots=True)
class Option:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that ask_user wants to know."""

    header: str
    """A word or two."""
    text: str
    options: tuple[Option, ...] = ()
    """Empty = free text alone."""
    multiple: bool = False


class ToolContext(Protocol):
    """What a running tool may use. Made by the runtime, one for each call."""

    @property
    def directory(self) -> Path:
        """Where relative paths and commands start."""
        ...

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that may be touched; `directory` lies in one of them."""
        ...

    @property
    def settings(self) -> JsonObject:
        """`tools.<name>` of the configuration."""
        ...

    @property
    def key(self) -> str:
        """`<run>/<tool key>`: the same for the same call after a crash; hand it on as an idempotency key."""
        ...

    @property
    def blobs(self) -> Blobs: ...

    @property
    def media(self) -> MediaModels:
        """The models that draw and listen."""
        ...

    @property
    def past(self) -> Past:
        """Earlier conversations of the same owner."""
        ...

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """A thing that lives as long as the conversation's place in memory (running processes, todo lists), made at the first call."""
        ...

    async def ask(self, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
        """The replies, one tuple of texts per question. May end the leg (raises `Parked`) and be entered again from its top."""
        ...

    async def client_output(self, arguments: JsonObject) -> JsonObject:
        """What the run's client says that its own tool gave: `{"output": …}` or `{"error": "…"}`. May end the leg, as `ask` does."""
        ...

    async def report(self, value: Json) -> None:
        """Shows a preliminary output; each one replaces the last."""
        ...

    async def note(self, body: JsonObject) -> None:
        """Puts a fact into the journal, durable on return: a process group that must not outlive a crash (`{"pgid", "started"}`)."""
        ...


class Tool(Protocol):
    """What a model may call. Instances are stateless."""

    name: str
    description: str
    arguments: type[BaseModel]
    concurrent: bool
    """May run beside other concurrent calls of the step."""
    idempotent: bool
    """Running it twice is the same as running it once, so an unknown outcome may be repeated."""
    effects: frozenset[Effect]
    hidden: bool
    """Offered only to agents that name it."""
    beta: bool
    badge: str
    """A word that faces show beside the name; empty = none."""
    examples: tuple[JsonObject, ...]
    """See `ToolDefinition.examples`."""

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        """Never raises for what a model did wrong: that is an output with `error`. Cancellation passes through."""
        ...

    def doing(self, arguments: Any) -> View:
        """While it runs."""
        ...

    def done(self, arguments: Any, output: ToolOutput) -> View:
        """When it is over."""
        ...


@runtime_checkable
class Configured(Protocol):
    """An optional power: a tool says which settings it has, and a slip in them is found by `moot config check`."""

    settings: type[BaseModel]
    """Of `tools.<name>`, as `ToolContext.settings` has it."""


@runtime_checkable
class Available(Protocol):
    """An optional power: a tool that needs configuration says whether it has it; without it, it is absent."""

    def available(self, settings: JsonObject) -> bool: ...


@runtime_checkable
class NeedsModel(Protocol):
    """An optional power: a tool that works by a model of some type is absent until the configuration names one."""

    model_type: ModelRole | None
    """None = it needs none after all."""
