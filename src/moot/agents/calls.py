"""A step's tool calls: concurrent calls run together, others in order. Each call is authorized, journaled and gets exactly one output."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import anyio

from moot.agents.journal import Call, kill_noted
from moot.convert.vendor import as_object
from moot.errors import MootError, StoreError
from moot.tools.schema import rule_name_of, subject_of, validated
from moot.types import chunk
from moot.types.canonical import Json, JsonObject, loads_exact
from moot.types.chunk import Chunk
from moot.types.context import Parked, Result, RunContext, ToolHooks, Unknown, Verdict
from moot.types.crash import point
from moot.types.event import Event
from moot.types.hooks import HookAnswer
from moot.types.ids import tool_key
from moot.types.limits import INLINE_BYTES, TAIL_BYTES, TOOL_OUTPUT_CHARACTERS
from moot.types.served import Served
from moot.types.tool import FullOutput, Tool, ToolContext, ToolOutput

log = logging.getLogger("moot.agents")

UNKNOWN = (
    "The outcome of this call is unknown: moot was stopped while it ran. It may or may not have taken effect, and it was not repeated. "
    "Check the current state before you continue."
)

UNKNOWN_REPEATED = (
    "The outcome of this call is unknown: moot was stopped while it ran. It may or may not have taken effect, and it is made again."
)
"""The error output of an interrupted call that is made again because of `Call.repeated`."""

EDITED = "[The user changed the arguments before allowing the call. It ran with: {}]\n"

CHANGED = "[A hook changed the arguments of the call. It ran with: {}]\n"

ADDED = "[A hook adds: {}]\n"

HANDED = "Passed to the calling program, which runs this call itself."


async def run_calls(context: RunContext, step: int, calls: Sequence[Call], tools: dict[str, Tool], served: Served | None = None) -> None:
    """Run the calls. When this returns, every call has its output. If approvals are pending, raise Parked once all other calls have ended.

    Calls to tools in `served` are not run; their output says that another program handles them.
    """
    parked = False
    numbered: list[tuple[int, Call]] = []
    for index, call in enumerate(calls):
        if served is None or not served.takes(call.tool):
            numbered.append((index, call))
        elif not call.error:
            await _settle(context, tool_key(step, index), chunk.tool_output(call.id, HANDED))
    for concurrent, group in groupby(numbered, key=lambda item: (tool := tools.get(item[1].tool)) is not None and tool.concurrent):
        batch = list(group)
        if not concurrent and parked:
            break  # calls that are not concurrent wait for their turn
        if concurrent:
            parked = await _together(context, step, batch, tools) or parked
            continue
        for index, call in batch:
            if await _parks(context, step, index, call, tools):
                parked = True
                break
    if parked:
        raise Parked


async def _together(context: RunContext, step: int, batch: list[tuple[int, Call]], tools: dict[str, Tool]) -> bool:
    waiting: list[int] = []

    async def one(index: int, call: Call) -> None:
        if await _parks(context, step, index, call, tools):
            waiting.append(index)

    async with anyio.create_task_group() as group:
        for index, call in batch:
            group.start_soon(one, index, call)
    return bool(waiting)


async def _parks(context: RunContext, step: int, index: int, call: Call, tools: dict[str, Tool]) -> bool:
    try:
        await run_call(context, tool_key(step, index), call, tools)
    except Parked:
        return True
    return False


async def run_call(context: RunContext, key: str, call: Call, tools: dict[str, Tool]) -> None:
    """Authorize, journal and run one call. When this returns, the call has its output. Raise Parked if an approval is still pending."""
    if call.error:
        return  # the call's tool-input-error chunk is its output
    tool = tools.get(call.tool)
    if tool is None:
        known = ", ".join(sorted(tools)) or "none"
        await _refuse(context, key, call, f"Tool {call.tool!r} not found. Available tools: {known}.")
        return
    arguments = await validated(tool, call.input)
    if isinstance(arguments, str):
        await _refuse(context, key, call, arguments)
        return
    hooks = context.ports.hooks if context.standing(key) != "ended" else None
    answer = await hooks.before(rule_name_of(tool), key, call.id, as_object(call.input)) if hooks is not None else None
    if answer is not None and (reason := await _objection(tool, answer)):
        await _settle_denied(context, key, call, reason)
        return
    changes: list[str] = []
    if answer is not None and answer.input is not None:
        call = replace(call, input=answer.input)
        changes.append(CHANGED.format(call.arguments.decode()))
    verdict = await _decided(context, tool, key, call, answer)
    if verdict is None:
        return
    if verdict.arguments is not None:
        call = replace(call, input=loads_exact(verdict.arguments))
        changes.append(EDITED.format(verdict.arguments.decode()))
        if hooks is not None and (reason := await _objection_to_edit(hooks, tool, key, call)):
            await _settle_denied(context, key, call, reason)
            return
    if changes and isinstance(arguments := await validated(tool, call.input), str):  # or the tool has changed
        await _refuse(context, key, call, f"The changed arguments are not valid: {arguments}")
        return
    notes = [ADDED.format(answer.context)] if answer is not None and answer.context else []
    await _work(context, tool, key, call, arguments, verdict, changes, notes)


async def _objection(tool: Tool, answer: HookAnswer) -> str:
    """Return the reason why the hooks' answer prevents a call, or an empty string if the call may run."""
    if answer.blocks or answer.stop:
        return f"A hook blocked this call: {answer.reason or answer.stop or 'no reason given'}"
    if answer.input is not None and isinstance(problem := await validated(tool, answer.input), str):
        return f"A hook changed the arguments, and they are not valid: {problem}"
    return ""


