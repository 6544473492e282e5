"""Requests of the AI SDK's transport: prompts, edits, retries, and answers to approvals and client tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Literal, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, field_validator

from moot.engine import Engine
from moot.engine.submissions import copy_of, default_directory, first_folders
from moot.errors import Busy, NotFound, UsageError
from moot.runtime.setup import find_agent
from moot.server.credentials import Caller
from moot.server.idempotency import Attempt
from moot.server.models import ClientId
from moot.server.problems import Problem
from moot.server.resources import Notes, check_directory, check_references, user_message, with_references
from moot.server.streams.frames import WHOLE
from moot.server.streams.parts import is_same, own_parts, stored_answer, stored_parts
from moot.server.streams.positions import Opening, end_of_wait, opening_of
from moot.tools.schema import SETTING
from moot.types.agent import Mode
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import start
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import BY_CLIENT, Message, Part, is_tool
from moot.types.run import OnBusy, Prompt, Submitted

_LOOSE = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)
"""Unknown fields are ignored: applications add their own, and the AI SDK's fields change between versions."""


class MessageIn(BaseModel):
    """A message in the format of the AI SDK's UIMessage."""

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
    """Request body of `useChat` and other AI SDK clients."""

    model_config = _LOOSE

    id: ClientId
    """Id of the conversation, assigned by the client or by moot. An unknown id creates a conversation."""
    messages: list[dict[str, JsonValue]] | None = None
    """The client's messages. If the conversation already has messages, only the last one is used, because moot has the others."""
    message: MessageIn | None = None
    """The last message; can be sent in place of `messages`."""
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: ClientId | None = Field(default=None, alias="messageId")
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    directory: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Directory of a new conversation; requires the scope `tools`. Defaults to the project's root or the server's working directory."""
    project: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Id or name of the project of a new conversation. Defaults to the project whose root contains the folder."""
    temporary: bool = False
    """True = a new conversation is temporary: not listed or searched, and permanently deleted 24 hours after its last prompt."""
    on_busy: OnBusy = "reject"
    references: bool = False
    """Attach what the last text of a user message refers to with `@`, such as files in the conversation's folder. Requires the scope
    `tools` and the user `local`. By default, texts are sent unchanged.
    """
    effort: Literal["none", "low", "medium", "high", "max"] | None = None
    max_steps: int | None = Field(default=None, ge=1, le=1000)
    web_search: bool | None = None
    """True = offer `web_search` and `fetch_url`, and ask the model to search and cite its sources; false = don't offer `web_search`.
    Defaults to the conversation's setting. In a new conversation, it becomes that setting.
    """
    tools: bool | list[str | ClientTool] | dict[str, _NamelessTool] | None = None
    """Tools to offer: names of moot's tools, and definitions `{name, description, inputSchema}` of tools that the client runs. An object
    of definitions by name is also accepted. false = none; true or null = the agent's tools.
    """

    @field_validator("messages")
    @classmethod
    def _ends_with_a_message(cls, messages: list[dict[str, JsonValue]] | None) -> list[dict[str, JsonValue]] | None:
        if messages:
            MessageIn.model_validate(messages[-1])
        return messages

    @property
    def last(self) -> MessageIn | None:
        """The message to process."""
        if self.message is not None:
            return self.message
        return MessageIn.model_validate(self.messages[-1]) if self.messages else None

    @property
    def own_tools(self) -> bool | list[str] | None:
        """Names of moot's tools to offer; False = none; True or None = the agent's tools."""
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
    """The ids of the runs that were cancelled."""

    stopped: list[str]


def answers_in(parts: Sequence[JsonObject]) -> dict[str, Answer]:
    """Return the answers in the tool calls of a client's message. Decisions are keyed by approval id, outputs by tool call id.

    The tool input sent by the client is ignored, because the stored input is used.
    """
    return dict(answer for part in parts if is_tool(part) and (answer := _answer(part)) is not None)


def _answer(part: Part) -> tuple[str, Answer] | None:
    state, approval, call = part.get("state"), part.get("approval"), str(part.get("toolCallId"))
    if state == "approval-responded" and isinstance(approval, dict) and isinstance(yes := approval.get("approved"), bool):
        return str(approval.get("id")), Answer(yes, reason=str(approval.get("reason") or ""))
    if state == "output-available":
        return call, Answer(True, value={"output": part.get("output")}, answered_by="client")
    if state == "output-error":
        return call, Answer(True, value={"error": str(part.get("errorText") or "The tool failed.")}, answered_by="client")
    return None


