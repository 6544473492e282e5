"""What lives as long as the process: the store, the providers, the settings, the hub, and what conversations keep in memory."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol, TypeVar, cast

import anyio

from moot.config.settings import Settings
from moot.providers.pool import Providers
from moot.runtime.hub import Hub
from moot.tools.offers import offered
from moot.types.agent import Agent
from moot.types.ids import Clock, SystemClock
from moot.types.store import Store

T = TypeVar("T")


class _Closable(Protocol):
    async def aclose(self) -> None: ...


class Drawers:
    """Things that conversations keep in memory (running processes, todo lists), for the most recently used ones only.

    A thing with `aclose` is closed when its conversation loses its place.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._drawers: OrderedDict[str, dict[str, object]] = OrderedDict()

    def kept(self, conversation: str, name: str, make: Callable[[], T]) -> T:
        """The thing of that name, made at the first call."""
        drawer = self._drawers.setdefault(conversation, {})
        self._drawers.move_to_end(conversation)
        if name not in drawer:
            drawer[name] = make()
        return drawer[name]  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  the name fixes the type

    @property
    def crowded(self) -> bool:
        """Whether more conversations keep things than the limit allows."""
        return 0 < self._limit < len(self._drawers)

    async def trim(self, live: Collection[str]) -> None:
        """Lets go of the conversations used longest ago, down to the limit, but of none that is live."""
        for conversation in list(self._drawers):
            if not self.crowded:
                break
            if conversation not in live:
                await _close(self._drawers.pop(conversation))

    async def aclose(self) -> None:
        """Lets go of them all."""
        while self._drawers:
            await _close(self._drawers.popitem()[1])


async def _close(drawer: dict[str, object]) -> None:
    for thing in drawer.values():
        if hasattr(thing, "aclose"):
            await cast("_Closable", thing).aclose()


class Runtime:
    """Handed to whatever drives runs; `settings` is replaced as a whole when the configuration is read again."""

    def __init__(
        self, settings: Settings, store: Store, providers: Providers, *, clock: Clock | None = None, seed: int | None = None
    ) -> None:
        self.settings = settings
        self.store = store
        self.providers = providers
        self.clock = clock or SystemClock()
        self.hub = Hub(store)
        self.drawers = Drawers(settings.limits.cached_conversations)
        self.random = random.Random(seed)
        self._slots: dict[tuple[str, int], anyio.Semaphore] = {}

    def now(self) -> int:
        """Wall time, µs."""
        return self.clock.now()

    def jitter(self) -> float:
        """A random number from 0 to 1."""
        return self.random.random()

    async def sleep(self, seconds: float) -> None:
        """Waits; cancellable."""
        await anyio.sleep(seconds)

    def slot(self, provider: str) -> AbstractAsyncContextManager[object]:
        """As `Ports.slot`; of this process."""
        limit = self.settings.limits.per_provider
        if not limit:
            return nullcontext()
        return self._slots.setdefault((provider, limit), anyio.Semaphore(limit))

    def check_tools(self, agent: Agent) -> None:
        """Raises UsageError when the agent names a tool that doesn't exist."""
        offered(self.settings, agent)
