"""Submission of a `/v1` call as a run: select the agent or model, the history and the conversation."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from moot.convert.callers.pieces import Digests, Piece, answer_digest, digests
from moot.convert.callers.request import OUTPUT, CallerRequest
from moot.engine.submissions import default_directory
from moot.errors import Busy, ConfigError, NotFound, UsageError
from moot.runtime.setup import find_agent, mode_of
from moot.server.caches import AnswerLocation
from moot.server.credentials import Caller
from moot.server.idempotency import Attempt
from moot.server.state import Server
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.message import Message, Part, is_tool
from moot.types.run import Prompt, Run, Submitted
from moot.types.served import Served
from moot.types.store import OwnerStore
from moot.types.token import LOCAL_USER

GROUP = 32
"""Number of history messages stored in one blob. The remaining messages get a blob each."""


async def store_entries(store: OwnerStore, entries: Sequence[JsonObject]) -> tuple[str, ...]:
    """Store the entries of a history in blobs. Return the hashes of the blobs, for `Served.history`."""
    full = len(entries) - len(entries) % GROUP
    groups = [entries[at : at + GROUP] for at in range(0, full, GROUP)] + [[entry] for entry in entries[full:]]
    blobs = await store.blobs.put_all([dumps([*group]) for group in groups], "application/json")
    return tuple(blob.sha256 for blob in blobs)


def entries_of(messages: Sequence[Message], locations: Sequence[AnswerLocation | None], provider: str) -> list[JsonObject]:
    """Return the caller's messages as history entries. A known answer becomes a reference, which keeps parts the caller can't see."""
    entries: list[JsonObject] = []
    for message, location in zip(messages, locations, strict=True):
        if location is not None:
            calls = [part for part in message.parts if is_tool(part)]
            outputs = {
                str(part.get("toolCallId")): {name: part[name]} for part in calls for name in ("output", "errorText") if name in part
            }
            entries.append(_reference(location.message, cast("JsonObject", outputs)))
            continue
        entry: JsonObject = {"role": message.role, "parts": [*message.parts]}
        if message.role == "assistant" and provider:
            entry["metadata"] = {"provider": provider}  # signatures come from this provider: the caller sends them to it
        entries.append(entry)
    return entries


async def _history_after(store: OwnerStore, run: Run, messages: Sequence[Message]) -> tuple[str, ...]:
    """Store the history: everything up to the run's answer, followed by `messages`. Return the hashes of its blobs."""
    outputs: JsonObject = {}
    for part in (part for message in messages for part in message.parts):
        if part.get("type") == OUTPUT and isinstance(data := part.get("data"), dict):  # sent without its answer
            outputs[str(data.get("toolCallId"))] = {name: value for name, value in data.items() if name != "toolCallId"}
    own: list[JsonObject] = [
        {"role": message.role, "parts": [*parts]}
        for message in messages
        if (parts := [part for part in message.parts if part.get("type") != OUTPUT])
    ]
    last = _reference(run.message, outputs)
    served = Served.of(run.settings)
    if served is not None and served.history:
        return (*served.history, *await store_entries(store, [last, *own]))
    branch = await store.conversations.branch(run.conversation, head=run.message)
    earlier = [_reference(message.id, {}) for message in branch if message.id != run.message]
    return await store_entries(store, [*earlier, last, *own])


