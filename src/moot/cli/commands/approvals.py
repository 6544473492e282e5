"""The commands of `moot approvals`: list and answer tool calls and questions that are waiting for a person. No terminal is needed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import anyio

from moot.cli.approvals.preview import call_rows
from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import age, plural, print_table
from moot.cli.console.output import Output
from moot.cli.console.results import brief
from moot.cli.context.engine import connected, state_of
from moot.cli.context.numbers import keep_numbers, numbered
from moot.cli.context.output import Out
from moot.cli.follow import Follower
from moot.cli.options import ShowFlags
from moot.cli.remote import AnyEngine
from moot.cli.run import make_show
from moot.engine import Engine
from moot.engine.locks import find_server, live_owners
from moot.errors import NotFound, UsageError
from moot.features.approvals import Asked, CallPreview, asked_in, diff_of, object_of, open_approvals, preview_in
from moot.guard.terminal import visible_line, visible_lines
from moot.runtime.approvals.typed_answers import label, parse_reply, patterns_text
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.ids import SHORTEST_PREFIX
from moot.types.run import Run

SCOPES = ("once", "conversation", "edits", "always")
"""Values of `--for` that are defined by moot. Outside agents can define more."""

PATIENCE = 3.0
"""Number of seconds to wait for another process to continue a run after its approval was answered.
After that, the run counts as abandoned.
"""

_POLL_SECONDS = 0.05

Which = Annotated[
    str, Parameter(metavar="ID", help="Approval: its id, the beginning of its id, or its number in the last 'moot approvals list'.")
]


async def list_(*, json: AsJson = False, output: Out) -> None:
    """Print the open approvals in all conversations, oldest first."""
    async with connected(output) as engine:
        found = await _open(engine)
        keep_numbers(state_of(engine), [asked.approval.id for asked in found], "approvals")
    if json:
        output.json({"data": list[Json]([asked.to_json() for asked in found]), "next_cursor": None})
        return
    if not found:
        output.say("moot: no open approvals or questions", "dim")
        return
    now = time.time()
    rows = [
        [str(number), age(asked.approval.asked_at, now), asked.agents, _title(asked), visible_line(_wants(asked.approval))]
        for number, asked in enumerate(found, 1)
    ]
    print_table(output, ["NO", "SINCE", "AGENT", "TITLE", "WANTS"], rows)


async def show(approval: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Print a tool call or question in full, and what each answer would allow."""
    async with connected(output) as engine:
        asked = await _find(engine, approval)
        preview = await _preview(engine, asked)
    if json:
        output.json({**asked.to_json(), "preview": {"fact": preview.fact, "diff": diff_of(preview)}})
        return
    for line in [*_content(asked, preview), *_allows(asked.approval)]:
        output.line(line)


Follow = Annotated[
    bool, Parameter(help="Follow the run until it ends. If no other process continues the run, continue it in this process.")
]


