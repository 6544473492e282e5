"""Requests of the AI SDK's transport: prompts, edits, retries, and answers to approvals and client tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, JsonValue, field_validator

from moot.engine import Engine
from moot.engine.submissions import copy_of
from moot.errors import Busy, NotFound, Refused, UsageError
from moot.runtime.journal import PARKED
from moot.server.credentials import Caller
from moot.server.problems import Problem
from moot.server.streams.frames import WHOLE
from moot.server.streams.parts import stored_parts
from moot.server.streams.positions import Opening, replayed
from moot.tools.schema import SETTING
from moot.types.agent import Mode
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import start
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, Part, is_tool, text_part
from moot.types.run import OnBusy, Prompt, Submitted

__all__ = ["answers_in", "continued", "gone_on_with", "open_turn"]


_LOOSE = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)
"""Applications put more into these bodies than we know; the AI SDK's own fields come and go with its versions."""


ID_BYTES = 128


def _opaque(id: str) -> str:
    if not id or not id.isprintable() or len(id.encode("utf-8", "replace")) > ID_BYTES:
        raise ValueError(f"an id has 1 to {ID_BYTES} bytes, all of them printable")
    return id


ClientId = Annotated[str, AfterValidator(_opaque)]
"""An id that a client made up; opaque to us."""


class MessageIn(BaseModel):
    """A UIMessage."""

    model_config = _LOOSE

    id: ClientId | None = None
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, JsonValue]] = []


class ClientTool(BaseModel):
    """A tool that the client runs itself."""

    model_config = _LOOSE

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str = Field(default="", max_length=8_000)
    input_schema: dict[str, JsonValue] = Field(
        default={"type": "object"},
        validation_alias=AliasChoices("inputSchema", "parameters", "input_schema"),
        serialization_alias="inputSchema",
    )


class _NamelessTool(ClientTool):
    name: str = ""


