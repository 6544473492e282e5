"""What a caller sent, as blobs: a history that grows from call to call shares all its earlier pieces, and a picture is kept once."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Sequence

from moot.convert.callers.asked import OUTPUT
from moot.errors import UsageError
from moot.server.given import Place
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.message import Message
from moot.types.part import Part, is_tool
from moot.types.run import Run
from moot.types.served import Served
from moot.types.store import Holdings

__all__ = ["after_run", "entries_of", "kept_files", "stored"]

GROUP = 32
"""Messages of a piece that will not change any more; what is behind the last full piece lies in pieces of one."""


async def stored(store: Holdings, entries: Sequence[JsonObject]) -> tuple[str, ...]:
    """The blobs of these entries, for `Served.history`."""
    full = len(entries) - len(entries) % GROUP
    groups = [entries[at : at + GROUP] for at in range(0, full, GROUP)] + [[entry] for entry in entries[full:]]
    blobs = await store.blobs.put_all([dumps([*group]) for group in groups], "application/json")
    return tuple(blob.sha256 for blob in blobs)


def entries_of(messages: Sequence[Message], places: Sequence[Place | None], provider: str) -> list[JsonObject]:
    """The entries of what the caller sent; an answer that we gave is named, so that nothing of it is lost that the caller does not see."""
    entries: list[JsonObject] = []
    for message, place in zip(messages, places, strict=True):
        if place is not None:
            entries.append(_named(place.message, _outputs_of(message.parts)))
            continue
        entry: JsonObject = {"role": message.role, "parts": [*message.parts]}
        if message.role == "assistant" and provider:
            entry["metadata"] = {"provider": provider}  # whose signatures they are, as the caller says by sending them there
        entries.append(entry)
    return entries


async def after_run(store: Holdings, run: Run, messages: Sequence[Message]) -> tuple[tuple[str, ...], list[JsonObject]]:
    """What goes before `messages` that come behind that run's answer: blobs as they are, and the entries behind them."""
    outputs: JsonObject = {}
    for message in messages:
        outputs |= _given_outputs(message.parts)
    own: list[JsonObject] = [
        {"role": message.role, "parts": [*parts]}
        for message in messages
        if (parts := [part for part in message.parts if part.get("type") != OUTPUT])
    ]
    last = _named(run.message, outputs)
    served = Served.of(run.settings)
    if served is not None and served.history:
        return served.history, [last, *own]
    branch = await store.conversations.branch(run.conversation, head=run.message)
    return (), [*(_named(message.id, {}) for message in branch if message.id != run.message), last, *own]


async def kept_files(store: Holdings, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the bytes of their files in blobs. Raises UsageError for base64 that is none."""
    return tuple([dataclasses.replace(message, parts=tuple([await _kept(store, part) for part in message.parts])) for message in messages])


async def _kept(store: Holdings, part: Part) -> Part:
    output = part.get("output")
    if is_tool(part) and isinstance(output, dict) and isinstance(pieces := output.get("value"), list):
        kept: list[Json] = [await _kept(store, piece) if isinstance(piece, dict) else piece for piece in pieces]
        return {**part, "output": {**output, "value": kept}}
    url = part.get("url")
    if part.get("type") != "file" or not isinstance(url, str) or not url.startswith("data:"):
        return part
    try:
        data = base64.b64decode(url.partition(",")[2], validate=True)
    except binascii.Error as error:
        raise UsageError(f"the {part.get('mediaType')} that was sent is no base64: {error}") from error
    blob = await store.blobs.put(data, str(part.get("mediaType")))
    return {**part, "url": f"blob:{blob.sha256}"}


def _named(message: str, outputs: JsonObject) -> JsonObject:
    return {"message": message, "outputs": outputs} if outputs else {"message": message}


def _outputs_of(parts: Sequence[Part]) -> JsonObject:
    """What came of the calls of an answer that was sent back."""
    found: JsonObject = {}
    for part in parts:
        for name in ("output", "errorText"):
            if is_tool(part) and name in part:
                found[str(part.get("toolCallId"))] = {name: part[name]}
    return found


def _given_outputs(parts: Sequence[Part]) -> JsonObject:
    """The same for outputs that came alone."""
    found: JsonObject = {}
    for part in parts:
        data = part.get("data")
        if part.get("type") == OUTPUT and isinstance(data, dict):
            found[str(data.get("toolCallId"))] = {name: value for name, value in data.items() if name != "toolCallId"}
    return found
