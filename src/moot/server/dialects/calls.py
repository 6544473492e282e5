"""A caller's request as a run: model or agent, history, and conversation."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moot.convert.callers.pieces import Digests, Piece, answer_digest, digests
from moot.convert.callers.request import OUTPUT, CallerRequest
from moot.errors import Busy, ConfigError, NotFound, UsageError
from moot.runtime.setup import find_agent, mode_of
from moot.server.caches import Given, Place
from moot.server.credentials import Caller
from moot.server.state import Server
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.canonical import dumps as to_json
from moot.types.message import Message, Part, is_tool
from moot.types.run import Prompt, Run, Submitted
from moot.types.served import Served
from moot.types.store import OwnerStore
from moot.types.token import LOCAL_USER

__all__ = ["AGENT", "Call", "after_run", "entries_of", "kept_files", "place", "previous", "stored"]


GROUP = 32
"""Messages of a piece that will not change any more; what is behind the last full piece lies in pieces of one."""


async def stored(store: OwnerStore, entries: Sequence[JsonObject]) -> tuple[str, ...]:
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
            entries.append(_blob_names(place.message, _outputs_of(message.parts)))
            continue
        entry: JsonObject = {"role": message.role, "parts": [*message.parts]}
        if message.role == "assistant" and provider:
            entry["metadata"] = {"provider": provider}  # whose signatures they are, as the caller says by sending them there
        entries.append(entry)
    return entries


async def after_run(store: OwnerStore, run: Run, messages: Sequence[Message]) -> tuple[tuple[str, ...], list[JsonObject]]:
    """What goes before `messages` that come behind that run's answer: blobs as they are, and the entries behind them."""
    outputs: JsonObject = {}
    for message in messages:
        outputs |= _given_outputs(message.parts)
    own: list[JsonObject] = [
        {"role": message.role, "parts": [*parts]}
        for message in messages
        if (parts := [part for part in message.parts if part.get("type") != OUTPUT])
    ]
    last = _blob_names(run.message, outputs)
    served = Served.of(run.settings)
    if served is not None and served.history:
        return served.history, [last, *own]
    branch = await store.conversations.branch(run.conversation, head=run.message)
    return (), [*(_blob_names(message.id, {}) for message in branch if message.id != run.message), last, *own]


