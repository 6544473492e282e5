"""Outgoing webhooks: signed POST requests about runs, with up to three attempts each. Push notifications to devices use the same queue.
The stored rows are both the queue and the history.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from ipaddress import ip_network

from anyio import to_thread
from yarl import URL

from moot.config.settings import OutgoingWebhook
from moot.engine.clock import Clock
from moot.errors import MootError, NotFound, Refused
from moot.features.webhooks.push import Outcome, Pusher
from moot.features.webhooks.receiver import ID, SHORTEST_SECRET, SIGNATURE, TIMESTAMP, secret_of, signature_of
from moot.guard.urls import Policy, fetch, without_secrets
from moot.runtime.runtime import Runtime
from moot.types.canonical import JsonObject, dumps
from moot.types.crash import point
from moot.types.ids import Clock as Time
from moot.types.message import text_of
from moot.types.push import TO_DEVICE
from moot.types.store import Store
from moot.types.webhook import Outgoing, Subscription

PAUSES = (10_000, 60_000)
"""Milliseconds to wait after the first and after the second failed attempt. The third attempt is the last one."""

AT_ONCE = 4
"""Maximum number of simultaneous deliveries to one webhook."""

LONGEST_TEXT = 32_000
"""Maximum number of characters of an answer in a payload."""

_ALL_AT_ONCE = 32
_POLL = 500
"""Milliseconds between two checks for events from any process and for changes to the configuration."""

_ANSWER = 16 * 1024
"""Maximum number of bytes to read from a response. Only the response's status matters."""

_TICK = "outgoing-webhooks"
_OWN = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
"""Addresses of this machine, which are allowed because the local user has configured the URL."""

log = logging.getLogger("moot.webhooks")


class OutgoingWebhooks:
    """Sender of stored events to webhooks and devices. One entry in the clock looks for events that are due. Each request is sent in a
    separate entry.
    """

    def __init__(self, runtime: Runtime, clock: Clock, page: str = "", *, pusher: Pusher | None = None) -> None:
        """`page` is the URL of the web page, for links. `pusher` sends notifications to devices."""
        self._runtime = runtime
        self._store = runtime.store
        self._clock = clock
        self._page = page
        self._pusher = pusher or Pusher(runtime.store, runtime.settings.home, runtime.clock, contact=runtime.settings.server.push_contact)
        self._sending: set[int] = set()
        self._subscribed: object = None

    async def start(self) -> None:
        """Store events from now on, and send them until the clock stops."""
        await self._tick()

    async def _tick(self) -> None:
        try:
            await self._subscribe()
            await self._start_due()
        except MootError as error:  # such as a full disk; the next round tries again
            log.error("outgoing webhooks: %s", error)
        finally:
            self._clock.at(_TICK, self._now + _POLL, self._tick)

    async def _subscribe(self) -> None:
        """Store the list of configured webhooks, so that every process stores events for them."""
        current = {name: one for name, one in self._configured.items() if one.enabled}
        if current != self._subscribed:
            await self._store.webhooks.subscribe(
                tuple(Subscription(name, one.events, one.project, one.agent, one.conversation) for name, one in current.items())
            )
            self._subscribed = current

    async def _start_due(self) -> None:
        for item in await self._store.webhooks.due(self._now, AT_ONCE):
            if item.no not in self._sending and len(self._sending) < _ALL_AT_ONCE:
                self._sending.add(item.no)
                self._clock.at(f"{_TICK}:{item.no}", self._now, partial(self._send, item))

    async def _send(self, item: Outgoing) -> None:
        try:
            outcome = await (self._pusher.attempt(item) if item.webhook.startswith(TO_DEVICE) else self._attempt(item))
            point("webhook.sent")
            if not outcome.reason:
                await self._store.webhooks.record(item.no, "delivered")
            elif not (outcome.is_final or outcome.is_skipped) and item.tries < len(PAUSES):
                due_at = self._now + max(PAUSES[item.tries], outcome.pause)
                await self._store.webhooks.record(item.no, "pending", due_at=due_at, reason=outcome.reason)
            else:
                if not outcome.is_skipped:
                    log.warning("%s was not delivered to %s: %s", item.event, item.webhook, outcome.reason)
                await self._store.webhooks.record(item.no, "failed", reason=outcome.reason)
        finally:
            self._sending.discard(item.no)

    async def _attempt(self, item: Outgoing) -> Outcome:
        """Try once to send an event to its webhook."""
        webhook = self._configured.get(item.webhook)
        if webhook is None or not webhook.enabled:
            return Outcome("The webhook is not configured, or disabled.", is_skipped=True)
        try:
            body = await payload_of(self._store, item, page=self._page, text=webhook.text)
        except NotFound:
            return Outcome("The run was deleted.")
        return Outcome(await post(webhook, item.id, body, self._runtime.clock))

    @property
    def _configured(self) -> Mapping[str, OutgoingWebhook]:
        return self._runtime.settings.outgoing_webhooks

    @property
    def _now(self) -> int:
        return self._runtime.now() // 1000


