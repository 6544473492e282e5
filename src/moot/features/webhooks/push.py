"""Push notifications about runs: their content, and one request to a browser's push service."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, urlsplit

from anyio import to_thread

from moot.errors import ConfigError, NotFound, Refused
from moot.features.approvals import object_of
from moot.features.webhooks.encryption import LONGEST_MESSAGE, encrypt, server_key
from moot.guard.hidden import spelled_out
from moot.guard.urls import Policy, fetch, without_secrets
from moot.types.approval import Approval
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.ids import Clock
from moot.types.message import text_of
from moot.types.push import TO_DEVICE, Device
from moot.types.store import Store
from moot.types.webhook import Outgoing

POLICY = Policy(bytes=16 * 1024, seconds=15.0, hops=0, ports=frozenset({443}), schemes=frozenset({"https"}))
"""Limits on requests to push services. Their URLs come from browsers, so they are untrusted."""

LIFETIME = 24 * 3600
"""Number of seconds for which a push service keeps a notification for a device that is off. Older events are not sent."""

LONGEST_PAUSE = 3600
"""Maximum number of seconds that a push service can ask moot to wait."""

_TITLE, _BODY = 120, 240
"""Maximum numbers of characters of a notification."""

_BODIES = {"run.finished": "The answer is ready", "run.failed": "The run failed", "approval.asked": "Needs your answer"}
"""Texts of notifications without details. The page replaces them with texts in its language."""

_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attempt to send an event."""

    reason: str = ""
    """Reason why it was not accepted; empty if it was. It contains no secret and no path of a URL."""
    is_final: bool = False
    """True if another attempt can't succeed."""
    is_skipped: bool = False
    """True if nothing was sent, and nothing has to be."""
    pause: int = 0
    """Minimum number of milliseconds before the next attempt."""
    is_gone: bool = False
    """True if the device's subscription has ended."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A message to a browser and how to deliver it."""

    payload: JsonObject
    urgency: str = "normal"
    seconds: int = LIFETIME
    """Number of seconds after which the notification is useless."""
    topic: str = ""
    """Notifications with the same topic replace each other while the device is off."""


