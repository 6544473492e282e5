"""Hears what other processes want of the runs that are driven here: that they are cancelled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import aclosing

import anyio
from anyio.abc import TaskGroup

from moot.errors import MootError
from moot.runtime.runtime import Runtime

__all__ = ["Hearing"]

log = logging.getLogger("moot.engine")


class Hearing:
    """One task for all runs of this process, while there are any: a look at their inboxes each time another process has committed.

    It does not tell what lay in an inbox before `begin`; whoever begins a run looks at that.
    """

    def __init__(self, runtime: Runtime, group: TaskGroup, driven: Collection[str], cancel: Callable[[str], None]) -> None:
        """`driven` are the runs at any moment, `cancel` is called with one of them."""
        self._runtime = runtime
        self._group = group
        self._driven = driven
        self._cancel = cancel
        self._scope: anyio.CancelScope | None = None

    def begin(self) -> None:
        """Nothing happens when it has."""
        if self._scope is None:
            self._scope = anyio.CancelScope()
            self._group.start_soon(self._listen, self._scope)

    def end(self) -> None:
        """Until the next `begin`."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def _listen(self, scope: anyio.CancelScope) -> None:
        with scope:
            async with aclosing(self._runtime.hub.foreign()) as commits:
                async for _ in commits:
                    await self._look()

    async def _look(self) -> None:
        try:
            found = await self._runtime.store.records.cancelled(self._driven)
        except MootError as error:  # it is looked again at their next commit
            log.error("cancels of other processes can't be read: %s", error)
            return
        for run in found:
            if run in self._driven:
                self._cancel(run)