async def store_files(store: OwnerStore, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Store the contents of files as blobs. Raise UsageError for invalid base64."""
    return tuple([replace(message, parts=tuple([await _store_file(store, part) for part in message.parts])) for message in messages])


async def _store_file(store: OwnerStore, part: Part) -> Part:
    output = part.get("output")
    if is_tool(part) and isinstance(output, dict) and isinstance(pieces := output.get("value"), list):
        stored: list[Json] = [await _store_file(store, piece) if isinstance(piece, dict) else piece for piece in pieces]
        return {**part, "output": {**output, "value": stored}}
    url = part.get("url")
    if part.get("type") != "file" or not isinstance(url, str) or not url.startswith("data:"):
        return part
    try:
        data = base64.b64decode(url.partition(",")[2], validate=True)
    except binascii.Error as error:
        raise UsageError(f"The {part.get('mediaType')} file is not valid base64: {error}.") from error
    blob = await store.blobs.put(data, str(part.get("mediaType")))
    return {**part, "url": f"blob:{blob.sha256}"}


def _reference(message: str, outputs: JsonObject) -> JsonObject:
    return {"message": message, "outputs": outputs} if outputs else {"message": message}


AGENT = "agent:"
"""Prefix of model names that refer to an agent, as in `agent:NAME`."""

KEY = "v1:"
"""Prefix of conversation keys chosen by callers."""

_NAME = re.compile(r"[\x21-\x7e]{1,100}")


@dataclass(frozen=True, slots=True)
class Call:
    """A submitted call."""

    server: Server
    caller: Caller
    request: CallerRequest
    served: Served
    submitted: Submitted
    digest: str
    """Digest of the request; empty if later calls can only refer to the answer by its id."""

    @property
    def id(self) -> str:
        return self.submitted.run.id

    @property
    def created(self) -> int:
        """Creation time in seconds since the epoch."""
        return self.submitted.run.created_at // 1000

    def answered(self, pieces: Sequence[Piece]) -> None:
        """Remember the answer as the caller received it, so that later calls can continue from it."""
        if self.digest:
            found = AnswerLocation(self.submitted.conversation.id, self.submitted.run.message)
            self.server.answers.remember(self.caller.owner_id, answer_digest(self.digest, pieces), found)


@dataclass(frozen=True, slots=True)
class _Target:
    """The agent or model that the request's field `model` refers to."""

    agent: str | None = None
    model: str | None = None
    provider: str = ""


@dataclass(frozen=True, slots=True)
class _Placement:
    """The history and the conversation for a call. If neither `conversation` nor `key` is set, a new conversation is created."""

    history: tuple[str, ...]
    new: tuple[Part, ...]
    """Parts that the caller sends for the first time, or that moot no longer remembers."""
    conversation: str | None = None
    key: str | None = None
    parent: str | None = None
    digest: str = ""


async def submit_call(server: Server, caller: Caller, request: CallerRequest, headers: Mapping[str, str], attempt: Attempt) -> Call:
    """Submit the call to the conversation named by the request or its header `x-moot-conversation`, or to one chosen by the history.

    Raise UsageError if the request is invalid, NotFound for an unknown model or earlier answer, Busy if the conversation is busy, or
    StoreError.
    """
    if not request.conversation and not request.after:
        request = replace(request, conversation=headers.get("x-moot-conversation", ""))
    target = await _target(server, request.model, default_directory(caller.owner_id))
    known = digests(request.messages)
    request = replace(request, messages=await store_files(caller.store, request.messages))
    if request.conversation and _NAME.fullmatch(request.conversation) is None:
        raise UsageError("A conversation name must have 1 to 100 printable characters without spaces.")
    if request.after or (request.conversation and all(message.role != "assistant" for message in request.messages)):
        placement = await _after_answer(caller, request, known.total)
    else:
        placement = await _by_history(server, caller, request, known, target.provider)
    served = _served(request, placement, plain=target.agent is None)
    prompt = replace(_prompt(server, caller, request, target, served, placement), id=attempt.id)
    try:
        submitted = await server.engine.runs.submit(prompt)
    except Busy:
        if placement.key is not None or request.after:
            raise
        # another call continues from the same answer: each gets its own conversation
        submitted = await server.engine.runs.submit(replace(prompt, conversation=None, parent=None))
    return Call(server, caller, request, served, submitted, placement.digest)


async def run_of_response(caller: Caller, id: str) -> str:
    """Return the run id of a response id. Raise NotFound if it does not exist."""
    run = id.removeprefix("resp_")
    if run == id or len(run) != 36:
        raise NotFound(f"No response has the id {id!r}.")
    return (await caller.store.records.run(run)).id


async def _target(server: Server, name: str, directory: str) -> _Target:
    try:
        if name.startswith(AGENT):
            find_agent(server.engine.runtime.settings, name.removeprefix(AGENT), {}, directory)
            return _Target(agent=name.removeprefix(AGENT))
        choice = await server.engine.providers.choice(name)
    except ConfigError:
        raise
    except UsageError as error:
        raise NotFound(error.message, fix="Use a model listed by GET /v1/models.") from error
    return _Target(model=str(choice.model.id), provider=choice.provider.name)


async def _after_answer(caller: Caller, request: CallerRequest, total: str) -> _Placement:
    """Find the history for a call that refers to an earlier answer or a conversation and contains only new messages."""
    new = _new(request.messages, 0)
    if request.after:
        run = await caller.store.records.run(await run_of_response(caller, request.after))
        return _Placement(await _history_after(caller.store, run, request.messages), new, run.conversation, parent=run.message)
    key = _key(caller, request.conversation)
    conversation = await caller.store.conversations.by_key(key)
    if conversation is None or conversation.head is None:
        entries = entries_of(request.messages, [None] * len(request.messages), "")
        return _Placement(await store_entries(caller.store, entries), new, key=key, digest=total)
    head = await caller.store.conversations.message(conversation.head)
    if head.run is None:
        return _Placement((), new, conversation.id)
    run = await caller.store.records.run(head.run)
    return _Placement(await _history_after(caller.store, run, request.messages), new, conversation.id)


async def _by_history(server: Server, caller: Caller, request: CallerRequest, known: Digests, provider: str) -> _Placement:
    """Find the conversation for a call that sends its whole history: that of the last answer in it, if moot knows the answer."""
    total = known.total
    locations = [
        await server.answers.find(caller.store, caller.owner_id, digest, before) if message.role == "assistant" else None
        for message, digest, before in zip(request.messages, known.each, known.before, strict=True)
    ]
    history = await store_entries(caller.store, entries_of(request.messages, locations, provider))
    last = max((at for at, message in enumerate(request.messages) if message.role == "assistant"), default=None)
    predecessor = None if last is None else locations[last]
    parent = predecessor and predecessor.message
    new = _new(request.messages, last or 0)
    if not request.conversation:
        return _Placement(history, new, predecessor and predecessor.conversation, parent=parent, digest=total)
    key = _key(caller, request.conversation)
    found = await caller.store.conversations.by_key(key)
    if found is None or predecessor is None or predecessor.conversation != found.id:
        parent = None  # the returned answer belongs to another conversation
    return _Placement(history, new, key=key, parent=parent, digest=total)


def _key(caller: Caller, name: str) -> str:
    """Return the conversation's key. Keys are unique across owners, so keys of other users contain their id."""
    return KEY + (name if caller.owner_id == LOCAL_USER else f"{caller.owner_id}/{name}")


def _new(messages: Sequence[Message], start: int) -> tuple[Part, ...]:
    """Return the content to show as the caller's message: its new text, and the outputs of the previous answer's tool calls."""
    parts: list[Part] = []
    for message in messages[start:]:
        if message.role == "user":
            parts += message.parts
        elif message.role == "assistant":
            for part in (part for part in message.parts if is_tool(part) and ("output" in part or "errorText" in part)):
                kept = {name: part[name] for name in ("toolCallId", "output", "errorText") if name in part}
                parts.append({"type": OUTPUT, "data": kept})
    return tuple(parts) or ({"type": "data-note", "data": {"text": "No new message: the program asks to continue the last answer."}},)


def _served(request: CallerRequest, placement: _Placement, *, plain: bool) -> Served:
    settings = request.settings
    return Served(
        plain=plain,
        system=request.system,
        tools=request.tools,
        tool_choice=settings.tool_choice,
        parallel_calls=settings.parallel_calls,
        max_tokens=settings.max_tokens,
        top_p=settings.top_p,
        stop=settings.stop,
        show_reasoning=settings.show_reasoning,
        history=placement.history,
        digest=placement.digest,
    )


def _prompt(server: Server, caller: Caller, request: CallerRequest, target: _Target, served: Served, placement: _Placement) -> Prompt:
    settings: JsonObject = {"unattended": "deny", **served.to_settings()}
    model_settings: JsonObject = {"effort": request.settings.effort, "temperature": request.settings.temperature}
    settings |= {name: value for name, value in model_settings.items() if value is not None}
    if request.settings.schema is not None:
        settings["schema"] = loads_object(dumps(request.settings.schema))
    mode = None
    if not caller.may("tools"):  # without the scope `tools`, calls with effects need approval
        mode = "plan" if mode_of(server.engine.runtime.settings, {}) == "plan" else "ask"
    return Prompt(
        placement.new,
        conversation=placement.conversation,
        key=placement.key,
        parent=placement.parent,
        agent=target.agent or "default",
        model=target.model,
        mode=mode,
        trigger="api",
        on_crash="ask" if served.plain else "resume",
        settings=settings,
        user=caller.owner_id,
    )
