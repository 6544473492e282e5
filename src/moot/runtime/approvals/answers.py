"""Processing a person's answer: checking it against the request, storing it, and applying lasting permissions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from moot.config.loader import FILE
from moot.config.settings import Rule
from moot.convert.vendor import as_list, as_object
from moot.errors import MootError, NotFound, UsageError
from moot.plugins import Registry
from moot.runtime.approvals import patterns
from moot.runtime.approvals.policy import Ruling
from moot.runtime.approvals.sandbox import rule_on_call, rule_on_outside
from moot.runtime.runtime import Runtime
from moot.runtime.setup import confined_conversation, mode_of
from moot.tools.schema import access_of, as_called, definition_digest, subject_of, validated
from moot.types.agent import Mode
from moot.types.approval import Answer, Approval, Grant, bind
from moot.types.canonical import loads_exact
from moot.types.conversation import Conversation
from moot.types.run import Run

LONGEST_TEXT = 50_000
"""Maximum length of a question's edited text, in characters."""

_WRITERS = Registry("moot.writers", {"try": "moot.config.changes:with_rules", "add": "moot.config.changes:add_rules"})
"""Imported lazily by name, because YAML is only needed to write a rule."""

ONCE = "once"
EDITS = "edits"
LASTING = ("conversation", "always")


async def give_answer(runtime: Runtime, approval: str, answer: Answer) -> Approval:
    """Store the answer and apply lasting permissions. A permanent rule is tested first, so the request stays unanswered if it is invalid.

    Raise NotFound, Busy (already answered or expired), UsageError (the answer is not possible), ConfigError (the rule can't be written).
    """
    records = runtime.store.records
    asked, run, answer = await check_answer(runtime, approval, answer)
    permanent = answer.approved and answer.option == "always"
    if permanent:
        _WRITERS.load("try")(*_written(runtime, asked.tool, answer.patterns))
    stored = await records.answer(approval, answer)
    if permanent:
        # reads the file again, because other processes may have written it meanwhile
        await anyio.to_thread.run_sync(_WRITERS.load("add"), *_written(runtime, asked.tool, answer.patterns))
        permissions, origin = runtime.settings.permissions, f"user {runtime.settings.home / FILE}"
        rules = (Rule(asked.tool, "allow", pattern, origin=origin) for pattern in answer.patterns)
        runtime.settings = replace(runtime.settings, permissions=replace(permissions, rules=(*permissions.rules, *rules)))
    if answer.approved and answer.option in (EDITS, *LASTING):
        await _answer_covered(runtime, await records.run(run.id))
    return stored


async def check_answer(runtime: Runtime, approval: str, answer: Answer) -> tuple[Approval, Run, Answer]:
    """Return the approval, its run, and the complete answer.

    Raise NotFound if the approval does not exist, UsageError if the answer is not possible.
    """
    records = runtime.store.records
    asked = await records.approval(approval)
    if asked is None:
        raise NotFound(f"Approval {approval!r} not found.")
    run = await records.run(asked.run)
    conversation = await confined_conversation(runtime.store, run.conversation)
    return asked, run, await _checked(runtime, asked, run, conversation, answer)


async def rule_on_edited(runtime: Runtime, asked: Approval, arguments: bytes) -> Ruling:
    """Return the policy's ruling on the call with the given arguments. Raise NotFound if its run was deleted."""
    run = await runtime.store.records.run(asked.run)
    conversation = await confined_conversation(runtime.store, run.conversation)
    return await _ruling(runtime, replace(asked, arguments=arguments), run, conversation, conversation.grants)


async def _checked(runtime: Runtime, asked: Approval, run: Run, conversation: Conversation, answer: Answer) -> Answer:
    """Return the complete answer. Raise UsageError if the answer is not possible."""
    _check_replies(asked, answer)
    if not answer.approved or asked.questions is not None:
        return answer
    if asked.outside is not None and answer.option in {option.id for option in asked.options}:
        return replace(answer, arguments=None, patterns=())
    if answer.arguments is not None:
        return replace(answer, option="once", patterns=(), digest=await _edited(runtime, asked, conversation, answer.arguments))
    if answer.option == EDITS:
        return await _edits(runtime, asked, run, conversation, answer)
    if answer.option not in LASTING:
        if asked.outside is None or answer.option == ONCE:
            return answer
        known = ", ".join(repr(option.id) for option in asked.options) or "once"
        raise UsageError(f"The agent does not offer the answer {answer.option!r}.", fix=f"Use one of: {known}.")
    if not asked.lasting or (answer.option == "always" and not asked.always):
        raise UsageError(f"This call of {asked.tool} can only be allowed once.", fix="Answer with 'once'.")
    wanted = answer.patterns or asked.lasting
    grants = (*conversation.grants, *(Grant(asked.tool, pattern) for pattern in wanted))
    ruling = await _ruling(runtime, asked, run, conversation, grants)
    if patterns.EVERYTHING in wanted and asked.lasting != (patterns.EVERYTHING,):
        fix = "Use a narrower pattern, or add that rule to the configuration yourself."
        raise UsageError(f"The pattern '*' would allow every call of {asked.tool}.", fix=fix)
    if ruling.action != "allow":
        shown = ", ".join(map(repr, wanted))
        raise UsageError(
            f"The pattern {shown} does not cover this call of {asked.tool}.", fix="Use a wider pattern, or answer with 'once'."
        )
    return replace(answer, patterns=wanted)


