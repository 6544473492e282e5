"""One session of an editor: prompts and slash commands in a conversation, and the runs that answer them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

import anyio
from acp import RequestError
from acp.helpers import ContentBlock, update_current_mode
from acp.interfaces import Client
from acp.schema import ConfigOptionUpdate, PromptResponse, SessionConfigOptionSelect, SessionInfoUpdate, StopReason, Usage

from moot.commands import Choice, Choose, CommandContext, Compose, Copy, Notice, Regenerate, Reply, Send, catalogue_of, parse, prompt_of
from moot.commands.catalogue import Catalogue, Typed
from moot.commands.submission import store_agent
from moot.editors.options import allows_auto, config_options, mode_now
from moot.editors.permissions import Permissions, has_choices, question_text
from moot.editors.prompts import read_prompt
from moot.editors.updates import RunUpdates, Update, said
from moot.editors.wire import FAILED, INVALID_REQUEST, SIGN_IN
from moot.engine import Engine
from moot.errors import Busy, MootError, NotFound, UsageError
from moot.features.prompts.references import Place, attach_references
from moot.guard.roots import with_folders
from moot.guard.terminal import clean
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.hooks import BLOCKED
from moot.types.message import Part, text_part
from moot.types.run import TERMINAL, Prompt, Run, Submitted

NOT_OFFERED = frozenset({"bg", "continue", "copy", "edit", "exit", "export", "fork", "keys", "new", "rewind", "share", "tree"})
"""Commands that need a terminal, or for which editors have their own commands."""

_POLL = 0.25
"""Seconds between two checks of a run that another program must answer or resume."""
_TITLE_SECONDS = 20.0
"""Maximum time to wait for a title that the small model generates."""
_STOPS: dict[str, StopReason] = {"length": "max_tokens", "content-filter": "refusal", BLOCKED: "refusal"}


class Session:
    """A session is a conversation of moot. Its conversation is stored with the first prompt."""

    def __init__(self, engine: Engine, client: Client, id: str, context: CommandContext, editor: str) -> None:
        self.id = id
        self.context = context
        self.models: Sequence[Choice] = ()
        self._engine = engine
        self._client = client
        self._editor = editor
        self._permissions = Permissions(engine, client, id)
        self._notice = ""
        """A text to show with the next answer."""
        self._is_busy = False
        self._is_cancelled = False
        self._run: str | None = None
        """The last run, until it has ended."""
        self._question: Approval | None = None
        """The question that the next prompt answers."""
        self._preparing = anyio.CancelScope()
        self._shown: tuple[str, str] = ("", "")
        """The mode and the title that the editor shows."""
        self._options: list[SessionConfigOptionSelect] = []
        """The options that the editor shows."""

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        """Answer a prompt, or run the slash command in it. Raise RequestError or MootError if that fails."""
        if self._is_busy:
            raise RequestError(INVALID_REQUEST, "This session is still answering the previous prompt. Cancel it first.")
        self._is_busy, self._is_cancelled = True, False
        try:
            return await self._answer(blocks)
        finally:
            self._is_busy = False

    async def cancel(self) -> None:
        """Stop the current answer. Its output so far is kept."""
        self._is_cancelled, self._question = True, None
        if self._run is not None:
            await self._engine.runs.cancel(self._run)
        else:
            self._preparing.cancel()

    async def change(self, name: str, value: str) -> None:
        """Change an option with its slash command. Raise UsageError for an invalid value."""
        context = self.context
        await self._check_mode((name, value))
        await (await catalogue_of(context)).find(name).run(context, value)
        await store_agent(context)

    async def options(self) -> list[SessionConfigOptionSelect]:
        """Return the options for a response to the editor."""
        current = await self.context.current()
        self._shown = (self._shown[0] or mode_now(self.context, current), self._shown[1])
        self._options = await config_options(self.context, current, self.models)
        return self._options

    def announce(self, text: str) -> None:
        """Show a text with the next answer."""
        self._notice = text

    async def show(self, *updates: Update | ConfigOptionUpdate | SessionInfoUpdate) -> None:
        for update in updates:
            await self._client.session_update(session_id=self.id, update=update)

    async def refresh(self) -> None:
        """Show the mode, the options and the title if they have changed."""
        conversation = await self.context.current()
        mode, title = mode_now(self.context, conversation), conversation.title if conversation is not None else ""
        before, self._shown = self._shown, (mode, title)
        if before[0] != mode:
            await self._client.session_update(session_id=self.id, update=update_current_mode(mode))
        if title and before[1] != title:
            await self.show(SessionInfoUpdate(session_update="session_info_update", title=clean(title)))
        shown = self._options
        if (found := await self.options()) != shown:
            await self.show(ConfigOptionUpdate.model_validate({"sessionUpdate": "config_option_update", "configOptions": found}))

    async def show_title(self) -> None:
        """Show the title that the small model generates after the first answer."""
        if self._engine.runtime.settings.models.small:
            await self._engine.runs.settle(_TITLE_SECONDS)
            with suppress(ConnectionError):  # the editor has closed the connection
                await self.refresh()

    # ── prompts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _answer(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        self._run = None
        submitted: Submitted | None = None
        prompt: Prompt | None = None
        with anyio.CancelScope() as self._preparing:
            text, files = read_prompt(blocks, await self.context.folder())
            if self._notice:
                notice, self._notice = self._notice, ""
                await self.show(said(f"{notice}\n\n"))
            if (asked := self._question) is not None and await self._is_open(asked):
                return await self._reply(asked, text)
            self._question = None
            prompt = await self._prepared(text, files)
        if self._is_cancelled or prompt is None:
            await self.refresh()
            return PromptResponse(stop_reason="cancelled" if self._is_cancelled else "end_turn")
        submitted = await self._submit(prompt)
        return await self._finish(submitted.run, submitted.seq)

    async def _prepared(self, text: str, files: tuple[Part, ...]) -> Prompt | None:
        """Return the prompt to submit, or None if the text was a command that sends no prompt."""
        typed = parse(text)
        if typed is not None:
            return await self._command(typed, files)
        context = self.context
        prompt = prompt_of(context, Send(""), Prompt((*files, *((text_part(text),) if text else ())), on_busy="queue"))
        current = await context.current()
        allowed = with_folders((), context.directory, context.further_folders or ())
        place = Place(context.engine.runtime, await context.folder(), current, prompt.agent or "", allowed_uris=allowed)
        prompt, notes = await attach_references(prompt, place)
        if notes:
            await self.show(said("\n".join(notes) + "\n\n"))
        if not prompt.parts:
            raise UsageError("The prompt is empty.")
        return prompt

    async def _command(self, typed: Typed, files: tuple[Part, ...]) -> Prompt | None:
        context = self.context
        name, argument = typed
        await self._check_mode(typed)
        catalogue = await catalogue_of(context)
        if name in NOT_OFFERED:
            raise UsageError(f"The command /{name} can't be used in an editor.", fix="Use it in a terminal, with `moot`.")
        found: Prompt | None = None
        for reply in await catalogue.find(name).run(context, argument):
            if isinstance(reply, Send):
                found = prompt_of(context, reply, Prompt((*files, *reply.message()), on_busy="queue"))
            elif isinstance(reply, Regenerate):
                found = await self._again(reply)
            elif text := _text_of(name, reply):
                await self.show(said(f"{clean(text)}\n\n"))
        await store_agent(context)
        return found

    async def _again(self, reply: Regenerate) -> Prompt | None:
        if reply.resume is None:
            return prompt_of(self.context, Send(""), Prompt(()))
        run = await self._engine.store.records.run(reply.resume)
        seq = await self._engine.store.log.last_seq(run.conversation)
        await self._finish(await self._engine.runs.resume(run.id), seq)
        return None

    async def _check_mode(self, typed: Typed) -> None:
        if typed == ("mode", "auto") and not allows_auto(self.context, await self.context.current()):
            raise UsageError("The mode auto can't be chosen in an editor.", fix="To use it, run: moot config set permissions.mode auto")

    async def _submit(self, prompt: Prompt) -> Submitted:
        context = self.context
        prompt = replace(prompt, settings={**prompt.settings, "attended": True})
        if context.conversation is None:
            prompt = replace(
                prompt,
                key=f"editor:{self._editor}:{self.id}",
                conversation_client_id=self.id,
                allowed_uris=with_folders((), context.directory, context.further_folders or ()),
            )
        try:
            submitted = await self._engine.runs.submit(prompt)
        except UsageError as error:
            raise RequestError(SIGN_IN if not await self._has_model() else INVALID_REQUEST, error.advice()) from error
        context.take_folders()
        context.conversation = submitted.conversation.id
        await context.store_settings({})
        return submitted

    async def _has_model(self) -> bool:
        try:
            await self._engine.providers.choice()
        except MootError:
            return False
        return True

    # ── questions ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _is_open(self, asked: Approval) -> bool:
        stored = await self._engine.store.records.approval(asked.id)
        return stored is not None and stored.answer is None and (await self._engine.store.records.run(asked.run)).status == "waiting"

    async def _reply(self, asked: Approval, text: str) -> PromptResponse:
        """Use the prompt as the answer to an open question, and follow the run that asked."""
        self._question = None
        run = await self._engine.store.records.run(asked.run)
        while run.parent_run is not None:
            run = await self._engine.store.records.run(run.parent_run)
        seq = await self._engine.store.log.last_seq(run.conversation)
        questions = asked.questions if isinstance(asked.questions, list) else []
        await self._engine.runs.answer(asked.id, Answer(True, value=[[text] for _ in questions]))
        return await self._finish(run, seq)

    async def _ask(self, run: Run, known: frozenset[str]) -> bool:
        """Ask about the run's open requests. Return False if one of them stays open."""
        records = self._engine.store.records
        approvals = [one for one in await records.approvals(run=run.id, tree=True) if not one.by_client]
        for approval in approvals:
            if isinstance(approval.questions, list) and not has_choices(approval):
                self._question = approval
                await self.show(said(f"\n\n{question_text(approval)}\n\n"))
                return False
            try:
                outcome = await self._permissions.ask(approval, run.id)
            except (Busy, NotFound):  # answered elsewhere in the meantime, or expired
                outcome = "elsewhere"
            if outcome == "open":
                return False
            if approval.tool_call not in known:
                await self._permissions.close(approval)
        if (await records.run(run.id)).status == "waiting":
            with suppress(Busy, UsageError):  # it was resumed in the meantime
                await self._engine.runs.resume(run.id)
            if not approvals:
                await anyio.sleep(_POLL)
        return True

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _finish(self, run: Run, seq: int) -> PromptResponse:
        """Show a run until it ends or waits for an answer that isn't given now. Raise RequestError if it fails."""
        self._run = run.id
        if self._is_cancelled:
            await self._engine.runs.cancel(run.id)
        conversation = await self._engine.store.conversations.get(run.conversation)
        updates = RunUpdates(self._engine.store, run.message, conversation.directory)
        while True:
            run, seq = await self._watch(run, seq, updates)
            if run.status != "waiting" or not await self._ask(run, updates.calls):
                break
        if run.status in TERMINAL:
            self._run = None
        await self.refresh()
        return await self._response(run)

    async def _watch(self, run: Run, after: int, updates: RunUpdates) -> tuple[Run, int]:
        """Show events until the run has settled and all its events were shown. Return the run and the last position."""
        settled: Run | None = None
        through, seq = 0, after

        async def settle(scope: anyio.CancelScope) -> None:
            nonlocal settled, through
            ended = await self._engine.runs.wait(run.id)
            through = await self._engine.store.log.last_seq(run.conversation)
            settled = ended  # set after `through` is known; otherwise any event would end the loop
            if seq >= through:
                scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(settle, group.cancel_scope)
            async with aclosing(self._engine.tail.watch(run.conversation, after=seq)) as batches:
                async for events in batches:
                    own: list[Event] = [event for event in events if event.run == run.id]
                    await self.show(*await updates.feed(own))
                    seq = events[-1].seq
                    if settled is not None and seq >= through:
                        break
            group.cancel_scope.cancel()
        assert settled is not None
        return settled, seq

    async def _response(self, run: Run) -> PromptResponse:
        if run.status == "cancelled" or (run.status == "waiting" and self._question is None):
            return PromptResponse(stop_reason="cancelled", usage=_usage(run))
        if run.status == "failed" and run.error is not None:
            if run.error.kind not in ("limit", "deadline"):
                raise RequestError(SIGN_IN if run.error.kind == "auth" else FAILED, clean(run.error.advice()))
            await self.show(said(f"\n\n{run.error.advice()}"))
            return PromptResponse(stop_reason="max_turn_requests", usage=_usage(run))
        if run.status == "interrupted":
            raise RequestError(FAILED, "The answer was interrupted. Resume it with /retry.")
        message = await self._engine.store.conversations.message(run.message)
        reason = _STOPS.get(str(message.metadata.get("finish_reason")), "end_turn")
        return PromptResponse(stop_reason=reason, usage=_usage(run))