async def send_test(store: Store, webhooks: Mapping[str, OutgoingWebhook], name: str, clock: Time) -> Outgoing:
    """Send the event `webhook.test` once and return its entry in the history. Raise NotFound for an unknown webhook."""
    webhook = webhooks.get(name)
    if webhook is None:
        raise NotFound(f"Outgoing webhook {name!r} not found.", fix="Add it to `outgoing_webhooks` in the configuration.")
    item = await store.webhooks.add(name, "webhook.test")
    reason = await post(webhook, item.id, await payload_of(store, item), clock)
    await store.webhooks.record(item.no, "failed" if reason else "delivered", reason=reason)
    return next(one for one in await store.webhooks.history(name) if one.no == item.no)


async def payload_of(store: Store, item: Outgoing, *, page: str = "", text: bool = False) -> JsonObject:
    """Return the body of a delivery. If `text` is True, include the answer and the error message.
    Raise NotFound if the run no longer exists.
    """
    payload: JsonObject = {"event": item.event, "id": item.id, "at": item.at}
    if item.run is not None:
        run = await store.records.run(item.run)
        conversation = await store.conversations.get(run.conversation)
        payload |= {
            "run": run.id,
            "conversation": {"id": conversation.id, "title": conversation.title},
            "status": run.status,
            "agent": run.agent,
            "model": run.model,
            "cost": run.cost,
            "usage": run.usage.to_json(),
            "error": None,
        }
        if run.error is not None:
            payload["error"] = {"kind": run.error.kind, "message": run.error.message if text else ""}
        if page:
            payload["url"] = f"{page}/c/{conversation.id}"
        if text and item.event == "run.finished":
            payload["text"] = text_of((await store.conversations.message(run.message)).parts).strip()[:LONGEST_TEXT]
    return payload | item.facts


async def post(webhook: OutgoingWebhook, id: str, payload: JsonObject, clock: Time) -> str:
    """Sign and send a payload. If it was not accepted, return the reason, otherwise an empty string.

    The reason never contains a secret or the path of the URL.
    """
    secret = await to_thread.run_sync(secret_of, webhook)
    if not secret:
        return f"It has no secret of at least {SHORTEST_SECRET} characters."
    body, timestamp = dumps(payload), str(clock.now() // 1_000_000)
    headers = {"content-type": "application/json", ID: id, TIMESTAMP: timestamp, SIGNATURE: signature_of(secret, id, timestamp, body)}
    try:
        page = await fetch(webhook.url, headers=headers, body=body, policy=_policy(webhook))
    except Refused as error:
        hint = " Set private: true to allow it." if "not on the public network" in error.message else ""
        return without_secrets(error.message, webhook.url) + hint
    except ValueError:
        return "Its URL is not valid."
    return "" if 200 <= page.status < 300 else f"It answered with the status {page.status}."


def _policy(webhook: OutgoingWebhook) -> Policy:
    if webhook.private:
        return Policy(bytes=_ANSWER, seconds=webhook.timeout, anywhere=True)
    return Policy(bytes=_ANSWER, seconds=webhook.timeout, hops=0, ports=frozenset({URL(webhook.url).port or 0}), allow=_OWN)


def delivery_json(item: Outgoing) -> JsonObject:
    """Return an entry of the delivery history as JSON."""
    return {
        "webhook": item.webhook,
        "event": item.event,
        "id": item.id,
        "at": item.at,
        "status": item.status,
        "tries": item.tries,
        "next": item.due_at,
        "reason": item.reason,
        "run": item.run,
        "conversation": item.conversation,
    }


def state_of(webhook: OutgoingWebhook) -> str:
    """Return the state of a webhook: `ready`, `disabled`, or the missing secret. This function blocks."""
    return (
        "disabled" if not webhook.enabled else "ready" if secret_of(webhook) else f"needs a secret of at least {SHORTEST_SECRET} characters"
    )
