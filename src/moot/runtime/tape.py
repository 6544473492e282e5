"""Playback of a run's recorded model answers. Exchanges are found by id, and requests are compared with the recorded ones."""

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
"""Maximum number of differences to report for a run."""


class HungUp(Exception):
    """The recorded exchange was cancelled at this point."""


@dataclass(slots=True)
class _Recorded:
    """A recorded exchange."""

    exchange: Exchange
    raws: list[Raw] = field(default_factory=list[Raw])
    refusal: Raw = b""
    failure: Failure | None = None
    ended: str = ""
    ended_at: int = 0
    requested: bool = False


class Tape:
    """All exchanges of a run by id, and the differences found."""

    def __init__(self, exchanges: dict[str, _Recorded], holdings: Holdings) -> None:
        self.exchanges = exchanges
        self.reported: list[str] = []
        self.requests = 0
        self._omitted = 0
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
                    raise UsageError("the recorded answer was redacted, so it can't be played back")
                found[event.exchange] = _Recorded(exchange)
            _take(found[event.exchange], event)
        return cls(found, holdings)

    def differs(self, difference: str) -> None:
        if len(self.reported) < MOST:
            self.reported.append(difference)
            return
        self._omitted += 1
        self.reported[-1] = f"and {self._omitted + 1} more differences"

    def unasked(self) -> list[str]:
        return [name.rpartition(":")[2] for name, recorded in self.exchanges.items() if not recorded.requested]

    async def check(self, recorded: _Recorded, request: ModelRequest) -> None:
        """Compare a request with the recorded one."""
        self.requests += 1
        recorded.requested = True
        name = recorded.exchange.id.rpartition(":")[2]
        pieces = recorded.exchange.request.get("pieces")
        try:
            then = b"".join([await self._holdings.blobs.get(str(piece)) for piece in pieces]) if isinstance(pieces, list) else b""
        except NotFound:
            self.differs(f"the request of {name} was not stored, so it could not be compared")
            return
        if then == request.body:
            return
        try:
            found = list(differences(loads(then), loads(request.body)))
        except ValueError:
            self.differs(f"the request of {name} differs")
            return
        if not found:
            self.differs(f"the request of {name} differs only in its formatting")
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


class _Playback:
    """A provider that plays back recorded answers."""

    def __init__(self, name: str, dialect: str, quirks: Quirks, tape: Tape) -> None:
        self.name = name
        self.dialect = dialect
        self.quirks = quirks
        self._tape = tape

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        recorded = self._tape.exchanges.get(request.idempotency_key)
        if recorded is None:
            name = request.idempotency_key.rpartition(":")[2]
            raise UsageError(f"the model call {name} was not made in the recorded run")
        await self._tape.check(recorded, request)
        for raw in recorded.raws:
            yield (raw,)
        failure = recorded.failure
        if recorded.ended == "cancelled":
            raise HungUp
        if recorded.ended == "":  # interrupted by a crash
            raise ProviderError("interrupted", kind="transport", retryable=True)
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
    """The models of the run, whose providers play back recorded answers."""

    def __init__(self, providers: Providers, tape: Tape) -> None:
        self._providers = providers
        self._tape = tape

    async def choice(self, text: str, *, role: ModelRole = "main") -> Choice:
        return (await self.choices(text, role=role))[0]

    async def choices(self, text: str, fallback: Sequence[str] = (), *, role: ModelRole = "main") -> tuple[Choice, ...]:
        try:
            found = await self._providers.choices(text, fallback, role=role)
        except UsageError:
            return (self._unknown(),)  # only the provider's recorded answers are needed
        return tuple(replace(one, provider=self._playback(one.provider.name, one.provider.dialect, one.provider.quirks)) for one in found)

    def _unknown(self) -> Choice:
        first = next(iter(self._tape.exchanges.values()), None)
        if first is None:
            raise UsageError("the run used no known model", fix="moot providers list")
        exchange = first.exchange
        model = Model(ModelId(exchange.model, exchange.provider), exchange.model)
        return Choice(model, self._playback(exchange.provider, exchange.dialect, Quirks()), DIALECTS.make(exchange.dialect))

    def _playback(self, name: str, dialect: str, quirks: Quirks) -> Provider:
        return cast("Provider", _Playback(name, dialect, quirks, self._tape))


def where(difference: Difference) -> str:
    """Return a description of a difference."""
    return f"{difference.where or 'the whole'}: was {difference.expected}, now {difference.found}"