def session_of(conversation: Conversation) -> str:
    """Return the id under which editors know a conversation."""
    return conversation.client_id or conversation.id


def offered(catalogue: Catalogue) -> list[tuple[str, str, str]]:
    """Return the name, the help and the argument of each command that can be used in an editor."""
    return [(one.name, one.help or one.name, one.argument) for one in catalogue.facts() if one.name not in NOT_OFFERED]


def _usage(run: Run) -> Usage | None:
    usage = run.usage
    if usage.input is None or usage.output is None:
        return None
    return Usage(
        total_tokens=usage.input + usage.output,
        input_tokens=usage.input,
        output_tokens=usage.output,
        thought_tokens=usage.reasoning,
        cached_read_tokens=usage.cache_read,
        cached_write_tokens=usage.cache_write,
    )


def _text_of(name: str, reply: Reply) -> str:
    if isinstance(reply, Notice):
        return f"```\n{reply.text}\n```" if "\n" in reply.text else reply.text
    if isinstance(reply, Compose | Copy):
        return reply.text
    if isinstance(reply, Choose):
        if reply.command in NOT_OFFERED:
            lines = [f"* {one.label or one.value} ({one.value[:13]})" for one in reply.choices]
        else:
            lines = [f"* `/{reply.command or name} {one.value}` {one.about}".rstrip() for one in reply.choices]
        return "\n".join([f"{reply.title}:", "", *lines])
    return ""
