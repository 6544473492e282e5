"""State that lives as long as the process: store, providers, settings, hub, and in-memory objects of conversations."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

from moot.config.settings import Settings
from moot.plugins.registry import attribute
from moot.providers.pool import Providers
from moot.runtime.hub import Hub
from moot.tools.catalogue import find_tool, tools_for
from moot.types.agent import Agent
from moot.types.ids import Clock, SystemClock
from moot.types.mcp import RULE_PREFIX
from moot.types.run import Run, Runs
from moot.types.sandbox import MECHANISMS
from moot.types.search import Embedders
from moot.types.store import Store
from moot.types.telemetry import Telemetry
from moot.types.tool import Tool

if TYPE_CHECKING:  # most runs read no documents and use no MCP servers
    from moot.knowledge.documents import DocumentReader
    from moot.knowledge.library import Library
    from moot.mcp.servers import McpServers

T = TypeVar("T")


class _Closable(Protocol):
    async def aclose(self) -> None: ...


class Drawers:
    """In-memory objects of conversations, such as running processes and task lists, for the most recently used conversations.

    Objects with `aclose` are closed when their conversation is evicted.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._drawers: OrderedDict[str, dict[str, object]] = OrderedDict()

    def kept(self, conversation: str, name: str, make: Callable[[], T]) -> T:
        """Return the object with that name, creating it on the first call."""
        drawer = self._drawers.setdefault(conversation, {})
        self._drawers.move_to_end(conversation)
        if name not in drawer:
            drawer[name] = make()
        return drawer[name]  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  the name fixes the type

    @property
    def crowded(self) -> bool:
        """True if more conversations have objects than the limit allows."""
        return 0 < self._limit < len(self._drawers)

    async def trim(self, live: Collection[str]) -> None:
        """Evict the least recently used conversations down to the limit, except live ones."""
        for conversation in list(self._drawers):
            if not self.crowded:
                break
            if conversation not in live:
                await _close(self._drawers.pop(conversation))

    async def aclose(self) -> None:
        """Evict all conversations."""
        while self._drawers:
            await _close(self._drawers.popitem()[1])


async def _close(drawer: dict[str, object]) -> None:
    for thing in drawer.values():
        if hasattr(thing, "aclose"):
            await cast("_Closable", thing).aclose()


class Runtime:
    """The state shared by all code that drives runs. `settings` is replaced as a whole when the configuration is reloaded."""

    def __init__(
        self, settings: Settings, store: Store, providers: Providers, *, clock: Clock | None = None, seed: int | None = None
    ) -> None:
        self.settings = settings
        self.store = store
        self.providers = providers
        self.clock = clock or SystemClock()
        self.hub = Hub(store)
        self.mechanisms = MECHANISMS
        """The kinds of sandbox to try for commands."""
        self.embedders: Embedders | None = None
        """The embedding model; None = documents are searched by words only."""
        self.telemetry: Telemetry | None = None
        """Spans and metrics; None = off."""
        self.drawers = Drawers(settings.limits.cached_conversations)
        self.random = random.Random(seed)
        self.tasks: TaskGroup | None = None
        """Task group for tasks that outlive a run, such as connections; set by the engine."""
        self._mcp: McpServers | None = None
        self.runs: Runs | None = None
        """Starts and stops runs of this process; set by the engine."""
        self.budget_status = ""
        """Budgets that were nearly used up at the last step of this process, for status lines."""
        self._slots: dict[tuple[str, int], anyio.Semaphore] = {}

    def observe(self, telemetry: Telemetry) -> None:
        """Make spans and metrics of everything that this process does from now on."""
        self.telemetry, self.hub.observer = telemetry, telemetry.record

    def now(self) -> int:
        """Return the wall time in µs."""
        return self.clock.now()

    def jitter(self) -> float:
        """Return a random number from 0 to 1."""
        return self.random.random()

    async def sleep(self, seconds: float) -> None:
        """Sleep. Can be cancelled."""
        await anyio.sleep(seconds)

    def slot(self, provider: str) -> AbstractAsyncContextManager[object]:
        """Implement `Ports.slot`, with slots of this process."""
        limit = self.settings.limits.per_provider
        if not limit:
            return nullcontext()
        return self._slots.setdefault((provider, limit), anyio.Semaphore(limit))

    def library(self, owner: str) -> Library:
        """Return an owner's library of documents."""
        library: Library = attribute("moot.knowledge.library:Library")(self.store.of(owner).knowledge, self.documents, self.embedders)
        return library

    @cached_property
    def documents(self) -> DocumentReader:
        """The reader of documents, loaded when the first one is read."""
        reader: DocumentReader = attribute("moot.knowledge.documents:DocumentReader")(lambda: self.settings, lambda: self.mechanisms)
        return reader

    @property
    def mcp(self) -> McpServers | None:
        """The connections to MCP servers. None until a server is configured, and if there is no engine."""
        if self._mcp is None and self.tasks is not None and self.settings.mcp:
            self._mcp = attribute("moot.mcp.servers:McpServers")(self.settings.home, self.tasks)
        return self._mcp

    def find_tool(self, name: str) -> Tool:
        """Return a tool by its name in approvals, including tools of MCP servers. Raise UsageError if it is unknown."""
        if self.mcp is not None and name.startswith(RULE_PREFIX):
            found: Tool = attribute("moot.mcp.tools:tool_named")(self.mcp, self.settings.mcp, name)
            return found
        return find_tool(name, self.settings)

    def check_tools(self, agent: Agent) -> None:
        """Raise UsageError if the agent names a tool that does not exist."""
        tools_for(self.settings, agent)


def log_fields(run: Run) -> dict[str, str]:
    """Return the extra fields of a run's log records, used by `moot logs --run`."""
    return {"run": run.id, "conversation": run.conversation}


def first_error(group: BaseExceptionGroup[Any]) -> BaseException:
    """Return the first exception of a group that is not a group itself."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
