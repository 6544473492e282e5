"""Runs on one SQLite file shared by many processes: whoever submits a prompt drives its run; anybody may cancel or answer."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import cast

import anyio
from anyio.abc import TaskGroup

from moot.engine.hearing import Hearing
from moot.engine.owners import Owner
from moot.engine.parking import Parking
from moot.engine.submissions import going_on, submission_of
from moot.engine.titles import entitle
from moot.errors import Busy, MootError, NotFound, StoreError, UsageError
from moot.runtime.answers import give
from moot.runtime.drive import drive
from moot.runtime.leftovers import kill_left_by
from moot.runtime.runtime import Runtime
from moot.types.approval import Answer
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.run import STARTED, TERMINAL, Prompt, Run, RunStatus, Submitted
from moot.types.store import Fence, InboxItem

TAKEABLE: frozenset[RunStatus] = frozenset({"waiting", "interrupted", "queued"})

OWNED: frozenset[RunStatus] = frozenset({"running", "queued", "waiting"})
"""Somebody works on such a run, waits for its turn, or may wait with the process of its agent."""

MANY = 10_000
"""Started runs that are looked at, the newest first."""

_LOOK = 0.25
"""Seconds between two looks at what another process may have changed."""

log = logging.getLogger("moot.engine")


class LocalRuns:
    """Implements Runs for one process; the tasks it starts live in the group it is given."""

    def __init__(self, runtime: Runtime, owner: Owner, group: TaskGroup) -> None:
        self._runtime = runtime
        self._owner = owner
        self._group = group
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._hearing = Hearing(runtime, group, self._scopes.keys(), self._call_off)
        self._parking = Parking(runtime, group, self.cancel, self.wake)
        self._cancelled: set[str] = set()
        """Runs that are to end as cancelled as soon as they are held here."""
        self._taken: Counter[str] = Counter()
        self._queued: set[str] = set()
        """Queued runs whose turn is waited for here."""
        self._failures: dict[str, MootError] = {}
        """Runs whose end could not be recorded, and why: nobody is at them though the store says that we are."""
        self._moved = anyio.Event()
        self._behind = 0
        """Titles that are being made."""
        self.drove = False
        """Whether any run was driven here: then the search index has something to do."""

    # ── the seam ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def submit(self, prompt: Prompt) -> Submitted:
        existing = await self._existing(prompt)
        submission = await submission_of(self._runtime, prompt, existing, self._owner.id)
        if existing is not None and existing.follows:  # not before all that can be refused was looked at
            prompt = await going_on(self._runtime, prompt, existing)
            submission = await submission_of(self._runtime, prompt, await self._existing(prompt), self._owner.id)
        with self._taking(submission.run.id):
            accepted = await self._runtime.store.records.submit(submission)
            self._runtime.hub.touch(accepted.conversation.id, accepted.seq)
            for run in accepted.superseded:
                await kill_left_by(self._runtime.store, accepted.conversation.id, run)
                self._runtime.hub.ring()
            if accepted.fence is not None:
                self._start(accepted.fence)
        self._move()
        if accepted.fence is None and not accepted.steered:
            self._group.start_soon(self._queue, accepted.run)
            if accepted.interrupts is not None:
                await self.cancel(accepted.interrupts)
        return Submitted(accepted.conversation, accepted.run, accepted.seq, accepted.steered)

    async def _existing(self, prompt: Prompt) -> Conversation | None:
        """The conversation that the prompt is for, if it is there. A dead owner's run in it keeps nobody from going on."""
        store = self._runtime.store
        conversations = (store if prompt.user is None else store.of(prompt.user)).conversations
        if prompt.conversation is not None:
            existing = await conversations.get(prompt.conversation)
        elif prompt.key is not None:
            existing = await conversations.by_key(prompt.key)
        else:
            client_id = prompt.conversation_client_id
            existing = None if client_id is None else await conversations.by_client_id(client_id)
        if existing is not None:
            for live in reversed(await store.records.runs(conversation=existing.id, statuses=OWNED)):
                await self.current(live.id)
        return existing

    async def resume(self, run: str) -> Run:
        found = await self.current(run)
        if found.status in TERMINAL:
            raise UsageError(f"the run {found.id!r} has {found.status}: there is nothing to resume", fix="moot chat continue ID")
        if found.status == "running" or found.held:
            where = "here already" if found.id in self._scopes else "in another process"
            raise Busy(f"the run {found.id!r} is running {where}", fix="moot chat stop ID")
        await self._take(found.id, TAKEABLE)
        return await self._runtime.store.records.run(found.id)

    async def cancel(self, run: str) -> None:
        records = self._runtime.store.records
        while (found := await self.current(run)).status not in TERMINAL:
            if found.id in self._scopes:
                self._call_off(found.id)
                return
            if found.status == "queued":
                if await records.withdraw(found.id):
                    self._runtime.hub.touch(found.conversation)
                    self._move()
                    return
            elif found.status == "running" or found.held:
                try:
                    await records.post(found.id, InboxItem("cancel"))
                except Busy:
                    return  # it has ended meanwhile
                if (now := await records.run(found.id)).held or now.status == "running":
                    return  # its owner hears of it; one that parked meanwhile may not have
            else:
                # nobody holds it: it is taken up only to be ended
                self._cancelled.add(found.id)
                with suppress(Busy):  # somebody was faster
                    await self._take(found.id, frozenset({found.status}))
                    return

    async def answer(self, approval: str, answer: Answer, *, wake: bool = True) -> None:
        """As `Runs.answer`. Without `wake` the run is left as it is: more answers follow, and then `wake`."""
        stored = await give(self._runtime, approval, answer)
        self._runtime.hub.ring()
        self._move()
        if wake:
            await self.wake(stored.run)

    async def wait(self, run: str) -> Run:
        """As `Runs.wait`. Raises StoreError when the run stopped here because the store could not take what it had to say."""
        while True:
            moved = self._moved
            if run in self._failures:
                raise self._failures[run]
            found = await self.current(run)
            ends_here = found.status in TERMINAL and run in self._scopes  # what was said too late is not behind it yet
            if found.status not in ("queued", "running") and not ends_here:
                return found
            # one of an outside agent waits for a person without its task's end, which is all that moves us
            looks = run not in self._scopes or found.agent_type != "moot"
            with anyio.move_on_after(_LOOK if looks else None):
                await moved.wait()

    async def settle(self, seconds: float) -> None:
        """Waits for what is still done behind finished runs, at most that long."""
        with anyio.move_on_after(seconds):
            while True:
                moved = self._moved
                if not self._behind and not await self._ends():
                    return
                await moved.wait()

    async def _ends(self) -> bool:
        """Whether a run has its end and its task here has not yet: whoever waited for the run may be gone before it."""
        return any([(await self._runtime.store.records.run(run)).status in TERMINAL for run in list(self._scopes)])

    async def sweep(self, *, resume: bool) -> list[Run]:
        """Finds running and queued runs whose owner is dead: they become interrupted. All found.

        With `resume`, whatever may go on by itself and that nobody works on is taken up: also what another process has swept.
        """
        found: list[Run] = []
        for run in reversed(await self._runtime.store.records.runs(statuses=OWNED)):
            if (await self.current(run.id)).status == "interrupted":
                found.append(run)
        if resume:
            await self._take_up()
        return found

    # ── whose a run is ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def current(self, run: str) -> Run:
        """The run as it stands; one that is called running (or waits with its agent) and that nobody drives is interrupted first.

        So is a queued one whose turn nobody waits for any more, unless it may be taken up by itself. Raises NotFound.
        """
        records = self._runtime.store.records
        found = await records.run(run)
        if found.status not in OWNED or (found.status == "waiting" and not found.held) or self._is_driven(found):
            return found
        await records.interrupt(found.id, owner=found.owner, fence=found.fence)
        return await records.run(found.id)

    def _is_driven(self, run: Run) -> bool:
        if run.status == "queued":
            return run.on_crash == "resume" or (run.owner is not None and self._owner.lives(run.owner))
        if run.owner is None or run.owner == self._owner.id:  # not when the store has failed under it: then nothing could be recorded
            return run.owner is None or run.id in self._scopes or self._taken[run.id] > 0
        return self._owner.lives(run.owner)

    @contextmanager
    def _taking(self, run: str) -> Generator[None]:
        """Covers the moment in which the store calls the run ours and its task has not begun."""
        self._taken[run] += 1
        try:
            yield
        finally:
            self._taken[run] -= 1
            self._taken += Counter()  # drops what is at zero

    async def _take(self, run: str, statuses: frozenset[RunStatus], at_most: int = 0) -> None:
        """Claims the run and drives it. Raises Busy when somebody else is at it or it has no turn yet."""
        with self._taking(run):
            self._start(await self._runtime.store.records.claim(run, self._owner.id, statuses=statuses, at_most=at_most))

    async def _take_up(self) -> None:
        for run in await self._runtime.store.records.runs(statuses=TAKEABLE):
            if run.on_crash != "resume":
                continue
            if run.status == "queued":
                self._group.start_soon(self._queue, run)
            elif run.status == "interrupted" or await self._parking.is_due(run.id):
                with suppress(Busy):  # another process was faster
                    await self._take(run.id, TAKEABLE)

    # ── driving ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, fence: Fence) -> None:
        self._failures.pop(fence.run, None)
        scope = self._scopes[fence.run] = anyio.CancelScope()
        if fence.run in self._cancelled:
            scope.cancel()
        self.drove = True
        self._hearing.begin()  # before the run looks at its inbox, so that no cancel falls in between
        self._group.start_soon(self._drive, fence, scope)

    async def _drive(self, fence: Fence, scope: anyio.CancelScope) -> None:
        run: Run | None = None
        answered: frozenset[str] = frozenset()
        try:
            standing = await self._runtime.store.records.standing(fence.run)
            answered = standing.answered
            if any(item.kind == "cancel" for item in standing.inbox):
                self._call_off(fence.run)
            run = await drive(self._runtime, fence, standing, scope)
            if run.status in TERMINAL and run.status != "finished":  # none finishes while something is left that was said to it
                await self._said_too_late(run)  # before anybody who waits for the run may leave
        except* Exception as errors:  # noqa: BLE001  logged, and told to whoever waits
            self._fail(fence.run, run, errors)
        finally:
            if self._scopes.get(fence.run) is scope:  # else an answer came at once, and the next leg has begun
                del self._scopes[fence.run]
            if not self._scopes:
                self._hearing.end()
            if run is not None and run.status == "finished":
                self._behind += 1
                self._group.start_soon(self._entitle, run)
            self._move()
        if run is not None and run.status == "waiting":
            await self._parking.tend(run, answered, cancelled=run.id in self._cancelled)
        else:
            self._cancelled.discard(fence.run)
        await self._tidy()

    async def _tidy(self) -> None:
        """Lets go of what conversations keep in memory, but not of those whose run goes on or waits: its commands are still wanted."""
        drawers, records = self._runtime.drawers, self._runtime.store.records
        if drawers.crowded:
            try:
                live = {run.conversation for run in await records.runs(statuses=STARTED, limit=MANY)}
            except MootError as error:  # nothing is lost: the next run's end sees to it
                log.error("nothing is let go of: %s", error)
            else:
                await drawers.trim(live)

    async def _entitle(self, run: Run) -> None:
        """Behind the answer, which it neither delays nor spoils."""
        try:
            await entitle(self._runtime, run)
        except Exception as error:  # noqa: BLE001  a provider's code may raise anything, and a title is not worth a run
            log.warning("the small model gave no title: %s", error, extra=_about(run))
        finally:
            self._behind -= 1
            self._move()

    def _fail(self, run: str, ended: Run | None, errors: BaseExceptionGroup[Exception]) -> None:
        """The store itself failed, so nothing more could be recorded: the run is found as interrupted later."""
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        if ended is None:
            self._failures[run] = error if isinstance(error, MootError) else StoreError(f"internal error: {error!r}")
        about = {"run": run, **({"conversation": ended.conversation} if ended else {})}
        log.error("run %s stopped: %s", run, error, exc_info=None if isinstance(error, MootError) else error, extra=about)

    async def _said_too_late(self, run: Run) -> None:
        """What was said to a run that failed or was stopped stands behind it, unanswered: nothing that a person said is lost."""
        parent = run.message
        for item in await self._runtime.store.records.inbox(run.id):
            body = item.body if item.kind == "steer" and isinstance(item.body, dict) else {}
            parts = body.get("parts")
            if isinstance(parts, list):
                whole = tuple(part for part in parts if isinstance(part, dict))
                said = Message(str(body.get("id")), "user", whole, conversation=run.conversation, parent=parent)
                parent = (await self._runtime.store.conversations.add_message(said)).id
                self._runtime.hub.touch(run.conversation)

    async def wake(self, run: str) -> None:
        """Goes on with a parked run here, unless it is not parked (yet) or somebody else is at it."""
        found = await self._runtime.store.records.run(run)
        if found.status == "waiting" and not found.held:
            with suppress(Busy):
                await self._take(run, frozenset({"waiting"}))

    async def _queue(self, run: Run) -> None:
        """Waits for a queued run's turn and drives it; once, however often it is found."""
        if run.id in self._queued:
            return
        self._queued.add(run.id)
        try:
            await self._begin_in_order(run)
        finally:
            self._queued.discard(run.id)

    async def _begin_in_order(self, run: Run) -> None:
        while True:
            moved = self._moved
            try:
                if await self._began(run):
                    return
            except NotFound:
                return
            except MootError as error:
                log.error("run %s can't begin: %s", run.id, error, extra=_about(run))
            with anyio.move_on_after(_LOOK):
                await moved.wait()

    async def _began(self, run: Run) -> bool:
        try:
            await self._take(run.id, frozenset({"queued"}), self._runtime.settings.limits.runs_per_user)
        except Busy:
            await self.sweep(resume=False)  # what it stands behind may have died
            return (await self._runtime.store.records.run(run.id)).status != "queued"
        return True

    def _call_off(self, run: str) -> None:
        """Ends a run that is driven here as cancelled."""
        self._cancelled.add(run)
        self._scopes[run].cancel()

    def _move(self) -> None:
        moved, self._moved = self._moved, anyio.Event()
        moved.set()


def _about(run: Run) -> dict[str, str]:
    """What a log record about a run carries, for `moot logs --run`."""
    return {"run": run.id, "conversation": run.conversation}
