"""Hooks before and after a run: tool calls configured by an agent or a job, and command hooks that block or continue the run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from moot.agents.calls import run_call
from moot.agents.journal import Call
from moot.config.hooks import run_hooks
from moot.convert.history import output_text
from moot.convert.vendor import as_object
from moot.errors import UsageError
from moot.runtime.hooks import events
from moot.runtime.leg import Leg
from moot.runtime.setup import has_folder
from moot.runtime.titles import first_line
from moot.tools.catalogue import tools_for
from moot.types import chunk
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.hooks import BLOCKED, HOOKS, SKIPPED, STOPPED, VARIABLES, HookSide, ReferencedCall, RunHook, RunHooks, SkipIf, by_hook
from moot.types.message import Part, text_of
from moot.types.run import RunOutcome, RunStatus
from moot.types.templates import fill, fill_line, variables_in
from moot.types.tool import Tool

_SEARCHED = 100_000
"""Number of characters at the beginning of an output that `skip_if` examines."""

_EARLIER = 20
"""Number of earlier runs to search for an answer with text. Skipped runs have none."""

BLOCKED_TITLE = "Blocked prompt"

_FINISHED: frozenset[RunStatus] = frozenset({"finished"})

_SKIP_NOTE = "hook:skipped"

_WORK = ("llm:", "agent:", "workflow:")
"""Prefixes of the journal keys of work that follows the hooks before a run."""


async def before_run(leg: Leg) -> RunOutcome | None:
    """Run the hooks before a run's first model call. Return the outcome if one of them ends the run."""
    if any(key.startswith(_WORK) for key in leg.index.starts):
        return None  # even if hooks were added meanwhile
    await events.session_start(leg)
    run = leg.request.run
    if run.parent_run is None:
        parts = await _prompt(leg)
        answer = await events.user_prompt(leg, parts)
        is_blocked = answer is not None and (answer.blocks or answer.stop != "")
        await _retitle(leg, parts, is_blocked=is_blocked)
        if is_blocked:
            return RunOutcome("finished", BLOCKED)
    for number, hook in enumerate(_hooks_of(leg).before_run):
        part = await _call(leg, "before_run", number, hook)
        if hook.skip_if is not None and part.get("state") == "output-available" and await _skips(leg, hook.skip_if, number, part):
            await _explain_skip(leg, hook, hook.skip_if)
            return RunOutcome("finished", SKIPPED)
    return None


async def _retitle(leg: Leg, prompt: Sequence[Part], *, is_blocked: bool) -> None:
    """Keep a blocked prompt out of the conversation's title, because models see titles of earlier conversations."""
    conversation = leg.request.conversation
    before, after = (first_line(prompt), BLOCKED_TITLE) if is_blocked else (BLOCKED_TITLE, first_line(prompt))
    if conversation.title_source == "first-line" and conversation.title == before:
        await leg.runtime.store.conversations.rename(conversation.id, after, "first-line")
        leg.runtime.hub.touch(conversation.id)


async def after_run(leg: Leg, outcome: RunOutcome) -> RunOutcome | None:
    """Run the hooks after a finished answer. Return None if one of them continues the run, otherwise the outcome."""
    if outcome.status != "finished" or outcome.finish_reason in (STOPPED, "tool-calls"):  # or another program runs the calls
        return outcome
    if await events.stop(leg):
        return None
    for number, hook in enumerate(_hooks_of(leg).after_run):
        await _call(leg, "after_run", number, hook)
    return outcome


def _hooks_of(leg: Leg) -> RunHooks:
    """Return the hooks of the agent, then those of the job that started the run."""
    return leg.request.agent.hooks.then(run_hooks(as_object(leg.request.run.settings.get(HOOKS))))


async def _call(leg: Leg, side: HookSide, number: int, hook: RunHook) -> Part:
    """Make the hook's call, once, and return its part of the answer. Raise Parked if an approval is still pending."""
    key, id = f"hook:{side}.{number}", f"hook-{side}-{number}-{leg.fence.run}"
    if leg.index.standing(key) != "ended":
        tools: dict[str, Tool] = {}
        filled: Json = hook.arguments
        try:
            tools = {tool.name: tool for tool in await _tools(leg, hook)}
            if not isinstance(hook, ReferencedCall):
                filled = await _filled(leg, hook, tools.get(hook.tool))
            problem = ""
        except (UsageError, KeyError, ValueError) as error:
            problem = f"Unknown variable {error.args[0]!r}." if isinstance(error, KeyError) else str(error)
        await _show(leg, by_hook(side, hook.command), f"{key}:call", id, hook.tool, filled, problem)
        if not problem:
            await run_call(leg, key, Call(id, hook.tool, filled), tools)
    return next(part for part in leg.message().parts if part.get("toolCallId") == id)


