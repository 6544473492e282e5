"""The interfaces to a model: Provider (the endpoint), Dialect (the wire format), Translator (raw events to chunks)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
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
    """A tool as described to a model."""

    name: str
    description: str
    schema: JsonObject
    """JSON Schema of the arguments; an object."""
    examples: tuple[JsonObject, ...] = ()
    """`{"user": …, "arguments": {…}}`, shown only to models that call tools by schema."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """Differences between a provider and the vendor that introduced its dialect. Static facts, set in the provider's own file."""

    effort: str = "reasoning_effort"
    """Method of requesting reasoning effort: reasoning_effort | reasoning | thinking | enable_thinking | none; or a dialect's own value."""
    max_tokens: str = "max_tokens"
    """Name of the field that limits the output; newer OpenAI models require `max_completion_tokens`."""
    stream_usage: bool = True
    """True if `stream_options: {include_usage: true}` is supported."""
    reasoning_back: str = ""
    """Field of an assistant message in which reasoning is sent back (`reasoning_content`, `reasoning_details`); empty = not sent."""
    call_ids: str = ""
    """Regular expression for valid tool call ids; others are sent as nine letters and digits derived from them (Mistral)."""
    developer_role: bool = False
    """True if the system prompt has role `developer`."""
    vendor_tools: tuple[Json, ...] = ()
    """Tools that the vendor runs, in the vendor's format, such as `{"type": "web_search"}`; dialects without such tools omit them."""
    extra: JsonObject = field(default_factory=empty)
    """Fields merged into the request body unchanged."""


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """Everything from which a dialect builds a request body."""

    model: Model
    system: str
    messages: tuple[Message, ...]
    """Oldest first. File parts carry `data:` or http(s) URLs: blobs are already resolved."""
    tools: tuple[ToolDefinition, ...] = ()
    settings: ModelSettings = field(default_factory=ModelSettings)
    quirks: Quirks = field(default_factory=Quirks)


class Translator(Protocol[State]):
    """A translator of one exchange's raw events into chunks: a fold without clock, randomness or hidden configuration.

    It never raises: unreadable bytes are skipped, or become an Ending with an error. It never emits start or finish, which the runtime
    writes. Only translators of outside agents, which make their own model calls, emit start-step and finish-step; for dialects, the loop
    writes them.
    """

    name: str
    """Name of the converter, for example `openai-chat`."""
    version: int
    """Increased whenever the same bytes produce different chunks."""

    def open(self, options: ExchangeOptions) -> State:
        """Return the initial state: frozen, and made of JSON values."""
        ...

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        """Translate one raw event. Return the next state and the chunks it produced, which may be none."""
        ...

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        """Return the chunks that close every open part, and how the exchange ended."""
        ...


@runtime_checkable
class DetectsFailure(Protocol):
    """Optional capability of a translator: detect that data was lost permanently, so that reading further is useless."""

    def spoiled(self, state: Any) -> bool: ...


@runtime_checkable
class ReadsSentLines(Protocol):
    """Optional capability of a translator: also read the lines that moot sends, in protocols where both sides send messages (JSON-RPC).

    `feed` gets only messages from the vendor. Without this capability, lines that moot sent are skipped.
    """

    def said(self, state: Any, raw: Raw) -> tuple[Any, tuple[Chunk, ...]]:
        """Translate a line that moot sent. Like `feed`, it never raises."""
        ...


class Dialect(Protocol):
    """A wire format, which builds requests and translates raw events."""

    name: str

    @property
    def translator(self) -> Translator[Any]: ...

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the request body. Signatures and encrypted reasoning are sent back byte for byte, to their provider only."""
        ...


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One HTTP request to a model's endpoint."""

    body: bytes
    """The body, sent unchanged."""
    model: str
    idempotency_key: str = ""


class Provider(Protocol):
    """One endpoint with its URL, authentication and quirks."""

    name: str
    dialect: str
    """A key of `convert.DIALECTS`."""
    quirks: Quirks

    def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        """Yield the response's raw frames, one tuple per socket read. The caller closes the generator with `aclosing`.

        The generator ends normally when the body ends. Raise ProviderError before the first frame if the request is refused, or later if
        the connection breaks. Never yields inside a task group or cancel scope.
        """
        ...

    async def models(self) -> Sequence[Model]:
        """Return the models that the endpoint lists. Raise ProviderError if the request fails."""
        ...

    async def close(self) -> None:
        """Close connections and child processes."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """Static facts about one endpoint; a third-party provider may declare them as its class attribute `facts`."""

    name: str
    base_url: str = ""
    """The base URL used by the vendor's own SDK; empty = the configuration must set a base URL."""
    dialect: str = "openai-chat"
    needs_key: bool = True
    """True if requests need an API key. Its environment variable is in `moot.config.home.KEY_VARIABLES`."""
    key_form: str = ""
    """A pattern that matches this vendor's keys and no others; empty = the keys have no distinctive format."""
    priority: int = 50
    """Lower values come first for a bare model name: vendors 10 to 39, custom 40, hosts 50, gateways 60, own machine 80,
    local 800, demo 990."""
    plans: Mapping[str, str] = field(default_factory=dict[str, str])
    """Base URL for each `plan` of the configuration."""
    plan_models: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Models available only with a plan, the suggested one first."""
    main: str = ""
    """The model suggested when none is configured; empty = the first one that the endpoint lists."""
    prices: str = ""
    """The vendor's name in the price snapshot, which also lists models; empty = not included."""
    telemetry_name: str = ""
    """The vendor's name in OpenTelemetry's conventions; empty = `name`."""
    sold: str = ""
    """A pattern for the models in the snapshot that this endpoint offers; empty = all."""
    vendors: Mapping[str, str] = field(default_factory=dict[str, str])
    """Vendor names that differ between the snapshot (keys) and the gateway (values), such as `x-ai` and `xai`."""
    lower_case: bool = False
    """True if the endpoint's model names are all lower case."""
    free: bool = False
    """True if answers are free because they are computed on the user's machine."""
    open_ended: bool = False
    """True if the available models are known only from the endpoint itself."""
    quirks: Quirks = field(default_factory=Quirks)
