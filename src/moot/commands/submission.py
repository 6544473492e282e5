"""Run commands without a user interface: over HTTP, in channels, for cron jobs and by `moot commands run`."""

from __future__ import annotations

from dataclasses import replace

from moot.commands.catalogue import Typed, catalogue_of, load, parse
from moot.commands.command import Choose, CommandContext, Compose, Copy, Notice, Reply, RunOverrides, Send, prompt_of
from moot.commands.custom import CustomCommand, Situation
from moot.convert.vendor import as_list, as_object
from moot.engine import Engine
from moot.errors import UsageError
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.cron import JOB_COMMANDS
from moot.types.hooks import HOOKS
from moot.types.message import text_of
from moot.types.run import Prompt, Submitted
from moot.types.token import LOCAL_USER


async def submit(context: CommandContext, send: Send, *, id: str = "") -> Submitted:
    """Submit a command's prompt for a client of the server. Raise the same errors as `Runs.submit`."""
    prompt = Prompt(send.message(), on_busy="queue", trigger="api", on_crash="resume", id=id)
    submitted = await context.engine.runs.submit(prompt_of(context, send, prompt))
    context.conversation = submitted.conversation.id
    await context.store_settings({})  # store the settings that the command has chosen for a new conversation
    return submitted


async def run_in_channel(engine: Engine, conversation: Conversation, name: str, argument: str) -> str:
    """Run a command for a conversation in a channel, such as Discord, and return its reply as text. Chosen settings are stored."""
    context = CommandContext(engine, conversation.directory, conversation.id, attended=False)
    replies = await (await catalogue_of(context)).find(name).run(context, argument)
    await store_agent(context)
    return "\n".join(filter(None, map(text_of_reply, replies))) or "Done."


def job_command(prompt: Prompt) -> Typed | None:
    """Return the command of `JOB_COMMANDS` in a job's prompt, or None if the prompt must be answered by a model."""
    typed = parse(text_of(prompt.parts))
    return typed if typed is not None and typed[0] in JOB_COMMANDS and prompt.user in (None, LOCAL_USER) else None


async def run_in_job(engine: Engine, prompt: Prompt, typed: Typed) -> tuple[str, str | None]:
    """Run a command for the conversation of a job. Return the reply as text, and the id of the conversation or None if the job has none."""
    conversation = await _conversation_of(engine.runtime, prompt)
    context = CommandContext(
        engine,
        prompt.directory,
        None if conversation is None else conversation.id,
        RunOverrides(prompt.agent, prompt.model),
        project=prompt.project,
        without_conversation="Add the job with --conversation ID, or set `conversation` in the configuration.",
        attended=False,
    )
    name, argument = typed
    replies = await (await catalogue_of(context)).find(name).run(context, argument)
    return "\n".join(filter(None, map(text_of_reply, replies))) or "Done.", context.conversation


async def store_agent(context: CommandContext) -> None:
    """Store an agent that was chosen by a command, for a user interface that keeps no overrides."""
    conversation, chosen = await context.current(), context.overrides.agent
    if conversation is not None and chosen not in (None, conversation.agent):
        agent = find_agent(context.engine.runtime.settings, chosen, {}, conversation.directory)
        await context.store.conversations.update(conversation.id, agent=(chosen, agent.agent_type), model="")


def text_of_reply(reply: Reply) -> str:
    """Return the text of a reply, or an empty string if it has none."""
    if isinstance(reply, Notice | Compose | Copy):
        return reply.text
    return f"{reply.title}: {', '.join(choice.value for choice in reply.choices)}" if isinstance(reply, Choose) else ""


async def expanded(runtime: Runtime, prompt: Prompt) -> Prompt:
    """Expand a prompt from a job or a channel: if its text is a command that sends a prompt,
    return that prompt, otherwise the prompt itself.

    Raise UsageError if the command is unknown or doesn't send a prompt, or if an argument is missing.
    """
    typed = parse(text_of(prompt.parts))
    if typed is None or prompt.user not in (None, LOCAL_USER):
        return prompt
    current = await _conversation_of(runtime, prompt)
    folder = (current.directory if current is not None else "") or prompt.directory
    catalogue = await load(runtime.settings, folder, runtime.mcp)
    name, argument = typed
    command = catalogue.find(name)
    send: Send | None = None
    if isinstance(command, CustomCommand):
        situation = Situation(runtime, folder, current, attended=False, agent=prompt.agent or "", mode=prompt.mode or "")
        send = next((reply for reply in await command.replies(situation, argument) if isinstance(reply, Send)), None)
    if send is None:
        raise UsageError(f"The command /{name} can't be used here, because it doesn't send a prompt.")
    files = tuple(part for part in prompt.parts if part["type"] != "text")
    return replace(
        prompt,
        parts=(*files, *send.message()),
        agent=send.agent or prompt.agent,
        model=send.model or (prompt.model if send.agent is None else None),
        mode=prompt.mode or send.mode,
        once=prompt.once or send.agent is not None or send.model is not None,
        settings=_with_hooks(prompt.settings, send.settings),
    )


async def _conversation_of(runtime: Runtime, prompt: Prompt) -> Conversation | None:
    conversations = runtime.store.conversations
    if prompt.conversation is not None:
        return await conversations.get(prompt.conversation)
    return await conversations.by_key(prompt.key) if prompt.key is not None else None


def _with_hooks(own: JsonObject, added: JsonObject) -> JsonObject:
    """Return a job's settings merged with a command's. The command's calls come after the job's."""
    calls, more = as_object(own.get(HOOKS)), as_object(added.get(HOOKS))
    hooks: JsonObject = {side: [*as_list(calls.get(side)), *as_list(more.get(side))] for side in ("before_run", "after_run")}
    return {**own, **added, **({HOOKS: hooks} if any(hooks.values()) else {})}
