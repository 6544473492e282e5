"""Approvals and questions of a run as permission requests in the editor."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import anyio
from acp.helpers import text_block, tool_content, tool_diff_content, update_tool_call
from acp.interfaces import Client
from acp.schema import AllowedOutcome, PermissionOption, PermissionOptionKind, ToolCallUpdate

from moot.editors.calls import Content, kind_of, places_of, running, title_of
from moot.engine import Engine
from moot.features.approvals import asked_in, destructive_in, object_of, preview_call
from moot.guard.roots import allowed_folders
from moot.guard.terminal import clean
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject
from moot.types.run import TERMINAL
from moot.types.token import LOCAL_USER
from moot.types.tool import View

Outcome: TypeAlias = Literal["answered", "elsewhere", "open"]
"""`answered`: the answer is stored. `elsewhere`: another program has answered, or the run was stopped. `open`: there is no answer."""

_POLL = 0.25
"""Seconds between two checks for an answer from another program."""
_REJECT = "reject"


class Permissions:
    """Permission requests to the person at the editor. The answers are bound to the exact call that was shown."""

    def __init__(self, engine: Engine, client: Client, session: str) -> None:
        self._engine = engine
        self._client = client
        self._session = session

    async def ask(self, approval: Approval, run: str) -> Outcome:
        """Ask about one approval and store the answer. Raise MootError if the answer is not possible."""
        answer = await (self._replies(approval, run) if isinstance(approval.questions, list) else self._decision(approval, run))
        if isinstance(answer, Answer):
            await self._engine.runs.answer(approval.id, answer)
            return "answered"
        return answer

    async def close(self, approval: Approval) -> None:
        """Show the end of a request about a call that the editor does not follow, such as that of a sub-agent."""
        stored = await self._engine.store.records.approval(approval.id)
        allowed = stored is not None and stored.answer is not None and stored.answer.approved
        update = update_tool_call(approval.tool_call, status="completed" if allowed else "failed")
        await self._client.session_update(session_id=self._session, update=update)

    async def _decision(self, approval: Approval, run: str) -> Answer | Outcome:
        options = _options(approval)
        chosen = await self._choose(approval, run, await self._call(approval), options)
        if chosen is None or chosen == "elsewhere":
            return "open" if chosen is None else "elsewhere"
        if own := next((one for one in approval.options if one.id == chosen), None):
            return Answer(own.allows, own.id, "" if own.allows else "denied by the user")
        if chosen == _REJECT or chosen not in {option.option_id for option in options}:
            return Answer(False, reason="denied by the user")
        return Answer(True, chosen)

    async def _replies(self, approval: Approval, run: str) -> Answer | Outcome:
        replies: list[Json] = []
        questions = approval.questions if isinstance(approval.questions, list) else []
        for question in questions:
            given: JsonObject = question if isinstance(question, dict) else {}
            labels = _labels(given)
            options = [_option(str(number), label, _kind_of_reply(label)) for number, label in enumerate(labels)]
            options.append(_option(_REJECT, "Don't answer", "reject_once"))
            chosen = await self._choose(approval, run, _question_call(approval, given), options)
            if chosen is None or chosen == "elsewhere":
                return "open" if chosen is None else "elsewhere"
            if not chosen.isdecimal() or int(chosen) >= len(labels):
                return Answer(False, reason="the user did not answer")
            replies.append([labels[int(chosen)]])
        return Answer(True, value=replies)

    async def _choose(self, approval: Approval, run: str, call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
        """Return the id of the chosen option, `elsewhere`, or None if the editor cancelled the request."""
        chosen: str | None = None

        async def watch(scope: anyio.CancelScope) -> None:
            nonlocal chosen
            records = self._engine.store.records
            while True:
                await anyio.sleep(_POLL)
                stored = await records.approval(approval.id)
                now = self._engine.runtime.now() // 1000
                is_over = stored is None or stored.answer is not None or (stored.expires_at is not None and stored.expires_at <= now)
                if is_over or (await records.run(run)).status in TERMINAL:
                    chosen = "elsewhere"
                    scope.cancel()
                    return

        async with anyio.create_task_group() as group:
            group.start_soon(watch, group.cancel_scope)
            response = await self._client.request_permission(session_id=self._session, tool_call=call, options=options)
            if isinstance(response.outcome, AllowedOutcome):
                chosen = response.outcome.option_id
            group.cancel_scope.cancel()
        return chosen

    async def _call(self, approval: Approval) -> ToolCallUpdate:
        """Return the exact call that the approval is about, with its diff, and why it is asked about."""
        store, settings = self._engine.store.of(LOCAL_USER), self._engine.runtime.settings
        asked = await asked_in(store, approval, settings)
        conversation, given = asked.conversation, object_of(approval.arguments)
        directory = conversation.directory
        preview = await preview_call(
            approval.arguments, approval.parts, allowed_folders(conversation, Path(directory)), Path(directory), asked.command
        )
        title, content = running(approval.tool, given, directory)
        if approval.outside is not None and approval.outside.title:
            title = title_of(View(approval.outside.title))
        if preview.after is not None and (place := next(iter(places_of(given, directory)), None)) is not None:
            content = [tool_diff_content(place.path, preview.after, preview.before)]
        return ToolCallUpdate(
            tool_call_id=approval.tool_call,
            title=title,
            kind=kind_of(approval.tool, given),
            status="pending",
            raw_input=given,
            content=[*content, *_reasons(approval, asked.agents if len(asked.path) > 1 else "", asked.command)],
            locations=places_of(given, directory),
        )


def _reasons(approval: Approval, agents: str, command: str) -> Content:
    lines = [f"Asked by {agents}." if agents else "", f"Runs: {command}" if command else ""]
    reasons = dict.fromkeys(part.why for part in approval.parts if part.action == "ask" and part.why and not part.why.startswith("mode "))
    lines += [f"Approval is needed: {why}." for why in reasons]
    if destructive := destructive_in(approval, command):
        lines.append(f"Can destroy data: {'; '.join(destructive)}")
    text = clean("\n\n".join(filter(None, lines)))
    return [tool_content(text_block(text))] if text else []


def _options(approval: Approval) -> list[PermissionOption]:
    edits = [_option("edits", "Allow all file edits in this conversation", "allow_always")] if approval.edits else []
    if approval.options:
        return [*(_option(one.id, clean(one.label), one.kind) for one in approval.options), *edits]
    patterns = ", ".join(approval.lasting)
    lasting = [_option("conversation", f"Allow in this conversation: {clean(patterns)}", "allow_always")] if approval.lasting else []
    return [_option("once", "Allow once", "allow_once"), *lasting, *edits, _option(_REJECT, "Reject", "reject_once")]


def _option(id: str, name: str, kind: PermissionOptionKind) -> PermissionOption:
    return PermissionOption(option_id=id, name=name, kind=kind)


def _labels(question: JsonObject) -> list[str]:
    options = question.get("options")
    return [str(option.get("label", "")) for option in options if isinstance(option, dict)] if isinstance(options, list) else []


def _kind_of_reply(label: str) -> PermissionOptionKind:
    return "reject_once" if label in ("Revise", "Reject") else "allow_once"


def has_choices(approval: Approval) -> bool:
    """Return True if every question can be answered by choosing one option."""
    questions = approval.questions
    return isinstance(questions, list) and all(
        isinstance(one, dict) and bool(_labels(one)) and one.get("multiple") is not True for one in questions
    )


def question_text(approval: Approval) -> str:
    """Return the questions as text, with their options."""
    lines: list[str] = []
    for question in approval.questions if isinstance(approval.questions, list) else []:
        if isinstance(question, dict):
            lines.append(str(question.get("text", "")))
            lines += [f"* {label}" for label in _labels(question)]
    return clean("\n".join(lines))


def _question_call(approval: Approval, question: JsonObject) -> ToolCallUpdate:
    text = clean(str(question.get("text", "")))
    options = question.get("options")
    described = [one for one in options if isinstance(one, dict) and one.get("description")] if isinstance(options, list) else []
    lines = [text, *(f"* **{one.get('label')}**: {one.get('description')}" for one in described)]
    return ToolCallUpdate(
        tool_call_id=approval.tool_call,
        title=title_of(View(str(question.get("header") or "Question"))),
        kind="switch_mode" if approval.tool == "exit_plan" else "other",
        status="pending",
        content=[tool_content(text_block(clean("\n".join(lines))))],
    )