class ChatIn(BaseModel):
    """What `useChat` and other clients of the AI SDK send."""

    model_config = _LOOSE

    id: ClientId
    """The client's own id of the conversation, or ours; an unknown one makes a conversation."""
    messages: list[dict[str, JsonValue]] | None = None
    """All that the client shows; only the last one counts, the rest is ours."""
    message: MessageIn | None = None
    """The last one alone."""
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: ClientId | None = Field(default=None, alias="messageId")
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    directory: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Where a conversation that is made works; needs the scope `tools`. None = the project's root, else where the server was started."""
    project: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Id or name of the project that a conversation is made in; None = the one whose root holds the folder."""
    on_busy: OnBusy = "reject"
    effort: Literal["none", "low", "medium", "high", "max"] | None = None
    max_steps: int | None = Field(default=None, ge=1, le=1000)
    tools: bool | list[str | ClientTool] | dict[str, _NamelessTool] | None = None
    """false = none; names of ours; definitions `{name, description, inputSchema}` of what the client runs, also as an object by name."""

    @field_validator("messages")
    @classmethod
    def _ends_with_a_message(cls, messages: list[dict[str, JsonValue]] | None) -> list[dict[str, JsonValue]] | None:
        if messages:
            MessageIn.model_validate(messages[-1])
        return messages

    @property
    def last(self) -> MessageIn | None:
        """The message that counts."""
        if self.message is not None:
            return self.message
        return MessageIn.model_validate(self.messages[-1]) if self.messages else None

    @property
    def own_tools(self) -> bool | list[str] | None:
        """Whether, or which, tools of ours are offered; None = those of the agent."""
        if isinstance(self.tools, bool):
            return self.tools
        names = [tool for tool in self.tools if isinstance(tool, str)] if isinstance(self.tools, list) else []
        return names or None

    @property
    def client_tools(self) -> list[ClientTool]:
        if isinstance(self.tools, dict):
            return [ClientTool.model_validate({**tool.model_dump(by_alias=True), "name": name}) for name, tool in self.tools.items()]
        return [tool for tool in self.tools if isinstance(tool, ClientTool)] if isinstance(self.tools, list) else []


class Stopped(BaseModel):
    """The runs that were stopped."""

    stopped: list[str]


_PAGE = 2048


def answers_in(parts: Sequence[JsonObject]) -> dict[str, Answer]:
    """The answers that the calls of a client's message hold: by the approval's id, outputs by the call's.

    What it says of a call's input is not looked at: ours is what is run.
    """
    return dict(answer for part in parts if is_tool(part) and (answer := _answer(part)) is not None)


def _answer(part: Part) -> tuple[str, Answer] | None:
    state, approval, call = part.get("state"), part.get("approval"), str(part.get("toolCallId"))
    if state == "approval-responded" and isinstance(approval, dict) and isinstance(yes := approval.get("approved"), bool):
        return str(approval.get("id")), Answer(yes, reason=str(approval.get("reason") or ""))
    if state == "output-available":
        return call, Answer(True, value={"output": part.get("output")}, answered_by="client")
    if state == "output-error":
        return call, Answer(True, value={"error": str(part.get("errorText") or "it failed")}, answered_by="client")
    return None


async def continued(engine: Engine, caller: Caller, message: Message, answers: dict[str, Answer]) -> Opening:
    """Gives the answers, and goes on with the message: `start` with its id, then what comes. Sent again, it is the same stream.

    Raises UsageError when the message answers nothing that its run has asked, Problem (403).
    """
    assert message.run is not None
    asked = await caller.store.records.approvals(run=message.run, open_only=False)
    meant = [(approval, answer) for approval in asked if (answer := _meant(approval, answers)) is not None]
    if not meant:
        raise UsageError("the message answers nothing that was asked", fix="send a user's message, or answers to its pending calls")
    if any(answer.approved and not approval.by_client for approval, answer in meant) and not caller.may("tools"):
        raise Problem(403, "to approve a call needs a token with the scope 'tools'", fix="moot tokens create NAME --scopes tools")
    after = await caller.store.log.last_seq(message.conversation)
    given = False
    for approval, answer in meant:
        if approval.answer is None:
            with suppress(Busy, NotFound):  # somebody was faster, or it has expired: what they said counts
                await engine.runs.answer(approval.id, answer, wake=False)
                given = True
    if given:
        await engine.runs.wake(message.run)
    else:
        after = await _parked(caller, message, {approval.id for approval, _ in meant})
    return Opening(message.conversation, message.run, (after, WHOLE), (start(message.id),))


def _meant(approval: Approval, answers: dict[str, Answer]) -> Answer | None:
    """A yes or no for an approval, an output for a client's tool; questions are answered elsewhere."""
    answer = answers.get(approval.tool_call if approval.by_client else approval.id)
    if answer is None or (approval.questions is not None and not approval.by_client):
        return None
    return answer if (answer.value is not None) == approval.by_client else None


async def _parked(caller: Caller, message: Message, asked: set[str]) -> int:
    """The seq of the wait that those answers ended: a client that sends them again has seen what stands before it."""
    after, found, seen = message.first_seq - 1, 0, False
    while page := await caller.store.log.read(message.conversation, after=after, limit=_PAGE, run=message.run):
        for event in page:
            seen = seen or _asks(event, asked)
            if seen and event.kind == "meta" and event.body == PARKED:
                found, seen = event.seq, False
        after = page[-1].seq
    return found


def _asks(event: Event, asked: set[str]) -> bool:
    body = event.body if isinstance(event.body, dict) else {}
    requests = (chunk for chunk in event.chunks if chunk["type"] == "tool-approval-request")
    return body.get("awaits") in asked or any(request.get("approvalId") in asked for request in requests)


_OVER = ("output-available", "output-error")
_CALL = ("type", "toolName", "toolCallId", "state", "input", "output", "errorText")
"""What is kept of a call that a client says was made."""

_FREE = frozenset({"ask", "plan", None})
"""Modes in which nothing is done that nobody was asked about."""


