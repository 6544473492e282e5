"""Runs on one SQLite file shared by many processes. The process that submits a prompt drives its run; any process can cancel or answer."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import aclosing, contextmanager, suppress
from typing import cast

import anyio
from anyio.abc import TaskGroup

from moot.engine.locks import Owner
from moot.engine.submissions import continuation_of, submission_of
from moot.errors import Busy, MootError, NotFound, StoreError, UsageError
from moot.plugins.registry import attribute
from moot.runtime.runtime import Runtime, first_error, log_fields
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.run import STARTED, TERMINAL, Prompt, Run, RunStatus, Submitted
from moot.types.store import Fence, InboxItem

CLAIMABLE: frozenset[RunStatus] = frozenset({"waiting", "interrupted", "queued"})

OWNED: frozenset[RunStatus] = frozenset({"running", "queued", "waiting"})
"""States in which a process may be working on a run, waiting for its turn, or waiting with its agent's process."""

MANY = 10_000
"""Maximum number of started runs to check, newest first."""

_POLL_SECONDS = 0.25
"""Seconds between two checks for changes by other processes."""

# loaded by path: nothing before the first run needs them
_DRIVE, _KILL_LEFT_BY = "moot.runtime.drive:drive", "moot.runtime.drive:kill_left_by"
_GIVE_ANSWER = "moot.runtime.answers:give_answer"
_GENERATE_TITLE = "moot.engine.titles:generate_title"

log = logging.getLogger("moot.engine")


