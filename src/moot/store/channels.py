"""Events for outgoing webhooks and devices, inserted in the same transaction as the changes that they report, and the answers shown by
channels. Also the devices themselves.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, LiteralString, cast

from moot.errors import NotFound, Refused
from moot.store import lookup
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.lookup import prefix_range
from moot.store.rows import parse_stored_object
from moot.types.approval import BY_CLIENT, Approval
from moot.types.canonical import JsonObject, dumps, loads
from moot.types.channel import ChannelAnswer
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.push import MOST_DEVICES, TO_DEVICE, Device, PushEvent
from moot.types.token import LOCAL_USER
from moot.types.webhook import DeliveryStatus, JobAnswer, Outgoing, Subscription

_KEPT = 2_000
"""Number of deliveries to keep for each webhook. Older ones are deleted; if they are pending, they are never sent."""

_COLUMNS: LiteralString = "no, id, webhook, event, at, run, conversation, facts, status, tries, due_at, reason"
_INSERT: LiteralString = (
    "INSERT INTO webhook_delivery (id, webhook, event, at, run, conversation, facts, status, due_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?) ON CONFLICT (webhook, id) DO NOTHING"
)
_SUBSCRIBED: LiteralString = (
    "SELECT s.name, c.id FROM webhook_subscription AS s"
    " CROSS JOIN run AS r ON r.id = ?1 CROSS JOIN conversation AS c ON c.no = r.conversation AND c.owner_id = ?2"
    " WHERE EXISTS (SELECT 1 FROM json_each(s.events) WHERE value = ?3) AND s.of_agent IN ('', r.agent)"
    " AND s.in_conversation IN ('', c.id, c.key)"
    " AND (s.in_project IN ('', c.project_id) OR EXISTS (SELECT 1 FROM project AS p WHERE p.id = c.project_id AND p.name = s.in_project))"
)
_DEVICES: LiteralString = (
    "SELECT d.id, c.id FROM push_device AS d CROSS JOIN run AS r ON r.id = ?1"
    " CROSS JOIN conversation AS c ON c.no = r.conversation AND c.owner_id = d.owner_id"
    " WHERE EXISTS (SELECT 1 FROM json_each(d.events) WHERE value = ?2)"
)
_SUBSCRIPTION: LiteralString = "name, events, in_project, of_agent, in_conversation"
_OLDEST: LiteralString = "SELECT no FROM webhook_delivery WHERE webhook = ? ORDER BY no DESC LIMIT 1 OFFSET ?"


def add_end(transaction: Transaction, run: str, status: str) -> None:
    """Store the end of a run for subscribed webhooks, unless the run is a sub-agent's or was cancelled."""
    if status != "cancelled" and transaction.row("SELECT 1 FROM run WHERE id = ? AND parent_run IS NULL", (run,)) is not None:
        _add(transaction, f"run.{status}", run, run)


def add_request(transaction: Transaction, approval: Approval) -> None:
    """Store a request for approval for subscribed webhooks, unless the client must answer it."""
    if approval.questions != BY_CLIENT:
        facts: JsonObject = {"approval": {"id": approval.id, "tool": approval.tool, "expires_at": approval.expires_at}}
        _add(transaction, "approval.asked", approval.run, approval.id, facts)


def add_budget(transaction: Transaction, run: str, subject: str, budget: JsonObject) -> None:
    """Store the budget warning of a run for subscribed webhooks. Further warnings with the same subject have no effect."""
    _add(transaction, "budget.warning", run, subject, {"budget": budget})


def add_answer(transaction: Transaction, run: str | None, conversation: str | None, answer: JobAnswer) -> None:
    """Store a cron job's answer for the webhook that the job names. If the answer is from a command, there is no run."""
    facts: JsonObject = {"job": answer.job, "text": answer.text}
    _insert(transaction, "job.answer", (run, conversation), answer.webhook, run or new_id(), facts)


def _add(transaction: Transaction, event: str, run: str, subject: str, facts: JsonObject | None = None) -> None:
    """Store an event of a run for each webhook and device that has subscribed to it. `subject` distinguishes events of the same type."""
    found: list[Any] = transaction.execute(_SUBSCRIBED, (run, LOCAL_USER, event)).fetchall()
    for webhook, conversation in found:
        _insert(transaction, event, (run, conversation), webhook, subject, facts or {})
    devices: list[Any] = transaction.execute(_DEVICES, (run, event)).fetchall()
    for device, conversation in devices:
        _insert(transaction, event, (run, conversation), f"{TO_DEVICE}{device}", subject, facts or {})


def _insert(
    transaction: Transaction, event: str, run: tuple[str | None, str | None] | None, webhook: str, subject: str, facts: JsonObject
) -> str:
    """Insert an event and return its id. With `run` (the ids of a run and its conversation), the event is due now; without it, never."""
    # ids of approvals may contain ids chosen by a vendor, which must not appear in a header
    id, now = sha256(f"{event}:{subject}".encode()).hexdigest()[:32], transaction.now_ms
    transaction.execute(_INSERT, (id, webhook, event, now, *(run or (None, None)), dumps(facts), None if run is None else now))
    transaction.execute(f"DELETE FROM webhook_delivery WHERE webhook = ? AND no <= ({_OLDEST})", (webhook, webhook, _KEPT))
    return id


