"""An interactive conversation: prompts, events and the queue. Independent of the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import anyio
from anyio.abc import TaskGroup

from moot.cli.console.messages import with_edits
from moot.cli.console.output import Output
from moot.cli.context.references import copied
from moot.commands import CommandContext
from moot.engine import Engine
from moot.engine.submissions import copy_of
from moot.errors import Busy, MootError, NotFound, UsageError
from moot.plugins.registry import attribute
from moot.types.approval import Approval
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, Part, text_of
from moot.types.run import STARTED, TERMINAL, OnBusy, Prompt, Run, RunStatus, Submitted

if TYPE_CHECKING:
    from moot.cli.approvals.decide import Decision


class ConversationView(Protocol):
    """The display of a conversation. Only `decide` waits for the user."""

    def prompted(self, text: str) -> None:
        """Show a prompt that is answered next."""

    def opened(self, conversation: Conversation) -> None:
        """Show an existing conversation; its messages follow."""

    def message(self, message: Message) -> None:
        """Show an existing message."""

    def started(self, run: str) -> None: ...

    def event(self, event: Event) -> None: ...

    def ended(self, run: Run) -> None:
        """Show the end of a run, after its last event."""

    def failed(self, error: MootError) -> None: ...

    def notice(self, text: str) -> None:
        """Show a one-line notice."""

    def changed(self) -> None:
        """Update the status line, because something in it may have changed."""

    async def decide(self, approval: Approval, conversation: Conversation) -> Decision:
        """Ask the user and return their decision without storing it."""
        ...


_CONTEXT, _DECIDE = "moot.cli.approvals.decide:approval_context", "moot.cli.approvals.decide:decide"
"""Loaded by path for the first approval: the first prompt does not wait for tools and pydantic."""


async def decide(engine: Engine, approval: Approval, conversation: Conversation, output: Output, *, draft: str = "") -> Decision:
    """Ask the user about one approval and return their decision without storing it."""
    context = attribute(_CONTEXT)(engine, approval, conversation)
    return await attribute(_DECIDE)(approval, context, output, draft=draft)


async def ask_approvals(engine: Engine, view: ConversationView, run: Run) -> Literal["asked", "nothing", "later"]:
    """Ask for all open approvals. Return "later" if the user postpones the decision; the run keeps waiting."""
    conversation = await engine.store.conversations.get(run.conversation)
    approvals = [one for one in await engine.store.records.approvals(run=run.id) if not one.by_client]
    for approval in approvals:
        decision = await view.decide(approval, conversation)
        match decision.outcome:
            case "stop":
                await engine.runs.cancel(run.id)
                break
            case "later":
                return "later"
            case "expired" | "elsewhere":
                await _resume(engine, run.id)
            case _ if decision.answer is not None:
                try:
                    await engine.runs.answer(approval.id, decision.answer)
                except (Busy, NotFound) as error:  # expired or answered elsewhere meanwhile
                    view.failed(error)
                    await _resume(engine, run.id)
            case _:
                pass
    return "asked" if approvals else "nothing"


async def _resume(engine: Engine, run: str) -> None:
    """Let a waiting run continue after its approval was answered elsewhere or expired."""
    if (await engine.store.records.run(run)).status == "waiting":
        with suppress(Busy):  # another process resumes it
            await engine.runs.resume(run)


_LIVE: frozenset[RunStatus] = STARTED | frozenset[RunStatus]({"queued"})
_POLL_SECONDS = 0.25
"""Time between two checks of an approval that someone else decides."""


@dataclass(frozen=True, slots=True)
class QueuedPrompt:
    """A prompt that waits for the live run."""

    run: str
    text: str
    message: str
    """ID of the message that will answer it."""


class InteractiveConversation:
    """The open conversation: submits prompts, follows runs and stops them. Its tasks run in the given group."""

    def __init__(self, context: CommandContext, group: TaskGroup, view: ConversationView) -> None:
        self.context = context
        self.queued: list[QueuedPrompt] = []
        self.live: str | None = None
        """The active run."""
        self.conversation: Conversation | None = None
        """Snapshot from the end of the last run."""
        self.interrupted = False
        """True if the opened conversation has an interrupted answer."""
        self._engine = context.engine
        self._group = group
        self._view = view
        self._scopes: set[anyio.CancelScope] = set()
        """Scopes of the tasks for the open conversation."""
        self._seq = 0
        self._moved = anyio.Event()
        self._orphans: list[str] = []
        """Runs that were queued by other processes, oldest first."""
        self._tended: set[str] = set()
        self._echoed: set[str] = set()
        """Client IDs of prompts that are already on the screen."""
        self._prompts: dict[str, JsonObject] = {}
        """Bodies of user messages whose answer has not started."""
        self._prompt_of: dict[str, str] = {}
        """Run → ID of the prompt that it answers."""

    async def open(self, conversation: str | None) -> None:
        """Switch to a conversation and show its messages; None starts a new one. Raise NotFound if it does not exist."""
        found = await self._found(conversation) if conversation is not None else None
        self._leave()
        self.conversation = found
        self.context.conversation = found.id if found is not None else None
        if found is None:
            self._view.changed()
            return
        runs = await self._engine.store.records.runs(conversation=found.id, statuses=_LIVE)
        live = {run.message: run for run in runs if run.status != "queued"}
        after = await self._engine.store.log.last_seq(found.id)
        self._view.opened(found)
        for message in await with_edits(self._engine.store, await self._engine.store.conversations.branch(found.id)):
            run = live.get(message.id)
            if run is not None and run.status != "interrupted":
                after = min(after, max(message.first_seq - 1, 0))
                self._tend(run.id)
            elif not self._is_queued(message, runs):
                self._view.message(message)
        self.interrupted = any(run.status == "interrupted" for run in runs)
        self._watch(found.id, after)
        await self._adopt_queue([run for run in reversed(runs) if run.status == "queued"])
        self._view.changed()

    async def _found(self, conversation: str) -> Conversation:
        """Return the conversation, or the copy in which it was continued."""
        conversations = self._engine.store.conversations
        found = await conversations.get(conversation)
        copy = await copy_of(conversations, found)
        if copy is not None:
            self._view.notice(copied(found, copy))
        return copy or found

    async def _adopt_queue(self, runs: Sequence[Run]) -> None:
        """Take over queued prompts: the process that queued them may be gone."""
        for run in runs:
            answer = await self._engine.store.conversations.message(run.message)
            prompt = await self._engine.store.conversations.message(answer.parent) if answer.parent else None
            self._prompts[run.id] = {"parts": list(prompt.parts) if prompt else []}
            self._prompt_of[run.id] = run.id
            self.queued.append(QueuedPrompt(run.id, text_of(prompt.parts) if prompt else "", run.message))
            self._orphans.append(run.id)
        await self._start_next_orphan()

    async def _start_next_orphan(self) -> None:
        """Start the first prompt queued by another process, if no run is active."""
        if self._orphans and self.live is None:
            run = self._orphans[0]
            with suppress(Busy, UsageError):  # started elsewhere, not next in the queue, or dropped
                await self._engine.runs.resume(run)
                self._tend(run)

    async def unanswered(self) -> bool:
        """Return True if the last message is an unanswered prompt. If the conversation follows a source, the source's agent answers."""
        if self.context.conversation is None or self._tended or (self.conversation is not None and self.conversation.follows):
            return False
        branch = await self._engine.store.conversations.branch(self.context.conversation, limit=1)
        return bool(branch) and branch[-1].role == "user"

    def _is_queued(self, message: Message, runs: Sequence[Run]) -> bool:
        """Return True if the message is a queued prompt or its answer, which are shown when they start."""
        queued = [run for run in runs if run.status == "queued"]
        return any(message.id == run.message or (message.role == "user" and message.last_seq == run.first_seq - 2) for run in queued)

    def _leave(self) -> None:
        for scope in self._scopes:
            scope.cancel()
        self._scopes = set()
        self._seq, self.live = 0, None
        self.queued.clear()
        self._tended, self._prompts, self._prompt_of, self._orphans = set(), {}, {}, []

    async def send(
        self, parts: Sequence[Part], shown: str, on_busy: OnBusy = "queue", *, echoed: bool = False, edits: str | None = None
    ) -> bool:
        """Submit a prompt. Return True if it steers the running answer. Raise MootError if nothing was stored.

        `shown` is the text for the queue. `echoed` is True if the prompt is already on the screen. `edits` is the message it replaces.
        """
        client = new_id()
        if echoed:
            self._echoed.add(client)
        submitted = await self._submit(Prompt(tuple(parts), client_id=client, on_busy=on_busy, edits=edits))
        if submitted.run.status == "queued" and on_busy == "queue":
            self.queued.append(QueuedPrompt(submitted.run.id, shown, submitted.run.message))
        self._view.changed()
        return submitted.steered

    async def answer(self, resume: str | None = None) -> None:
        """Answer the last prompt (again), or resume an interrupted run."""
        if resume is not None:
            run = await self._engine.runs.resume(resume)
            self._run_started(run.id)
            self._watch_from(run.conversation, self._seq)
            self._tend(run.id)
            return
        await self._submit(Prompt((), on_busy="reject"))

    async def _submit(self, prompt: Prompt) -> Submitted:
        context, overrides = self.context, self.context.overrides
        prompt = replace(prompt, conversation=context.conversation, directory=context.directory, settings=overrides.settings())
        prompt = replace(prompt, agent=overrides.agent, model=overrides.model, mode=overrides.mode)
        submitted = await self._engine.runs.submit(prompt)
        if self.conversation is not None and self.conversation.id != submitted.conversation.id:
            self._leave()
            self._view.notice(copied(self.conversation, submitted.conversation))
        self.conversation = submitted.conversation
        context.conversation = submitted.conversation.id
        if not submitted.steered:
            # start before the prompt, which is stored as two events: the message and its place in the tree
            self._watch_from(submitted.conversation.id, max(submitted.seq - 2, 0))
            self._tend(submitted.run.id)
        return submitted

    async def interrupt(self) -> bool:
        """Stop the active run and keep its output. Return False if there is none."""
        if self.live is None:
            return False
        await self._engine.runs.cancel(self.live)
        return True

    async def drop_queued(self) -> str | None:
        """Remove the last queued prompt. Return its text, or None if its answer has already started."""
        if not self.queued:
            return None
        last = self.queued.pop()
        self._orphans = [one for one in self._orphans if one != last.run]
        await self._engine.runs.cancel(last.run)
        store = self._engine.store
        dropped = (await store.records.run(last.run)).started_at is None
        if dropped:
            answer = await store.conversations.message(last.message)
            await store.tree.delete(answer.conversation, [id for id in (answer.parent, answer.id) if id is not None])
        self._view.changed()
        return last.text if dropped else None

    def _watch_from(self, conversation: str, seq: int) -> None:
        if not self._seq:
            self._watch(conversation, seq)

    def _watch(self, conversation: str, after: int) -> None:
        self._seq = max(after, 1)
        self._start(self._follow, conversation, after)

    def _start(self, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        scope = anyio.CancelScope()

        async def perform() -> None:
            try:
                with scope:
                    await work(*arguments)
            except MootError as error:
                self._view.failed(error)
            finally:
                self._scopes.discard(scope)

        self._scopes.add(scope)
        self._group.start_soon(perform)

    async def _follow(self, conversation: str, after: int) -> None:
        async with aclosing(self._engine.tail.watch(conversation, after=after)) as batches:
            async for events in batches:
                for event in events:
                    self._handle(event)
                moved, self._moved = self._moved, anyio.Event()
                moved.set()

    def _handle(self, event: Event) -> None:
        self._seq = event.seq
        body = event.body if isinstance(event.body, dict) else {}
        if event.kind == "message" and body.get("role") == "user":
            self._prompts[str(body.get("id"))] = body
        elif event.kind == "tree" and body.get("op") == "answer":
            self._prompt_of[str(body.get("run"))] = str(body.get("parent"))
            self._tend(str(body.get("run")))
        if event.run is not None:
            if event.phase == "start" and event.key == "run":
                self._run_started(event.run)
            if event.run == self.live:
                self._view.event(event)

    def _run_started(self, run: str) -> None:
        prompt = self._prompts.pop(self._prompt_of.pop(run, ""), None)
        self.queued = [one for one in self.queued if one.run != run]
        self.live = run
        if prompt is not None and str(prompt.get("client_id")) not in self._echoed:
            parts = prompt.get("parts")
            self._view.prompted(text_of([part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []))
        self._view.started(run)

    def _tend(self, run: str) -> None:
        if run not in self._tended:
            self._tended.add(run)
            self._start(self._follow_run, run)

    async def _follow_run(self, run: str) -> None:
        """Ask for the run's approvals, and report its end after all its events were shown."""
        final: Run | None = None
        try:
            while (final := await self._engine.runs.wait(run)).status == "waiting":
                self.live = run
                result = await ask_approvals(self._engine, self._view, final)
                if result == "later":
                    break
                if result == "nothing":
                    await anyio.sleep(_POLL_SECONDS)
            through = await self._engine.store.log.last_seq(final.conversation)
            while self._seq < through:
                await self._moved.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await self._run_ended(run, final)

    async def _run_ended(self, run: str, final: Run | None) -> None:
        self._tended.discard(run)
        self.queued = [one for one in self.queued if one.run != run]
        was_live, self.live = self.live == run, None if self.live == run else self.live
        if self.context.conversation is not None:
            try:
                self.conversation = await self._engine.store.conversations.get(self.context.conversation)
            except NotFound:
                self.conversation = None
        if final is not None and (was_live or final.started_at is not None):
            self._view.ended(final)
        self._orphans = [one for one in self._orphans if one != run]
        if final is not None and final.status in TERMINAL:
            await self._start_next_orphan()
        self._view.changed()
