"""Prepare a prompt before it is stored: determine its agent, model, settings and conversation."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from moot.agents.known import default_agent
from moot.config.settings import Settings
from moot.convert.files.attachments import with_detail
from moot.convert.vendor import as_list, as_object
from moot.errors import UsageError
from moot.guard.json_schema import check_schema
from moot.guard.roots import with_folders
from moot.plugins import AGENTS
from moot.plugins.registry import attribute
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent, load_project_agents, options_of
from moot.runtime.titles import first_line
from moot.tools.catalogue import is_tool
from moot.tools.schema import client_tools
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import STEP_SETTINGS, Conversation, Conversations
from moot.types.findings import FINDINGS
from moot.types.hooks import HOOKS
from moot.types.ids import derived_id, new_id
from moot.types.message import Message
from moot.types.run import Prompt, Run
from moot.types.store import Submission
from moot.types.telemetry import TRACEPARENT
from moot.types.token import LOCAL_USER
from moot.types.tree import copy_key
from moot.types.workflow import WORKFLOW, Workflow

_EARLIER = 20
"""Number of earlier runs to search for the run that a retry repeats."""


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
    """Return the submission to store for a prompt. The prompt's agent and model override the conversation's.

    Raise UsageError for an unknown agent, model or tool.
    """
    if prompt.edits is not None and not prompt.parts:
        raise UsageError(f"Message {prompt.edits!r} can't be replaced by an empty one.", fix="Delete it instead.")
    if prompt.answers is not None and prompt.parts:
        raise UsageError("A prompt either has new content or requests another answer, not both.")
    owner_of_folder = existing.owner if existing is not None else prompt.user or LOCAL_USER
    directory = (existing.directory if existing is not None else "") or prompt.directory or default_directory(owner_of_folder)
    await load_project_agents(runtime.settings, directory)
    name = prompt.agent or (existing.agent if existing is not None else default_agent(runtime.settings, directory))
    settings: JsonObject = {**_settings_of(prompt, existing), **await _command_again(runtime, prompt, existing)}
    settings.pop(TRACEPARENT, None)  # only moot itself sets it
    if runtime.telemetry is not None and prompt.trigger not in ("cron", "task") and (header := runtime.telemetry.traceparent()):
        settings[TRACEPARENT] = header
    agent = find_agent(runtime.settings, name, settings if existing is None else options_of(settings, existing), directory)
    model = prompt.model or (existing.next_model if existing is not None and prompt.agent is None else "")
    await _check(runtime, model, agent)
    _check_client_tools(settings, runtime.settings)
    if isinstance(schema := settings.get("schema"), dict):
        await check_schema(schema)
    parent = None if prompt.parent_run is None else await runtime.store.records.run(prompt.parent_run)
    conversation = _conversation(prompt, existing, agent, model, directory, parent)
    if existing is None and agent.isolation == "worktree":
        conversation = await attribute("moot.engine.isolation:isolated")(conversation, prompt)
    run = Run(
        id=prompt.id or new_id(),
        conversation=conversation.id,
        message=new_id(),
        agent=name,
        agent_type=agent.agent_type,
        model=model,
        trigger=prompt.trigger,
        on_crash=prompt.on_crash,
        settings=settings,
        parent_run=prompt.parent_run,
        user=prompt.user or LOCAL_USER,
    )
    user = None
    if prompt.parts:
        message = derived_id(int(prompt.id[:8] + prompt.id[9:13], 16), prompt.id) if prompt.id else new_id()
        parts = with_detail(prompt.parts, settings.get("detail") or (existing.own_settings.detail if existing is not None else None))
        user = Message(message, "user", parts, conversation=conversation.id, parent=prompt.parent, client_id=prompt.client_id)
    return Submission(
        run,
        conversation,
        user,
        prompt.on_busy,
        owner,
        runtime.settings.limits.runs_per_user,
        remember=not prompt.once and (prompt.agent is not None or prompt.model is not None),
        edits=prompt.edits,
        answers=prompt.answers,
        may_exist=bool(prompt.id),
        children=_child_limits(runtime.settings, parent),
        due=prompt.due,
    )


def _child_limits(settings: Settings, parent: Run | None) -> tuple[int, int]:
    """Return the maximum number of sub-agents per run and per user. For a workflow, the number per run is that of its steps and retries."""
    workflow = Workflow.of(parent.settings) if parent is not None else None
    per_run = settings.limits.subagents_per_run if workflow is None else sum(step.retries + 1 for step in workflow.steps)
    return per_run, settings.limits.subagents_per_user


def default_directory(user: str) -> str:
    """Return the default directory of a new conversation: the current directory for the local user, none for other users."""
    return str(Path.cwd()) if user == LOCAL_USER else ""


def first_folders(agent: Agent, user: str, directory: str, chosen: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the `allowed_uris` of a new conversation: the chosen folders and, for the local user, also the agent's folders."""
    return with_folders(chosen, directory, agent.allowed_uris if user == LOCAL_USER else ())