async def kept_files(store: OwnerStore, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the bytes of their files in blobs. Raises UsageError for base64 that is none."""
    return tuple([dataclasses.replace(message, parts=tuple([await _kept(store, part) for part in message.parts])) for message in messages])


async def _kept(store: OwnerStore, part: Part) -> Part:
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


def _blob_names(message: str, outputs: JsonObject) -> JsonObject:
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


AGENT = "agent:"
"""Before the name of an agent, where a model is named."""

KEY = "v1:"
"""Before a conversation's key that a caller has chosen."""

_NAME = re.compile(r"[\x21-\x7e]{1,100}")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is being answered."""

    server: Server
    caller: Caller
    asked: CallerRequest
    served: Served
    submitted: Submitted
    given: Given
    digest: str
    """Of what was sent; empty when the answer can only be gone on from by its id."""

    @property
    def id(self) -> str:
        return self.submitted.run.id

    @property
    def created(self) -> int:
        """Seconds since the epoch."""
        return self.submitted.run.created_at // 1000

    def answered(self, pieces: Sequence[Piece]) -> None:
        """Remembers the answer as the caller has it."""
        if self.digest:
            found = Place(self.submitted.conversation.id, self.submitted.run.message)
            self.given.remember(self.caller.owner_id, answer_digest(self.digest, pieces), found)


@dataclass(frozen=True, slots=True)
class _Meant:
    """What `model` names."""

    agent: str | None = None
    model: str | None = None
    provider: str = ""


@dataclass(frozen=True, slots=True)
class _Where:
    """The history of a call, and the conversation that it lands in; neither id nor key = a new one."""

    history: tuple[str, ...]
    new: tuple[Part, ...]
    """What the caller says that it has not said before, or that nobody remembers."""
    conversation: str | None = None
    key: str | None = None
    parent: str | None = None
    digest: str = ""


async def place(server: Server, caller: Caller, asked: CallerRequest, given: Given) -> Call:
    """Submits the call. Raises UsageError, NotFound (no such model, no such earlier answer), Busy, StoreError."""
    meant = await _meant(server, asked.model)
    known = digests(asked.messages)
    asked = replace(asked, messages=await kept_files(caller.store, asked.messages))
    if asked.conversation and _NAME.fullmatch(asked.conversation) is None:
        raise UsageError("a conversation's name has 1 to 100 printable characters without spaces")
    if asked.after or (asked.conversation and all(message.role != "assistant" for message in asked.messages)):
        where = await _behind(caller, asked, known.total)
    else:
        where = await _by_content(caller, asked, given, known, meant.provider)
    served = _served(asked, where, plain=meant.agent is None)
    prompt = _prompt(server, caller, asked, meant, served, where)
    try:
        submitted = await server.engine.runs.submit(prompt)
    except Busy:
        if where.key is not None or asked.after:
            raise
        # another call goes on from the same answer: each has a conversation of its own
        submitted = await server.engine.runs.submit(replace(prompt, conversation=None, parent=None))
    return Call(server, caller, asked, served, submitted, given, where.digest)


async def previous(caller: Caller, id: str) -> str:
    """The run behind the id of a response. Raises NotFound."""
    run = id.removeprefix("resp_")
    if run == id or len(run) != 36:
        raise NotFound(f"no response with the id {id!r}")
    return (await caller.store.records.run(run)).id


async def _meant(server: Server, name: str) -> _Meant:
    engine = server.engine
    if name.startswith(AGENT):
        try:
            find_agent(engine.runtime.settings, name.removeprefix(AGENT), {})
        except UsageError as error:
            raise NotFound(error.message, fix="GET /v1/models lists what there is") from error
        return _Meant(agent=name.removeprefix(AGENT))
    try:
        choice = await engine.providers.choice(name)
    except ConfigError:
        raise
    except UsageError as error:
        raise NotFound(error.message, fix="GET /v1/models lists what there is") from error
    return _Meant(model=str(choice.model.id), provider=choice.provider.name)


async def _behind(caller: Caller, asked: CallerRequest, total: str) -> _Where:
    """A call that names what it goes on from: moot has the history, the caller sends what is new."""
    new = _new(asked.messages, 0)
    if asked.after:
        run = await caller.store.records.run(await previous(caller, asked.after))
        blobs, entries = await after_run(caller.store, run, asked.messages)
        history = (*blobs, *await stored(caller.store, entries))
        return _Where(history, new, run.conversation, parent=run.message)
    key = _key(caller, asked.conversation)
    conversation = await caller.store.conversations.by_key(key)
    if conversation is None or conversation.head is None:
        entries = entries_of(asked.messages, [None] * len(asked.messages), "")
        return _Where(await stored(caller.store, entries), new, key=key, digest=total)
    head = await caller.store.conversations.message(conversation.head)
    if head.run is None:
        return _Where((), new, conversation.id)
    blobs, entries = await after_run(caller.store, await caller.store.records.run(head.run), asked.messages)
    return _Where((*blobs, *await stored(caller.store, entries)), new, conversation.id)


async def _by_content(caller: Caller, asked: CallerRequest, given: Given, known: Digests, provider: str) -> _Where:
    """A call that sends all there is: it goes on from the last answer in it that we gave, where that was said."""
    total = known.total
    places = [
        await given.find(caller.store, caller.owner_id, digest, before) if message.role == "assistant" else None
        for message, digest, before in zip(asked.messages, known.each, known.before, strict=True)
    ]
    history = await stored(caller.store, entries_of(asked.messages, places, provider))
    answers = [at for at, message in enumerate(asked.messages) if message.role == "assistant"]
    last = answers[-1] if answers else -1
    goes_on = places[last] if answers else None
    new = _new(asked.messages, last) if answers else _new(asked.messages, 0)
    if asked.conversation:
        return await _named(caller, asked.conversation, _Where(history, new, parent=goes_on and goes_on.message, digest=total), goes_on)
    if goes_on is None:
        return _Where(history, new, digest=total)
    return _Where(history, new, goes_on.conversation, parent=goes_on.message, digest=total)


async def _named(caller: Caller, name: str, where: _Where, goes_on: Place | None) -> _Where:
    """The same in the conversation that the caller has named; behind the answer that it sends back where that was said there."""
    key = _key(caller, name)
    found = await caller.store.conversations.by_key(key)
    there = found is not None and goes_on is not None and goes_on.conversation == found.id
    return replace(where, key=key, parent=where.parent if there else None)


def _key(caller: Caller, name: str) -> str:
    """Keys are unique among all owners, so those of others than the one of this machine have theirs in them."""
    return KEY + (name if caller.owner_id == LOCAL_USER else f"{caller.owner_id}/{name}")


def _new(messages: Sequence[Message], start: int) -> tuple[Part, ...]:
    """What is shown as the caller's message: what it says, and what came of the calls of the answer before."""
    parts: list[Part] = []
    for message in messages[start:]:
        if message.role == "user":
            parts += message.parts
        elif message.role == "assistant":
            parts += [_output(part) for part in message.parts if is_tool(part) and ("output" in part or "errorText" in part)]
    return tuple(parts) or ({"type": "data-note", "data": {"text": "The program said nothing new: it asks for more of the last answer."}},)


def _output(part: Part) -> Part:
    kept = {name: part[name] for name in ("toolCallId", "output", "errorText") if name in part}
    return {"type": OUTPUT, "data": kept}


def _served(asked: CallerRequest, where: _Where, *, plain: bool) -> Served:
    settings = asked.settings
    return Served(
        plain=plain,
        system=asked.system,
        tools=asked.tools,
        tool_choice=settings.tool_choice,
        parallel_calls=settings.parallel_calls,
        max_tokens=settings.max_tokens,
        top_p=settings.top_p,
        stop=settings.stop,
        show_reasoning=settings.show_reasoning,
        history=where.history,
        digest=where.digest,
    )


def _prompt(server: Server, caller: Caller, asked: CallerRequest, meant: _Meant, served: Served, where: _Where) -> Prompt:
    settings: JsonObject = {"unattended": "deny", **served.to_settings()}
    told: JsonObject = {"effort": asked.settings.effort, "temperature": asked.settings.temperature}
    settings |= {name: value for name, value in told.items() if value is not None}
    if asked.settings.schema is not None:
        settings["schema"] = loads_object(to_json(asked.settings.schema))
    mode = None
    if not caller.may("tools"):  # nothing of a chat alone may have an effect
        mode = "plan" if mode_of(server.engine.runtime.settings, {}) == "plan" else "ask"
    return Prompt(
        where.new,
        conversation=where.conversation,
        key=where.key,
        parent=where.parent,
        agent=meant.agent or "default",
        model=meant.model,
        mode=mode,
        trigger="api",
        on_crash="ask" if served.plain else "resume",
        settings=settings,
        user=caller.owner_id,
    )
