"""Command hooks for conversation events. One function per event; each does nothing unless a hook is configured for it."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

import anyio

from moot.config.agents.project import main_folder
from moot.config.hooks import fits
from moot.convert.files.attachments import with_texts
from moot.convert.vendor import as_object
from moot.errors import MootError
from moot.guard.roots import is_below
from moot.guard.secrets import redact
from moot.runtime.approvals.sandbox import confine
from moot.runtime.hooks.commands import ADDED, INSIDE, HookResult, read_answer, run_command
from moot.runtime.journal import Journal
from moot.runtime.runtime import Runtime, log_fields
from moot.runtime.setup import has_folder, mode_of
from moot.types import chunk
from moot.types.approval import Approval
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.context import Result, Unknown, Verdict
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.hooks import PROMPT, SUBJECTS, UNCHECKED, CommandHook, HookAnswer, HookEvent
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.message import Message, Part, text_of, text_part
from moot.types.run import RunRequest
from moot.types.served import Served
from moot.types.store import Change, Fence
from moot.types.token import LOCAL_USER
from moot.types.tool import ToolOutput

RECORDED = 2_000
"""Maximum number of characters of a hook's output to keep in the log."""

SHOWN = 200
"""Maximum number of characters of a blocked message to show."""

STOPS = 3
"""Maximum number of times that Stop hooks continue one run."""

SHORT = 10.0
"""Maximum number of seconds for hooks that delay a question or moot's exit."""

log = logging.getLogger("moot.hooks")


class HookLeg(Protocol):
    """The part of a leg that hooks need."""

    runtime: Runtime
    request: RunRequest
    fence: Fence
    index: Journal

    async def append(self, *events: Event, changes: Sequence[Change] = (), sync: bool = False, fold: bool = False) -> range: ...

    async def once(
        self, key: str, *, idempotent: bool, work: Callable[[], Awaitable[Result]], body: JsonObject, verdict: Verdict | None = None
    ) -> Result | Unknown: ...

    async def history(self, tokens: int) -> list[Message]: ...

    def message(self) -> Message: ...


def hooks_for(runtime: Runtime, conversation: Conversation, event: HookEvent, subject: str = "") -> tuple[CommandHook, ...]:
    """Return the hooks that run on an event, each command once."""
    listed = runtime.settings.hooks.get(event, ())
    if not listed or INSIDE in os.environ:
        return ()
    return tuple(
        {
            (hook.command, hook.plugin): hook
            for hook in listed
            if (fits(hook.matcher, subject) or SUBJECTS.get(event) == ())
            and (not hook.folder or is_below(conversation.directory, hook.folder))
        }.values()
    )


async def _fire(
    leg: HookLeg, event: HookEvent, key: str, facts: JsonObject, *, subject: str = "", seconds: float = 0.0
) -> HookAnswer | None:
    """Run the hooks for an event concurrently and return their combined answer, or None if there are none.

    `seconds` limits their time.
    """
    hooks = hooks_for(leg.runtime, leg.request.conversation, event, subject)
    if not hooks or _is_plain(leg):
        return None
    return joined([*(await _answers(leg, hooks, event, key, facts, seconds)).values()])


async def _answers(
    leg: HookLeg, hooks: Sequence[CommandHook], event: HookEvent, key: str, facts: JsonObject, seconds: float = 0.0, *, adds: bool = True
) -> dict[CommandHook, HookAnswer]:
    """Run hooks concurrently and return their answers in the order of the hooks. If `adds` is set, text that they add is shown before the
    prompt.

    The journal has each hook's start and end, so a resumed run reads the answer and does not run the hook again.
    """
    request = leg.request
    mode = mode_of(leg.runtime.settings, request.settings, request.conversation)
    about: JsonObject = {"run": request.run.id, "agent": request.run.agent, "permission_mode": mode}
    data = _payload(request.conversation, event, {**about, **facts})
    answers: dict[CommandHook, HookAnswer] = {}

    async def one(hook: CommandHook) -> None:
        async def work() -> Result:
            record, result = await _run(leg.runtime, request.conversation, event, hook, data, seconds, log_fields(request.run))
            return Result(record, _chunks(event, hook, result, adds=adds))

        owner = f"\0{hook.plugin}" if hook.plugin else ""
        digest = blake2b(f"{hook.matcher}\0{hook.command}{owner}".encode(), digest_size=6).hexdigest()
        body: JsonObject = {"hook": event, "command": _masked(leg.runtime, hook.command)}
        outcome = await leg.once(f"hook:{event}:{key}:{digest}", idempotent=True, work=work, body=body)
        value = as_object(outcome.value) if isinstance(outcome, Result) else {}
        answers[hook] = HookAnswer.from_json(as_object(value.get("answer")))

    async with anyio.create_task_group() as group:
        for hook in hooks:
            group.start_soon(one, hook)
    return {hook: answers[hook] for hook in hooks}


