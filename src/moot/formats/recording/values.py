"""Conversion of a recording's objects to and from JSON. Fields of the wrong type are read as missing."""

from __future__ import annotations

import base64
import binascii
from typing import Any, cast, get_args

from moot.convert.serialization import direction, raw_json
from moot.errors import UsageError
from moot.formats.kit.fields import obj, objects, text
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.conversation import Conversation, check_tags
from moot.types.event import SENT, Event, as_tombstone, from_tombstone
from moot.types.exchange import Exchange, ExchangeOptions, Failure, Purpose
from moot.types.message import Message, MessageStatus
from moot.types.run import Run, RunStatus
from moot.types.usage import Usage

_CONVERSATION = (
    *("id", "title", "title_source", "agent", "agent_type", "model"),
    *("directory", "head", "forked_from", "created_at", "updated_at"),
)
_RUN = (
    *("id", "message", "agent", "agent_type", "agent_session_id", "model"),
    *("trigger", "status", "cost", "created_at", "started_at", "ended_at"),
)
_EXCHANGE = ("id", "run", "purpose", "dialect", "converter", "provider", "model", "request", "chunk_format", "ended")
_MESSAGE = ("id", "role", "parent", "run", "status", "client_id", "created_at")


def conversation_facts(value: Conversation) -> JsonObject:
    pin: JsonObject = {"pinned_at": value.pinned_at} if value.pinned_at is not None else {}
    return {**_facts(value, _CONVERSATION), **pin, **({"tags": [*value.tags]} if value.tags else {})}


def conversation_of(value: JsonObject) -> Conversation:
    read = _Reading(value)
    source = read.text("title_source")
    return Conversation(
        read.text("id"),
        title=read.text("title"),
        title_source=cast("Any", source) if source in ("first-line", "model", "user") else "none",
        agent=read.text("agent") or "default",
        agent_type=read.text("agent_type") or "moot",
        model=read.text("model"),
        last_model=read.text("model"),
        directory=read.text("directory"),
        head=read.text("head") or None,
        created_at=read.number("created_at"),
        updated_at=read.number("updated_at"),
        pinned_at=read.number("pinned_at") or None,
        tags=_tags(value.get("tags")),
    )


def _tags(value: Json) -> tuple[str, ...]:
    """Return the tags, or none if one is invalid."""
    try:
        return check_tags(str(tag) for tag in value) if isinstance(value, list) else ()
    except UsageError:
        return ()


def run_facts(value: Run) -> JsonObject:
    error = value.error.to_json() if value.error is not None else None
    return {**_facts(value, _RUN), "settings": value.settings, "error": error, "usage": value.usage.to_json()}


def run_of(value: JsonObject, conversation: str) -> Run:
    read = _Reading(value)
    error, usage, cost = value.get("error"), value.get("usage"), value.get("cost")
    status = read.text("status")
    return Run(
        read.text("id"),
        conversation,
        read.text("message"),
        agent=read.text("agent") or "default",
        agent_type=read.text("agent_type") or "moot",
        agent_session_id=read.text("agent_session_id") or None,
        model=read.text("model"),
        trigger=cast("Any", read.text("trigger") or "import"),
        status=cast("RunStatus", status) if status in ("finished", "failed", "cancelled") else "cancelled",
        settings=read.object("settings"),
        error=Failure.from_json(error) if isinstance(error, dict) else None,
        usage=Usage.from_json(usage) if isinstance(usage, dict) else Usage(),
        cost=cost if type(cost) is int else None,
        created_at=read.number("created_at"),
        started_at=read.number("started_at") or None,
        ended_at=read.number("ended_at") or None,
    )


def exchange_facts(value: Exchange) -> JsonObject:
    options = _facts(value.options, ("prefix", "step", "tool_call_ids", "extra"))
    return {**_facts(value, _EXCHANGE), "options": {**options, "tool_call_ids": list[Json](value.options.tool_call_ids)}}


def exchange_of(value: JsonObject, conversation: str) -> Exchange:
    read = _Reading(value)
    options = _Reading(read.object("options"))
    ids, ended, purpose = options.value.get("tool_call_ids"), read.text("ended"), read.text("purpose")
    return Exchange(
        read.text("id"),
        read.text("run"),
        conversation,
        cast("Purpose", purpose) if purpose in get_args(Purpose) else "answer",
        read.text("dialect"),
        read.text("converter"),
        read.text("provider"),
        read.text("model"),
        ExchangeOptions(
            options.text("prefix") or "0",
            options.number("step"),
            tuple(str(id) for id in ids) if isinstance(ids, list) else (),
            options.object("extra"),
        ),
        read.object("request"),
        read.text("chunk_format") or "ui-message-chunk/7",
        ended if ended in ("eof", "cut", "cancelled") else "cut",
    )


