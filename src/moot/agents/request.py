"""A step's request: the history within its budget, as the exact bytes that are sent, and their manifest."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from moot.agents.pictures import Files
from moot.convert.fold import in_history
from moot.convert.history import trim
from moot.tools.schema import definition
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.context import Choice, RunContext, StepSetup
from moot.types.crash import point
from moot.types.event import Event
from moot.types.provider import ModelPrompt, ModelRequest
from moot.types.tool import Tool

_MESSAGES = frozenset({"messages", "input", "contents"})
"""Names of the message list in the dialects' bodies."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request ready to be sent."""

    exchange: str
    wire: ModelRequest
    manifest: JsonObject
    tokens: int
    """Estimated tokens of its history."""


async def build(context: RunContext, setup: StepSetup, choice: Choice, exchange: str, *, tools: tuple[Tool, ...], budget: int) -> Request:
    """Build the request of one attempt. The pieces of its manifest are stored before it is sent."""
    history = [*await context.history(budget), context.message()]
    shown = [dataclasses.replace(message, parts=in_history(message.parts)) for message in history]
    kept = trim(tuple(message for message in shown if message.parts), budget)
    files = Files(context, choice.model)
    messages = tuple([await files.message(message) for message in kept])
    if notes := files.notes(context.message().parts):
        await context.append(Event("chunks", notes))
        point("picture.noted")
    prompt = ModelPrompt(
        model=choice.model,
        system=setup.system,
        messages=messages,
        tools=(*(definition(tool) for tool in tools), *(setup.served.tools if setup.served is not None else ())),
        settings=setup.settings,
        quirks=choice.provider.quirks,
    )
    body = choice.dialect.to_request(prompt)
    pieces = split(body)
    blobs = await context.ports.blobs.put_all(pieces, "application/json")
    manifest: JsonObject = {"pieces": [blob.sha256 for blob in blobs]}
    wire = ModelRequest(b"".join(pieces), choice.model.wire_name, idempotency_key=exchange)
    return Request(exchange, wire, manifest, sum(len(piece) for piece in pieces) // 4)


def split(body: JsonObject) -> list[bytes]:
    """Split the request's bytes at the boundaries of its messages, so that the next step's request shares all earlier pieces.

    Joined, the pieces are the canonical form of the body.
    """
    names = list(body)
    name = next((name for name in names if name in _MESSAGES), "")
    messages = body.get(name)
    if not isinstance(messages, list) or not messages:
        return [dumps(body)]
    at = names.index(name)
    before, after = names[:at], names[at + 1 :]
    head = b"{" + b"".join(_member(other, body[other]) + b"," for other in before) + dumps(name) + b":["
    tail = b"]" + b"".join(b"," + _member(other, body[other]) for other in after) + b"}"
    encoded = [dumps(message) for message in messages]
    return [head, *[message + b"," for message in encoded[:-1]], encoded[-1], tail]


def _member(name: str, value: Json) -> bytes:
    return dumps(name) + b":" + dumps(value)
