"""Routes for push notifications: the browsers that get them while the page is closed."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from pydantic import Field

from moot.errors import Refused, UsageError
from moot.features.webhooks.encryption import check_keys, decode, server_key
from moot.features.webhooks.push import service_of
from moot.guard.urls import check_form
from moot.server.auth import Chatter, Reader, Router
from moot.server.models import In, ListOut, Out
from moot.server.state import CurrentServer
from moot.types.ids import new_id
from moot.types.push import PUSH_EVENTS, Device, PushEvent


class PushKeyOut(Out):
    """The server's public key, with which a browser subscribes."""

    key: str
    """Point on the curve P-256 in base64url: the `applicationServerKey` of `pushManager.subscribe`."""


class DeviceOut(Out, of=Device, fields="id name events details created_at sent_at failures error"):
    """A browser that gets notifications. Its endpoint and keys are never returned."""

    service: str
    """Host of the browser's push service."""


class DeviceIn(In):
    """A browser's subscription, from `pushManager.subscribe`, and the notifications to send to it."""

    endpoint: Annotated[str, Field(min_length=1, max_length=2048)]
    """URL of the push service; https only."""
    p256dh: Annotated[str, Field(max_length=200)]
    """Public key of the subscription, in base64url."""
    auth: Annotated[str, Field(max_length=100)]
    """Authentication secret of the subscription, in base64url."""
    name: Annotated[str, Field(min_length=1, max_length=100)]
    """Name for the list of devices, such as the browser and its system."""
    events: list[PushEvent] = Field(default=[*PUSH_EVENTS], min_length=1)
    """Events to send."""
    details: bool = False
    """True = notifications contain the beginning of the question, the answer or the error. A lock screen may show them."""
    replaces: Annotated[str, Field(max_length=2048)] = ""
    """Endpoint of a subscription of yours that this one replaces."""


class PushTestOut(Out):
    """The result of a test notification."""

    accepted: bool
    """True if the push service accepted the notification."""
    reason: str
    """Reason why it was not accepted; empty if it was."""


router = Router(prefix="/api/push", tags=["push"])


@router.get("/key")
async def get_push_key(server: CurrentServer, caller: Reader) -> PushKeyOut:
    """Get the server's public key for push notifications. The key pair is created on first use."""
    key = await to_thread.run_sync(server_key, server.engine.runtime.settings.home)
    return PushKeyOut(key=key.public)


@router.get("/devices")
async def list_devices(server: CurrentServer, caller: Reader) -> ListOut[DeviceOut]:
    """List your devices that get notifications, oldest first."""
    return ListOut(data=[_out(device) for device in await caller.store.devices.list()])


@router.post("/devices", status_code=201)
async def add_device(server: CurrentServer, caller: Chatter, body: DeviceIn) -> DeviceOut:
    """Send notifications to a browser until the device is removed or the token is revoked.

    A subscription with a known endpoint keeps its id, and gets the new choices.
    """
    try:
        check_form(body.endpoint, server.limits.push)
    except Refused as error:
        raise UsageError(
            "The endpoint is not an https URL of a push service.", fix="Send the endpoint of the browser's subscription."
        ) from error
    p256dh, auth = _bytes("p256dh", body.p256dh), _bytes("auth", body.auth)
    check_keys(p256dh, auth)
    events: tuple[PushEvent, ...] = tuple(event for event in PUSH_EVENTS if event in body.events)
    device = Device(new_id(), caller.owner_id, body.name, body.endpoint, p256dh, auth, caller.token_id, events, body.details)
    return _out(await caller.store.devices.add(device, replaces=body.replaces))


@router.delete("/devices/{device_id}", status_code=204)
async def remove_device(server: CurrentServer, caller: Chatter, device_id: str) -> None:
    """Stop sending notifications to a device."""
    await caller.store.devices.remove(device_id)


@router.post("/devices/{device_id}/test")
async def test_device(server: CurrentServer, caller: Chatter, device_id: str) -> PushTestOut:
    """Send a test notification to a device. If its subscription has ended, the device is removed."""
    outcome = await server.pusher.test(await caller.store.devices.get(device_id))
    return PushTestOut(accepted=not outcome.reason, reason=outcome.reason)


def _bytes(name: str, text: str) -> bytes:
    try:
        return decode(text)
    except ValueError as error:
        raise UsageError(f"`{name}` is not valid base64url.", fix="Send the keys of the browser's subscription.") from error


def _out(device: Device) -> DeviceOut:
    return DeviceOut.of(device, service=service_of(device))
