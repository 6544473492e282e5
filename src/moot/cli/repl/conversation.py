"""An interactive conversation: prompts, events and the queue. Independent of the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio.abc import TaskGroup

from moot.cli.approvals.requests import ask_approvals
from moot.cli.console.messages import for_display
from moot.cli.context.references import copied, in_folder
from moot.cli.repl.branch import QueuedPrompt, ShownBranch, parts_of, taken_text, withdrawn
from moot.commands import CommandContext, Send, prompt_of
from moot.convert.files.attachments import readable_prompt
from moot.engine.submissions import copy_of
from moot.errors import Busy, MootError, NotFound, UsageError
from moot.guard.roots import with_folders
from moot.runtime.approvals.typed_answers import open_approval
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
        """Show a prompt whose answer starts next."""

    def opened(self, conversation: Conversation) -> None:
        """Show an existing conversation; its messages follow."""

    def message(self, message: Message) -> None:
        """Show an existing message."""

    def started(self, run: str, resumed: Message | None = None) -> None:
        """Start showing a run. `resumed` is its answer so far, if that is already on the screen."""

    def left(self) -> None:
        """Stop showing the run, which continues."""

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


_LIVE: frozenset[RunStatus] = STARTED | frozenset[RunStatus]({"queued"})
_BUSY: frozenset[RunStatus] = frozenset({"running", "queued"})
_POLL_SECONDS = 0.25
"""Seconds between two checks of a run that is waiting for another client's decision."""
_END_SECONDS = 10.0
"""Maximum time to wait for the end of the previous run to be shown before showing the next run."""


@dataclass(slots=True)
class _Place:
    """Position of a run's answer in the message tree, as message ids."""

    parent: str | None
    answer: str


