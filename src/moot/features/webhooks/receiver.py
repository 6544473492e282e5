"""Incoming webhooks: verify the sender of a delivery, identify the delivery, and create a prompt from its payload."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes

from moot.config.settings import OutgoingWebhook, Webhook
from moot.errors import UsageError
from moot.types.canonical import Json, loads_exact
from moot.types.ids import new_id
from moot.types.message import text_part
from moot.types.run import Prompt
from moot.types.templates import fill_fields

SHORTEST_SECRET = 16
"""Minimum length of a secret. Shorter secrets can be guessed and are not accepted."""

LONGEST = 1024 * 1024
"""Maximum size of a delivery, in bytes."""

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
"""Headers of a delivery. The timestamp is in seconds since the epoch. The signature is `sha256=` followed by hexadecimal digits."""

_TIME = re.compile(r"[0-9]{1,12}")
_DECOY = token_bytes(32)
"""Key that is used if a webhook has no secret, so that rejecting a request always takes the same time."""

LONGEST_NAME = 200
"""Maximum length of a delivery's id, and of the key of its conversation, in characters."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One authenticated request."""

    id: str
    """The same for repeated deliveries, so that each delivery is handled only once."""
    payload: Json


def secret_of(webhook: Webhook | OutgoingWebhook | None) -> bytes:
    """Return the secret, or an empty string if there is none that can be used. This blocks, because the secret may be in a file."""
    if webhook is None:
        return b""
    secret = webhook.secret
    if webhook.secret_file:
        try:
            secret = Path(webhook.secret_file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return b""
    return secret.encode() if len(secret) >= SHORTEST_SECRET else b""


def signature_of(secret: bytes, id: str, timestamp: str, body: bytes) -> str:
    """Return the signature of `id.timestamp.body`, or of `timestamp.body` if there is no id."""
    signed = b".".join(([_sent(id)] if id else []) + [_sent(timestamp), body])
    return f"sha256={hmac.new(secret, signed, sha256).hexdigest()}"


def is_authentic(webhook: Webhook | None, secret: bytes, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Return whether the sender knows the secret and, if the delivery is signed,
    whether it was signed at about this time. `now` is in seconds.

    Everything is always computed, so that the response time does not reveal whether a webhook exists and how it is configured.
    """
    key = secret or _DECOY
    kind, _, given = headers.get("authorization", "").partition(" ")
    knows = hmac.compare_digest(_sent(given.strip()), key) and kind.lower() == "bearer"
    timestamp, signature = headers.get(TIMESTAMP, ""), headers.get(SIGNATURE, "")
    signs = hmac.compare_digest(_sent(signature), signature_of(key, headers.get(ID, ""), timestamp, body).encode())
    at = int(timestamp) if _TIME.fullmatch(timestamp) else None
    if webhook is None or not webhook.enabled or not secret:
        return False
    return knows if webhook.auth == "bearer" else signs and at is not None and abs(now - at) <= webhook.tolerance


def _sent(header: str) -> bytes:
    """Return the bytes of a header as they were sent."""
    return header.encode("latin-1", "replace")


def delivery_of(webhook: Webhook, headers: Mapping[str, str], body: bytes) -> Delivery:
    """Return an authentic delivery. Raise UsageError if its body or id is not valid.

    Its identity is taken from the payload, or else from its id header, which the signature covers, or else from the signature itself.
    """
    try:
        payload = loads_exact(body)
    except ValueError as error:
        raise UsageError(f"The body is not valid JSON: {error}.", fix="Send a JSON document.") from error
    id = (
        fill_fields(webhook.delivery, payload)
        or _sent(headers.get(ID, "")).decode("utf-8", "replace")
        or headers.get(SIGNATURE, "")
        or new_id()
    )
    return Delivery(_name(id), payload)


def prompt_of(name: str, webhook: Webhook, delivery: Delivery) -> Prompt:
    """Return the prompt for a delivery. For a repeated delivery, this is the same prompt, which is answered only once.

    Raise UsageError if a field is empty or too long.
    """
    topic = _name(fill_fields(webhook.conversation, delivery.payload))
    text = fill_fields(webhook.prompt, delivery.payload)
    if not text.strip():
        raise UsageError("The prompt is empty, because the payload lacks the fields that the prompt refers to.")
    return Prompt(
        (text_part(text),),
        key=f"webhook:{name}:{f'topic:{topic}' if topic else f'delivery:{delivery.id}'}",
        client_id=f"webhook:{sha256(delivery.id.encode()).hexdigest()}",
        directory=str(Path(webhook.directory).expanduser()) if webhook.directory else "",
        agent=webhook.agent or None,
        model=webhook.model or None,
        on_busy="queue",
        trigger="webhook",
        on_crash="resume",
        settings={"unattended": "deny"} if webhook.unattended == "deny" else {},
    )


def _name(text: str) -> str:
    if len(text) > LONGEST_NAME or not text.isprintable():
        message = f"The id and the conversation of a delivery can have at most {LONGEST_NAME} printable characters."
        raise UsageError(message, fix="Use other fields in the templates of the webhook, or send another id.")
    return text