async def open_turn(engine: Engine, caller: Caller, wanted: ChatIn) -> Opening:
    """Does what is asked, and says where its stream begins. Raises Busy, NotFound, UsageError, Problem (403)."""
    if wanted.mode not in _FREE and not caller.may("tools"):
        raise Problem(403, f"the mode {wanted.mode!r} needs a token with the scope 'tools'", fix="moot tokens create NAME --scopes tools")
    if wanted.directory is not None:
        _check_directory(caller, wanted.directory)
    if wanted.project is not None:
        folder = await caller.store.projects.get(wanted.project)
        place = wanted.directory or folder.root_path
        wanted = wanted.model_copy(update={"project": folder.id, "directory": place})
    conversation = await gone_on_with(caller, wanted.id)
    last = wanted.last
    if wanted.trigger == "regenerate-message":
        return await _again(engine, caller, wanted, conversation)
    if last is None:
        raise UsageError("there is no message", fix="send `messages`, whose last is the new one, or `message`")
    if last.role == "assistant":
        return await _answered(engine, caller, wanted, conversation, last)
    if last.role != "user":
        raise UsageError(f"the last message is the {last.role}'s; expected the user's")
    return await _said(engine, caller, wanted, conversation, last)


async def gone_on_with(caller: Caller, chat_id: str) -> Conversation | None:
    """The conversation that a client means by the id of its chat: of one that others write, the copy in which it goes on."""
    found = await caller.store.conversations.by_client_id(chat_id)
    return found and (await copy_of(caller.store.conversations, found) or found)


def _check_directory(caller: Caller, directory: str) -> None:
    if not caller.may("tools"):
        raise Refused("to choose a folder of this machine a token needs the scope 'tools'", fix="leave `directory` out")
    if not Path(directory).is_absolute() or not Path(directory).is_dir():
        raise UsageError(f"{directory!r} is no absolute path of a folder", fix="name a folder that is there")


async def _said(engine: Engine, caller: Caller, wanted: ChatIn, conversation: Conversation | None, last: MessageIn) -> Opening:
    """A new prompt, or the edit of an earlier one; one that is there already with the same words is joined."""
    quota = engine.runtime.settings.limits.uploads
    parts = await stored_parts(caller.store.blobs, last.parts, quota)
    if conversation is None and len(wanted.messages or ()) > 1:
        conversation = await _brought(caller, wanted, quota)
    known = await _known(caller, conversation, last.id)
    if known is not None and known.parts == parts and (run := await caller.store.records.last_answer(known.id)) is not None:
        return await replayed(engine, caller, run.message)
    edited = known if known is not None else await _edited(caller, conversation, wanted.message_id)
    prompt = _prompt(caller, wanted, conversation, parts=parts, client_id=last.id, edits=edited.id if edited is not None else None)
    try:
        submitted = await engine.runs.submit(prompt)
    except Busy:  # another process may have taken the same words at this moment
        stored = await gone_on_with(caller, wanted.id)
        known = await _known(caller, stored, last.id)
        if known is None or known.parts != parts or (run := await caller.store.records.last_answer(known.id)) is None:
            raise
        return await replayed(engine, caller, run.message)
    return await _begun(engine, caller, submitted)


async def _brought(caller: Caller, wanted: ChatIn, quota: int) -> Conversation:
    """A conversation that begins with what the client has already: all of its messages but the last, behind each other."""
    earlier = [MessageIn.model_validate(message) for message in (wanted.messages or ())[:-1]]
    said: list[Message] = []
    for message in earlier:
        if message.role not in ("user", "assistant"):
            raise UsageError(f"a conversation can't begin with a message of {message.role!r}", fix="send messages of user and assistant")
        own = message.role == "user"
        parts = await stored_parts(caller.store.blobs, message.parts, quota) if own else _answer_parts(message.parts)
        said.append(Message(new_id(), "user" if own else "assistant", parts, client_id=message.id))
    directory = wanted.directory or str(Path.cwd())
    made = await caller.store.conversations.create(
        Conversation(new_id(), project=wanted.project or "", client_id=wanted.id, directory=directory)
    )
    await caller.store.tree.graft(made.id, None, said)
    return await caller.store.conversations.get(made.id)


