"""Push notifications: the browsers that get them while moot's page is closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

PushEvent: TypeAlias = Literal["run.finished", "run.failed", "approval.asked"]
"""Events that are sent to devices."""

PUSH_EVENTS: tuple[PushEvent, ...] = get_args(PushEvent)

TO_DEVICE = "device:"
"""Prefix of `Outgoing.webhook` if the event is for the device with the id that follows. Names of webhooks can't contain a colon."""

MOST_DEVICES = 20
"""Maximum number of devices of one owner."""


@dataclass(frozen=True, slots=True)
class Device:
    """A browser's subscription to push notifications.

    The endpoint and the keys are secret, because they allow anyone to send notifications to the browser.
    """

    id: str
    owner: str
    name: str
    """Name of the browser and its system, for the list of devices."""
    endpoint: str
    """URL of the browser's push service."""
    p256dh: bytes
    """Public key of the browser: an uncompressed point on the curve P-256."""
    auth: bytes
    """Secret shared with the browser, 16 bytes."""
    token: str
    """Id of the token of the login that added the device. The device is removed when the token is revoked."""
    events: tuple[PushEvent, ...] = PUSH_EVENTS
    """Events to send."""
    details: bool = False
    """True if notifications contain what is asked or answered, and not only the conversation's title."""
    created_at: int = 0
    sent_at: int | None = None
    """Time of the last notification that the push service accepted."""
    failures: int = 0
    """Number of notifications that have failed since then."""
    error: str = ""
    """Reason of the last failure; empty if there was none since the last accepted notification."""


class Devices(Protocol):
    """The devices of an owner, or of all owners."""

    async def list(self) -> list[Device]:
        """Return the devices, oldest first."""
        ...

    async def get(self, id: str) -> Device:
        """Return a device. Raise NotFound."""
        ...

    async def add(self, device: Device, *, replaces: str = "") -> Device:
        """Store a device and return it. A device with the same endpoint or with the endpoint `replaces` keeps its id and is updated.

        Raise Refused if another subscription has the endpoint with other keys, or if the owner has too many devices.
        """
        ...

    async def remove(self, id: str) -> None:
        """Delete a device and its unsent notifications. Raise NotFound."""
        ...

    async def record(self, id: str, error: str) -> None:
        """Record the result of a notification: an empty string if it was accepted. Do nothing if the device was removed."""
        ...
