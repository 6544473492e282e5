"""Outgoing webhooks: the events that they report, and the history of their deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, get_args

from moot.types.canonical import JsonObject, empty

WebhookEvent: TypeAlias = Literal["run.finished", "run.failed", "approval.asked", "budget.warning"]
"""Events that webhooks can subscribe to. Two further events, `job.answer` and `webhook.test`, are each sent to a single webhook."""

WEBHOOK_EVENTS: tuple[WebhookEvent, ...] = get_args(WebhookEvent)

DeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """The part of an outgoing webhook's configuration that selects its events. It has no URL and no secret."""

    name: str
    events: tuple[WebhookEvent, ...] = WEBHOOK_EVENTS
    project: str = ""
    """Name or id of the project whose events are sent; empty = all projects."""
    agent: str = ""
    conversation: str = ""
    """Id or key of the conversation whose events are sent; empty = all conversations."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One event for one webhook, and the state of its delivery."""

    no: int
    id: str
    """Id of the event: the same in every attempt, and for all webhooks that get the event."""
    webhook: str
    """Name of the webhook, or `device:` and the id of a device that gets push notifications."""
    event: str
    """Name of the event: `run.finished`, `run.failed`, `approval.asked`, `budget.warning`, `job.answer` or `webhook.test`."""
    at: int
    """Time of the event, in milliseconds since the epoch."""
    run: str | None = None
    conversation: str | None = None
    """Id of the conversation; None = the event doesn't belong to a conversation."""
    facts: JsonObject = field(default_factory=empty)
    """Additional fields of the payload."""
    status: DeliveryStatus = "pending"
    tries: int = 0
    """Number of attempts so far."""
    due_at: int | None = None
    """Time of the next attempt, in milliseconds since the epoch; None = there is none."""
    reason: str = ""
    """Reason why the last attempt failed; empty if it did not fail."""


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """The answer of a cron job, for an outgoing webhook. It is stored in the transaction that marks the run as settled."""

    webhook: str
    job: str
    text: str


class WebhookStore(Protocol):
    """Events for outgoing webhooks and devices, stored in the same transaction as the changes that they report.

    Only runs of the local user are reported to webhooks, and runs of the devices' owners to devices.
    """

    async def subscribe(self, subscriptions: tuple[Subscription, ...]) -> None:
        """Replace all subscriptions with these."""
        ...

    async def add(self, webhook: str, event: str) -> Outgoing:
        """Store an event that belongs to no run, for one webhook, and return it. The caller must send it."""
        ...

    async def due(self, now: int, limit: int) -> list[Outgoing]:
        """Return the pending deliveries due at `now` (ms), oldest first, at most `limit` for each webhook."""
        ...

    async def record(self, no: int, status: DeliveryStatus, *, due_at: int | None = None, reason: str = "") -> None:
        """Record the result of an attempt."""
        ...

    async def history(self, webhook: str | None = None, *, limit: int = 50) -> list[Outgoing]:
        """Return deliveries to webhooks, newest first."""
        ...
