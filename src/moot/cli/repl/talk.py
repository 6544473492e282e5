"""One conversation as a person carries it on: prompts out, events in, and whatever stands in between. Knows no terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

import anyio
from anyio.abc import TaskGroup

from moot.cli.edited import with_edits
from moot.cli.references import copied
from moot.cli.repl.deciding import ask_all
from moot.cli.repl.face import Face
from moot.commands import Situation
from moot.errors import Busy, MootError, NotFound, UsageError
from moot.runtime.copies import copy_of
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.part import Part, text_of
from moot.types.run import STARTED, TERMINAL, OnBusy, Prompt, Run, RunStatus, Submitted

__all__ = ["Queued", "Talk"]

_LIVE: frozenset[RunStatus] = STARTED | frozenset[RunStatus]({"queued"})
_PAUSE = 0.25
"""Seconds between two looks at what somebody else was asked."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A prompt that stands behind the live run."""

    run: str
    text: str
    message: str
    """The one that is to answer it."""


class Talk:
    """Submits, watches and stops. Its tasks live in the group it is given; one conversation at a time."""

    def __init__(self, situation: Situation, group: TaskGroup, face: Face) -> None:
        self.situation = situation
        self.queued: list[Queued] = []
        self.live: str | None = None
        """The run that works now."""
        self.conversation: Conversation | None = None
        """As it stood when something last ended."""
        self.interrupted = False
        """Whether an answer was broken off when the conversation was opened."""
        self._engine = situation.engine
        self._group = group
        self._face = face
        self._scopes: set[anyio.CancelScope] = set()
        """Of what belongs to the conversation that is open."""
        self._seq = 0
        self._moved = anyio.Event()
        self._orphans: list[str] = []
        """Runs that were queued before this one looked, oldest first."""
        self._tended: set[str] = set()
        self._echoed: set[str] = set()
        """Ids of prompts, as the client names them, that are on the screen already."""
        self._prompts: dict[str, JsonObject] = {}
        """Bodies of user messages whose answer has not begun."""
        self._asked: dict[str, str] = {}
        """Run → the prompt that it answers."""

    # ── which conversation ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self, conversation: str | None) -> None:
        """Goes over to a conversation and shows what was said; None = a new one. Raises NotFound."""
        found = await self._found(conversation) if conversation is not None else None
        self._leave()
        self.conversation = found
        self.situation.conversation = found.id if found is not None else None
        if found is None:
            self._face.changed()
            return
        runs = await self._engine.store.records.runs(conversation=found.id, statuses=_LIVE)
        live = {run.message: run for run in runs if run.status != "queued"}
        after = await self._engine.store.log.last_seq(found.id)
        self._face.opened(found)
        for message in await with_edits(self._engine.store, await self._engine.store.conversations.branch(found.id)):
            run = live.get(message.id)
            if run is not None and run.status != "interrupted":
                after = min(after, max(message.first_seq - 1, 0))
                self._tend(run.id)
            elif not self._is_queued(message, runs):
                self._face.message(message)
        self.interrupted = any(run.status == "interrupted" for run in runs)
        self._watch(found.id, after)
        await self._stand_in_line([run for run in reversed(runs) if run.status == "queued"])
        self._face.changed()

    async def _found(self, conversation: str) -> Conversation:
        """That one, or the copy in which it is gone on with already."""
        conversations = self._engine.store.conversations
        found = await conversations.get(conversation)
        copy = await copy_of(conversations, found)
        if copy is not None:
            self._face.told(copied(found, copy))
        return copy or found

    async def _stand_in_line(self, runs: Sequence[Run]) -> None:
        """Prompts that were queued before: whoever queued them may be gone, so their turn is taken care of here."""
        for run in runs:
            answer = await self._engine.store.conversations.message(run.message)
            prompt = await self._engine.store.conversations.message(answer.parent) if answer.parent else None
            self._prompts[run.id] = {"parts": list(prompt.parts) if prompt else []}
            self._asked[run.id] = run.id
            self.queued.append(Queued(run.id, text_of(prompt.parts) if prompt else "", run.message))
            self._orphans.append(run.id)
        await self._take_up()

    async def _take_up(self) -> None:
        """Has the first of the prompts from before answered, when it is its turn."""
        if self._orphans and self.live is None:
            run = self._orphans[0]
            with suppress(Busy, UsageError):  # somebody is at it, something stands before it, or it was dropped
                await self._engine.runs.resume(run)
                self._tend(run)

    async def unanswered(self) -> bool:
        """Whether the last message is the person's and nobody is at it; in what follows a source, that one's agent is."""
        if self.situation.conversation is None or self._tended or (self.conversation is not None and self.conversation.follows):
            return False
        branch = await self._engine.store.conversations.branch(self.situation.conversation, limit=1)
        return bool(branch) and branch[-1].role == "user"

    def _is_queued(self, message: Message, runs: Sequence[Run]) -> bool:
        """Whether it is a prompt that stands in the queue, or its answer: they are shown when their turn comes."""
        queued = [run for run in runs if run.status == "queued"]
        return any(message.id == run.message or (message.role == "user" and message.last_seq == run.first_seq - 2) for run in queued)

    def _leave(self) -> None:
        for scope in self._scopes:
            scope.cancel()
        self._scopes = set()
        self._seq, self.live = 0, None
        self.queued.clear()
        self._tended, self._prompts, self._asked, self._orphans = set(), {}, {}, []

    # ── what the person says ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def send(
        self, parts: Sequence[Part], shown: str, on_busy: OnBusy = "queue", *, echoed: bool = False, edits: str | None = None
    ) -> bool:
        """Submits a prompt; whether it went to the answer that is coming. Raises MootError when nothing of it was stored.

        `shown` is what stands in the queue; `echoed` says that the prompt is on the screen already, `edits` what it takes the place of.
        """
        client = new_id()
        if echoed:
            self._echoed.add(client)
        submitted = await self._submit(Prompt(tuple(parts), client_id=client, on_busy=on_busy, edits=edits))
        if submitted.run.status == "queued" and on_busy == "queue":
            self.queued.append(Queued(submitted.run.id, shown, submitted.run.message))
        self._face.changed()
        return submitted.steered

    async def answer(self, resume: str | None = None) -> None:
        """Has the last prompt answered (again), or an interrupted run taken up."""
        if resume is not None:
            run = await self._engine.runs.resume(resume)
            self._begin(run.id)
            self._watch_from(run.conversation, self._seq)
            self._tend(run.id)
            return
        await self._submit(Prompt((), on_busy="reject"))

    async def _submit(self, prompt: Prompt) -> Submitted:
        situation, wishes = self.situation, self.situation.wishes
        where = replace(prompt, conversation=situation.conversation, directory=situation.directory, settings=wishes.settings())
        wanted = replace(where, agent=wishes.agent, model=wishes.model, mode=wishes.mode)
        submitted = await self._engine.runs.submit(wanted)
        if self.conversation is not None and self.conversation.id != submitted.conversation.id:
            self._leave()
            self._face.told(copied(self.conversation, submitted.conversation))
        self.conversation = submitted.conversation
        situation.conversation = submitted.conversation.id
        if not submitted.steered:
            # from before the prompt itself, which is one event and the answer's place in the tree another
            self._watch_from(submitted.conversation.id, max(submitted.seq - 2, 0))
            self._tend(submitted.run.id)
        return submitted

    async def interrupt(self) -> bool:
        """Stops the live run; what it said is kept. False when there is none."""
        if self.live is None:
            return False
        await self._engine.runs.cancel(self.live)
        return True

    async def drop(self) -> str | None:
        """Takes the last queued prompt back, as if it had not been said; its text, None when its answer has begun."""
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
        self._face.changed()
        return last.text if dropped else None

    # ── what comes ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _watch_from(self, conversation: str, seq: int) -> None:
        if not self._seq:
            self._watch(conversation, seq)

    def _watch(self, conversation: str, after: int) -> None:
        self._seq = max(after, 1)
        self._start(self._follow, conversation, after)

    def _start(self, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        scope = anyio.CancelScope()
        self._scopes.add(scope)
        self._group.start_soon(self._within, scope, work, arguments)

    async def _within(self, scope: anyio.CancelScope, work: Callable[..., Awaitable[None]], arguments: tuple[object, ...]) -> None:
        try:
            with scope:
                await work(*arguments)
        except MootError as error:
            self._face.failed(error)
        finally:
            self._scopes.discard(scope)

    async def _follow(self, conversation: str, after: int) -> None:
        async with aclosing(self._engine.tail.watch(conversation, after=after)) as batches:
            async for events in batches:
                for event in events:
                    self._take(event)
                moved, self._moved = self._moved, anyio.Event()
                moved.set()

    def _take(self, event: Event) -> None:
        self._seq = event.seq
        body = event.body if isinstance(event.body, dict) else {}
        if event.kind == "message" and body.get("role") == "user":
            self._prompts[str(body.get("id"))] = body
        elif event.kind == "tree" and body.get("op") == "answer":
            self._asked[str(body.get("run"))] = str(body.get("parent"))
            self._tend(str(body.get("run")))
        if event.run is not None:
            if event.phase == "start" and event.key == "run":
                self._begin(event.run)
            if event.run == self.live:
                self._face.event(event)

    def _begin(self, run: str) -> None:
        said = self._prompts.pop(self._asked.pop(run, ""), None)
        self.queued = [one for one in self.queued if one.run != run]
        self.live = run
        if said is not None and str(said.get("client_id")) not in self._echoed:
            self._face.prompted(_words(said.get("parts")))
        self._face.began(run)

    def _tend(self, run: str) -> None:
        if run not in self._tended:
            self._tended.add(run)
            self._start(self._to_the_end, run)

    async def _to_the_end(self, run: str) -> None:
        """Asks what the run asks, and says how it ended once everything it said was shown."""
        final: Run | None = None
        try:
            while (final := await self._engine.runs.wait(run)).status == "waiting":
                self.live = run
                came = await ask_all(self._engine, self._face, final)
                if came == "later":
                    break
                if came == "nothing":
                    await anyio.sleep(_PAUSE)
            await self._catch_up(final.conversation)
        finally:
            with anyio.CancelScope(shield=True):
                await self._over(run, final)

    async def _catch_up(self, conversation: str) -> None:
        through = await self._engine.store.log.last_seq(conversation)
        while self._seq < through:
            await self._moved.wait()

    async def _over(self, run: str, final: Run | None) -> None:
        self._tended.discard(run)
        self.queued = [one for one in self.queued if one.run != run]
        was_live, self.live = self.live == run, None if self.live == run else self.live
        if self.situation.conversation is not None:
            try:
                self.conversation = await self._engine.store.conversations.get(self.situation.conversation)
            except NotFound:
                self.conversation = None
        if final is not None and (was_live or final.started_at is not None):
            self._face.ended(final)
        self._orphans = [one for one in self._orphans if one != run]
        if final is not None and final.status in TERMINAL:
            await self._take_up()
        self._face.changed()


def _words(parts: Json) -> str:
    return text_of([part for part in parts if isinstance(part, dict)]) if isinstance(parts, list) else ""