async def _objection_to_edit(hooks: ToolHooks, tool: Tool, key: str, call: Call) -> str:
    """Return why hooks reject arguments that a person edited after the hooks' first decision,
    or an empty string if they accept the arguments.
    """
    answer = await hooks.before(rule_name_of(tool), f"{key}:edited", call.id, as_object(call.input))
    if answer is None:
        return ""
    changed = answer.input is not None and answer.input != call.input
    return await _objection(tool, answer) or ("A hook would change the edited arguments, so the call was not run." if changed else "")


async def _work(
    context: RunContext,
    tool: Tool,
    key: str,
    call: Call,
    arguments: object,
    verdict: Verdict,
    changes: Sequence[str],
    notes: Sequence[str],
) -> None:
    body: JsonObject = {"tool": tool.name, "call": call.id, **({"input": call.input} if changes else {})}

    async def work() -> Result:
        async with context.ports.recorded(tool, call.input):
            output = await _output(tool, arguments, context.tool_context(tool, key, call.id))
        if (hooks := context.ports.hooks) is not None:
            output = await hooks.after(rule_name_of(tool), key, call.id, as_object(call.input), output)
        return await to_result(context, call, replace(output, text="".join((*changes, *notes, output.text))))

    outcome = await context.once(key, idempotent=tool.idempotent, work=work, body=body, verdict=verdict)
    if isinstance(outcome, Unknown):
        await _tell_unknown(context, call, outcome)


async def _output(tool: Tool, arguments: object, context: ToolContext) -> ToolOutput:
    """Run the tool. An exception, which no tool should raise, becomes an error output."""
    try:
        return await tool.run(arguments, context)
    except StoreError:
        raise  # a failure of the log itself
    except Exception as error:
        log.exception("the tool %s raised", tool.name, extra={"run": context.key.partition("/")[0]})
        return ToolOutput(f"The tool failed: {type(error).__name__}: {error}", error=True)


