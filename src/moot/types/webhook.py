"""Outgoing webhooks: the events that they report, and the history of their deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, get_args

from moot.types.canonical import JsonObject, empty

WebhookEvent: TypeAlias = Literal["run.finished", "run.failed", "approval.asked", "budget.warning"]
"""Events that can be subscribed to. `job.answer` and `webhook.test` are sent only to the webhook that they name."""

WEBHOOK_EVENTS: tuple[WebhookEvent, ...] = get_args(WebhookEvent)

DeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """The part of an outgoing webhook's configuration that decides which events are stored for it. Without URL and secret."""

    name: str
    events: tuple[WebhookEvent, ...] = WEBHOOK_EVENTS
    project: str = ""
    """Name or id; empty = any."""
    agent: str = ""
    conversation: str = ""
    """Id or key; empty = any."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One event for one webhook, and how its delivery went."""

    no: int
    id: str
    """Equal in every attempt, and the same for all webhooks that get this event."""
    webhook: str
    event: str
    """A `WebhookEvent`, `job.answer` or `webhook.test`."""
    at: int
    """When it happened, in ms."""
    run: str | None = None
    conversation: str | None = None
    """Id."""
    facts: JsonObject = field(default_factory=empty)
    """Further members of the payload."""
    status: DeliveryStatus = "pending"
    tries: int = 0
    due_at: int | None = None
    """ms; the next attempt."""
    reason: str = ""
    """Why the last attempt failed; empty if it did not."""


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """The answer of a cron job, for an outgoing webhook. It is stored in the transaction that marks the run as settled."""

    webhook: str
    job: str
    text: str


class WebhookStore(Protocol):
    """Events for outgoing webhooks, stored in the transaction in which they happen.

    Only runs of the local user are reported.
    """

    async def subscribe(self, subscriptions: tuple[Subscription, ...]) -> None:
        """Replace all subscriptions."""
        ...

    async def add(self, webhook: str, event: str) -> Outgoing:
        """Store an event without a run for one webhook. The caller sends it."""
        ...

    async def due(self, now: int, limit: int) -> list[Outgoing]:
        """Return pending deliveries whose time has come (ms), oldest first, and at most `limit` of each webhook."""
        ...

    async def record(self, no: int, status: DeliveryStatus, *, due_at: int | None = None, reason: str = "") -> None:
        """Record the result of an attempt."""
        ...

    async def history(self, webhook: str | None = None, *, limit: int = 50) -> list[Outgoing]:
        """Return deliveries, newest first."""
        ...