class InteractiveConversation:
    """The open conversation: submits prompts, follows runs and stops them. Its tasks run in the given group."""

    def __init__(self, context: CommandContext, group: TaskGroup, view: ConversationView) -> None:
        self.context = context
        self.queued: list[QueuedPrompt] = []
        self.unread: list[QueuedPrompt] = []
        """Messages for the active run that it has not read yet."""
        self.live: str | None = None
        """The active run."""
        self.conversation: Conversation | None = None
        """The open conversation as it was last read from the store; None if it is new."""
        self.interrupted = False
        """True if the opened conversation has an interrupted answer."""
        context.stored = self._refreshed
        self._engine = context.engine
        self._group = group
        self._view = view
        self._scopes: set[anyio.CancelScope] = set()
        """Scopes of the tasks for the open conversation."""
        self._seq = 0
        self._moved, self._ended = anyio.Event(), anyio.Event()
        self._orphans: list[str] = []
        """Runs that were queued by other processes, oldest first."""
        self._tended: set[str] = set()
        self._echoed: set[str] = set()
        """Client IDs of prompts that are already on the screen."""
        self._prompts: dict[str, JsonObject] = {}
        """Bodies of user messages whose answer has not started."""
        self._places: dict[str, _Place] = {}
        """Places of answers that have not started, by run."""
        self._shown = ShownBranch(view)
        self._opened = False
        """True after the first `open`."""
        self._changing = anyio.Lock()
        """Held while the message tree changes in several steps."""

    async def open(self, conversation: str | None) -> None:
        """Switch to a conversation and show its messages; None starts a new one. Raise NotFound if it does not exist."""
        found = await self._found(conversation) if conversation is not None else None
        before = self.context.conversation
        if found is None:
            self._leave()
            self.conversation = self.context.conversation = None
            if self._opened:
                self._view.notice("New conversation")
            self._opened = True
            self._shown.ids = []
            self._view.changed()
            return
        runs = await self._engine.store.records.runs(conversation=found.id, statuses=_LIVE)
        answers = {run.message: run for run in runs if run.status != "interrupted"}
        after = await self._engine.store.log.last_seq(found.id)
        branch, hidden = await self._branch(found.id), set[str]()
        self._leave()
        self.conversation, self.context.conversation = found, found.id
        for message in branch:
            run = answers.get(message.id)
            if run is None:
                continue
            hidden.add(message.id)
            self._places[run.id] = _Place(message.parent, message.id)
            if run.status != "queued":
                after = min(after, max(message.first_seq - 1, 0))
                self._tend(run.id)
            elif message.parent is not None:
                hidden.add(message.parent)
        if found.id != before:
            if self._opened:
                self._view.notice(f"Switched to “{found.title or 'untitled'}”")
            self._shown.ids = []
        self._opened = True
        self._view.opened(found)
        self._shown.show(branch[: next((at for at, message in enumerate(branch) if message.id in hidden), len(branch))])
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
            self._places[run.id] = _Place(answer.parent, answer.id)
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

    def _leave(self) -> None:
        """Stop following the open conversation. Its run continues."""
        for scope in self._scopes:
            scope.cancel()
        self._scopes = set()
        if self.live is not None and self.context.conversation is not None:
            self._shown.cut()
            self._view.left()
            self._view.notice(f"Still running: moot chat attach {self.context.conversation[:13]}")
        self._seq, self.live = 0, None
        self.queued.clear()
        self.unread.clear()
        self._tended, self._prompts, self._places, self._orphans = set(), {}, {}, []

    async def send(
        self,
        parts: Sequence[Part],
        shown: str,
        on_busy: OnBusy = "queue",
        *,
        echoed: bool = False,
        edits: str | None = None,
        extra: tuple[Part, ...] = (),
        command: Send | None = None,
    ) -> None:
        """Submit a prompt. Raise MootError if nothing was stored.

        `shown` is the text for the queue. `echoed` is True if the prompt is already on the screen. `edits` is the message it replaces.
        `extra` are the parts to give back with the text. `command` is the reply of a slash command that sends the prompt.
        """
        client = new_id()
        if echoed:
            self._echoed.add(client)
        submitted = await self._submit(Prompt(tuple(parts), client_id=client, on_busy=on_busy, edits=edits), command)
        prompt = QueuedPrompt(submitted.run.id, shown, submitted.run.message, extra)
        if submitted.steered:
            self.unread.append(prompt)
        elif submitted.run.status == "queued" and on_busy == "queue":
            self.queued.append(prompt)
        self._view.changed()

    async def answer(self, resume: str | None = None) -> None:
        """Start an answer to the last prompt, or resume the interrupted run with the ID `resume`."""
        if resume is not None:
            run = await self._engine.store.records.run(resume)
            message = await self._engine.store.conversations.message(run.message)
            self._places[run.id] = _Place(message.parent, message.id)
            await self._run_started(run.id, message)  # before its first event
            try:
                await self._engine.runs.resume(run.id)
            except MootError:
                self.live = None
                self._view.left()
                raise
            self._watch_from(run.conversation, self._seq)
            self._tend(run.id)
            return
        await self._submit(Prompt((), on_busy="reject"))

    async def _submit(self, prompt: Prompt, command: Send | None = None) -> Submitted:
        context = self.context
        prompt = prompt_of(context, command or Send(""), prompt)
        prompt = replace(prompt, settings={**prompt.settings, "attended": True}, temporary=context.temporary)
        is_new = context.conversation is None
        if context.conversation is None:
            prompt = replace(prompt, allowed_uris=with_folders((), context.directory, context.further_folders or ()))
        waiting = await self._waiting_run()
        submitted = await self._engine.runs.submit(prompt)
        if waiting is not None and (await self._engine.store.records.run(waiting)).status == "cancelled":
            self._view.notice("The run that was waiting for your answer was cancelled, because you sent another prompt.")
        context.take_folders()
        is_own = (is_new and context.temporary) or submitted.conversation.forked_from in context.started
        if is_own and submitted.conversation.id not in context.started:
            context.started.append(submitted.conversation.id)
        if self.conversation is not None and not self.conversation.directory and submitted.conversation.directory:
            self._view.notice(in_folder(submitted.conversation))
        if self.conversation is not None and self.conversation.id != submitted.conversation.id:
            self._leave()
            self._view.notice(copied(self.conversation, submitted.conversation))
            copies = await self._engine.store.conversations.branch(submitted.conversation.id, head=submitted.run.message)
            known = [message.id for message in copies if message.last_seq < submitted.seq - 1]
            if len(known) == len(self._shown.ids):  # the same messages under new ids
                self._shown.ids = known
        self.conversation, context.conversation = submitted.conversation, submitted.conversation.id
        await context.store_settings({})
        if not submitted.steered:
            # start before the prompt, which is stored as two events: the message and its place in the tree
            self._watch_from(submitted.conversation.id, max(submitted.seq - 2, 0))
            self._tend(submitted.run.id)
        return submitted

    async def _waiting_run(self) -> str | None:
        """Return the conversation's run that is waiting for the user, or None if there is none."""
        if self.conversation is None:
            return None
        waiting = await self._engine.store.records.runs(conversation=self.conversation.id, statuses=frozenset({"waiting"}))
        for run in waiting:
            if await open_approval(self._engine.store, run.id) is not None:
                return run.id
        return None

    async def interrupt(self) -> list[QueuedPrompt]:
        """Stop the active run and keep its output. Return the prompts that were taken back: unread messages and the queue, in order."""
        taken: list[QueuedPrompt] = []
        while self.queued:
            if (dropped := await self.drop_queued()) is not None:
                taken.insert(0, dropped)
        if (live := self.live) is not None:
            items = await self._engine.store.records.withdraw_steers(live)
            await self._engine.runs.cancel(live)
            unread = [withdrawn(live, item) for item in items]
            extra = {prompt.text: prompt for prompt in self.unread}
            self.unread = [prompt for prompt in self.unread if prompt.run != live]
            taken[:0] = [extra.get(prompt.text, prompt) for prompt in unread]
        self._view.changed()
        return taken

    async def drop_queued(self) -> QueuedPrompt | None:
        """Remove the last queued prompt. Return it, or None if its answer has already started."""
        if not self.queued:
            return None
        last = self.queued.pop()
        self._orphans = [one for one in self._orphans if one != last.run]
        store = self._engine.store
        async with self._changing:
            dropped = await store.records.withdraw(last.run)
            if dropped:
                answer = await store.conversations.message(last.message)
                await store.tree.delete(answer.conversation, [id for id in (answer.parent, answer.id) if id is not None])
                self._engine.runtime.hub.touch(answer.conversation)
        self._view.changed()
        return last if dropped else None

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
                    await self._handle(event)
                self._notify()
                if any(event.kind in ("message", "tree") for event in events):
                    await self._show_branch()

    def _notify(self) -> None:
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    async def _handle(self, event: Event) -> None:
        self._seq = event.seq
        body = event.body if isinstance(event.body, dict) else {}
        if event.kind == "message" and body.get("role") == "user":
            self._prompts[str(body.get("id"))] = body
        elif event.kind == "tree" and body.get("op") == "answer":
            parent = body.get("parent")
            self._places[str(body.get("run"))] = _Place(parent if isinstance(parent, str) else None, str(body.get("message")))
            self._tend(str(body.get("run")))
        if event.run is not None:
            if event.phase == "start" and event.key == "run":
                await self._run_started(event.run)
            if event.run == self.live:
                for chunk in event.chunks:
                    if (taken := taken_text(chunk)) is not None:
                        self._was_read(taken)
                self._view.event(event)

    def _was_read(self, text: str) -> None:
        """Forget the first unread message with this text. Hooks may have inserted text before it."""
        read = next((prompt for prompt in self.unread if prompt.text == text or text.endswith(f"\n\n{prompt.text}")), None)
        self.unread = [prompt for prompt in self.unread if prompt is not read]

    async def _run_started(self, run: str, resumed: Message | None = None) -> None:
        place = self._places.pop(run, None)
        if place is None:
            answer = await self._engine.store.conversations.message((await self._engine.store.records.run(run)).message)
            place = _Place(answer.parent, answer.id)
        prompt = self._prompts.pop(place.parent or "", None)
        if self.live not in (None, run):
            await self._show_end(self.live)
        echoed = prompt is not None and str(prompt.get("client_id")) in self._echoed
        conversation = self.context.conversation
        if prompt is not None and prompt.get("parent") == self._shown.last:  # the usual case, which needs no query
            self._shown.ids.append(str(place.parent))
            if not echoed:
                self._view.prompted(readable_prompt(parts_of(prompt.get("parts"))))
        elif conversation is not None and place.parent is not None and self._shown.last not in (place.parent, place.answer):
            self._shown.show(await self._branch(conversation, place.parent), echoed=echoed)
        if self._shown.last != place.answer:
            self._shown.ids.append(place.answer)
        self.queued = [one for one in self.queued if one.run != run]
        self.live = run
        self._view.started(run, resumed)
        if resumed is None:
            self._tend(run)

    async def _show_end(self, run: str | None) -> None:
        """Wait until the end of a finished run is shown. If that takes too long, leave the run without showing its end."""
        with anyio.move_on_after(_END_SECONDS):
            while self.live == run and run in self._tended:
                ended = self._ended
                self._notify()  # its last event has been shown
                await ended.wait()
        if self.live == run:
            self._view.left()

    async def _show_branch(self) -> None:
        """Show the conversation's current branch, unless a run is active or queued."""
        conversation = self.context.conversation
        if conversation is None or self.live is not None or self._tended or self.queued:
            return
        async with self._changing:
            if not await self._engine.store.records.runs(conversation=conversation, statuses=_BUSY):
                self._shown.show(await self._branch(conversation))

    async def _branch(self, conversation: str, head: str | None = None) -> list[Message]:
        return await for_display(self._engine.store, await self._engine.store.conversations.branch(conversation, head=head))

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
                if result == "edits":  # the mode chosen here must not override the conversation's new one
                    self.context.overrides.drop(["mode"])
                    self._refreshed(await self._engine.store.conversations.get(final.conversation))
                if result == "later":
                    break
                if result == "nothing":
                    await anyio.sleep(_POLL_SECONDS)
            while self._seq < final.last_seq:
                await self._moved.wait()
        except MootError:
            await self._run_ended(run, None)
            raise
        await self._run_ended(run, final)

    def _refreshed(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._view.changed()

    async def _run_ended(self, run: str, final: Run | None) -> None:
        self._tended.discard(run)
        self.queued = [one for one in self.queued if one.run != run]
        self.unread = [one for one in self.unread if one.run != run]
        was_live, self.live = self.live == run, None if self.live == run else self.live
        if final is not None and (was_live or (self.live is None and final.started_at is not None)):
            self._view.ended(final)  # before anything is awaited, because the next run may start then
        ended, self._ended = self._ended, anyio.Event()
        ended.set()
        if self.context.conversation is not None:
            try:
                self.conversation = await self._engine.store.conversations.get(self.context.conversation)
            except NotFound:
                self.conversation = None
        self._orphans = [one for one in self._orphans if one != run]
        if final is not None and final.status in TERMINAL:
            await self._start_next_orphan()
        await self._show_branch()
        self._view.changed()