def _is_plain(leg: HookLeg) -> bool:
    """Return whether a program calls a model directly through moot, in which case no hooks run."""
    served = Served.of(leg.request.settings)
    return served is not None and served.plain


def _payload(conversation: Conversation, event: HookEvent, facts: JsonObject) -> bytes:
    return dumps({"session_id": conversation.id, "cwd": conversation.directory, "hook_event_name": event, **facts}) + b"\n"


async def _run(
    runtime: Runtime, conversation: Conversation, event: HookEvent, hook: CommandHook, data: bytes, seconds: float, fields: dict[str, str]
) -> tuple[JsonObject, HookResult]:
    """Run one hook. Return its record for the log, and the result. Failures are logged too."""
    limited = replace(hook, timeout=min(hook.timeout, seconds)) if seconds else hook
    directory = _directory(runtime, conversation)
    # other users may be able to change programs that a project's command starts
    others = hook.folder and conversation.owner != LOCAL_USER
    inside = partial(confine, runtime, conversation, directory, command=hook.command, access="sandbox")
    if hook.folder and main_folder(str(directory)):  # a worktree has its own copies of the programs, which a model may have changed
        directory = Path(hook.folder)
    finished = await run_command(limited, data, directory, runtime.settings.home, inside if others else None)
    result = read_answer(event, limited, finished, partial(_masked, runtime))
    shown = "" if result.quiet else "\n".join(filter(None, (finished.stdout.strip(), finished.stderr.strip())))
    if result.failure:  # in a run, the answer shows a notice
        log.log(
            logging.INFO if "run" in fields else logging.WARNING,
            "hook %s %r %s",
            event,
            hook.command,
            _masked(runtime, result.failure),
            extra=fields,
        )
    elif result.answer.blocks:
        log.info("hook %s %r blocked: %s", event, hook.command, _masked(runtime, result.answer.reason), extra=fields)
    record: JsonObject = {
        "hook": event,
        "command": _masked(runtime, hook.command),
        "code": finished.code,
        "ms": round(finished.seconds * 1000),
        "output": _masked(runtime, shown[:RECORDED]),
        "answer": result.answer.to_json(),
    }
    return record, result


def _directory(runtime: Runtime, conversation: Conversation) -> Path:
    """Return the working directory of hooks: the conversation's folder, or moot's home if there is none."""
    folder = Path(conversation.directory or os.devnull)
    return folder if has_folder(conversation) and folder.is_dir() else runtime.settings.home


def _masked(runtime: Runtime, text: str) -> str:
    return redact(text, [provider.api_key for provider in runtime.settings.providers.values() if provider.api_key])


def _chunks(event: HookEvent, hook: CommandHook, result: HookResult, *, adds: bool) -> tuple[Chunk, ...]:
    """Return the chunks that show a hook's result in the answer.

    These are notices if it failed, blocked or has a message, and the text that it adds to the prompt.
    """
    name = hook.command.splitlines()[0][:80]
    notes: list[str] = []
    if result.failure:
        notes.append(f"The {event} hook {name!r} {result.failure}.")
    elif result.answer.blocks and event == "UserPromptSubmit":
        notes.append(f"The {event} hook {name!r} blocked the prompt: {result.answer.reason}")
    if result.answer.stop:
        notes.append(f"The {event} hook {name!r} ended the run: {result.answer.stop}")
    if result.message:
        notes.append(result.message)
    chunks = [chunk.data("note", {"text": redact(note)}) for note in notes]
    if adds and event in ADDED and result.answer.context and not result.answer.blocks:
        chunks.append(chunk.data("hook", {"event": event, "text": result.answer.context}))
    return tuple(chunks)


_STRICTEST = ("deny", "ask", "allow")


def joined(answers: Sequence[HookAnswer]) -> HookAnswer:
    """Return the combined answer of an event's hooks: the strictest permission with its reasons, all contexts, and the last new input.

    If a hook allows a call, it allows only the arguments that it saw, not those with which another hook has replaced them.
    """
    input = next((answer.input for answer in reversed(answers) if answer.input is not None), None)
    answers = [replace(each, permission="") if each.permission == "allow" and each.input != input else each for each in answers]
    permission = next((one for one in _STRICTEST if any(answer.permission == one for answer in answers)), "")
    reasons = [answer.reason for answer in answers if answer.permission == permission and answer.reason]
    return HookAnswer(
        permission,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  one of the answers'
        "\n".join(dict.fromkeys(reasons)),
        input,
        "\n\n".join(dict.fromkeys(answer.context for answer in answers if answer.context)),
        next((answer.stop for answer in answers if answer.stop), ""),
    )


