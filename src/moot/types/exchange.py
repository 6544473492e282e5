"""One bounded conversation with a vendor: an HTTP request and its stream, or a process's turn; and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal, TypeAlias

from moot.errors import MootError, ProviderError
from moot.types.canonical import JsonObject, dumps, empty
from moot.types.usage import Usage

Purpose: TypeAlias = Literal["answer", "compact", "title", "explain", "search", "replay", "picture", "transcript"]
Ended: TypeAlias = Literal["eof", "cut", "cancelled"]
"""eof: the body came to its own end · cut: the connection broke or went silent · cancelled: we hung up."""


@dataclass(frozen=True, slots=True)
class ExchangeOptions:
    """All that a translator may know besides the raw bytes; stored with the exchange so that it can be translated again."""

    prefix: str = "0"
    """`<step>.<attempt>`: makes part ids unique within the message."""
    step: int = 0
    tool_call_ids: tuple[str, ...] = ()
    """Ids that the message has already used; a vendor that reuses one gets `<id>#<step>.<n>`."""
    extra: JsonObject = field(default_factory=empty)
    """What one dialect alone needs, as plain JSON."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The row of `exchange`; its start and end are events of the log too."""

    id: str
    run: str
    """Empty = outside any run."""
    conversation: str
    purpose: Purpose
    dialect: str
    """The dialect's or agent service's name."""
    converter: str
    """`<name>/<version>` of the translator that made the chunks."""
    provider: str
    model: str
    options: ExchangeOptions
    request: JsonObject
    """Manifest of content-addressed pieces (`{"pieces": [sha256, …]}`) whose join is the exact bytes that were sent."""
    chunk_format: str = "ui-message-chunk/7"
    ended: Ended | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an exchange or run failed, in words for a person and facts for the retry."""

    message: str
    kind: str = "failed"
    """As `ProviderError.kind`."""
    retryable: bool = False
    retry_after: float | None = None
    """Seconds."""
    fix: str = ""
    """The next move for the person, as `MootError.fix`."""

    @staticmethod
    def of(error: MootError) -> Failure:
        """What was raised, as it is stored."""
        if isinstance(error, ProviderError):
            return Failure(error.message, error.kind, error.retryable, error.retry_after, error.fix)
        return Failure(error.message, error.code, fix=error.fix)

    def advice(self) -> str:
        """The message with the next move behind it, for places that hold one text."""
        return f"{self.message}; {self.fix}" if self.fix else self.message

    def to_json(self) -> JsonObject:
        facts: JsonObject = {"message": self.message, "kind": self.kind, "retryable": self.retryable, "retry_after": self.retry_after}
        return {**facts, "fix": self.fix} if self.fix else facts

    @staticmethod
    def from_json(value: JsonObject) -> Failure:
        after = value.get("retry_after")
        return Failure(
            str(value.get("message", "")),
            str(value.get("kind", "failed")),
            value.get("retryable") is True,
            float(after) if isinstance(after, int | float) else None,
            str(value.get("fix", "")),
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """How an exchange ended, as its translator saw it."""

    finish_reason: str
    """One of `chunk.FINISH_REASONS`."""
    raw_reason: str | None = None
    """The vendor's own word."""
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Nano-dollars where the vendor itself says what it charged; None otherwise."""
    error: Failure | None = None
    metadata: JsonObject = field(default_factory=empty)
    """Facts for `message.metadata` that have no home in a chunk: the vendor's response id, the model that really answered."""

    def to_json(self) -> JsonObject:
        return {
            "finish_reason": self.finish_reason,
            "raw_reason": self.raw_reason,
            "usage": self.usage.to_json(),
            "cost": self.cost,
            "error": self.error.to_json() if self.error else None,
            "metadata": self.metadata,
        }

    @staticmethod
    def from_json(value: JsonObject) -> Ending:
        usage, error, metadata, cost = value.get("usage"), value.get("error"), value.get("metadata"), value.get("cost")
        raw_reason = value.get("raw_reason")
        return Ending(
            str(value.get("finish_reason", "other")),
            raw_reason if isinstance(raw_reason, str) else None,
            Usage.from_json(usage) if isinstance(usage, dict) else Usage(),
            cost if isinstance(cost, int) else None,
            Failure.from_json(error) if isinstance(error, dict) else None,
            metadata if isinstance(metadata, dict) else {},
        )


OURS: JsonObject = {"failed_by": "moot"}
"""Stands in the body of an exchange's end when its error is what moot saw (a connection, a process), not what the translator read."""


def row_digest(exchange: Exchange) -> str:
    """Of what the row of `exchange` says from the beginning on: the log keeps it, so that a row that was changed is seen."""
    options = exchange.options
    told = dumps(
        [
            *(exchange.purpose, exchange.dialect, exchange.converter, exchange.provider, exchange.model, exchange.chunk_format),
            *(options.prefix, options.step, options.tool_call_ids, options.extra, exchange.request),
        ]
    )
    return blake2b(told, digest_size=8).hexdigest()


def start_body(exchange: Exchange, model: str) -> JsonObject:
    """The body of the event with which an exchange begins; `model` is `model@provider`, empty where an agent chooses its own."""
    return {"model": model, "row": row_digest(exchange)}


def end_body(ending: Ending, ended: Ended, charged: int | None, failure: Failure | None) -> JsonObject:
    """The body of the event with which an exchange ends; `failure` is what stands over the translator's own ending."""
    return {**ending.to_json(), "charged": charged, "ended": ended, **(OURS if failure is not None else {})}


@dataclass(frozen=True, slots=True)
class Converter:
    """`<name>/<version>`, taken apart."""

    name: str
    version: int
    """0 = it has none."""

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


def converter_of(text: str) -> Converter:
    """What an exchange's `converter` says."""
    name, _, version = text.rpartition("/")
    return Converter(name, int(version)) if name and version.isascii() and version.isdigit() else Converter(text, 0)