def _settings_of(prompt: Prompt, existing: Conversation | None) -> JsonObject:
    """Return the settings of a prompt. The conversation's settings are recorded only for replays,
    because each step reads the current ones.
    """
    own = {name: value for name, value in prompt.settings.items() if name != "inherited"}  # these may be the settings of an earlier run
    if prompt.mode is not None:
        own["mode"] = prompt.mode
    known = {} if existing is None else existing.own_settings.to_json()
    inherited: JsonObject = {name: known[name] for name in STEP_SETTINGS if name in known}
    return {**own, "inherited": inherited} if inherited else own


async def _command_again(runtime: Runtime, prompt: Prompt, existing: Conversation | None) -> JsonObject:
    """For a prompt that is answered again, return the settings that a command or the prompt itself made for the last answer.

    These can be a workflow, a request for findings, and calls to make before the first model call.

    Imported answers are ignored, because a file must not make anyone run its workflow.
    """
    if prompt.parts or existing is None or (target := prompt.answers or existing.head) is None:
        return {}
    store = runtime.store
    known = await store.conversations.message(target, conversation=existing.id)
    answered = known.parent if known.role == "assistant" else known.id
    for run in await store.records.runs(conversation=existing.id, limit=_EARLIER):
        own = {name: run.settings[name] for name in (WORKFLOW, FINDINGS) if name in run.settings}
        own |= {HOOKS: {"before_run": calls}} if (calls := _calls_of_prompt(run)) else {}
        if own and run.trigger != "import" and (await store.conversations.message(run.message)).parent == answered:
            return own
    return {}


def _calls_of_prompt(run: Run) -> list[Json]:
    """Return the calls before a run that come from its prompt: shell lines of a command, and tool calls.
    The hooks of a job are not included.
    """
    calls = as_list(as_object(run.settings.get(HOOKS)).get("before_run"))
    return [call for call in calls if as_object(call).get("command") or as_object(call).get("referenced") is True]


async def continuation_of(runtime: Runtime, prompt: Prompt, existing: Conversation) -> Prompt:
    """Return the prompt, redirected to the conversation that continues the existing one:
    an imported conversation continues in its linked copy.
    """
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


def _check_client_tools(options: JsonObject, settings: Settings) -> None:
    names = [tool.name for tool in client_tools(options)]
    duplicate = next((name for at, name in enumerate(names) if is_tool(name, settings) or name in names[:at]), None)
    if duplicate is not None:
        raise UsageError(f"A tool named {duplicate!r} already exists.", fix="Rename the client's tool.")


def _conversation(
    prompt: Prompt, existing: Conversation | None, agent: Agent, model: str, directory: str, parent: Run | None
) -> Conversation:
    if existing is not None:
        changes = {"agent": agent.name, "agent_type": agent.agent_type, "model": model}
        return dataclasses.replace(existing, **changes, directory=directory)
    owner = prompt.user or LOCAL_USER
    title = first_line(prompt.parts)
    searches = prompt.settings.get("web_search")
    return Conversation(
        id=new_id(),
        project=prompt.project,
        key=prompt.key,
        client_id=prompt.conversation_client_id,
        title=title,
        title_source="first-line" if title else "none",
        parent=parent.conversation if parent is not None else None,
        parent_tool_call=prompt.parent_tool_call,
        agent=agent.name,
        agent_type=agent.agent_type,
        model=model,
        settings={**({"model": model} if model else {}), **({"web_search": searches} if isinstance(searches, bool) else {})},
        expires_at=0 if prompt.temporary else None,
        directory=directory,
        # a sub-agent gets no folder that its parent doesn't have
        allowed_uris=prompt.allowed_uris if parent is not None else first_folders(agent, owner, directory, prompt.allowed_uris),
        owner=owner,
    )