# ── tool calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _CallHooks:
    """`ToolHooks` of a leg."""

    leg: HookLeg

    async def before(self, tool: str, key: str, tool_call: str, input: JsonObject) -> HookAnswer | None:
        leg, facts = self.leg, {"tool_name": tool, "tool_use_id": tool_call}
        hooks = hooks_for(leg.runtime, leg.request.conversation, "PreToolUse", tool)
        if not hooks or _is_plain(leg):
            return None
        first = await _answers(leg, hooks, "PreToolUse", key, {**facts, "tool_input": input})
        answer = joined([*first.values()])
        author = next((hook for hook in reversed(hooks) if first[hook].input is not None), None)
        others = [hook for hook in hooks if hook is not author]
        if author is None or answer.blocks or answer.stop or not others:
            return answer
        # the other hooks have decided about the original arguments
        second = await _answers(leg, others, "PreToolUse", f"{key}:changed", {**facts, "tool_input": answer.input})
        if any(each.input not in (None, answer.input) for each in second.values()):
            return replace(answer, permission="deny", reason="several hooks change its arguments in different ways")
        stricter = [replace(first[hook], permission="", input=None) for hook in others if first[hook].permission != "ask"]
        asking = [replace(first[hook], input=None) for hook in others if first[hook].permission == "ask"]
        return joined([*stricter, *asking, *(replace(each, input=answer.input) for each in second.values()), first[author]])

    async def after(self, tool: str, key: str, tool_call: str, input: JsonObject, output: ToolOutput) -> ToolOutput:
        text: Json = output.text[:TOOL_OUTPUT_CHARACTERS]
        response: JsonObject = {"output": text, "error": output.error}
        facts: JsonObject = {"tool_name": tool, "tool_use_id": tool_call, "tool_input": input, "tool_response": response}
        answer = await _fire(self.leg, "PostToolUse", key, facts, subject=tool)
        if answer is None:
            return output
        said = [f"[A hook reports a problem with this call: {answer.reason}]"] if answer.blocks else []
        said += [f"[A hook adds: {answer.context}]"] if answer.context else []
        if not said:
            return output
        return replace(output, text="\n".join([output.text, *said]), structured=False)

    async def steered(self, id: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        leg, text = self.leg, text_of(tuple(parts))
        hooks = hooks_for(leg.runtime, leg.request.conversation, "UserPromptSubmit")
        if not hooks or _is_plain(leg):
            return tuple(parts)
        answer = joined([*(await _answers(leg, hooks, "UserPromptSubmit", f"steer:{id}", _prompt_facts(parts), adds=False)).values()])
        if answer.blocks or answer.stop:
            shown = f"Not sent: {' '.join(text.split())[:SHOWN]}"
            note = chunk.data("note", {"text": shown, "unsent": text}, id=f"blocked-{id}")
            await leg.append(Event("chunks", (note,)), fold=True)
            return ()
        return (*([text_part(f"{answer.context}\n\n")] if answer.context else ()), *parts)

    @property
    def stopping(self) -> str:
        for key, event in self.leg.index.ends.items():
            if key.startswith(("hook:PreToolUse:", "hook:PostToolUse:")) and isinstance(event.body, dict):
                value = as_object(event.body.get("value"))
                if stop := as_object(value.get("answer")).get("stop"):
                    return str(stop)
        return ""


def tool_hooks(leg: HookLeg) -> _CallHooks:
    """Return the hooks of the leg's tool calls."""
    return _CallHooks(leg)


# ── a run ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _prompt_facts(parts: Sequence[Part]) -> JsonObject:
    """Return a prompt in the form for hooks: its text, including attached text files as models read them, and the names of all files."""
    names = [str(part.get("filename") or part.get("mediaType") or "file") for part in parts if part.get("type") == "file"]
    return {"prompt": text_of(with_texts(parts)), "files": list[Json](names)}


async def user_prompt(leg: HookLeg, prompt: Sequence[Part]) -> HookAnswer | None:
    """Run the hooks for a user's prompt. Text that they add becomes parts of the answer; the caller ends the run if they block it.

    Until they have decided, the prompt is marked as unchecked, so that later runs don't send it if this run ends before that.
    """
    marks, answer = leg.index, None
    if hooks_for(leg.runtime, leg.request.conversation, "UserPromptSubmit") and not _is_plain(leg):
        if PROMPT not in marks.starts:
            unchecked = chunk.message_metadata({UNCHECKED: True})
            await leg.append(Event("chunks", (unchecked,), phase="start", key=PROMPT), sync=True, fold=True)
        answer = await _fire(leg, "UserPromptSubmit", "", _prompt_facts(prompt))
    if (answer is None or not (answer.blocks or answer.stop)) and PROMPT in marks.starts and PROMPT not in marks.ends:
        await leg.append(Event("chunks", (chunk.message_metadata({UNCHECKED: False}),), phase="end", key=PROMPT), fold=True)
    return answer


async def session_start(leg: HookLeg) -> None:
    """Run the session hooks for the first run of a conversation in this process, and make sure that the hooks for its end run later.

    Sub-agents belong to the session of their parent's conversation. Outside agents have their own sessions and hooks.
    """
    runtime, conversation, run = leg.runtime, leg.request.conversation, leg.request.run
    hooks = runtime.settings.hooks
    if ("SessionStart" not in hooks and "SessionEnd" not in hooks) or run.parent_run is not None or run.agent_type != "moot":
        return
    session = runtime.drawers.kept(conversation.id, "hooks", lambda: _Session(runtime, conversation))
    if not session.has_started:
        session.has_started = True
        source = "resume" if len(await leg.history(1)) > 1 else "startup"
        await _fire(leg, "SessionStart", "", {"source": source}, subject=source)


async def stop(leg: HookLeg) -> bool:
    """Run the hooks for the end of an answer. Return True if the run must continue with their message, which happens at most three
    times."""
    event: HookEvent = "SubagentStop" if leg.request.run.parent_run else "Stop"
    if event not in leg.runtime.settings.hooks or (event == "SubagentStop" and leg.request.run.agent_type != "moot"):
        return False
    done = sum(key.startswith("hook:continue:") for key in leg.index.ends)
    subject = leg.request.run.agent if event == "SubagentStop" else ""
    facts: JsonObject = {"stop_hook_active": done > 0, "last_assistant_message": text_of(leg.message().parts)}
    answer = await _fire(leg, event, str(done), facts, subject=subject)
    if answer is None or not answer.blocks or answer.stop:
        return False
    if done >= STOPS:
        note = chunk.data("note", {"text": f"A {event} hook asked to continue more than {STOPS} times, so the run ends."})
        await leg.append(Event("chunks", (note,), phase="end", key="hook:limit"), fold=True)
        return False
    piece: Chunk = {
        "type": "steering-message",
        "id": f"hook-{done}",
        "parts": [text_part(f"A {event} hook asks to continue: {answer.reason}")],
    }
    await leg.append(Event("chunks", (piece,), phase="end", key=f"hook:continue:{done}"), sync=True, fold=True)
    return True


async def notify(leg: HookLeg, approval: Approval) -> None:
    """Run the hooks for a question that is waiting for a person."""
    kind = "permission_prompt" if approval.questions is None else "elicitation_dialog"
    message = f"moot needs your permission to use {approval.tool}." if approval.questions is None else "moot has a question for you."
    facts: JsonObject = {"message": message, "title": leg.request.conversation.title, "notification_type": kind}
    await _fire(leg, "Notification", approval.id, facts, subject=kind, seconds=SHORT)


# ── outside of runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def before_compaction(runtime: Runtime, conversation: Conversation, *, trigger: str, focus: str = "") -> str:
    """Run the hooks before a conversation is compacted (`manual` or `auto`). Return why it is blocked, or an empty string if it is not."""
    answer = await _fire_outside(runtime, conversation, "PreCompact", {"trigger": trigger, "custom_instructions": focus}, subject=trigger)
    return (answer.reason if answer.blocks else answer.stop) if answer is not None else ""


@dataclass(slots=True)
class _Session:
    """The session of a conversation with runs in this process. It ends when the conversation is evicted from memory, or when moot exits."""

    runtime: Runtime
    conversation: Conversation
    has_started: bool = False

    async def aclose(self) -> None:
        try:
            await _fire_outside(self.runtime, self.conversation, "SessionEnd", {"reason": "other"}, subject="other", seconds=SHORT)
        except MootError as error:
            log.warning("could not record the end of a session: %s", error.message, extra={"conversation": self.conversation.id})


async def _fire_outside(
    runtime: Runtime, conversation: Conversation, event: HookEvent, facts: JsonObject, *, subject: str, seconds: float = 0.0
) -> HookAnswer | None:
    """Run the hooks for an event that doesn't belong to a run. The log gets one record for each hook."""
    hooks = hooks_for(runtime, conversation, event, subject)
    if not hooks:
        return None
    data = _payload(conversation, event, facts)
    found: dict[CommandHook, tuple[JsonObject, HookResult]] = {}

    async def one(hook: CommandHook) -> None:
        found[hook] = await _run(runtime, conversation, event, hook, data, seconds, {"conversation": conversation.id})

    async with anyio.create_task_group() as group:
        for hook in hooks:
            group.start_soon(one, hook)
    events = [Event("meta", body={"hook": found[hook][0]}, at=runtime.now()) for hook in hooks]
    seqs = await runtime.store.log.append(conversation.id, events)
    runtime.hub.publish(conversation.id, seqs, events)
    return joined([found[hook][1].answer for hook in hooks])
