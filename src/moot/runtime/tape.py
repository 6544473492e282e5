"""What the model said in a run, played again: exchanges by their ids, requests compared with those of then."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from moot.convert.differences import Difference, differences
from moot.errors import NotFound, ProviderError, UsageError
from moot.plugins import DIALECTS
from moot.providers.pool import Providers
from moot.types.canonical import loads
from moot.types.context import Choice
from moot.types.event import REFUSED, Event, Raw
from moot.types.exchange import Exchange, Failure
from moot.types.model import Model, ModelId, ModelRole
from moot.types.provider import ModelRequest, Provider, Quirks
from moot.types.store import Holdings

__all__ = ["HungUp", "Pool", "Tape", "where"]

MOST = 20
"""Differences that are told of one run."""


class HungUp(Exception):
    """The recording was cancelled here."""


@dataclass(slots=True)
class _Recorded:
    """One exchange as it went."""

    exchange: Exchange
    raws: list[Raw] = field(default_factory=list[Raw])
    refusal: Raw = b""
    failure: Failure | None = None
    ended: str = ""
    ended_at: int = 0
    asked: bool = False


class Tape:
    """All exchanges of a run, found by their ids, and what differs from them."""

    def __init__(self, exchanges: dict[str, _Recorded], holdings: Holdings) -> None:
        self.exchanges = exchanges
        self.told: list[str] = []
        self.requests = 0
        self._left_out = 0
        self._holdings = holdings

    @classmethod
    async def of(cls, holdings: Holdings, events: Sequence[Event]) -> Tape:
        found: dict[str, _Recorded] = {}
        for event in events:
            if event.exchange is None:
                continue
            if event.exchange not in found:
                exchange = await holdings.records.exchange(event.exchange)
                if exchange is None or exchange.purpose != "answer":
                    continue
                if "redacted" in exchange.request:
                    raise UsageError("something was redacted in what the model said then, so it can't say it again")
                found[event.exchange] = _Recorded(exchange)
            _take(found[event.exchange], event)
        return cls(found, holdings)

    def differs(self, words: str) -> None:
        if len(self.told) < MOST:
            self.told.append(words)
            return
        self._left_out += 1
        self.told[-1] = f"and {self._left_out + 1} differences more"

    def unasked(self) -> list[str]:
        return [name.rpartition(":")[2] for name, recorded in self.exchanges.items() if not recorded.asked]

    async def check(self, recorded: _Recorded, request: ModelRequest) -> None:
        """Compares what is asked with what was."""
        self.requests += 1
        recorded.asked = True
        name = recorded.exchange.id.rpartition(":")[2]
        pieces = recorded.exchange.request.get("pieces")
        try:
            then = b"".join([await self._holdings.blobs.get(str(piece)) for piece in pieces]) if isinstance(pieces, list) else b""
        except NotFound:
            self.differs(f"the request of {name} is not kept, so it could not be compared")
            return
        if then == request.body:
            return
        try:
            found = list(differences(loads(then), loads(request.body)))
        except ValueError:
            self.differs(f"the request of {name} differs")
            return
        if not found:
            self.differs(f"the request of {name} says the same in other bytes")
        for difference in found:
            self.differs(f"the request of {name} differs at {where(difference)}")


def _take(recorded: _Recorded, event: Event) -> None:
    if event.kind == "raw" and event.raw is not None:
        if event.body == REFUSED:
            recorded.refusal = event.raw
        else:
            recorded.raws.append(event.raw)
    elif event.phase == "end" and isinstance(event.body, dict):
        error = event.body.get("error")
        recorded.failure = Failure.from_json(error) if isinstance(error, dict) else None
        recorded.ended, recorded.ended_at = str(event.body.get("ended", "")), event.at


class _Again:
    """A provider that says what was said."""

    def __init__(self, name: str, dialect: str, quirks: Quirks, tape: Tape) -> None:
        self.name = name
        self.dialect = dialect
        self.quirks = quirks
        self._tape = tape

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        recorded = self._tape.exchanges.get(request.idempotency_key)
        if recorded is None:
            name = request.idempotency_key.rpartition(":")[2]
            raise UsageError(f"it would make the model call {name} now, which was not made then")
        await self._tape.check(recorded, request)
        for raw in recorded.raws:
            yield (raw,)
        failure = recorded.failure
        if recorded.ended == "cancelled":
            raise HungUp
        if recorded.ended == "":  # a crash cut it off
            raise ProviderError("cut off", kind="transport", retryable=True)
        if recorded.ended == "cut" and failure is not None:
            raise ProviderError(
                failure.message,
                fix=failure.fix,
                kind=failure.kind,
                retryable=failure.retryable,
                retry_after=failure.retry_after,
                raw=recorded.refusal,
            )

    async def models(self) -> Sequence[Model]:
        return ()

    async def close(self) -> None:
        return


class Pool:
    """The models of the run, with what they said in the place of whom to call."""

    def __init__(self, providers: Providers, tape: Tape) -> None:
        self._providers = providers
        self._tape = tape

    async def choice(self, text: str, *, role: ModelRole = "main") -> Choice:
        return (await self.choices(text, role=role))[0]

    async def choices(self, text: str, fallback: Sequence[str] = (), *, role: ModelRole = "main") -> tuple[Choice, ...]:
        try:
            found = await self._providers.choices(text, fallback, role=role)
        except UsageError:
            return (self._unknown(),)  # nothing of the provider is needed but what it said
        return tuple(replace(one, provider=self._silent(one.provider.name, one.provider.dialect, one.provider.quirks)) for one in found)

    def _unknown(self) -> Choice:
        first = next(iter(self._tape.exchanges.values()), None)
        if first is None:
            raise UsageError("it asked no model that is known here", fix="moot providers list")
        exchange = first.exchange
        model = Model(ModelId(exchange.model, exchange.provider), exchange.model)
        return Choice(model, self._silent(exchange.provider, exchange.dialect, Quirks()), DIALECTS.make(exchange.dialect))

    def _silent(self, name: str, dialect: str, quirks: Quirks) -> Provider:
        return cast("Provider", _Again(name, dialect, quirks, self._tape))


def where(difference: Difference) -> str:
    """A difference in words."""
    return f"{difference.where or 'the whole'}: was {difference.expected}, now {difference.found}"
