"""Routes for command lines on other machines (`moot --url`). Their values are exact, see `features/remote.py`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast

import anyio
from fastapi import Depends, Header
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, create_model
from starlette.responses import Response

from moot import __version__
from moot.engine.locks import Place, owner_place
from moot.engine.submissions import default_directory
from moot.errors import MootError, Refused, UsageError
from moot.features.approvals import Asked, CallPreview, asked_in, open_approvals, preview_in
from moot.features.remote import VERSION, Change, Operation, Question, encode, signature_of, types_of
from moot.guard.roots import with_folders
from moot.plugins.registry import attribute
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import ID_BYTES, MOST_PARTS, In, Name, Out, PartIn
from moot.server.problems import Problem, sentence
from moot.server.resources import approval_of, check_directory, conversation_of, message_id, run_of
from moot.server.routes.approvals import AnswerIn, answer_of
from moot.server.routes.conversations.messages import FREE
from moot.server.state import CurrentServer, Server
from moot.server.streams.parts import stored_parts
from moot.types.agent import Mode
from moot.types.canonical import JsonObject
from moot.types.message import Message, Part
from moot.types.model import Detail, Effort
from moot.types.run import OnBusy, Prompt, Run
from moot.types.search import SearchPage, SemanticQuery

_CHECK = "moot.runtime.approvals.answers:check_answer"
"""Import path, loaded for the first approval."""

WAITING = 20.0
"""Maximum number of seconds until `runs.wait` answers. The client then asks again."""


async def _check_version(version: Annotated[str, Header(alias=VERSION, description="The client's version of moot")] = "") -> None:
    if version != __version__:
        detail = f"This server runs moot {__version__}, but your machine runs {f'moot {version}' if version else 'another version'}."
        raise Problem(409, detail, fix="Install the same version on both machines.", code="version")


router = Router(prefix="/api/remote", tags=["remote"])
SAME_VERSION = [Depends(_check_version)]


class ExactOut(Out):
    """An exact value."""

    value: JsonValue
    """JSON, in which objects with the key `~` stand for values that JSON doesn't have."""


class ReadIn(In):
    """A question to the store or the engine."""

    operation: Operation | Question
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class ChangeIn(In):
    """A change of a conversation."""

    operation: Change
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class PromptSettingsIn(In):
    """Options of a prompt."""

    tools: bool | list[Name] | None = None
    effort: Effort | None = None
    detail: Detail | None = None
    max_steps: Annotated[int, Field(ge=1)] | None = None
    max_cost: Annotated[int, Field(ge=0)] | None = None
    """Maximum cost in nano-dollars."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    output_schema: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None
    unattended: Literal["deny"] | None = None
    """`deny` = calls that need approval are denied, because no one can be asked."""
    attended: bool | None = None


class RemotePromptIn(In):
    """A prompt from a command line."""

    parts: Annotated[list[PartIn], Field(default_factory=list, max_length=MOST_PARTS)]
    conversation: Annotated[str, Field(max_length=ID_BYTES)] | None = None
    """Id of the conversation; null = a new one."""
    answers: str | None = None
    agent: Name | None = None
    model: Name | None = None
    mode: Mode | None = None
    on_busy: OnBusy = "reject"
    allow: Annotated[list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(default_factory=list, max_length=100)]
    """Folders on the server that a new conversation may use in addition to its own."""
    temporary: bool = False
    settings: PromptSettingsIn = PromptSettingsIn()


@router.post("/read", dependencies=SAME_VERSION, response_model=ExactOut)
async def read_exact(server: CurrentServer, caller: Reader, body: ReadIn) -> Response:
    """Read a value from the store or the engine, unchanged."""
    if (read := _ENGINE.get(body.operation)) is not None:
        return _exact(await read(server, caller, _checked(EngineArguments, body.operation, body.arguments)))
    return _exact(await _call(caller, body.operation, body.arguments))


@router.post("/change", dependencies=SAME_VERSION, response_model=ExactOut)
async def change_exact(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, body: ChangeIn) -> Response:
    """Rename, archive, pin, tag, delete, fork or switch a conversation, and return the result unchanged."""
    if body.operation == "tree.fork":
        attempt.check_repeatable()
    async with server.change_lock:
        changed = await _call(caller, body.operation, body.arguments)
    server.engine.runtime.hub.touch(str(body.arguments.get("id") or body.arguments.get("conversation")))
    return _exact(changed)


@router.post("/prompts", status_code=202, dependencies=SAME_VERSION, response_model=ExactOut)
async def submit_remote(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, body: RemotePromptIn) -> Response:
    """Submit a prompt, and create its conversation if it is new. Folders and tools require the scope `tools`."""
    chosen = body.settings.model_dump(exclude_none=True, by_alias=True)
    if (body.allow or body.mode in FREE or chosen.get("tools")) and not caller.may("tools"):
        raise Refused("The options --allow, --tools and the modes 'edits' and 'auto' require a token with the scope 'tools'.")
    for folder in body.allow:
        await check_directory(caller, folder)
    found = None if body.conversation is None else await conversation_of(caller, body.conversation)
    if found is not None and body.allow:
        raise UsageError("--allow applies only to new conversations on a server.", fix="Allow the folder on the server's page.")
    parts: tuple[Part, ...] = ()
    if body.parts:
        parts = await stored_parts(caller.store.blobs, body.parts, server.engine.runtime.settings.limits.uploads)
    directory = "" if found is not None else default_directory(caller.owner_id)
    prompt = Prompt(
        parts,
        conversation=found.id if found is not None else None,
        conversation_client_id=f"run-{attempt.id}" if found is None and attempt.id else None,
        answers=None if found is None else await message_id(caller, found.id, body.answers),
        directory=directory,
        allowed_uris=with_folders((), directory, tuple(body.allow)) if body.allow else (),
        agent=body.agent,
        model=body.model,
        mode=body.mode,
        on_busy=body.on_busy,
        on_crash="resume",
        settings=cast("JsonObject", chosen),
        id=attempt.id,
        temporary=body.temporary,
        user=caller.owner_id,
    )
    return _exact(await server.engine.runs.submit(prompt), 202)


def _exact(value: object, status: int = 200) -> Response:
    return Response(b'{"value":%s}' % encode(value), status, media_type="application/json")


# ── the store ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_Model = TypeVar("_Model", bound=BaseModel)

_USED: dict[str, frozenset[str]] = {
    "conversations.update": frozenset({"id", "archived", "pinned", "tags"}),
    "tree.fork": frozenset({"conversation", "message", "title"}),
}
"""The only arguments that may be sent, if a method has more."""


async def _call(caller: Caller, operation: str, arguments: dict[str, JsonValue]) -> object:
    part, _, name = operation.partition(".")
    method = cast("Callable[..., Awaitable[object]]", getattr(getattr(caller.store, part), name))
    return await method(**dict(_checked(_arguments_of(operation), operation, arguments)))


@cache
def _arguments_of(operation: str) -> type[BaseModel]:
    """Return a model of the arguments of a store's method."""
    used = _USED.get(operation)
    given = {name: one for name, one in signature_of(operation).parameters.items() if used is None or name in used}
    types = types_of(operation, given)
    fields: dict[str, Any] = {
        name: (types[name], ... if one.default is inspect.Parameter.empty else one.default) for name, one in given.items()
    }
    return create_model(operation, __config__=ConfigDict(extra="forbid", frozen=True), **fields)