class CancelListener:
    """A task that exists while this process has runs and checks their inboxes whenever another process has committed.

    Requests that arrived before `begin` are not reported. The code that starts a run checks for them.
    """

    def __init__(self, runtime: Runtime, group: TaskGroup, driven: Collection[str], cancel: Callable[[str], None]) -> None:
        """`driven` are the current runs; `cancel` is called with the id of a run."""
        self._runtime = runtime
        self._group = group
        self._driven = driven
        self._cancel = cancel
        self._scope: anyio.CancelScope | None = None

    def begin(self) -> None:
        """Start listening, unless already started."""
        if self._scope is None:
            self._scope = anyio.CancelScope()
            self._group.start_soon(self._listen, self._scope)

    def end(self) -> None:
        """Stop listening until the next `begin`."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def _listen(self, scope: anyio.CancelScope) -> None:
        with scope:
            async with aclosing(self._runtime.hub.foreign()) as commits:
                async for _ in commits:
                    await self._check_inboxes()

    async def _check_inboxes(self) -> None:
        try:
            found = await self._runtime.store.records.cancelled(self._driven)
        except MootError as error:  # the next commit triggers another check
            log.error("can't read cancel requests of other processes: %s", error)
            return
        for run in found:
            if run in self._driven:
                self._cancel(run)


class ParkedRuns:
    """The runs parked in this process. Its tasks run in the given group."""

    def __init__(
        self, runtime: Runtime, group: TaskGroup, cancel: Callable[[str], Awaitable[None]], wake: Callable[[str], Awaitable[None]]
    ) -> None:
        self._runtime = runtime
        self._group = group
        self._cancel = cancel
        self._wake = wake

    async def tend(self, run: Run, answered: frozenset[str], *, cancelled: bool) -> None:
        """Handle what arrived while the run was parking: a cancel request or answers. Otherwise wait until a request expires.

        `answered` contains the approvals already answered when the run was last resumed.
        """
        try:
            records = self._runtime.store.records
            items = await records.inbox(run.id)
            if cancelled or any(item.kind == "cancel" for item in items):
                await self._cancel(run.id)
            else:
                asked = await records.approvals(run=run.id, open_only=False)
                if frozenset(one.id for one in asked if one.answer is not None) != answered:
                    await self._wake(run.id)
                else:
                    self._group.start_soon(self._expire, run.id)
        except MootError as error:
            about = {"run": run.id, "conversation": run.conversation}
            log.error("run %s is waiting and may have missed an answer: %s", run.id, error, extra=about)

    async def is_due(self, run: str) -> bool:
        """Return whether a parked run can be resumed: all its requests are answered, or one has expired."""
        now = self._runtime.now() // 1000
        asked = await self._runtime.store.records.approvals(run=run)
        return not asked or any(approval.expires_at is not None and approval.expires_at <= now for approval in asked)

    async def _expire(self, run: str) -> None:
        """Resume a parked run when one of its requests expires, so that the model is notified."""
        try:
            asked = await self._runtime.store.records.approvals(run=run)
            times = [approval.expires_at for approval in asked if approval.expires_at is not None]
            if times:
                await anyio.sleep(max(0.0, min(times) / 1000 - self._runtime.now() / 1_000_000) + 0.01)
                if await self.is_due(run):
                    await self._wake(run)
        except MootError as error:
            log.error("could not resume run %s: %s", run, error, extra={"run": run})


class LocalRuns:
    """`Runs` for one process. Its tasks run in the given group."""

    def __init__(self, runtime: Runtime, owner: Owner, group: TaskGroup) -> None:
        self._runtime = runtime
        self._owner = owner
        self._group = group
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._hearing = CancelListener(runtime, group, self._scopes.keys(), self._cancel_here)
        self._parking = ParkedRuns(runtime, group, self.cancel, self.wake)
        self._cancelled: set[str] = set()
        """Runs to end as cancelled as soon as they are claimed here."""
        self._claiming: Counter[str] = Counter()
        self._queued: set[str] = set()
        """Queued runs whose turn is awaited here."""
        self._failures: dict[str, MootError] = {}
        """Errors of runs whose end could not be recorded. In the store, this process still owns them."""
        self._changed = anyio.Event()
        self._titling = 0
        """Number of titles being generated."""
        self.drove = False
        """True if this process drove a run, so there are messages to index."""

    # ── the interface ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def submit(self, prompt: Prompt) -> Submitted:
        existing = await self._existing(prompt)
        submission = await submission_of(self._runtime, prompt, existing, self._owner.id)
        if existing is not None and existing.follows:  # only after everything that can be rejected was checked
            prompt = await continuation_of(self._runtime, prompt, existing)
            submission = await submission_of(self._runtime, prompt, await self._existing(prompt), self._owner.id)
        with self._claim_of(submission.run.id):
            accepted = await self._runtime.store.records.submit(submission)
            self._runtime.hub.touch(accepted.conversation.id, accepted.seq)
            for run in accepted.superseded:
                await attribute(_KILL_LEFT_BY)(self._runtime.store, accepted.conversation.id, run)
                self._runtime.hub.ring()
            if accepted.fence is not None:
                self._start(accepted.fence)
        self._notify()
        if accepted.fence is None and not accepted.steered:
            self._group.start_soon(self._queue, accepted.run)
            if accepted.interrupts is not None:
                await self.cancel(accepted.interrupts)
        return Submitted(accepted.conversation, accepted.run, accepted.seq, accepted.steered)

    async def _existing(self, prompt: Prompt) -> Conversation | None:
        """Return the prompt's conversation, if it exists. If a dead owner has a run in it, that run is marked as interrupted first."""
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
            raise UsageError(f"The run {found.id!r} is {found.status}, so there is nothing to resume.", fix="moot chat continue ID")
        if found.status == "running" or found.held:
            where = "in this process" if found.id in self._scopes else "in another process"
            raise Busy(f"The run {found.id!r} is already running {where}.", fix="moot chat stop ID")
        await self._claim(found.id, CLAIMABLE)
        return await self._runtime.store.records.run(found.id)

    async def cancel(self, run: str) -> None:
        records = self._runtime.store.records
        while (found := await self.current(run)).status not in TERMINAL:
            if found.id in self._scopes:
                self._cancel_here(found.id)
                return
            if found.status == "queued":
                if await records.withdraw(found.id):
                    self._runtime.hub.touch(found.conversation)
                    self._notify()
                    return
            elif found.status == "running" or found.held:
                try:
                    await records.post(found.id, InboxItem("cancel"))
                except Busy:
                    return  # the run has ended
                if (now := await records.run(found.id)).held or now.status == "running":
                    return  # its owner is notified, unless it has just parked the run
            else:
                # no owner: it is claimed only to be ended
                self._cancelled.add(found.id)
                with suppress(Busy):  # another process was faster
                    await self._claim(found.id, frozenset({found.status}))
                    return

    async def answer(self, approval: str, answer: Answer, *, wake: bool = True) -> None:
        """Implement `Runs.answer`. Without `wake` the run is not resumed; call `wake` after the last answer."""
        stored: Approval = await attribute(_GIVE_ANSWER)(self._runtime, approval, answer)
        self._runtime.hub.ring()
        self._notify()
        if wake:
            await self.wake(stored.run)

    async def wait(self, run: str) -> Run:
        """Implement `Runs.wait`. Raise StoreError if a store error stopped the run in this process."""
        while True:
            changed = self._changed
            if run in self._failures:
                raise self._failures[run]
            found = await self.current(run)
            ends_here = found.status in TERMINAL and run in self._scopes  # late messages are not stored yet
            if found.status not in ("queued", "running") and not ends_here:
                return found
            # a run of an outside agent can wait for a person while its task continues, so there is no notification
            polls = run not in self._scopes or found.agent_type != "moot"
            with anyio.move_on_after(_POLL_SECONDS if polls else None):
                await changed.wait()

    async def settle(self, seconds: float) -> None:
        """Wait at most the given time for the background work of finished runs."""
        with anyio.move_on_after(seconds):
            while True:
                changed = self._changed
                if not self._titling:
                    # callers that waited for a run may leave before its task ends
                    statuses = [(await self._runtime.store.records.run(run)).status for run in list(self._scopes)]
                    if TERMINAL.isdisjoint(statuses):
                        return
                await changed.wait()

    async def sweep(self, *, resume: bool) -> list[Run]:
        """Mark running and queued runs of dead owners as interrupted, and return them.

        With `resume`, also resume all runs without an owner that allow it, including those interrupted by other processes.
        """
        found: list[Run] = []
        for run in reversed(await self._runtime.store.records.runs(statuses=OWNED)):
            if (await self.current(run.id)).status == "interrupted":
                found.append(run)
        if resume:
            await self._resume_all()
        return found

    # ── ownership ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def current(self, run: str) -> Run:
        """Return the current run. A run without a live owner is marked as interrupted first. Raise NotFound.

        This includes queued runs that no process is waiting to start, unless they can be resumed automatically.
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
        if run.owner is None or run.owner == self._owner.id:  # not after a store error, when nothing could be recorded
            return run.owner is None or run.id in self._scopes or self._claiming[run.id] > 0
        return self._owner.lives(run.owner)

    @contextmanager
    def _claim_of(self, run: str) -> Generator[None]:
        """Keep track of a run between its claim in the store and the start of its task."""
        self._claiming[run] += 1
        try:
            yield
        finally:
            self._claiming[run] -= 1
            self._claiming += Counter()  # drops zeros

    async def _claim(self, run: str, statuses: frozenset[RunStatus], at_most: int = 0) -> None:
        """Claim and drive a run. Raise Busy if it has another owner or must wait for its turn."""
        with self._claim_of(run):
            self._start(await self._runtime.store.records.claim(run, self._owner.id, statuses=statuses, at_most=at_most))

    async def _resume_all(self) -> None:
        for run in await self._runtime.store.records.runs(statuses=CLAIMABLE):
            if run.on_crash != "resume":
                continue
            if run.status == "queued":
                self._group.start_soon(self._queue, run)
            elif run.status == "interrupted" or await self._parking.is_due(run.id):
                with suppress(Busy):  # another process was faster
                    await self._claim(run.id, CLAIMABLE)

    # ── driving ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, fence: Fence) -> None:
        self._failures.pop(fence.run, None)
        scope = self._scopes[fence.run] = anyio.CancelScope()
        if fence.run in self._cancelled:
            scope.cancel()
        self.drove = True
        self._hearing.begin()  # before the run reads its inbox, so that no cancel request is missed
        self._group.start_soon(self._drive, fence, scope)

    async def _drive(self, fence: Fence, scope: anyio.CancelScope) -> None:
        run: Run | None = None
        answered: frozenset[str] = frozenset()
        try:
            standing = await self._runtime.store.records.standing(fence.run)
            answered = standing.answered
            if any(item.kind == "cancel" for item in standing.inbox):
                self._cancel_here(fence.run)
            run = cast("Run", await attribute(_DRIVE)(self._runtime, fence, standing, scope))
            if run.status in TERMINAL and run.status != "finished":  # a run with unread messages does not finish
                await self._store_late_messages(run)  # before callers that wait for the run are released
        except* Exception as errors:  # noqa: BLE001  logged, and raised by `wait`
            self._fail(fence.run, run, errors)
        finally:
            if self._scopes.get(fence.run) is scope:  # otherwise an answer has already started the next leg
                del self._scopes[fence.run]
            if not self._scopes:
                self._hearing.end()
            if run is not None and run.status == "finished":
                self._titling += 1
                self._group.start_soon(self._entitle, run)
            self._notify()
        if run is not None and run.status == "waiting":
            await self._parking.tend(run, answered, cancelled=run.id in self._cancelled)
        else:
            self._cancelled.discard(fence.run)
        await self._tidy()

    async def _tidy(self) -> None:
        """Evict the in-memory objects of conversations without an active or waiting run."""
        drawers, records = self._runtime.drawers, self._runtime.store.records
        if drawers.crowded:
            try:
                live = {run.conversation for run in await records.runs(statuses=STARTED, limit=MANY)}
            except MootError as error:  # the end of the next run tries again
                log.error("could not evict in-memory objects: %s", error)
            else:
                await drawers.trim(live)

    async def _entitle(self, run: Run) -> None:
        """Generate a title after the answer, without delaying or affecting it."""
        try:
            await attribute(_GENERATE_TITLE)(self._runtime, run)
        except Exception as error:  # noqa: BLE001  a provider may raise anything, and a title must not fail a run
            log.warning("could not generate a title: %s", error, extra=log_fields(run))
        finally:
            self._titling -= 1
            self._notify()

    def _fail(self, run: str, ended: Run | None, errors: BaseExceptionGroup[Exception]) -> None:
        """Remember a store error after which nothing more can be recorded. The run is later marked as interrupted."""
        error = first_error(errors)
        if ended is None:
            self._failures[run] = error if isinstance(error, MootError) else StoreError(f"Internal error: {error!r}.")
        extra = log_fields(ended) if ended else {"run": run}
        log.error("run %s stopped: %s", run, error, exc_info=None if isinstance(error, MootError) else error, extra=extra)

    async def _store_late_messages(self, run: Run) -> None:
        """Store messages sent to a run that failed or was stopped after its answer, so that none is lost."""
        parent = run.message
        for item in await self._runtime.store.records.inbox(run.id):
            body = item.body if item.kind == "steer" and isinstance(item.body, dict) else {}
            parts = body.get("parts")
            if isinstance(parts, list):
                own_parts = tuple(part for part in parts if isinstance(part, dict))
                message = Message(str(body.get("id")), "user", own_parts, conversation=run.conversation, parent=parent)
                parent = (await self._runtime.store.conversations.add_message(message)).id
                self._runtime.hub.touch(run.conversation)

    async def wake(self, run: str) -> None:
        """Resume a parked run here, unless it is not parked (yet) or has another owner."""
        found = await self._runtime.store.records.run(run)
        if found.status == "waiting" and not found.held:
            with suppress(Busy):
                await self._claim(run, frozenset({"waiting"}))

    async def _queue(self, run: Run) -> None:
        """Wait for a queued run's turn and drive it. Calls for the same run have no effect."""
        if run.id in self._queued:
            return
        self._queued.add(run.id)
        try:
            await self._start_in_order(run)
        finally:
            self._queued.discard(run.id)

    async def _start_in_order(self, run: Run) -> None:
        while True:
            changed = self._changed
            try:
                if await self._try_to_start(run):
                    return
            except NotFound:
                return
            except MootError as error:
                log.error("could not start run %s: %s", run.id, error, extra=log_fields(run))
            with anyio.move_on_after(_POLL_SECONDS):
                await changed.wait()

    async def _try_to_start(self, run: Run) -> bool:
        try:
            await self._claim(run.id, frozenset({"queued"}), self._runtime.settings.limits.runs_per_user)
        except Busy:
            await self.sweep(resume=False)  # the owner of the run before it may have died
            return (await self._runtime.store.records.run(run.id)).status != "queued"
        return True

    def _cancel_here(self, run: str) -> None:
        """Cancel a run that is driven here."""
        self._cancelled.add(run)
        self._scopes[run].cancel()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
