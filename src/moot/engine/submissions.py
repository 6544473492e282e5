"""Preparing a prompt for storage: agent, model, settings, and the conversation it goes to."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from moot.errors import UsageError
from moot.guard.json_schema import check_schema
from moot.plugins import AGENTS, TOOLS
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent
from moot.runtime.titles import first_line
from moot.tools.schema import client_tools
from moot.types.agent import Agent
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation, Conversations
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.run import Prompt, Run
from moot.types.store import Submission
from moot.types.token import LOCAL_USER
from moot.types.tree import copy_key


async def copy_of(conversations: Conversations, conversation: Conversation) -> Conversation | None:
    """Return the linked copy that continues the conversation's current head, or None if there is none.

    The next prompt goes to the copy, so user interfaces show the copy.
    """
    if not conversation.follows or conversation.head is None:
        return None
    head = await conversations.message(conversation.head, conversation=conversation.id)
    copy = await conversations.by_key(copy_key(conversation.id, head.id, head.last_seq))
    return copy if copy is not None and copy.deleted_at is None else None


async def submission_of(runtime: Runtime, prompt: Prompt, existing: Conversation | None, owner: str) -> Submission:
    """Return the prompt ready to be stored. The prompt's agent and model override the conversation's.

    Raise UsageError for an unknown agent, model or tool.
    """
    if prompt.edits is not None and not prompt.parts:
        raise UsageError(f"Message {prompt.edits!r} can't be replaced by an empty one.", fix="Delete it instead.")
    if prompt.answers is not None and prompt.parts:
        raise UsageError("A prompt either has new content or requests another answer, not both.")
    name = prompt.agent or (existing.agent if existing is not None else "default")
    settings: JsonObject = {**prompt.settings, **({} if prompt.mode is None else {"mode": prompt.mode})}
    agent = find_agent(runtime.settings, name, settings)
    model = prompt.model or (existing.next_model if existing is not None and prompt.agent is None else "")
    await _check(runtime, model, agent)
    _check_client_tools(settings)
    if isinstance(schema := settings.get("schema"), dict):
        await check_schema(schema)
    conversation = _conversation(prompt, existing, name, agent.agent_type, model)
    run = Run(
        id=new_id(),
        conversation=conversation.id,
        message=new_id(),
        agent=name,
        agent_type=agent.agent_type,
        model=model,
        trigger=prompt.trigger,
        on_crash=prompt.on_crash,
        settings=settings,
        user=prompt.user or LOCAL_USER,
    )
    user = None
    if prompt.parts:
        user = Message(new_id(), "user", prompt.parts, conversation=conversation.id, parent=prompt.parent, client_id=prompt.client_id)
    return Submission(
        run,
        conversation,
        user,
        prompt.on_busy,
        owner,
        runtime.settings.limits.runs_per_user,
        remember=prompt.agent is not None or prompt.model is not None,
        edits=prompt.edits,
        answers=prompt.answers,
    )


async def continuation_of(runtime: Runtime, prompt: Prompt, existing: Conversation) -> Prompt:
    """Return the prompt for the conversation that continues the existing one: an imported conversation continues in its linked copy."""
    going = await runtime.store.tree.continuation(existing.id, message=prompt.edits or prompt.answers or prompt.parent)
    if going.conversation.id == existing.id:
        return prompt
    at = going.message
    return dataclasses.replace(
        prompt,
        conversation=going.conversation.id,
        key=None,
        edits=prompt.edits and at,
        answers=prompt.answers and at,
        parent=prompt.parent and at,
    )


async def _check(runtime: Runtime, model: str, agent: Agent) -> None:
    if agent.agent_type not in AGENTS:
        known = ", ".join(AGENTS.names())
        message = f"The agent {agent.name!r} has the unknown agent_type {agent.agent_type!r}. Known types: {known}."
        raise UsageError(message, fix="Install the package that provides it, or change agent_type.")
    AGENTS.make(agent.agent_type)
    if agent.agent_type == "moot":
        choice = await runtime.providers.choice(model or agent.model)
        if choice.model.tools != "none":
            runtime.check_tools(agent)


def _check_client_tools(settings: JsonObject) -> None:
    names = [tool.name for tool in client_tools(settings)]
    duplicate = next((name for at, name in enumerate(names) if name in TOOLS or name in names[:at]), None)
    if duplicate is not None:
        raise UsageError(f"A tool named {duplicate!r} already exists.", fix="Rename the client's tool.")


def _conversation(prompt: Prompt, existing: Conversation | None, agent: str, agent_type: str, model: str) -> Conversation:
    if existing is not None:
        return dataclasses.replace(existing, agent=agent, agent_type=agent_type, model=model)
    title = first_line(prompt.parts)
    return Conversation(
        id=new_id(),
        project=prompt.project,
        key=prompt.key,
        client_id=prompt.conversation_client_id,
        title=title,
        title_source="first-line" if title else "none",
        agent=agent,
        agent_type=agent_type,
        model=model,
        directory=prompt.directory or str(Path.cwd()),
        allowed_uris=prompt.allowed_uris,
        owner=prompt.user or LOCAL_USER,
    )
