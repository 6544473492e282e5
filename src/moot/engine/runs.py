"""Runs in one store shared by many processes. The process that submits a prompt drives its run; any process can cancel or answer it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import cast

import anyio
from anyio.abc import TaskGroup

from moot.engine.clock import Clock
from moot.engine.locks import Owner
from moot.engine.processes import CancelListener, ParkedRuns
from moot.engine.submissions import continuation_of, submission_of
from moot.errors import Busy, MootError, NotFound, StoreError, UsageError
from moot.plugins.registry import attribute
from moot.runtime.children import is_awaited
from moot.runtime.runtime import Runtime, first_error, log_fields
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation
from moot.types.run import CLAIMABLE, GOES_ON, OWNED, STARTED, TERMINAL, Prompt, Run, RunStatus, Submitted
from moot.types.store import Fence, InboxItem

MANY = 10_000
"""Maximum number of runs to check at a time, newest first."""

_POLL_SECONDS = 0.25
"""Seconds between two checks for changes by other processes."""

_LONGEST_PAUSE = 10.0
"""Maximum number of seconds between two attempts to start a queued run. The more runs are ahead of it, the longer the pause."""

_NEXT = 8
"""Number of queued runs, counted from the oldest, that try to start whenever something changes in this process."""

# loaded by path: nothing before the first run needs them
_DRIVE, _KILL_LEFT_BY = "moot.runtime.drive:drive", "moot.runtime.drive:kill_left_by"
_GIVE_ANSWER = "moot.runtime.approvals.answers:give_answer"
_GENERATE_TITLE = "moot.engine.titles:generate_title"

log = logging.getLogger("moot.engine")


class LocalRuns:
    """The `Runs` of one process. Its tasks run in the given task group."""

    def __init__(self, runtime: Runtime, owner: Owner, group: TaskGroup) -> None:
        self._runtime = runtime
        self._owner = owner
        self._group = group
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._hearing = CancelListener(runtime, group, self._scopes.keys(), self._cancel_here)
        self.clock = Clock(runtime.clock, group)
        """The clock of this process."""
        self._parking = ParkedRuns(runtime, self.clock, self, owner.lives)
        runtime.runs = self
        self._cancelled: set[str] = set()
        """Runs to end with the status `cancelled` as soon as they are claimed here."""
        self._claiming: Counter[str] = Counter()
        self._queued: dict[str, int] = {}
        """Queued runs that are waiting for their turn in this process, each with its `no`."""
        self._swept = 0.0
        self._failures: dict[str, MootError] = {}
        """Errors of runs whose end could not be recorded. In the store, this process still owns them."""
        self._changed = anyio.Event()
        self._finishing: Counter[str] = Counter()
        """For each run, the number of titles that are being generated and of ended legs whose follow-up work is not done yet."""
        self.drove = False
        """True if this process has driven a run, so that there are messages to index."""

    # ── the interface ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def submit(self, prompt: Prompt) -> Submitted:
        existing = await self._existing(prompt)
        submission = await submission_of(self._runtime, prompt, existing, self._owner.hold())
        if existing is not None and existing.follows:  # only after everything that can be rejected was checked
            prompt = await continuation_of(self._runtime, prompt, existing)
            submission = await submission_of(self._runtime, prompt, await self._existing(prompt), self._owner.hold())
        if existing is not None:
            submission = replace(submission, continuing=await self._continuing(submission.conversation.id))
        with self._claim_of(submission.run.id):
            accepted = await self._runtime.store.records.submit(submission)
            self._runtime.hub.touch(accepted.conversation.id, accepted.seq)
            for run in accepted.superseded:
                await attribute(_KILL_LEFT_BY)(self._runtime.store, accepted.conversation.id, run)
                await self._cancel_children(run)
                self._runtime.hub.ring()
            if accepted.fence is not None:
                self._start(accepted.fence)
        self._notify()
        if submission.may_exist:
            await self.revive(accepted.run.id)
        elif existing is not None:
            await self._resume_children(accepted.run)
        if accepted.fence is None and not accepted.steered:
            self._group.start_soon(self._queue, accepted.run)
            if accepted.interrupts is not None:
                await self.cancel(accepted.interrupts)
        return Submitted(accepted.conversation, accepted.run, accepted.seq, accepted.steered)

    async def note(self, prompt: Prompt) -> Conversation:
        """Store the prompt in its conversation without a run. Raise the same errors as `submit`."""
        existing = await self._existing(prompt)
        if existing is not None and existing.follows:
            prompt = await continuation_of(self._runtime, prompt, existing)
            existing = await self._existing(prompt)
        conversation = await self._runtime.store.records.note(await submission_of(self._runtime, prompt, existing, ""))
        self._runtime.hub.touch(conversation.id)
        return conversation

    async def _existing(self, prompt: Prompt) -> Conversation | None:
        """Return the prompt's conversation if it exists. Before that, mark its run as interrupted if the run has a dead owner."""
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
        if found.status == "waiting" and found.awaits in GOES_ON and await self._parking.due(found) != 0:
            await self._parking.schedule(found)
        else:
            await self._claim(found.id, CLAIMABLE)
        await self._resume_children(found)
        return await self._runtime.store.records.run(found.id)

    async def revive(self, run: str) -> Run:
        found = await self.current(run)
        if found.status != "interrupted":
            return found
        with suppress(Busy):  # another process was faster, or has ended it
            await self._claim(found.id, frozenset({"interrupted"}))
        await self._resume_children(found)
        return await self._runtime.store.records.run(found.id)

    async def _resume_children(self, run: Run) -> None:
        """Resume the sub-agents of a run that were interrupted or whose requests have been answered, and also their own sub-agents.

        This includes sub-agents that earlier runs of the conversation left in the background.
        """
        for child in await self._runtime.store.records.children(conversation=run.conversation):
            if child.status in TERMINAL or (child.parent_run != run.id and not await self._is_wanted(child)):
                continue
            found = await self.current(child.id)
            parked = found.status == "waiting" and not found.held
            if found.status == "interrupted" or (parked and (found.awaits in GOES_ON or await self._parking.due(found) == 0)):
                try:
                    await self.resume(child.id)
                except (Busy, UsageError):
                    pass  # another process was faster, or it has just ended
                except MootError as error:
                    log.error("could not resume the sub-agent %s: %s", child.id, error, extra=log_fields(child))

    async def _is_wanted(self, child: Run) -> bool:
        """Return whether a sub-agent is still needed: its parent is not over, or has finished and left the sub-agent in the background."""
        parent = await self._runtime.store.records.run(str(child.parent_run))
        return parent.status not in TERMINAL or (parent.status == "finished" and not is_awaited(child))

    async def cancel(self, run: str) -> None:
        await self._cancel_one(run)
        await self._cancel_children(run)

    async def _cancel_children(self, run: str) -> None:
        """Cancel the run's sub-agents and their own sub-agents."""
        for child in await self._runtime.store.records.children(run):
            if child.status not in TERMINAL:
                await self.cancel(child.id)

    async def _cancel_one(self, run: str) -> None:
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
                    return  # its owner is notified, unless the owner has just parked the run
            else:
                # the run has no owner, so it is claimed only to be ended
                self._cancelled.add(found.id)
                with suppress(Busy):  # another process was faster
                    await self._claim(found.id, frozenset({found.status}))
                    return

    async def answer(self, approval: str, answer: Answer, *, wake: bool = True) -> None:
        """Implement `Runs.answer`. If `wake` is False, the run is not resumed; call the method `wake` after the last answer."""
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
            closing = found.status in TERMINAL and run in self._scopes  # its task in this process has not ended
            if found.status not in ("queued", "running") and not closing and not await self._goes_on(found):
                return found
            # a run of an outside agent, or with MCP servers, can wait for a person while its task continues, without a notification
            polls = found.agent_type != "moot" or bool(self._runtime.settings.mcp)
            with anyio.move_on_after(_POLL_SECONDS if polls or run not in self._scopes else None):
                await changed.wait()
                while not polls and run in self._scopes:  # nothing that this waits for happens before the end of its task
                    await self._changed.wait()

    async def _goes_on(self, run: Run) -> bool:
        """Return whether a waiting run will continue by itself: neither the run nor a sub-agent is waiting for a person or the client."""
        records = self._runtime.store.records
        if run.status != "waiting":
            return False
        if run.awaits not in GOES_ON:  # if everything was answered while the run was parking, its follow-up work resumes it
            return (run.id in self._scopes or run.id in self._finishing) and not await records.approvals(run=run.id)
        asking = {approval.run for approval in await records.approvals(run=run.id, tree=True)}
        # a run that is being stopped has open requests until its end is recorded
        if any([(await records.run(one)).status == "waiting" for one in asking]):
            return False
        if run.awaits == "time" or run.id in self._parking.runs or not (owners := await records.child_owners([run.id])):
            return True
        return self._lives(owners.values())  # otherwise no process resumes its sub-agents

    async def _continuing(self, conversation: str) -> frozenset[str]:
        """Return the waiting run of a conversation if it will continue by itself in a process that is known to be alive."""
        found = await self._runtime.store.records.runs(conversation=conversation, statuses=frozenset({"waiting"}))
        return frozenset([run.id for run in found if await self._goes_on(run) and await self._is_tended(run)])

    async def _is_tended(self, run: Run) -> bool:
        if run.id in self._parking.runs:
            return True
        if run.awaits == "time":
            return (run.wake_at or 0) > self._runtime.now() // 1000
        return self._lives((await self._runtime.store.records.child_owners([run.id])).values())

    def _lives(self, owners: Iterable[str | None]) -> bool:
        """Return whether the process of any of these owners is alive."""
        return any(owner is not None and self._owner.lives(owner) for owner in owners)

    async def here(self) -> list[Run]:
        """Return the runs that this process drives, starts when it is their turn, or resumes when they can continue."""
        found = [await self._runtime.store.records.run(run) for run in {*self._scopes, *self._queued, *self._parking.runs}]
        return sorted((run for run in found if run.status not in TERMINAL), key=lambda run: run.no)

    async def settle(self, seconds: float) -> None:
        """Wait at most the given time for runs that are being stopped and for the background work of ended runs."""
        with anyio.move_on_after(seconds):
            while True:
                changed = self._changed
                if not self._finishing and not await self._is_ending():
                    return
                await changed.wait()

    async def _is_ending(self) -> bool:
        """Return whether the task of a run that was stopped or has ended is still running."""
        if any(scope.cancel_called for scope in self._scopes.values()):
            return True
        # callers that waited for a run may leave before its task ends
        return not TERMINAL.isdisjoint([(await self._runtime.store.records.run(run)).status for run in list(self._scopes)])

    async def sweep(self, *, resume: bool) -> list[Run]:
        """Mark running and queued runs of dead owners as interrupted, and return them.

        If `resume` is True, also resume all runs without an owner that allow it, including those that other processes have marked.
        """
        found: list[Run] = []
        for run in reversed(await self._runtime.store.records.runs(statuses=OWNED, limit=MANY)):
            if not self._is_driven(run) and (await self.current(run.id)).status == "interrupted":
                found.append(run)
        if resume:
            await self._resume_all()
        return found

    # ── ownership ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def current(self, run: str) -> Run:
        """Return the current state of a run. If it has no live owner, mark it as interrupted first. Raise NotFound if it does not exist.

        A queued run that no process is waiting to start is also marked, unless it can be resumed automatically.
        """
        records = self._runtime.store.records
        found = await records.run(run)
        if found.status not in OWNED or (found.status == "waiting" and not found.held) or self._is_driven(found):
            return found
        try:
            await records.interrupt(found.id, owner=found.owner, fence=found.fence)
        except StoreError as error:  # such as a full disk, on which everything can still be read
            log.warning("can't record that run %s was interrupted: %s", found.id, error, extra=log_fields(found))
            return replace(found, status="interrupted")
        return await records.run(found.id)

    def _is_driven(self, run: Run) -> bool:
        if run.status == "queued":
            return run.on_crash == "resume" or (run.owner is not None and self._owner.lives(run.owner))
        if run.owner is None or run.owner == self._owner.id:  # after a store error, the store may still contain this process as the owner
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
        """Claim and drive a run. Raise Busy if the run has another owner or must wait for its turn."""
        with self._claim_of(run):
            self._start(await self._runtime.store.records.claim(run, self._owner.hold(), statuses=statuses, at_most=at_most))

    async def _resume_all(self) -> None:
        for run in await self._runtime.store.records.runs(statuses=CLAIMABLE, limit=MANY):
            try:
                await self._take_up(run)
            except Busy:
                pass  # another process was faster
            except MootError as error:  # such as a full disk, on which everything can still be read
                log.error("could not resume run %s: %s", run.id, error, extra=log_fields(run))

    async def _take_up(self, run: Run) -> None:
        """Resume a run without an owner if it can be resumed automatically."""
        if run.parent_run is not None and not await self._is_wanted(run):
            await self.cancel(run.id)  # the process that stopped its parent died before it could stop this one
        elif run.on_crash != "resume":
            return
        elif run.status == "queued":
            self._group.start_soon(self._queue, run)
        elif run.status == "interrupted":
            await self._claim(run.id, CLAIMABLE)
        elif not run.held and (run.awaits == "run" or run.id not in self._parking):  # a sub-agent may have ended elsewhere
            await self._parking.schedule(run)

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
        try:
            await self._leg(fence, scope)
        finally:  # also when this process ends, so that no one waits for ever
            self._finishing -= Counter([fence.run])  # drops zeros
            if not self._scopes:  # the end of a sub-agent may have resumed its parent
                self._hearing.end()
            self._notify()
        await self._tidy()

    async def _leg(self, fence: Fence, scope: anyio.CancelScope) -> None:
        """Run one leg and its follow-up work."""
        run: Run | None = None
        answered: frozenset[str] = frozenset()
        try:
            snapshot = await self._runtime.store.records.snapshot(fence.run)
            answered = snapshot.answered
            if any(item.kind == "cancel" for item in snapshot.inbox):
                self._cancel_here(fence.run)
            run = cast("Run", await attribute(_DRIVE)(self._runtime, fence, snapshot, scope))
        except* Exception as errors:  # noqa: BLE001  logged, and raised by `wait`
            self._fail(fence.run, run, errors)
        finally:
            if self._scopes.get(fence.run) is scope:  # otherwise an answer has already started the next leg
                del self._scopes[fence.run]
            if run is not None and run.status == "finished" and run.parent_run is None:
                self._finishing[run.id] += 1
                self._group.start_soon(self._entitle, run)
            self._finishing[fence.run] += 1
        if run is None:
            self._cancelled.discard(fence.run)
        else:
            await self._follow_up(run, answered)

    async def _follow_up(self, run: Run, answered: frozenset[str]) -> None:
        """After a leg, schedule a waiting run. If the run has ended, inform its parent and, unless it finished, stop its sub-agents."""
        if run.status == "waiting":
            await self._parking.tend(run, answered, cancelled=run.id in self._cancelled)
            return
        self._cancelled.discard(run.id)
        if run.status not in TERMINAL:
            return
        try:
            if run.status != "finished":
                await self._cancel_children(run.id)
            if run.parent_run is not None and run.parent_run not in self._scopes:  # else it is working, or looks for ended ones itself
                await self._parking.child_ended(run.parent_run)
        except MootError as error:  # the next check of the parent's process resumes it, or the next start of a server
            log.error("could not resume the run that started %s: %s", run.id, error, extra=log_fields(run))

    async def _tidy(self) -> None:
        """Remove the objects of conversations without an active or waiting run from memory."""
        drawers, records = self._runtime.drawers, self._runtime.store.records
        if drawers.crowded:
            try:
                live = {run.conversation for run in await records.runs(statuses=STARTED, limit=MANY)}
            except MootError as error:  # the end of the next run tries again
                log.error("could not evict in-memory objects: %s", error)
            else:
                await drawers.trim(live)

    async def _entitle(self, run: Run) -> None:
        """Generate a title after the answer, without delaying or affecting the answer."""
        try:
            await attribute(_GENERATE_TITLE)(self._runtime, run)
        except Exception as error:  # noqa: BLE001  a provider may raise anything, and a title must not fail a run
            log.warning("could not generate a title: %s", error, extra=log_fields(run))
        finally:
            self._finishing -= Counter([run.id])
            self._notify()

    def _fail(self, run: str, ended: Run | None, errors: BaseExceptionGroup[Exception]) -> None:
        """Remember a store error after which nothing more can be recorded for the run. The run will be marked as interrupted later."""
        error = first_error(errors)
        if ended is None:
            self._failures[run] = error if isinstance(error, MootError) else StoreError(f"Internal error: {error!r}.")
        extra = log_fields(ended) if ended else {"run": run}
        log.error("run %s stopped: %s", run, error, exc_info=None if isinstance(error, MootError) else error, extra=extra)

    async def wake(self, run: str) -> None:
        """Resume a parked run here, unless it is not parked (yet) or has another owner."""
        with suppress(Busy):
            await self._claim(run, frozenset({"waiting"}))

    async def _queue(self, run: Run) -> None:
        """Wait for a queued run's turn, then drive the run. Do nothing if its turn is already being awaited here."""
        if run.id in self._queued:
            return
        self._queued[run.id] = run.no
        try:
            await self._start_in_order(run)
        finally:
            del self._queued[run.id]

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
            ahead = sum(no < run.no for no in self._queued.values())
            with anyio.move_on_after(min(_POLL_SECONDS * (ahead + 1), _LONGEST_PAUSE)):
                await (changed.wait() if ahead < _NEXT else anyio.sleep_forever())

    async def _try_to_start(self, run: Run) -> bool:
        try:
            await self._claim(run.id, frozenset({"queued"}), self._runtime.settings.limits.runs_per_user)
        except Busy:
            if (now := anyio.current_time()) >= self._swept + _POLL_SECONDS:
                self._swept = now
                await self.sweep(resume=False)  # the owner of the previous run may have died
            return (await self._runtime.store.records.run(run.id)).status != "queued"
        return True

    def _cancel_here(self, run: str) -> None:
        self._cancelled.add(run)
        self._scopes[run].cancel()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