class Pusher:
    """Sender of notifications to devices."""

    def __init__(self, store: Store, home: Path, clock: Clock, *, contact: str, policy: Policy = POLICY) -> None:
        self._store = store
        self._home = home
        self._clock = clock
        self._contact = contact
        self._policy = policy

    async def attempt(self, item: Outgoing) -> Outcome:
        """Try once to send a stored event to its device, and record the result. A device whose subscription has ended is removed."""
        try:
            device = await self._store.devices.get(item.webhook.removeprefix(TO_DEVICE))
        except NotFound:
            return Outcome("The device was removed.", is_skipped=True)
        try:
            notification = await notification_of(self._store, item, device, self._clock.now() // 1000)
        except NotFound:
            return Outcome("The run was deleted.", is_skipped=True)
        if notification is None:
            return Outcome("It is no longer needed.", is_skipped=True)
        return await self.send(device, notification)

    async def send(self, device: Device, notification: Notification) -> Outcome:
        """Send a notification once, and record the result. A device whose subscription has ended is removed."""
        outcome = await self._post(device, notification)
        if outcome.is_gone:
            await self._store.of(device.owner).devices.remove(device.id)
        else:
            await self._store.devices.record(device.id, outcome.reason)
        return outcome

    async def test(self, device: Device) -> Outcome:
        """Send a test notification once."""
        return await self.send(
            device, Notification({"event": "test", "title": "moot", "body": "Notifications work.", "path": "/", "tag": "test"}, "high", 60)
        )

    async def _post(self, device: Device, notification: Notification) -> Outcome:
        now = self._clock.now() // 1_000_000
        try:
            key = await to_thread.run_sync(server_key, self._home)
        except ConfigError as error:
            return Outcome(error.message, is_final=True)
        headers = {
            "Authorization": key.authorization(device.endpoint, now=now, contact=self._contact),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(notification.seconds),
            "Urgency": notification.urgency,
        }
        if notification.topic:
            headers["Topic"] = notification.topic
        body = encrypt(dumps(notification.payload), device.p256dh, device.auth)
        try:
            page = await fetch(device.endpoint, headers=headers, body=body, policy=self._policy)
        except Refused as error:
            return Outcome(f"The server can't reach the push service. {without_secrets(error.message, device.endpoint)}")
        return _outcome(page.status, page.retry_after, now)


def _outcome(status: int, retry_after: str, now: int) -> Outcome:
    reason = f"The push service answered with the status {status}."
    if 200 <= status < 300:
        return Outcome()
    if status in (404, 410):
        return Outcome("The browser has ended the subscription.", is_final=True, is_gone=True)
    if status in (401, 403):
        return Outcome(f"{reason} Turn notifications off and on again on this device.", is_final=True)
    if status == 429 or status >= 500:
        return Outcome(reason, pause=_pause(retry_after, now) * 1000)
    return Outcome(reason, is_final=True)


def _pause(retry_after: str, now: int) -> int:
    """Return the number of seconds to wait, from a header with seconds or a date."""
    try:
        seconds = (
            int(retry_after)
            if retry_after.isascii() and retry_after.isdigit()
            else int(parsedate_to_datetime(retry_after).timestamp()) - now
        )
    except (ValueError, OverflowError):
        return 0
    return min(max(seconds, 0), LONGEST_PAUSE)


async def notification_of(store: Store, item: Outgoing, device: Device, now: int) -> Notification | None:
    """Return the notification about an event, or None if it is no longer needed at `now` (ms). Raise NotFound if the run was deleted."""
    seconds = LIFETIME - (now - item.at) // 1000
    if item.run is None or item.event not in _BODIES or seconds <= 0:
        return None
    run = await store.records.run(item.run)
    conversation = await store.conversations.get(run.conversation)
    body, details = _BODIES[item.event], ""
    if item.event == "approval.asked":
        asked = item.facts.get("approval")
        approval = await store.records.approval(str(asked.get("id"))) if isinstance(asked, dict) else None
        if approval is None or approval.answer is not None:
            return None
        if approval.expires_at is not None:
            seconds = min(seconds, (approval.expires_at - now) // 1000)
        details = _question(approval)
    elif item.event == "run.failed":
        details = run.error.message if run.error is not None else ""
    elif device.details:
        details = text_of((await store.conversations.message(run.message)).parts)
    if seconds <= 0:
        return None
    payload: JsonObject = {
        "event": item.event,
        "title": _line(conversation.title, _TITLE) or "moot",
        "body": _line(details, _BODY) if device.details and details.strip() else body,
        "details": device.details and bool(details.strip()),
        "path": f"/c/{quote(conversation.id, safe='')}",
        "tag": run.id,
    }
    assert len(dumps(payload)) <= LONGEST_MESSAGE
    topic = urlsafe_b64encode(sha256(run.id.encode()).digest()[:24]).decode()
    return Notification(payload, "normal" if item.event == "run.finished" else "high", seconds, topic)


def _question(approval: Approval) -> str:
    """Return what a person is asked: the first question, or the tool and what it would do."""
    if isinstance(approval.questions, list):
        return next((str(one["question"]) for one in approval.questions if isinstance(one, dict) and one.get("question")), "")
    subject = ", ".join(part.text for part in approval.parts)
    values: list[Json] = list(object_of(approval.arguments).values())
    return f"{approval.tool}: {subject or next((value for value in values if isinstance(value, str)), '')}"


def _line(text: str, longest: int) -> str:
    """Return untrusted text as one short line without invisible characters."""
    line = spelled_out(_SPACES.sub(" ", text[: longest * 4]).strip())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def service_of(device: Device) -> str:
    """Return the host of a device's push service, the only part of the endpoint that is not secret."""
    return urlsplit(device.endpoint).hostname or ""