async def _tools(leg: Leg, hook: RunHook) -> Sequence[Tool]:
    """Return the tools that a hook may call: the tool that it names, or the agent's tools if the call comes from a prompt."""
    if not isinstance(hook, ReferencedCall):
        return tools_for(leg.runtime.settings, Agent(tools=(hook.tool,)), folder=has_folder(leg.request.conversation))
    if leg.request.run.agent_type != "moot":
        return ()  # it has its own
    return [tool for tool in (await leg.setup()).tools if not getattr(tool, "ends_run", False)]


async def _show(leg: Leg, maker: JsonObject, key: str, id: str, tool: str, filled: Json, problem: str) -> None:
    """Add the call to the answer, or its error if its arguments could not be filled in."""
    if key in leg.index.starts:
        return
    piece: Chunk = {"type": "tool-input-available", "toolCallId": id, "toolName": tool, "input": filled, "toolMetadata": maker}
    failed = (chunk.tool_error(id, problem),) if problem else ()
    await leg.append(Event("chunks", (piece, *failed), phase="start", key=key), fold=True)


async def _filled(leg: Leg, hook: RunHook, tool: Tool | None) -> Json:
    """Return the hook's arguments with all variables replaced. Values in a command are quoted."""
    variables = await _variables(leg, hook.arguments)
    filled = as_object(fill(hook.arguments, variables))
    command = hook.arguments.get("command")
    if tool is not None and "execute" in tool.effects and isinstance(command, str):
        filled["command"] = fill_line(command, variables)
    return filled


async def _skips(leg: Leg, test: SkipIf, number: int, part: Part) -> bool:
    """Return whether the output of a hook passes its test."""
    ends = (event.body for key, event in leg.index.ends.items() if key.rpartition(".")[0] == f"hook:before_run.{number}")
    is_empty = any(as_object(as_object(body).get("value")).get("empty") is True for body in ends)
    output = "" if is_empty else output_text(part).strip()[:_SEARCHED]
    if test.kind == "empty":
        return not output
    variables = await _variables(leg, test.text)
    if test.kind == "matches":
        return re.search(str(fill(test.text, {name: re.escape(value) for name, value in variables.items()})), output) is not None
    text = str(fill(test.text, variables))
    return output == text.strip() if test.kind == "equals" else text in output


async def _explain_skip(leg: Leg, hook: RunHook, test: SkipIf) -> None:
    """Add a note to the answer that says why the run ended without a model call."""
    why = "is empty" if test.kind == "empty" else f"passed the test '{test.kind}'"
    if _SKIP_NOTE not in leg.index.ends:
        note = chunk.data("note", {"text": f"Skipped: the output of {hook.tool} (before_run hook) {why}. No model was called."})
        await leg.append(Event("chunks", (note,), phase="end", key=_SKIP_NOTE), fold=True)


async def _variables(leg: Leg, templates: Json) -> Mapping[str, str]:
    """Return the values of the variables that the templates use."""
    wanted = frozenset(variables_in(templates))
    if not wanted:
        return {}
    run, given = leg.request.run, as_object(leg.request.run.settings.get(VARIABLES))
    date = datetime.fromtimestamp(leg.runtime.now() / 1_000_000, UTC).date().isoformat()
    values = {"agent": run.agent, "conversation": run.conversation, "run": run.id, "date": date, "next_task": ""}
    if "prompt" in wanted:
        values["prompt"] = text_of(await _prompt(leg))
    if "response" in wanted:
        values["response"] = text_of(leg.message().parts)
    if wanted & {"last_run", "last_response"}:
        values |= await _earlier(leg)
    return {**values, **{name: str(value) for name, value in given.items()}}


async def _earlier(leg: Leg) -> dict[str, str]:
    """Return the start time of the conversation's last finished run before this one, and the last answer with text."""
    run, store = leg.request.run, leg.runtime.store
    found = await store.records.runs(conversation=run.conversation, statuses=_FINISHED, limit=_EARLIER, before=run.no)
    values = {"last_run": "", "last_response": ""}
    for earlier in found:
        started = datetime.fromtimestamp((earlier.started_at or earlier.created_at) / 1000, UTC)
        values["last_run"] = values["last_run"] or started.isoformat(timespec="seconds")
        if text := text_of((await store.conversations.message(earlier.message)).parts):
            values["last_response"] = text
            break
    return values


async def _prompt(leg: Leg) -> tuple[Part, ...]:
    prompts = [message for message in await leg.history(1) if message.role == "user"]
    return prompts[-1].parts if prompts else ()
