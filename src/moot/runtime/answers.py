"""What becomes of a person's answer: checked against what was asked, stored first, and then the like is allowed as far as it said."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from moot.config.loading import FILE
from moot.config.settings import Rule
from moot.errors import MootError, NotFound, UsageError
from moot.plugins import Registry
from moot.runtime import patterns
from moot.runtime.approvals import Ruling, decide, rule_on
from moot.runtime.runtime import Runtime
from moot.runtime.setup import mode_of
from moot.tools.offers import tool as find_tool
from moot.tools.schema import definition_digest, parse, subject_of
from moot.types.approval import Answer, Approval, Grant, bind, grants_of
from moot.types.canonical import loads_exact
from moot.types.conversation import Conversation
from moot.types.run import Run

__all__ = ["check", "give", "rule"]

_WRITERS = Registry("moot.writers", {"try": "moot.config.rules:with_rules", "add": "moot.config.rules:add_rules"})
"""What writes YAML is imported when a rule is written."""

ONCE = "once"
LASTING = ("conversation", "always")


async def give(runtime: Runtime, approval: str, answer: Answer) -> Approval:
    """Stores the answer and does what it says beyond this call. Nothing is answered when this raises.

    Raises NotFound, Busy (answered or expired already), UsageError (what it wants can't be given), ConfigError (no rule can be written).
    """
    records = runtime.store.records
    asked, run, answer = await check(runtime, approval, answer)
    for_ever = answer.approved and answer.option == "always"
    if for_ever:
        _WRITERS.load("try")(*_written(runtime, asked.tool, answer.patterns))
    stored = await records.answer(approval, answer)
    if for_ever:
        # read again: others may have written meanwhile
        await anyio.to_thread.run_sync(_WRITERS.load("add"), *_written(runtime, asked.tool, answer.patterns))
        _put_in_force(runtime, asked.tool, answer.patterns)
    if answer.approved and answer.option in LASTING:
        await _settle(runtime, run)
    return stored


async def check(runtime: Runtime, approval: str, answer: Answer) -> tuple[Approval, Run, Answer]:
    """What it is about, and the answer with all that it stands for. Raises NotFound, and UsageError for one that can't be given."""
    records = runtime.store.records
    asked = await records.approval(approval)
    if asked is None:
        raise NotFound(f"no approval with the id {approval!r}")
    run = await records.run(asked.run)
    conversation = await runtime.store.conversations.get(run.conversation)
    return asked, run, _checked(runtime, asked, run, conversation, answer)


async def rule(runtime: Runtime, asked: Approval, arguments: bytes) -> Ruling:
    """Policy's word on the call with other arguments. Raises NotFound."""
    run = await runtime.store.records.run(asked.run)
    conversation = await runtime.store.conversations.get(run.conversation)
    return _ruling(runtime, replace(asked, arguments=arguments), run, conversation, grants_of(conversation.settings))


def _checked(runtime: Runtime, asked: Approval, run: Run, conversation: Conversation, answer: Answer) -> Answer:
    """The answer with all that it stands for. Raises UsageError."""
    if not answer.approved or asked.questions is not None:
        return answer
    if asked.outside is not None and answer.option in {option.id for option in asked.options}:
        return replace(answer, arguments=None, patterns=())
    if answer.arguments is not None:
        return replace(answer, option="once", patterns=(), digest=_edited(asked, conversation, answer.arguments))
    if answer.option not in LASTING:
        return _named(asked, answer)
    if not asked.lasting or (answer.option == "always" and not asked.always):
        raise UsageError(f"this call of {asked.tool} can't be allowed for longer than once", fix="answer once")
    wanted = answer.patterns or asked.lasting
    grants = (*grants_of(conversation.settings), *(Grant(asked.tool, pattern) for pattern in wanted))
    ruling = _ruling(runtime, asked, run, conversation, grants)
    if patterns.EVERYTHING in wanted and asked.lasting != (patterns.EVERYTHING,):
        raise UsageError(f"'*' would allow every call of {asked.tool}", fix="say what it must begin with, or write that rule yourself")
    if ruling.action != "allow":
        raise UsageError(f"{', '.join(map(repr, wanted))} does not cover this call of {asked.tool}", fix="write it wider, or answer once")
    return replace(answer, patterns=wanted)


def _ruling(runtime: Runtime, asked: Approval, run: Run, conversation: Conversation, grants: tuple[Grant, ...]) -> Ruling:
    settings = runtime.settings
    mode = mode_of(settings, run.settings)
    if asked.outside is not None:
        return rule_on(settings.permissions, mode, asked.outside, conversation.directory, grants)
    tool, subject = find_tool(asked.tool), subject_of(loads_exact(asked.arguments))
    return decide(settings.permissions, mode, tool, subject, directory=conversation.directory, grants=grants)


def _edited(asked: Approval, conversation: Conversation, arguments: bytes) -> bytes:
    """What a decision about the edited call is bound to. Raises UsageError when the tool does not take them."""
    try:
        value = loads_exact(arguments)
    except ValueError as error:
        raise UsageError(f"the arguments are no JSON: {error}", fix="edit them again") from error
    if asked.outside is not None:
        if not asked.outside.editable:
            raise UsageError(f"the agent takes no other arguments for {asked.tool}", fix="answer yes or no")
        return bind(asked.run, conversation.directory, asked.tool, b"outside", arguments)
    tool = find_tool(asked.tool)
    if isinstance(problem := parse(tool, value), str):
        raise UsageError(problem, fix="edit them again")
    return bind(asked.run, conversation.directory, asked.tool, definition_digest(tool), arguments)


def _named(asked: Approval, answer: Answer) -> Answer:
    """Raises UsageError for an option that an outside agent does not take."""
    if asked.outside is None or answer.option == ONCE:
        return answer
    known = ", ".join(repr(option.id) for option in asked.options)
    raise UsageError(f"the agent takes no answer {answer.option!r}", fix=f"one of: {known or 'once'}")


def _written(runtime: Runtime, tool: str, wanted: tuple[str, ...]) -> tuple[Path, list[dict[str, str]], Mapping[str, str]]:
    """The person's own configuration, and the rules that go into it."""
    return runtime.settings.home / FILE, [{"tool": tool, "match": pattern, "action": "allow"} for pattern in wanted], os.environ


def _put_in_force(runtime: Runtime, tool: str, wanted: tuple[str, ...]) -> None:
    permissions = runtime.settings.permissions
    rules = (Rule(tool, "allow", pattern, origin=f"user {runtime.settings.home / FILE}") for pattern in wanted)
    runtime.settings = replace(runtime.settings, permissions=replace(permissions, rules=(*permissions.rules, *rules)))


async def _settle(runtime: Runtime, run: Run) -> None:
    """What else the run has asked and is allowed by now need not be asked."""
    conversation = await runtime.store.conversations.get(run.conversation)
    grants = grants_of(conversation.settings)
    for other in await runtime.store.records.approvals(run=run.id):
        if other.questions is None and _ruling(runtime, other, run, conversation, grants).action == "allow":
            try:
                await runtime.store.records.answer(other.id, Answer(True, reason="allowed by what was answered before", answered_by="moot"))
            except MootError:  # answered or expired meanwhile, which is as good
                continue