def message_facts(value: Message, *, deleted: bool) -> JsonObject:
    facts = {name: fact for name, fact in _facts(value, _MESSAGE).items() if fact is not None}
    return {**facts, "seq": value.first_seq, **({"deleted": True} if deleted else {})}


def message_of(value: JsonObject, conversation: str, body: JsonObject) -> Message:
    """Return the message in a line. Fields in `body`, which comes from the message's event, take precedence over those in the line."""
    read = _Reading({**value, **{name: fact for name, fact in body.items() if fact is not None}})
    role, status = read.text("role"), read.text("status")
    return Message(
        read.text("id"),
        role if role in ("system", "user", "assistant") else "assistant",
        tuple(objects(read.value, "parts")),
        read.object("metadata"),
        conversation,
        read.text("parent") or None,
        read.text("run") or None,
        cast("MessageStatus", status) if status in ("failed", "cancelled") else "finished",
        read.text("client_id") or None,
        first_seq=read.number("seq"),
        created_at=read.number("created_at"),
    )


def frame_facts(event: Event, *, chunks: bool) -> JsonObject:
    """Return the JSON of a frame, which is an exchange's `raw` event. Include chunks only if the raw bytes can't reproduce them."""
    assert event.raw is not None
    value: JsonObject = {"exchange": event.exchange, "seq": event.seq, "at": event.at, "dir": direction(event), **raw_json(event.raw)}
    if event.body is not None and event.body != SENT:
        value["body"] = event.body
    if chunks:
        value["chunks"] = list[Json](event.chunks)
    return value


def event_facts(event: Event) -> JsonObject:
    """Return the JSON of an event that is not a frame."""
    event = as_tombstone(event)
    value: JsonObject = {"seq": event.seq, "kind": event.kind, "at": event.at}
    more: JsonObject = {"run": event.run, "exchange": event.exchange, "phase": event.phase, "key": event.key, "body": event.body}
    value |= {name: fact for name, fact in more.items() if fact is not None}
    if event.chunks:
        value["chunks"] = list[Json](event.chunks)
    return value | (raw_json(event.raw) if event.raw is not None else {})


def frame_of(value: JsonObject, run: str | None) -> Event:
    """Return the `raw` event for the JSON of a frame. Raise ValueError if the frame has no readable raw bytes."""
    read = _Reading(value)
    raw = raw_of(value)
    if raw is None:
        raise ValueError("A frame must have `raw` or `raw_base64`.")
    body = SENT if value.get("dir") == "out" else value.get("body")
    return Event("raw", _chunks(value), raw, run, read.text("exchange") or None, None, None, body, read.number("at"), read.number("seq"))


def event_of(value: JsonObject) -> Event:
    """Return the event for the JSON of an `event` line. Raise ValueError if its kind, its raw bytes or the message in it can't be read."""
    read = _Reading(value)
    phase = read.text("phase")
    if not read.text("kind"):
        raise ValueError("An event must have a `kind`.")
    event = Event(
        read.text("kind"),
        _chunks(value),
        raw_of(value),
        read.text("run") or None,
        read.text("exchange") or None,
        cast("Any", phase) if phase in ("start", "end") else None,
        read.text("key") or None,
        value.get("body"),
        read.number("at"),
        read.number("seq"),
    )
    if event.kind == "message" and not _is_message(event.body):
        raise ValueError("The body of a message needs an `id` and a list of `parts`.")
    return from_tombstone(event)


def _is_message(body: Json) -> bool:
    parts = body.get("parts") if isinstance(body, dict) and isinstance(body.get("id"), str) else None
    return isinstance(parts, list) and all(isinstance(part, dict) for part in parts)


def raw_of(value: JsonObject) -> bytes | None:
    """Return the bytes of `raw` or `raw_base64`, or None. Raise ValueError if the base64 is invalid."""
    raw, encoded = value.get("raw"), value.get("raw_base64")
    if isinstance(raw, str):
        return raw.encode()
    try:
        return base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else None
    except binascii.Error as error:
        raise ValueError(f"`raw_base64` is invalid: {error}.") from error


def _chunks(value: JsonObject) -> tuple[Chunk, ...]:
    return tuple(piece for piece in objects(value, "chunks") if "type" in piece)


def _facts(value: object, names: tuple[str, ...]) -> JsonObject:
    return {name: getattr(value, name) for name in names}


class _Reading:
    """A JSON object. A field of the wrong type is read as missing."""

    def __init__(self, value: JsonObject) -> None:
        self.value = value

    def text(self, name: str) -> str:
        return text(self.value, name)

    def number(self, name: str) -> int:
        found = self.value.get(name)
        return found if type(found) is int and 0 <= found < 1 << 62 else 0

    def object(self, name: str) -> JsonObject:
        return obj(self.value, name)
