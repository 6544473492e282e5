"""Detection of other processes' requests to cancel runs driven by this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import aclosing

import anyio
from anyio.abc import TaskGroup

from moot.errors import MootError
from moot.runtime.runtime import Runtime

__all__ = ["CancelListener"]

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
