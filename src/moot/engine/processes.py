"""React to other processes that cancel this process's runs, answer their requests, or end their sub-agents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from functools import partial
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from moot.engine.clock import Clock
from moot.errors import MootError
from moot.runtime.children import is_awaited
from moot.runtime.runtime import Runtime, log_fields
from moot.types.approval import Approval
from moot.types.run import Run

ANSWERS = 1_000
"""Milliseconds between two checks whether other processes have stored answers or ended sub-agents. A check takes two queries in total."""

ELSEWHERE = 3 * ANSWERS
"""Milliseconds after which a run is resumed here, even though it may be parked in another process."""

log = logging.getLogger("moot.engine")


class CancelListener:
    """A task that exists as long as this process has runs, and checks their inboxes whenever another process has committed something.

    Cancel requests that arrived before `begin` are not reported. The code that starts a run checks for them after `begin`.
    """

    def __init__(self, runtime: Runtime, group: TaskGroup, driven: Collection[str], cancel: Callable[[str], None]) -> None:
        """`driven` are the current runs; `cancel` is called with the id of a run."""
        self._runtime = runtime
        self._group = group
        self._driven = driven
        self._cancel = cancel
        self._scope: anyio.CancelScope | None = None

    def begin(self) -> None:
        """Start listening, unless the listener has already started."""
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
                await anext(commits)  # begins to listen
                async for _ in commits:
                    await self._check_inboxes()

    async def _check_inboxes(self) -> None:
        try:
            found = await self._runtime.store.records.cancelled(self._driven)
        except MootError as error:  # the next commit triggers another check
            log.error("can't read cancel requests from other processes: %s", error)
            return
        for run in found:
            if run in self._driven:
                self._cancel(run)


class Driver(Protocol):
    """The interface through which `ParkedRuns` controls this process's runs."""

    async def cancel(self, run: str) -> None: ...

    async def wake(self, run: str) -> None:
        """Resume a parked run here. Do nothing if the run is not parked (yet) or has another owner."""
        ...

    async def revive(self, run: str) -> Run:
        """Resume the run here if its process has died. Return the current state of the run."""
        ...


class ParkedRuns:
    """The runs that are parked in this process. The clock resumes a run when something that it is waiting for is due."""

    def __init__(self, runtime: Runtime, clock: Clock, driver: Driver, is_alive: Callable[[str], bool]) -> None:
        """`is_alive` tells whether the process of an owner is running."""
        self._runtime = runtime
        self._clock = clock
        self._driver = driver
        self._is_alive = is_alive
        self._parked: dict[str, object] = {}
        """Runs that this process resumes when another process has answered them,
        each with an object that is replaced when the run is parked again.
        """

    @property
    def runs(self) -> Collection[str]:
        """The ids of the parked runs; some of them may have been resumed elsewhere."""
        return self._parked.keys()

    async def tend(self, run: Run, answered: frozenset[str], *, cancelled: bool) -> None:
        """Handle a cancel request or answers that arrived while the run was being parked. If there are none, schedule the run.

        `answered` contains the approvals that had already been answered when the run was last resumed.
        """
        try:
            records = self._runtime.store.records
            items = await records.inbox(run.id)
            if cancelled or any(item.kind == "cancel" for item in items):
                await self._driver.cancel(run.id)
            else:
                asked = await records.approvals(run=run.id, open_only=False)
                if frozenset(one.id for one in asked if one.answer is not None) != answered:
                    await self._driver.wake(run.id)
                else:
                    await self.schedule(run, [one for one in asked if one.answer is None])
        except MootError as error:
            log.error("run %s is waiting and may have missed an answer: %s", run.id, error, extra=log_fields(run))

    def __contains__(self, run: str) -> bool:
        return run in self._parked

    async def schedule(self, run: Run, asked: Sequence[Approval] | None = None) -> None:
        """Resume a parked run: now if it is due, otherwise as soon as it is. `asked` contains its open requests if they have already been
        read.
        """
        due = await self.due(run, asked)
        if due is not None and due <= self._now:
            await self._driver.wake(run.id)
            return
        if due is not None:
            self._clock.at(f"run:{run.id}", due, partial(self._resume, run.id))
        if not self._parked:
            self._clock.at("answers", self._now + ANSWERS, self._check_elsewhere)
        self._parked[run.id] = object()

    async def child_ended(self, parent: str) -> None:
        """Resume the run whose sub-agent has ended here, if the run is due.

        If the run is parked in another process, where someone may be following it, that process resumes it at its next check.
        """
        found = await self._runtime.store.records.parked([parent])
        if parent not in found:
            return
        if parent not in self._parked:
            self._clock.at(f"parent:{parent}", self._now + ELSEWHERE, partial(self._resume_if_due, parent))
        elif found[parent]:
            await self._driver.wake(parent)
        else:  # such as a run with an open request as well
            await self.schedule(await self._runtime.store.records.run(parent))

    @property
    def _now(self) -> int:
        return self._runtime.now() // 1000

    async def _check_elsewhere(self) -> None:
        """Resume the parked runs for which another process has stored an answer or ended a sub-agent,
        and sub-agents whose process has died.
        """
        asked = dict(self._parked)
        try:
            records = self._runtime.store.records
            found = await records.parked(asked)
            for run, parked in asked.items():
                if run not in found and self._parked.get(run) is parked:  # and has not parked again in the meantime
                    del self._parked[run]
            for run in [run for run, is_due in found.items() if is_due]:
                await self._driver.wake(run)
            owners = await records.child_owners(found)
            dead = {owner for owner in set(owners.values()) if owner is None or not self._is_alive(owner)}
            for child in [child for child, owner in owners.items() if owner in dead]:
                await self._driver.revive(child)
        except MootError as error:  # the next check tries again
            log.error("can't read what other processes did for waiting runs: %s", error)
        if self._parked:
            self._clock.at("answers", self._now + ANSWERS, self._check_elsewhere)

    async def due(self, run: Run, asked: Sequence[Approval] | None = None) -> int | None:
        """Return the time at which a parked run can be resumed, in ms: 0 = now, None = only after someone has answered.

        A run is due when all its requests have been answered, one of them has expired,
        all sub-agents that it awaits have ended, or its wake-up time has come.
        """
        records = self._runtime.store.records
        asked = await records.approvals(run=run.id) if asked is None else asked
        times = [approval.expires_at for approval in asked if approval.expires_at is not None]
        if run.awaits == "time":
            times.append(run.wake_at or 0)
        elif run.awaits == "run":
            times += [] if any(map(is_awaited, await records.children(run.id))) else [0]
        elif not asked:
            return 0
        return min(times, default=None)

    async def _resume(self, id: str) -> None:
        run = await self._runtime.store.records.run(id)
        if run.status == "waiting" and not run.held:
            await self.schedule(run)

    async def _resume_if_due(self, id: str) -> None:
        if (await self._runtime.store.records.parked([id])).get(id):
            await self._driver.wake(id)
