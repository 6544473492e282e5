"""What a request of the AI SDK's transport asks for: something new, an edit, another answer, or answers to what a run waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from moot.engine import Engine
from moot.errors import Busy, NotFound, Refused, UsageError
from moot.runtime.copies import copy_of
from moot.server.caller import Caller
from moot.server.problems import Problem
from moot.server.streams.answering import answers_in, continued
from moot.server.streams.frames import WHOLE
from moot.server.streams.parts import stored_parts
from moot.server.streams.resume import Opening, replayed
from moot.server.wire.chat import ChatIn, MessageIn
from moot.tools.client import SETTING
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.part import Part, is_tool, text_part
from moot.types.run import Prompt, Submitted

__all__ = ["gone_on_with", "open_turn"]

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