class StoredWebhooks:
    """The SQLite implementation of `WebhookStore`."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def subscribe(self, subscriptions: tuple[Subscription, ...]) -> None:
        rows = sorted((one.name, dumps(list(one.events)).decode(), one.project, one.agent, one.conversation) for one in subscriptions)
        if rows == await self._reader.rows(f"SELECT {_SUBSCRIPTION} FROM webhook_subscription ORDER BY name", (), tuple):
            return

        def work(transaction: Transaction) -> None:
            transaction.execute("DELETE FROM webhook_subscription")
            transaction.many(f"INSERT INTO webhook_subscription ({_SUBSCRIPTION}) VALUES (?, ?, ?, ?, ?)", rows)

        await self._writer.write(work)

    async def add(self, webhook: str, event: str) -> Outgoing:
        def work(transaction: Transaction) -> Outgoing:
            id = _insert(transaction, event, None, webhook, new_id(), {})
            return _outgoing(transaction.row(f"SELECT {_COLUMNS} FROM webhook_delivery WHERE webhook = ? AND id = ?", (webhook, id)))

        return await self._writer.write(work)

    async def due(self, now: int, limit: int) -> list[Outgoing]:
        place = "row_number() OVER (PARTITION BY webhook ORDER BY due_at, no) AS place"
        inner = f"SELECT {_COLUMNS}, {place} FROM webhook_delivery WHERE due_at IS NOT NULL AND due_at <= ?"
        return await self._reader.rows(f"SELECT {_COLUMNS} FROM ({inner}) WHERE place <= ? ORDER BY no", (now, limit), _outgoing)

    async def record(self, no: int, status: DeliveryStatus, *, due_at: int | None = None, reason: str = "") -> None:
        sql = "UPDATE webhook_delivery SET status = ?, tries = tries + 1, due_at = ?, reason = ? WHERE no = ?"
        await self._writer.write(lambda transaction: transaction.execute(sql, (status, due_at, reason, no)), sync=True)

    async def history(self, webhook: str | None = None, *, limit: int = 50) -> list[Outgoing]:
        sql = (
            f"SELECT {_COLUMNS} FROM webhook_delivery WHERE webhook = coalesce(?, webhook) AND webhook NOT GLOB ? ORDER BY no DESC LIMIT ?"
        )
        return await self._reader.rows(sql, (webhook, f"{TO_DEVICE}*", limit), _outgoing)


def _outgoing(row: Any) -> Outgoing:
    no, id, webhook, event, at, run, conversation, facts, status, tries, due_at, reason = row
    kind = cast("DeliveryStatus", status)
    return Outgoing(no, id, webhook, event, at, run, conversation, parse_stored_object(facts), kind, tries, due_at, reason)


RELEASED = "#"
"""Separator between a conversation's former key and its id. A key gets this form when its room starts another conversation."""

_CURRENT: LiteralString = (
    "SELECT r.id, c.id, c.key, coalesce(u.client_id, ''), r.first_seq, coalesce(a.shown, x'7b7d'), a.finished_at IS NOT NULL"
    " FROM conversation AS c JOIN run AS r ON r.conversation = c.no JOIN message AS m ON m.id = r.message"
    " LEFT JOIN message AS u ON u.id = m.parent_id LEFT JOIN channel_answer AS a ON a.run = r.id"
    " WHERE c.key >= ? AND c.key < ? AND c.owner_id = ? AND r.trigger = 'channel'"
    " AND (a.finished_at IS NULL OR r.no = (SELECT max(n.no) FROM run AS n WHERE n.conversation = c.no AND n.trigger = 'channel'))"
    " ORDER BY r.no"
)