def _checked(model: type[_Model], operation: str, arguments: dict[str, JsonValue]) -> _Model:
    """Return the arguments. Raise Problem (422) if they don't fit."""
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise Problem(422, f"The arguments of {operation} are not valid: {where}: {sentence(fault['msg'])}") from error


# ── the engine ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class EngineArguments(In):
    """Arguments of the questions to the engine. Each uses some of them."""

    id: str = ""
    """Id of a run, an approval, a conversation or a process."""
    answer: AnswerIn | None = None
    arguments: str | None = None
    """Arguments that would replace those of the call."""
    messages: list[str] = Field(default_factory=list)
    query: str = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


async def _asked(server: Server, caller: Caller, given: EngineArguments) -> Asked:
    return await asked_in(caller.store, await approval_of(caller, given.id), server.engine.runtime.settings)


async def _open(server: Server, caller: Caller, given: EngineArguments) -> list[Asked]:
    runtime = server.engine.runtime
    return await open_approvals(caller.store, runtime.settings, now=runtime.now() // 1000)


async def _preview(server: Server, caller: Caller, given: EngineArguments) -> CallPreview:
    approval = await approval_of(caller, given.id)
    run = await caller.store.records.run(approval.run)
    arguments = approval.arguments if given.arguments is None else given.arguments.encode()
    return await preview_in(server.engine.runtime, approval, run.conversation, arguments)


async def _check(server: Server, caller: Caller, given: EngineArguments) -> str:
    """Return the reason why an answer is not possible; empty if it is."""
    approval = await approval_of(caller, given.id)
    if given.answer is None:
        raise UsageError("The answer is missing.")
    try:
        await attribute(_CHECK)(server.engine.runtime, approval.id, answer_of(given.answer))
    except MootError as error:
        return f"{error.message} {error.fix}".rstrip()
    return ""


async def _current(server: Server, caller: Caller, given: EngineArguments) -> Run:
    return await server.engine.runs.current((await run_of(caller, given.id)).id)


async def _wait(server: Server, caller: Caller, given: EngineArguments) -> Run | None:
    """Return the run when it has settled. Return None after a while, and when the server stops."""
    run = await run_of(caller, given.id)
    settled: Run | None = None
    with anyio.move_on_after(WAITING):
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await server.stopping.wait()
                group.cancel_scope.cancel()

            group.start_soon(stop)
            settled = await server.engine.runs.wait(run.id)
            group.cancel_scope.cancel()
    return settled


async def _place(server: Server, caller: Caller, given: EngineArguments) -> Place | None:
    run = await run_of(caller, given.id)
    return None if run.owner is None else owner_place(server.engine.settings.owners, run.owner)


async def _converters(server: Server, caller: Caller, given: EngineArguments) -> dict[str, str]:
    return await server.engine.store.translations.converters((await conversation_of(caller, given.id)).id)


async def _first(server: Server, caller: Caller, given: EngineArguments) -> list[Message]:
    found = await conversation_of(caller, given.id)
    messages = [await caller.store.conversations.message(id, conversation=found.id) for id in given.messages]
    return await server.engine.store.translations.first(messages)


async def _meaning(server: Server, caller: Caller, given: EngineArguments) -> SearchPage:
    within = (await conversation_of(caller, given.id)).id if given.id else None
    embedder = await server.engine.meanings.embedder()
    return await caller.store.meaning.search(SemanticQuery(given.query, given.limit, within), embedder=embedder)


_ENGINE: Mapping[str, Callable[[Server, Caller, EngineArguments], Awaitable[object]]] = {
    "approvals.asked": _asked,
    "approvals.check": _check,
    "approvals.open": _open,
    "approvals.preview": _preview,
    "meaning.search": _meaning,
    "runs.current": _current,
    "runs.place": _place,
    "runs.wait": _wait,
    "translations.converters": _converters,
    "translations.first": _first,
}