async def allow(
    approval: Which,
    /,
    *,
    for_: Annotated[
        str,
        Parameter(
            name="--for",
            metavar="SCOPE",
            help="Scope of the permission: once, conversation, edits (all file edits), always, or an option of the outside agent.",
        ),
    ] = "once",
    pattern: Annotated[
        list[str] | None,
        Parameter(
            metavar="PATTERN",
            help="With --for conversation or --for always: pattern of calls to allow. May be repeated. Defaults to the narrowest pattern.",
        ),
    ] = None,
    answer: Annotated[
        list[str] | None,
        Parameter(metavar="TEXT", help="Answer to a question, or the number of one of its choices. Repeat this option for each question."),
    ] = None,
    edited: Annotated[
        Path | None, Parameter(metavar="PATH", help="File with your edited version of the plan. Requires --answer Accept.")
    ] = None,
    reason: Annotated[str, Parameter(metavar="TEXT", help="Note to store with the answer.")] = "",
    follow: Follow = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Print the tool call or questions of an approval, then allow or answer them."""
    async with connected(output) as engine:
        asked = await _find(engine, approval)
        given = _allowed(asked.approval, for_, pattern or [], answer or [], reason)
        if edited is not None:
            given = replace(given, arguments=await _edited(asked.approval, edited))
        return await _answer(engine, asked, given, output, follow=follow, json=json)


async def deny(
    approval: Which,
    /,
    *,
    reason: Annotated[str, Parameter(metavar="TEXT", help="Reason to give to the agent.")] = "",
    follow: Follow = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Print the tool call or questions of an approval, then deny them."""
    async with connected(output) as engine:
        asked = await _find(engine, approval)
        return await _answer(engine, asked, Answer(False, reason=reason or "denied by the user"), output, follow=follow, json=json)


# ── finding and showing ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _open(engine: AnyEngine) -> list[Asked]:
    if not isinstance(engine, Engine):
        return await engine.approvals.open()
    return await open_approvals(engine.store, engine.settings, now=engine.runtime.now() // 1000)


async def _asked(engine: AnyEngine, approval: Approval) -> Asked:
    if not isinstance(engine, Engine):
        return await engine.approvals.asked(approval)
    return await asked_in(engine.store, approval, engine.settings)


async def _find(engine: AnyEngine, reference: str) -> Asked:
    """Return the approval with this number, id or id prefix. Raise NotFound if none or several match."""
    exact = await engine.store.records.approval(reference)
    if exact is not None and not exact.by_client:
        return await _asked(engine, exact)
    found = await _open(engine)
    if reference.isascii() and reference.isdigit() and len(reference) < SHORTEST_PREFIX:
        ids = numbered(state_of(engine), "approvals")
        ids = [asked.approval.id for asked in found] if ids is None else ids
        if not 1 <= int(reference) <= len(ids):
            raise NotFound(
                f"There is no approval number {reference}: the last list had {plural(len(ids), 'approval')}.", fix="moot approvals list"
            )
        stored = await engine.store.records.approval(ids[int(reference) - 1])
        if stored is None:
            raise NotFound(f"Approval number {reference} of the last list no longer exists.", fix="moot approvals list")
        return await _asked(engine, stored)
    matches = [asked for asked in found if len(reference) >= SHORTEST_PREFIX and asked.approval.id.startswith(reference)]
    if len(matches) > 1:
        ids = ", ".join(asked.approval.id for asked in matches[:5])
        raise NotFound(f"Several open approvals match {reference!r}: {ids}.", fix="Use more characters of the id.")
    if not matches:
        raise NotFound(f"No open approval matches {reference!r}.", fix="moot approvals list")
    return matches[0]


async def _preview(engine: AnyEngine, asked: Asked) -> CallPreview:
    approval = asked.approval
    if not isinstance(engine, Engine):
        return await engine.approvals.preview(approval, approval.arguments)
    return await preview_in(engine.runtime, approval, asked.conversation.id, approval.arguments)


def _content(asked: Asked, preview: CallPreview) -> list[str]:
    """Return everything that an answer depends on, as lines. Nothing is shortened or hidden."""
    approval, conversation = asked.approval, asked.conversation
    lines = [
        f"id: {approval.id}",
        f"conversation: {conversation.id[:13]}  {_title(asked)}",
        f"agent: {visible_line(asked.agents)}",
        f"folder: {visible_line(conversation.directory) or 'none'}",
        f"tool: {visible_line(approval.tool)}",
    ]
    if approval.answer is None and approval.expires_at is not None:
        lines.append(f"expires: in {age(round(time.time() * 1000), approval.expires_at / 1000)}")
    if isinstance(approval.questions, list):
        return [*lines, *(line for number, one in enumerate(_questions(approval), 1) for line in _question(number, one))]
    if approval.outside is not None and approval.outside.title:
        lines.append(f"title: {visible_line(approval.outside.title)}")
    for row in call_rows(preview):
        lines.append(f"{' ' * row.indent}{row.text}" + (f"  [{row.right}]" if row.right else ""))
    return lines


def _title(asked: Asked) -> str:
    return visible_line(asked.conversation.title) or "untitled"


def _allows(approval: Approval) -> list[str]:
    """List the possible answers, or the answer that was given."""
    if approval.answer is not None:
        return [f"{'allowed' if approval.answer.approved else 'denied'} by {approval.answer.answered_by}"]
    if approval.questions is not None:
        return ["allow --answer TEXT: answer the questions"]
    if approval.options:
        return [f"allow --for {option.id}: {label(option)}" for option in approval.options if option.allows]
    lines = ["allow: this call, once"]
    if approval.lasting:
        lines.append(f"allow --for conversation: {approval.tool} {patterns_text(approval)} in this conversation")
    if approval.edits:
        lines.append("allow --for edits: all file edits in this conversation")
    if approval.always:
        lines.append(f"allow --for always: {approval.tool} {patterns_text(approval)} in every conversation")
    return lines


def _question(number: int, question: JsonObject) -> list[str]:
    words = ": ".join(str(word) for word in (question.get("header"), question.get("text")) if word)
    first, *more = visible_lines(words)
    several = "  [several choices]" if question.get("multiple") is True else ""
    choices = [f"    {at} {visible_line(name)}" for at, name in enumerate(_labels(question), 1)]
    return [f"question {number}: {first}{several}", *more, *choices]


def _questions(approval: Approval) -> list[JsonObject]:
    questions = approval.questions
    return [one for one in questions if isinstance(one, dict)] if isinstance(questions, list) else []


def _labels(question: JsonObject) -> list[str]:
    options = question.get("options")
    return [str(option.get("label", "")) for option in options if isinstance(option, dict)] if isinstance(options, list) else []


def _wants(approval: Approval) -> str:
    if approval.questions is not None:
        return f"answers: {' · '.join(str(question.get('text', '')) for question in _questions(approval))}"
    return f"{approval.tool} {brief(loads(approval.arguments))}" if object_of(approval.arguments) else approval.tool


# ── answering ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _allowed(approval: Approval, scope: str, patterns: Sequence[str], answers: Sequence[str], reason: str) -> Answer:
    """Return the answer. Raise UsageError if the options don't fit the approval."""
    if approval.questions is not None:
        if scope != "once" or patterns:
            raise UsageError("--for and --pattern apply only to tool calls, but this is a question.", fix="Answer it with --answer.")
        questions = _questions(approval)
        if len(answers) != len(questions):
            message = f"The approval asks {plural(len(questions), 'question')}, but the number of --answer options is {len(answers)}."
            raise UsageError(message, fix=f"moot approvals show {approval.id}")
        pairs = zip(answers, questions, strict=True)
        replies = [parse_reply(text, _labels(one), multiple=one.get("multiple") is True) for text, one in pairs]
        return Answer(True, reason=reason, value=[list[Json](reply) for reply in replies])
    if answers:
        raise UsageError("--answer applies only to questions, but this is a tool call to allow or deny.", fix="Leave out --answer.")
    known = [*SCOPES, *(option.id for option in approval.options if option.allows)]
    if scope not in known:
        raise UsageError(f"Invalid value {scope!r} for '--for'.", fix=f"Use one of: {', '.join(known)}.")
    if patterns and scope not in ("conversation", "always"):
        raise UsageError("--pattern requires an answer that also applies to later calls.", fix="Add --for conversation or --for always.")
    return Answer(True, scope, reason, patterns=tuple(patterns))


async def _edited(approval: Approval, path: Path) -> bytes:
    """Return arguments that contain the edited text of a question.
    Raise UsageError if the file can't be read or the approval has no text to edit.
    """
    name = next((str(one["edits"]) for one in _questions(approval) if one.get("edits")), "")
    if not name:
        raise UsageError("--edited applies only to plans.", fix="Leave out --edited.")
    try:
        return dumps({name: await anyio.Path(path).read_text("utf-8")})
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Could not read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}.") from error


async def _answer(engine: AnyEngine, asked: Asked, answer: Answer, output: Output, *, follow: bool, json: bool) -> int:
    """Print the call, store the answer, and report which process continues the run. Return the exit code."""
    approval = asked.approval
    if not json and approval.answer is None:
        for line in _content(asked, await _preview(engine, asked)):
            output.say(line, "dim", exact=True)
    top = await engine.store.records.run(approval.run)
    while top.parent_run is not None:
        top = await engine.store.records.run(top.parent_run)
    await engine.runs.answer(approval.id, answer, wake=False)
    left = await engine.store.records.approvals(run=approval.run)
    taken = await _is_taken(engine, approval.run, wait=not left)
    if follow:
        return await _follow(engine, top, approval.run, output, here=not taken, json=json)
    words = _scope_words(approval, answer)
    if json:
        resume = None if taken or left else f"moot chat resume {top.conversation[:13]}"
        output.json({"ok": True, "approval": approval.id, "approved": answer.approved, "continues": taken, "resume": resume})
        return 0
    output.say(f"moot: {words}; {_rest(top, len(left), taken=taken)}")
    return 0


def _scope_words(approval: Approval, answer: Answer) -> str:
    if approval.questions is not None and answer.approved:
        return "answered"
    words = {
        "conversation": "allowed in this conversation",
        "edits": "all file edits allowed in this conversation",
        "always": "always allowed",
    }
    return words.get(answer.option, "allowed once") if answer.approved else "denied"


def _rest(top: Run, left: int, *, taken: bool) -> str:
    if left:
        return f"the run is waiting for {plural(left, 'more approval')}"
    return "the run continues" if taken else f"no process continues the run; resume it with: moot chat resume {top.conversation[:13]}"


async def _is_taken(engine: AnyEngine, run: str, *, wait: bool) -> bool:
    """Return whether another process has continued the run. If `wait` is True, give live processes a few seconds to do so."""
    others = not isinstance(engine, Engine) or bool(live_owners(engine.settings.owners)[0]) or find_server(engine.settings.home) is not None
    with anyio.move_on_after(PATIENCE if wait and others else 0):
        while True:
            if (await engine.store.records.run(run)).status != "waiting":
                return True
            await anyio.sleep(_POLL_SECONDS)
    return False


async def _follow(engine: AnyEngine, top: Run, asked: str, output: Output, *, here: bool, json: bool) -> int:
    """Show the outermost run until it ends. If `here` is True, this process continues it, and the run that asked for approval."""
    display = make_show(ShowFlags(json=json), output)
    conversation = await engine.store.conversations.get(top.conversation)
    message = await engine.store.conversations.message(top.message)
    if here and isinstance(engine, Engine):
        await engine.runs.wake(asked)
    return await Follower(engine, output, display, stops=here).follow(top, conversation, max(message.first_seq - 1, 0))