def _answer_parts(parts: Sequence[JsonObject]) -> tuple[Part, ...]:
    """What a client says that it was answered: texts, and calls that are over. Signatures and approvals are nobody's but ours to give."""
    kept: list[Part] = []
    for part in parts:
        if part.get("type") == "text" and isinstance(text := part.get("text"), str) and text:
            kept.append(text_part(text))
        elif part.get("type") == "step-start":
            kept.append({"type": "step-start"})
        elif is_tool(part) and part.get("state") in _OVER and isinstance(part.get("toolCallId"), str):
            kept.append({name: part[name] for name in _CALL if name in part})
    return tuple(kept)


async def _known(caller: Caller, conversation: Conversation | None, id: str | None) -> Message | None:
    """The user message that the client means by its id; None for one that is new."""
    if conversation is None or id is None:
        return None
    try:
        found = await caller.store.conversations.message(id, conversation=conversation.id)
    except NotFound:
        return None
    return found if found.role == "user" else None


async def _edited(caller: Caller, conversation: Conversation | None, id: str | None) -> Message | None:
    if id is None:
        return None
    found = await _known(caller, conversation, id)
    if found is None:
        raise NotFound(f"no message of a user with the id {id!r} in the conversation", fix="see GET /api/chat/ID/messages")
    return found


async def _again(engine: Engine, caller: Caller, wanted: ChatIn, conversation: Conversation | None) -> Opening:
    """Another answer: to the message that is named, else to the last one of the user."""
    if conversation is None:
        raise NotFound(f"no conversation with the id {wanted.id!r}")
    last = wanted.last
    reference = wanted.message_id or (last.id if last is not None and last.role == "user" else None)
    answers: str | None = None
    if reference is not None:
        answers = (await caller.store.conversations.message(reference, conversation=conversation.id)).id
    return await _begun(engine, caller, await engine.runs.submit(_prompt(caller, wanted, conversation, answers=answers)))


async def _answered(engine: Engine, caller: Caller, wanted: ChatIn, conversation: Conversation | None, last: MessageIn) -> Opening:
    """Answers to what a run of ours waits for. What the client says of the call itself is not looked at."""
    if conversation is None or last.id is None:
        raise NotFound(f"no conversation with the id {wanted.id!r}")
    message = await caller.store.conversations.message(last.id, conversation=conversation.id)
    if message.run is None:
        raise NotFound(f"the message {last.id!r} was written by no run", fix="see GET /api/chat/ID/messages")
    return await continued(engine, caller, message, answers_in(last.parts))


async def _begun(engine: Engine, caller: Caller, submitted: Submitted) -> Opening:
    run = submitted.run
    if submitted.steered:
        return await replayed(engine, caller, run.message)
    return Opening(submitted.conversation.id, run.id, (submitted.seq, WHOLE))


def _prompt(
    caller: Caller,
    wanted: ChatIn,
    conversation: Conversation | None,
    *,
    parts: tuple[Part, ...] = (),
    client_id: str | None = None,
    edits: str | None = None,
    answers: str | None = None,
) -> Prompt:
    return Prompt(
        parts,
        conversation=conversation.id if conversation is not None else None,
        conversation_client_id=wanted.id if conversation is None else None,
        client_id=client_id,
        edits=edits,
        answers=answers,
        directory=wanted.directory or "",
        project=wanted.project or "",
        agent=wanted.agent,
        model=wanted.model,
        mode=wanted.mode,
        on_busy=wanted.on_busy,
        trigger="api",
        on_crash="resume",
        user=caller.owner_id,
        settings=_settings(wanted),
    )


def _settings(wanted: ChatIn) -> JsonObject:
    settings: JsonObject = {}
    names, brought = wanted.own_tools, wanted.client_tools
    if names is not None:
        settings["tools"] = names if isinstance(names, bool) else list[Json](names)
    if brought:
        settings[SETTING] = cast("Json", [tool.model_dump(by_alias=True) for tool in brought])
    given: Mapping[str, Json] = {"effort": wanted.effort, "max_steps": wanted.max_steps}
    return settings | {name: value for name, value in given.items() if value is not None}