async def continued(engine: Engine, caller: Caller, message: Message, sent: Sequence[JsonObject]) -> Opening:
    """Submit the answers in the parts that a client sent. Return the stream that continues the message: `start`, then new chunks.

    A repeated request returns the same stream.

    Raise UsageError if the parts answer no request of the message's run, Problem (403) if the scope is missing.
    """
    if message.run is None:
        raise NotFound(f"The message {message.client_id or message.id!r} does not belong to a run.", fix="See GET /api/chat/ID/messages.")
    answers = answers_in(sent)
    approvals = await caller.store.records.approvals(run=message.run, open_only=False)
    answered: list[tuple[Approval, Answer]] = []
    for approval in approvals:
        answer = answers.get(approval.tool_call if approval.by_client else approval.id)
        # an answer with a value is the output of a client tool; questions of moot's tools are answered through another route
        if answer is not None and approval.by_client == (answer.value is not None) and (approval.by_client or approval.questions is None):
            answered.append((approval, answer))
    if not answered:
        raise UsageError(
            "The message contains no answer to a pending tool call.", fix="Send a user message, or answers to the pending tool calls."
        )
    if any(answer.approved and not approval.by_client for approval, answer in answered) and not caller.may("tools"):
        raise Problem(403, "Approving a call requires a token with the scope 'tools'.", fix="moot tokens create NAME --scopes tools")
    before = await caller.store.log.last_seq(message.conversation)
    submitted = False
    for approval, answer in answered:
        if approval.answer is None:
            with suppress(Busy, NotFound):  # already answered elsewhere, or expired
                await engine.runs.answer(approval.id, answer, wake=False)
                submitted = True
    if submitted:
        await engine.runs.wake(message.run)
    after = await end_of_wait(caller, message, {approval.id for approval, _ in answered}, sent) or before
    return Opening(message.conversation, message.run, (after, WHOLE), (start(message.id),), step="left")


_FREE = frozenset({"ask", "plan", None})
"""Modes in which no call with effects runs without approval."""


async def open_stream(engine: Engine, caller: Caller, request: ChatIn, attempt: Attempt) -> Opening:
    """Perform the request and return the start of its stream.

    Raise Busy if the conversation is busy, NotFound for an unknown id, UsageError for an invalid request, Problem (403) if a scope is
    missing.
    """
    if request.mode not in _FREE and not caller.may("tools"):
        raise Problem(403, f"Mode {request.mode!r} requires a token with the scope 'tools'.", fix="moot tokens create NAME --scopes tools")
    if request.references:
        check_references(caller)
    if request.directory is not None:
        await check_directory(caller, request.directory)
    if request.project is not None:
        folder = await caller.store.projects.get(request.project)
        place = request.directory or folder.root_path
        request = request.model_copy(update={"project": folder.id, "directory": place})
    conversation = await continued_conversation(caller, request.id)
    last = request.last
    if request.trigger == "regenerate-message":
        return await _retry(engine, caller, request, conversation, attempt)
    if last is None:
        raise UsageError("The request contains no message.", fix="Send `messages` ending with the new message, or `message`.")
    if last.role == "assistant":
        if conversation is None or last.id is None:
            raise NotFound(f"No conversation has the id {request.id!r}.")
        message = await caller.store.conversations.message(last.id, conversation=conversation.id)
        return await continued(engine, caller, message, last.parts)
    if last.role != "user":
        raise UsageError(f"The last message has the role {last.role!r}; expected 'user'.")
    return await _submit(engine, caller, request, conversation, last, attempt)


async def continued_conversation(caller: Caller, chat_id: str) -> Conversation | None:
    """Return the conversation with a client's chat id. If another program writes to it, return the copy that continues it."""
    found = await caller.store.conversations.by_client_id(chat_id)
    return found and (await copy_of(caller.store.conversations, found) or found)


async def _submit(
    engine: Engine, caller: Caller, request: ChatIn, conversation: Conversation | None, last: MessageIn, attempt: Attempt
) -> Opening:
    """Submit a new prompt or an edit. If the same prompt already exists, return its answer's stream instead."""
    quota = engine.runtime.settings.limits.uploads
    references = request.references
    parts = await stored_parts(caller.store.blobs, own_parts(last.parts) if references else last.parts, quota)
    if len(request.messages or ()) > 1 and (conversation is None or not conversation.message_count):
        conversation = await _import_history(engine, caller, request, conversation, quota)
    existing = await user_message(caller, conversation, last.id)
    if existing is not None and (answer := await _answer_to(caller, existing, parts, references=references)) is not None:
        return await opening_of(engine, caller, answer)
    edited = existing
    if edited is None and request.message_id is not None:
        edited = await user_message(caller, conversation, request.message_id)
        if edited is None:
            raise NotFound(f"No user message in the conversation has the id {request.message_id!r}.", fix="See GET /api/chat/ID/messages.")
    edits = edited.id if edited is not None else None
    prompt = _prompt(caller, request, conversation, attempt.id, parts=parts, client_id=last.id, edits=edits)
    notes: Notes = ()
    if references:
        prompt, notes = await with_references(engine, caller, prompt, conversation)
    try:
        submitted = await engine.runs.submit(prompt)
    except Busy:  # another process may have submitted the same prompt concurrently
        stored = await continued_conversation(caller, request.id)
        existing = await user_message(caller, stored, last.id)
        answer = None if existing is None else await _answer_to(caller, existing, parts, references=references)
        if answer is None:
            raise
        return await opening_of(engine, caller, answer)
    return replace(await _opening(engine, caller, submitted), notes=notes)


