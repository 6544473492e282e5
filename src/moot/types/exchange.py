"""One bounded exchange with a vendor, its options, failure and ending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal, TypeAlias

from moot.errors import MootError, ProviderError, join_fix
from moot.types.canonical import Json, JsonObject, dumps, empty
from moot.types.usage import Usage

Purpose: TypeAlias = Literal["answer", "compact", "title", "explain", "search", "replay", "picture", "transcript"]
Ended: TypeAlias = Literal["eof", "cut", "cancelled"]
"""eof: the body ended normally · cut: the connection broke or went silent · cancelled: moot closed it."""


@dataclass(frozen=True, slots=True)
class ExchangeOptions:
    """Everything a translator may use in addition to the raw bytes; stored with the exchange so that it can be translated again."""

    prefix: str = "0"
    """`<step>.<attempt>`; makes part ids unique within the message."""
    step: int = 0
    tool_call_ids: tuple[str, ...] = ()
    """Ids already used in the message. If a vendor reuses an id, the id becomes `<id>#<step>.<n>`."""
    extra: JsonObject = field(default_factory=empty)
    """Options of one dialect, as plain JSON."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A row of the `exchange` table; start and end are also events in the log."""

    id: str
    run: str
    """Id of the run; empty = outside any run."""
    conversation: str
    purpose: Purpose
    dialect: str
    """Name of the dialect or agent service."""
    converter: str
    """`<name>/<version>` of the translator that produced the chunks."""
    provider: str
    model: str
    options: ExchangeOptions
    request: JsonObject
    """Manifest of content-addressed pieces (`{"pieces": [sha256, …]}`); the joined pieces are the exact bytes that were sent."""
    chunk_format: str = "ui-message-chunk/7"
    ended: Ended | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why an exchange or run failed: a message for people, and facts that determine whether to retry."""

    message: str
    kind: str = "failed"
    """Kind of error, see `ProviderError.kind`."""
    retryable: bool = False
    retry_after: float | None = None
    """Seconds to wait before a retry; None = not specified."""
    fix: str = ""
    """Suggested next step for the user, see `MootError.fix`."""

    @staticmethod
    def of(error: MootError) -> Failure:
        """Convert a raised error to its stored form."""
        if isinstance(error, ProviderError):
            return Failure(error.message, error.kind, error.retryable, error.retry_after, error.fix)
        return Failure(error.message, error.code, fix=error.fix)

    def advice(self) -> str:
        """Return the message followed by the fix, for places with room for only one text."""
        return join_fix(self.message, self.fix)

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
    """The end of an exchange according to its translator."""

    finish_reason: str
    """Reason for the end, one of `chunk.FINISH_REASONS`."""
    raw_reason: str | None = None
    """The vendor's own term for the reason."""
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Cost in nano-dollars that the vendor reported; None = not reported."""
    error: Failure | None = None
    metadata: JsonObject = field(default_factory=empty)
    """Facts for `message.metadata` that have no chunk: the vendor's response id, the model that actually answered."""

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


FAILED_BY_MOOT: JsonObject = {"failed_by": "moot"}
"""Part of an exchange's end body that is present if moot itself, not the translator, detected the error (of a connection or process)."""


def row_digest(exchange: Exchange) -> str:
    """Return a digest of the exchange's initial row. The log stores it, so that later changes of the row are detected."""
    options = exchange.options
    initial = dumps(
        [
            *(exchange.purpose, exchange.dialect, exchange.converter, exchange.provider, exchange.model, exchange.chunk_format),
            *(options.prefix, options.step, options.tool_call_ids, options.extra, exchange.request),
        ]
    )
    return blake2b(initial, digest_size=8).hexdigest()


def start_body(exchange: Exchange, model: str, tools: Sequence[str] | None = None) -> JsonObject:
    """Return the body of an exchange's start event; `model` is `model@provider`, or empty if an agent chooses its own.

    `tools` are the names of the tools that moot offers; None = an agent uses its own tools.
    """
    body: JsonObject = {"model": model, "row": row_digest(exchange)}
    return body if tools is None else {**body, "tools": list[Json](tools)}


def end_body(ending: Ending, ended: Ended, charged: int | None, failure: Failure | None) -> JsonObject:
    """Return the body of an exchange's end event; `failure` takes precedence over the translator's own ending."""
    return {**ending.to_json(), "charged": charged, "ended": ended, **(FAILED_BY_MOOT if failure is not None else {})}


@dataclass(frozen=True, slots=True)
class Converter:
    """A parsed `<name>/<version>`."""

    name: str
    version: int
    """Version of the converter; 0 = no version."""

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


def converter_of(text: str) -> Converter:
    """Parse an exchange's `converter`."""
    name, _, version = text.rpartition("/")
    return Converter(name, int(version)) if name and version.isascii() and version.isdigit() else Converter(text, 0)