class StoredAnswers:
    """The SQLite implementation of `ChannelAnswers`. Channels belong to the local user."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def current(self, prefix: str) -> list[ChannelAnswer]:
        def answer(row: Any) -> ChannelAnswer:
            run, conversation, key, client_id, first, shown, finished = row
            who = key.removeprefix(prefix).partition(RELEASED)[0]
            return ChannelAnswer(
                run, conversation, who, client_id.removeprefix(prefix), first - 1, parse_stored_object(shown), bool(finished)
            )

        return await self._reader.rows(_CURRENT, (*prefix_range(prefix), LOCAL_USER), answer)

    async def record(self, run: str, conversation: str, shown: JsonObject, *, finished: bool) -> None:
        sql = (
            "INSERT INTO channel_answer (run, conversation, shown, finished_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (run) DO UPDATE SET shown = excluded.shown, finished_at = excluded.finished_at"
        )
        await self._writer.write(
            lambda transaction: transaction.execute(sql, (run, conversation, dumps(shown), transaction.now_ms if finished else None)),
            sync=True,
        )

    async def release(self, conversation: str) -> None:
        def work(transaction: Transaction) -> None:
            found = lookup.conversation(transaction, conversation)
            if found.key is not None and RELEASED not in found.key:
                key = f"{found.key}{RELEASED}{found.id}"
                transaction.add(found.no, (Event("meta", body={"key": key}),))
                transaction.execute("UPDATE conversation SET key = ? WHERE no = ?", (key, found.no))

        await self._writer.write(work, sync=True)


_DEVICE: LiteralString = "id, owner_id, name, endpoint, p256dh, auth, token, events, details, created_at, sent_at, failures, error"
_OF_OWNER: LiteralString = "(?1 IS NULL OR owner_id = ?1)"
_PUT_DEVICE: LiteralString = (
    "INSERT INTO push_device (id, owner_id, name, endpoint, p256dh, auth, token, events, details, created_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET owner_id = excluded.owner_id, name = excluded.name,"
    " endpoint = excluded.endpoint, p256dh = excluded.p256dh, auth = excluded.auth, token = excluded.token, events = excluded.events,"
    " details = excluded.details, failures = iif(endpoint = excluded.endpoint, failures, 0),"
    " error = iif(endpoint = excluded.endpoint, error, '')"
)


class StoredDevices:
    """The SQLite implementation of `Devices`; an `owner` of None means all owners."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def list(self) -> list[Device]:
        return await self._reader.rows(f"SELECT {_DEVICE} FROM push_device WHERE {_OF_OWNER} ORDER BY no", (self._owner,), _device)

    async def get(self, id: str) -> Device:
        sql = f"SELECT {_DEVICE} FROM push_device WHERE {_OF_OWNER} AND id = ?2"
        found = await self._reader.row(sql, (self._owner, id), _device)
        if found is None:
            raise _missing(id)
        return found

    async def add(self, device: Device, *, replaces: str = "") -> Device:
        owner = self._owner or device.owner

        def work(transaction: Transaction) -> Device:
            id, created_at = device.id, transaction.now_ms
            if (same := _by_endpoint(transaction, device.endpoint)) is not None:
                # the keys prove that it is the same browser, perhaps with another user's login
                if (same.p256dh, same.auth) != (device.p256dh, device.auth):
                    raise Refused("Another subscription has this endpoint.", fix="Create a new subscription in the browser.")
                id, created_at = (same.id, same.created_at) if same.owner == owner else (id, created_at)
                if same.owner != owner:
                    transaction.execute("DELETE FROM push_device WHERE id = ?", (same.id,))
            elif (old := _by_endpoint(transaction, replaces)) is not None and old.owner == owner:
                id, created_at = old.id, old.created_at
            elif transaction.row("SELECT count(*) FROM push_device WHERE owner_id = ?", (owner,))[0] >= MOST_DEVICES:
                raise Refused(f"Notifications can be sent to at most {MOST_DEVICES} devices.", fix="Remove a device first.")
            values = (device.name, device.endpoint, device.p256dh, device.auth, device.token)
            transaction.execute(_PUT_DEVICE, (id, owner, *values, dumps(list(device.events)).decode(), device.details, created_at))
            return _device(transaction.row(f"SELECT {_DEVICE} FROM push_device WHERE id = ?", (id,)))

        return await self._writer.write(work, sync=True)

    async def remove(self, id: str) -> None:
        def work(transaction: Transaction) -> None:
            if transaction.row(f"DELETE FROM push_device WHERE {_OF_OWNER} AND id = ?2 RETURNING 1", (self._owner, id)) is None:
                raise _missing(id)

        await self._writer.write(work, sync=True)

    async def record(self, id: str, error: str) -> None:
        sql: LiteralString = (
            "UPDATE push_device SET error = ?3, failures = iif(?3 = '', 0, failures + 1), sent_at = iif(?3 = '', ?4, sent_at)"
            f" WHERE {_OF_OWNER} AND id = ?2"
        )
        await self._writer.write(lambda transaction: transaction.execute(sql, (self._owner, id, error, transaction.now_ms)))


def _by_endpoint(transaction: Transaction, endpoint: str) -> Device | None:
    row = transaction.row(f"SELECT {_DEVICE} FROM push_device WHERE endpoint = ?", (endpoint,)) if endpoint else None
    return None if row is None else _device(row)


def _missing(id: str) -> NotFound:
    return NotFound(f"No device has the id {id!r}.", fix="Reload the list of devices.")


def _device(row: Any) -> Device:
    id, owner, name, endpoint, p256dh, auth, token, events, details, *rest = row
    known = cast("tuple[PushEvent, ...]", tuple(cast("list[str]", loads(events.encode()))))
    return Device(id, owner, name, endpoint, bytes(p256dh), bytes(auth), token, known, bool(details), *rest)