async def _answer_to(caller: Caller, existing: Message, parts: Sequence[Part], *, references: bool) -> str | None:
    """Return the answer to a prompt that the client has sent again, or None if the client sent other parts."""
    run = await caller.store.records.last_answer(existing.id) if is_same(existing.parts, parts, references=references) else None
    return None if run is None else run.message


async def _import_history(engine: Engine, caller: Caller, request: ChatIn, conversation: Conversation | None, quota: int) -> Conversation:
    """Store all of the client's messages except the last in the empty conversation. Create the conversation if it is None."""
    earlier = [MessageIn.model_validate(message) for message in (request.messages or ())[:-1]]
    messages: list[Message] = []
    for message in earlier:
        if message.role not in ("user", "assistant"):
            raise UsageError(
                f"A conversation can't start with a message whose role is {message.role!r}.",
                fix="Send only messages whose role is 'user' or 'assistant'.",
            )
        if message.role == "user":
            parts = await stored_parts(caller.store.blobs, message.parts, quota)
            messages.append(Message(new_id(), "user", parts, client_id=message.id))
        else:
            parts = await stored_answer(caller.store.blobs, message.parts, quota)
            messages.append(Message(new_id(), "assistant", parts, dict(BY_CLIENT), client_id=message.id))
    directory = request.directory or default_directory(caller.owner_id)
    allowed = first_folders(find_agent(engine.runtime.settings, request.agent or "default", {}, directory), caller.owner_id, directory)
    expires = 0 if request.temporary else None
    new = Conversation(new_id(), project=request.project or "", client_id=request.id, directory=directory, allowed_uris=allowed)
    found = conversation or await caller.store.conversations.create(replace(new, expires_at=expires))
    await caller.store.tree.graft(found.id, None, messages)
    return await caller.store.conversations.get(found.id)


async def _retry(engine: Engine, caller: Caller, request: ChatIn, conversation: Conversation | None, attempt: Attempt) -> Opening:
    """Retry: answer the message that the request names, or by default the user's last one."""
    if conversation is None:
        raise NotFound(f"No conversation has the id {request.id!r}.")
    last = request.last
    reference = request.message_id or (last.id if last is not None and last.role == "user" else None)
    answers: str | None = None
    if reference is not None:
        answers = (await caller.store.conversations.message(reference, conversation=conversation.id)).id
    return await _opening(engine, caller, await engine.runs.submit(_prompt(caller, request, conversation, attempt.id, answers=answers)))


async def _opening(engine: Engine, caller: Caller, submitted: Submitted) -> Opening:
    run = submitted.run
    if submitted.steered:
        return await opening_of(engine, caller, run.message)
    return Opening(submitted.conversation.id, run.id, (submitted.seq, WHOLE))


def _prompt(
    caller: Caller,
    request: ChatIn,
    conversation: Conversation | None,
    id: str,
    *,
    parts: tuple[Part, ...] = (),
    client_id: str | None = None,
    edits: str | None = None,
    answers: str | None = None,
) -> Prompt:
    return Prompt(
        parts,
        conversation=conversation.id if conversation is not None else None,
        conversation_client_id=request.id if conversation is None else None,
        client_id=client_id,
        edits=edits,
        answers=answers,
        directory=request.directory or "",
        project=request.project or "",
        temporary=request.temporary,
        agent=request.agent,
        model=request.model,
        mode=request.mode,
        on_busy=request.on_busy,
        trigger="api",
        on_crash="resume",
        id=id,
        user=caller.owner_id,
        settings=_settings(request),
    )


def _settings(request: ChatIn) -> JsonObject:
    settings: JsonObject = {}
    names, client_tools = request.own_tools, request.client_tools
    if names is not None:
        settings["tools"] = names if isinstance(names, bool) else list[Json](names)
    if client_tools:
        settings[SETTING] = cast("Json", [tool.model_dump(by_alias=True) for tool in client_tools])
    options: Mapping[str, Json] = {"effort": request.effort, "max_steps": request.max_steps, "web_search": request.web_search}
    return settings | {name: value for name, value in options.items() if value is not None}
