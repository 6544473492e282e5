"""The seams to a model: Provider (whom we call), Dialect (which wire shape), Translator (raw events to chunks)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from moot.types.canonical import Json, JsonObject, empty
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import Message
from moot.types.model import Model, ModelSettings

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model is told of it."""

    name: str
    description: str
    schema: JsonObject
    """JSON Schema of the arguments, an object."""
    examples: tuple[JsonObject, ...] = ()
    """`{"user": …, "arguments": {…}}`, shown only to models that call by schema."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """Where a provider parts from its dialect's first vendor. Plain facts, set in the provider's own file."""

    effort: str = "reasoning_effort"
    """How reasoning effort is asked for: reasoning_effort | reasoning | thinking | enable_thinking | none; a dialect knows its own."""
    max_tokens: str = "max_tokens"
    """The field's name; newer OpenAI models want `max_completion_tokens`."""
    stream_usage: bool = True
    """Whether `stream_options: {include_usage: true}` is understood."""
    reasoning_back: str = ""
    """The field in which reasoning goes back on an assistant message (`reasoning_content`, `reasoning_details`); empty = not sent."""
    call_ids: str = ""
    """A regular expression that tool call ids must fit; others go out as nine letters and digits derived from them (Mistral)."""
    developer_role: bool = False
    """Whether the system prompt goes as role `developer`."""
    vendor_tools: tuple[Json, ...] = ()
    """Tools that the vendor runs itself, in its own words, as `{"type": "web_search"}`; dialects without such tools leave them out."""
    extra: JsonObject = field(default_factory=empty)
    """Fields laid over the request body as they are."""


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """All that a dialect turns into a request body."""

    model: Model
    system: str
    messages: tuple[Message, ...]
    """Oldest first. File parts carry `data:` or http(s) URLs: blobs are already resolved."""
    tools: tuple[ToolDefinition, ...] = ()
    settings: ModelSettings = field(default_factory=ModelSettings)
    quirks: Quirks = field(default_factory=Quirks)


class Translator(Protocol[State]):
    """Turns one exchange's raw events into chunks: a fold without clock, randomness or hidden configuration.

    Total: no bytes make it raise; what it cannot read becomes an Ending with an error, or is passed over.
    It never emits start or finish, which are the runtime's to write; start-step and finish-step only where it belongs to an outside
    agent, which makes its model calls itself. Those of a dialect leave them to the loop.
    """

    name: str
    """Of the converter, e.g. `openai-chat`."""
    version: int
    """Raised by any change of the chunks that the same bytes give."""

    def open(self, options: ExchangeOptions) -> State:
        """The state before the first raw event: frozen, and made of what JSON can hold."""
        ...

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        """What one raw event adds: the next state, and the chunks it stands for (none when it is bookkeeping)."""
        ...

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        """The chunks that close every open part, and how the exchange ended."""
        ...


@runtime_checkable
class Spoils(Protocol):
    """An optional power of a translator: it says when reading on is no use, because what was lost can't come back."""

    def spoiled(self, state: Any) -> bool: ...


@runtime_checkable
class Hears(Protocol):
    """An optional power of a translator: it wants to know what we said too, where both sides speak (JSON-RPC).

    `feed` gets only what the vendor sent. Without it the lines that we sent are passed over.
    """

    def said(self, state: Any, raw: Raw) -> tuple[Any, tuple[Chunk, ...]]:
        """What a line that we sent adds; total as `feed` is."""
        ...


class Dialect(Protocol):
    """A wire shape: requests out, raw events in."""

    name: str

    @property
    def translator(self) -> Translator[Any]: ...

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """The request body. Signatures and encrypted reasoning go back byte for byte, and only to the provider that made them."""
        ...


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One HTTP request to a model's endpoint."""

    body: bytes
    """Sent as it is."""
    model: str
    idempotency_key: str = ""


class Provider(Protocol):
    """Whom we call: URL, authentication and quirks of one endpoint."""

    name: str
    dialect: str
    """A name in `convert.DIALECTS`."""
    quirks: Quirks

    def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        """The answer's raw frames, one tuple per socket read, in an async generator that the caller closes with `aclosing`.

        Ends quietly when the body ended. Raises ProviderError: before the first frame for a refusal, after it when the connection broke.
        Never yields inside a task group or cancel scope.
        """
        ...

    async def models(self) -> Sequence[Model]:
        """What the endpoint says it has. Raises ProviderError."""
        ...

    async def close(self) -> None:
        """Lets go of connections and child processes."""
        ...