async def _decided(context: RunContext, tool: Tool, key: str, call: Call, hook: HookAnswer | None) -> Verdict | None:
    """Return the policy's approval, or None if the call was denied or already has its output."""
    if context.standing(key) == "ended":
        return None
    if context.standing(key) == "begun" and not tool.idempotent:
        return Verdict(True)  # it was authorized before it started and is not repeated: `once` reports that its outcome is unknown
    if call.chosen and (hook is None or not hook.permission):
        hook = replace(hook or HookAnswer(), permission="allow")
    verdict = await context.allow(tool, key, call.id, call.arguments, subject_of(tool, call.input), hook)
    if verdict.allowed:
        return verdict
    reason = verdict.reason or "The call is not allowed."
    chunks: tuple[Chunk, ...] = (chunk.tool_denied(call.id),) if verdict.asked else (chunk.tool_error(call.id, reason),)
    if verdict.nobody:
        chunks = (*chunks, chunk.message_metadata({"needs_approval": True}))
    await _settle(context, key, *chunks, value={"denied": reason})
    return None


async def _settle_denied(context: RunContext, key: str, call: Call, reason: str) -> None:
    if context.standing(key) == "begun":
        await _refuse(context, key, call, reason)
    else:
        await _settle(context, key, chunk.tool_error(call.id, reason), value={"denied": reason})


async def _refuse(context: RunContext, key: str, call: Call, reason: str) -> None:
    """Write the error output of a call that can't run. If it was started earlier, report that its outcome is unknown."""

    async def nothing() -> Result:
        return Result(None)

    if context.standing(key) != "begun":
        await _settle(context, key, chunk.tool_error(call.id, reason))
    elif isinstance(outcome := await context.once(key, idempotent=False, work=nothing, body={}), Unknown):
        await _tell_unknown(context, call, outcome)


async def _settle(context: RunContext, key: str, *chunks: Chunk, value: Json = None) -> None:
    """Write the output of a call that was never started, unless it already has one."""
    if context.standing(key) != "ended":
        await context.append(Event("chunks", chunks, phase="end", key=f"{key}.0", body={"value": value}), fold=True)
        point("call.settled")


async def _tell_unknown(context: RunContext, call: Call, outcome: Unknown) -> None:
    await kill_noted(outcome.note)
    output = chunk.tool_error(call.id, UNKNOWN_REPEATED if call.repeated else UNKNOWN)
    await context.append(Event("chunks", (output,), phase="end", key=outcome.key, body={"unknown": True}), sync=True, fold=True)
    point("call.unknown")


async def to_result(context: RunContext, call: Call, output: ToolOutput) -> Result:
    """Return the result that ends the call: its output, truncated for the model; the full output is in a blob."""
    text, whole = output.text, output.whole
    if len(text) > TOOL_OUTPUT_CHARACTERS:
        try:
            data = text.encode("utf-8", "replace")
            blob = await context.ports.blobs.put(data, "text/plain; charset=utf-8")
            whole = FullOutput(blob.sha256, blob.size, text.count("\n") + 1, data[-TAIL_BYTES:].decode("utf-8", "ignore"))
            rest = f"the full output is in blob:{whole.blob}; read it with read_file"
        except MootError as error:
            rest = f"the rest could not be stored: {error.message}"
        text = f"{text[:TOOL_OUTPUT_CHARACTERS]}\n[truncated: {len(output.text):,} characters in total; {rest}]"
    details: JsonObject = {} if whole is None else {"providerMetadata": {chunk.OURS: whole.to_json()}}
    if output.error:
        return Result({"error": True}, ({**chunk.tool_error(call.id, text), **details},))
    value: Json = output.value if output.structured and whole is None else text
    if output.files:
        value = {"type": "content", "value": [{"type": "text", "text": text}, *output.files]}
    # the structured value is for faces and stays in the journal, because in the chunk it would replace the call's metadata
    shown = output.value if len(text) <= INLINE_BYTES else None
    nothing: JsonObject = {"empty": True} if output.empty else {}
    return Result({"error": False, "value": shown, **nothing}, ({**chunk.tool_output(call.id, value), **details},))
