"""Parked runs, and when they can be resumed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from moot.errors import MootError
from moot.runtime.runtime import Runtime
from moot.types.run import Run

__all__ = ["ParkedRuns"]

log = logging.getLogger("moot.engine")


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
            items = await self._runtime.store.records.inbox(run.id)
            if cancelled or any(item.kind == "cancel" for item in items):
                await self._cancel(run.id)
            elif await self._answered(run.id) != answered:
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

    async def _answered(self, run: str) -> frozenset[str]:
        asked = await self._runtime.store.records.approvals(run=run, open_only=False)
        return frozenset(approval.id for approval in asked if approval.answer is not None)