def _check_replies(asked: Approval, answer: Answer) -> None:
    """Raise UsageError if a reply is not one of the options of its question, or if the answer edits a text that can't be edited."""
    questions = as_list(asked.questions) if answer.approved else []
    if asked.questions is not None and answer.arguments is not None:
        editable = {str(as_object(question).get("edits")) for question in as_list(asked.questions)} - {"None"}
        _check_changes(answer.arguments, editable)
    for question, reply in zip(questions, as_list(answer.value), strict=False):
        if not isinstance(question, dict) or question.get("choices_only") is not True:
            continue
        labels = [str(as_object(option).get("label")) for option in as_list(question.get("options"))]
        given = [str(text).strip() for text in (reply if isinstance(reply, list) else [reply])]
        known = {label.casefold() for label in labels}
        if not given or any(text.casefold() not in known for text in given):
            words = ", ".join(map(repr, given)) or "An empty list"
            raise UsageError(f"{words} is not a possible answer.", fix=f"Answer with {' or '.join(map(repr, labels))}.")


def _check_changes(arguments: bytes, editable: set[str]) -> None:
    """Raise UsageError unless the JSON object contains only non-empty texts with these names."""
    if not editable:
        raise UsageError("The text of this question can't be changed.", fix="Answer without arguments.")
    try:
        changed = loads_exact(arguments)
    except ValueError as error:
        raise UsageError(f"The arguments are not valid JSON: {error}.", fix="Correct the arguments.") from error
    texts = changed if isinstance(changed, dict) else {"": None}
    if texts.keys() - editable or not all(isinstance(text, str) and text.strip() for text in texts.values()):
        names = ", ".join(map(repr, sorted(editable)))
        raise UsageError(
            f"The arguments must be an object whose only key is {names}, with a non-empty string.", fix="Correct the arguments."
        )
    if any(len(str(text)) > LONGEST_TEXT for text in texts.values()):
        raise UsageError(f"The text has more than {LONGEST_TEXT:,} characters.", fix="Shorten it.")


async def _edits(runtime: Runtime, asked: Approval, run: Run, conversation: Conversation, answer: Answer) -> Answer:
    """Return an answer that allows all file edits. Raise UsageError if the call to approve is not a file edit."""
    grants = conversation.grants
    if not asked.edits or (await _ruling(runtime, asked, run, conversation, grants, "edits")).action != "allow":
        raise UsageError(f"This call of {asked.tool} is not a file edit that the mode 'edits' allows.", fix="Answer with 'once'.")
    return answer


async def _ruling(
    runtime: Runtime, asked: Approval, run: Run, conversation: Conversation, grants: tuple[Grant, ...], mode: Mode | None = None
) -> Ruling:
    mode = mode or mode_of(runtime.settings, run.settings, conversation)
    if asked.outside is not None:
        return await rule_on_outside(runtime, conversation, asked.outside, mode=mode, grants=grants)
    given = loads_exact(asked.arguments)
    tool = runtime.find_tool(asked.tool)
    called, subject, access = as_called(tool, given), subject_of(tool, given), access_of(given)
    return await rule_on_call(runtime, conversation, called, subject, access, mode=mode, grants=grants)


async def _edited(runtime: Runtime, asked: Approval, conversation: Conversation, arguments: bytes) -> bytes:
    """Return the digest of the edited call. Raise UsageError if the tool rejects the arguments.

    The decision is valid only for this call.
    """
    try:
        value = loads_exact(arguments)
    except ValueError as error:
        raise UsageError(f"The arguments are not valid JSON: {error}.", fix="Correct the arguments.") from error
    if asked.outside is not None:
        if not asked.outside.editable:
            raise UsageError(f"The agent does not accept edited arguments for {asked.tool}.", fix="Answer yes or no.")
        return bind(asked.run, conversation.directory, asked.tool, b"outside", arguments)
    tool = runtime.find_tool(asked.tool)
    if isinstance(problem := await validated(tool, value), str):
        raise UsageError(problem, fix="Correct the arguments.")
    return bind(asked.run, conversation.directory, asked.tool, definition_digest(tool), arguments)


def _written(runtime: Runtime, tool: str, wanted: tuple[str, ...]) -> tuple[Path, list[dict[str, str]], Mapping[str, str]]:
    """Return the path of the user's configuration file, the rules to add to it, and the environment."""
    return runtime.settings.home / FILE, [{"tool": tool, "match": pattern, "action": "allow"} for pattern in wanted], os.environ


async def _answer_covered(runtime: Runtime, run: Run) -> None:
    """Answer the run's other pending approvals whose calls are now allowed."""
    conversation = await confined_conversation(runtime.store, run.conversation)
    grants = conversation.grants
    for other in await runtime.store.records.approvals(run=run.id):
        if other.questions is None and (await _ruling(runtime, other, run, conversation, grants)).action == "allow":
            try:
                await runtime.store.records.answer(other.id, Answer(True, reason="allowed by an earlier answer", answered_by="moot"))
            except MootError:  # already answered or expired
                continue
