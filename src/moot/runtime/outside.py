"""The part of a leg for outside agents: decisions and the agent's session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

from moot.runtime.deadline import Deadline
from moot.runtime.deciding import decide
from moot.runtime.journal import Journal
from moot.runtime.runtime import Runtime
from moot.runtime.sessions import session_of
from moot.runtime.setup import mode_of
from moot.types.agent import Mode
from moot.types.event import Event
from moot.types.message import Message
from moot.types.outside import OutsideAnswer, OutsideCall, Session
from moot.types.run import RunRequest
from moot.types.store import Change, Fence, SetSession

__all__ = ["OutsideLeg"]


class OutsideLeg(ABC):
    """The `OutsideContext` part of a leg."""

    runtime: Runtime
    request: RunRequest
    fence: Fence
    index: Journal
    asked: frozenset[str]

    def __init__(self) -> None:
        self.deadline = Deadline()
        self.asked_outside: Counter[str] = Counter()

    @abstractmethod
    async def append(self, *events: Event, changes: Sequence[Change] = (), sync: bool = False, fold: bool = False) -> range: ...

    @abstractmethod
    def message(self) -> Message: ...

    @property
    def mode(self) -> Mode:
        return mode_of(self.runtime.settings, self.request.settings)

    async def decide(self, call: OutsideCall) -> OutsideAnswer:
        return await decide(self, call)

    async def session(self) -> Session | None:
        return await session_of(self.runtime.store, self.request, self.fence)

    async def set_session(self, id: str) -> None:
        await self.append(Event("meta", body={"session": id}), changes=(SetSession(id),))
