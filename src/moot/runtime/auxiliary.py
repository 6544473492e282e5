"""Auxiliary model calls outside of runs. They are recorded like other exchanges but don't belong to a message or a run's totals."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import anyio

from moot.agents.model_call import settle_exchange
from moot.agents.request import split
from moot.errors import ProviderError
from moot.runtime.runtime import Runtime
from moot.types.blob import StagedBlobs
from moot.types.chunk import Chunk
from moot.types.context import Choice
from moot.types.event import REFUSED, Event, Raw
from moot.types.exchange import Ended, Ending, Exchange, ExchangeOptions, Failure, Purpose, start_body
from moot.types.ids import new_id
from moot.types.media import MediaCall, MediaResponse
from moot.types.message import Message
from moot.types.model import ModelSettings
from moot.types.provider import ModelPrompt, ModelRequest, Translator
from moot.types.store import Change, CloseExchange, OpenExchange, RecordUsage

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AuxiliaryAnswer:
    text: str
    exchange: str
    """Id of the exchange that contains it."""


def without_thoughts(text: str) -> str:
    """Return an answer without the reasoning that some models write into their text, between tags."""
    return _THOUGHTS.sub("", text)


async def auxiliary_call(
    runtime: Runtime,
    conversation: str,
    purpose: Purpose,
    system: str,
    messages: Sequence[Message],
    *,
    model: str,
    settings: ModelSettings | None = None,
) -> AuxiliaryAnswer:
    """Return a model's answer to these messages. `model` is a name or a model type.

    The log gets an `exchange` start, a `raw` event for each frame, and an `exchange` end with usage and cost, all without a run. The
    conversation's totals only change when a run ends, so they don't include this call; statistics read it from the end event.
    Raise UsageError if the model is unknown, ProviderError if the call is refused or interrupted.
    """
    choice = await runtime.providers.choice(model)
    prompt = ModelPrompt(choice.model, system, tuple(messages), settings=settings or ModelSettings(), quirks=choice.provider.quirks)
    pieces = split(choice.dialect.to_request(prompt))
    request = ModelRequest(b"".join(pieces), choice.model.wire_name, idempotency_key=new_id())
    recording = await _recording(runtime, conversation, purpose, choice, pieces, choice.dialect.translator, choice.dialect.name)
    await recording.run_in_slot(lambda: choice.provider.stream(request))
    text = "".join(str(chunk.get("delta", "")) for chunk in recording.chunks if chunk["type"] == "text-delta")
    return AuxiliaryAnswer(text, recording.exchange.id)


async def record_media_call(runtime: Runtime, conversation: str, choice: Choice, call: MediaCall) -> MediaResponse:
    """Call a model for an image or a transcript, record the call as `auxiliary_call` does, and return the response.

    Raise ProviderError if the call fails.
    """
    recording = await _recording(runtime, conversation, call.purpose, choice, (call.request,), call.translator, call.dialect)
    ending = await recording.run_in_slot(call.reads)
    return MediaResponse(b"".join(recording.raws), tuple(recording.chunks), ending, recording.charged)


async def media_call(runtime: Runtime, choice: Choice, call: MediaCall) -> MediaResponse:
    """Call a model for an image or a transcript outside of a conversation, without recording the call, and return the response.

    Raise ProviderError if the call fails.
    """
    state = call.translator.open(ExchangeOptions(extra={"provider": choice.provider.name}))
    chunks: list[Chunk] = []
    all_raws: list[Raw] = []
    async with runtime.slot(choice.provider.name), aclosing(call.reads()) as all_reads:
        async for raws in all_reads:
            for raw in raws:
                state, more = call.translator.feed(state, raw)
                chunks += more
            all_raws += raws
    more, ending = call.translator.close(state, "eof")
    ending, charged, _ = settle_exchange(ending, "eof", None, choice.model, heard=bool(all_raws))
    _check(ending)
    return MediaResponse(b"".join(all_raws), (*chunks, *more), ending, charged)


def _check(ending: Ending) -> None:
    """Raise ProviderError if an exchange failed."""
    if ending.error is not None:
        raise ProviderError(ending.error.message, fix=ending.error.fix, kind=ending.error.kind, retryable=ending.error.retryable)


async def _recording(
    runtime: Runtime,
    conversation: str,
    purpose: Purpose,
    choice: Choice,
    pieces: Sequence[bytes],
    translator: Translator[Any],
    dialect: str,
) -> _Recording:
    owner = (await runtime.store.conversations.get(conversation)).owner
    staged = await runtime.store.of(owner).blobs.stage(pieces, "application/json" if len(pieces) > 1 else "application/octet-stream")
    exchange = Exchange(
        id=f"{conversation}:{purpose}:{new_id()}",  # random: the call is never resumed, so its id need not be reproducible
        run="",
        conversation=conversation,
        purpose=purpose,
        dialect=dialect,
        converter=f"{translator.name}/{translator.version}",
        provider=choice.provider.name,
        model=choice.model.wire_name,
        options=ExchangeOptions(extra={"provider": choice.provider.name}),
        request={"pieces": staged.hashes},
    )
    return _Recording(runtime, choice, exchange, staged, translator, translator.open(exchange.options))


@dataclass(slots=True)
class _Recording:
    """An exchange in progress, which is recorded in the log."""

    runtime: Runtime
    choice: Choice
    exchange: Exchange
    pieces: StagedBlobs
    translator: Translator[Any]
    state: Any
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    raws: list[Raw] = field(default_factory=list[Raw])
    charged: int | None = None

    async def run_in_slot(self, reads: Callable[[], AsyncGenerator[tuple[Raw, ...], None]]) -> Ending:
        """Run the exchange while holding the provider's slot. Raise ProviderError if it fails."""
        async with self.runtime.slot(self.choice.provider.name):
            ending = await self._run(reads)
        _check(ending)
        return ending

    async def _run(self, reads: Callable[[], AsyncGenerator[tuple[Raw, ...], None]]) -> Ending:
        """Run the exchange, and record it even if it fails. Cancellation propagates."""
        start = Event("exchange", exchange=self.exchange.id, phase="start", body=start_body(self.exchange, str(self.choice.model.id)))
        await self._append([start], OpenExchange(self.exchange, self.pieces))
        try:
            async with aclosing(reads()) as all_reads:
                async for raws in all_reads:
                    self.raws += raws
                    events: list[Event] = []
                    for raw in raws:
                        self.state, chunks = self.translator.feed(self.state, raw)
                        self.chunks += chunks
                        events.append(Event("raw", chunks, raw, exchange=self.exchange.id))
                    await self._append(events)
        except asyncio.CancelledError:
            await self._end("cancelled", None)
            raise
        except ProviderError as error:
            if error.raw:
                await self._append([Event("raw", (), error.raw, exchange=self.exchange.id, body=REFUSED)])
            return await self._end("cut", Failure.of(error))
        return await self._end("eof", None)

    async def _end(self, ended: Ended, failure: Failure | None) -> Ending:
        chunks, ending = self.translator.close(self.state, ended)
        self.chunks += chunks
        ending, self.charged, body = settle_exchange(ending, ended, failure, self.choice.model, heard=bool(self.raws))
        spent = RecordUsage(self.exchange.id, self.exchange.purpose, str(self.choice.model.id), ending.usage, self.charged)
        await self._append(
            [Event("exchange", chunks, exchange=self.exchange.id, phase="end", body=body)], CloseExchange(self.exchange.id, ended), spent
        )
        return ending

    async def _append(self, events: list[Event], *changes: Change) -> None:
        conversation, now = self.exchange.conversation, self.runtime.now()
        stamped = [event._replace(at=now) for event in events]
        # not cancellable: everything the state has processed must be in the log, or the end event would be wrong or missing
        with anyio.CancelScope(shield=True):
            seqs = await self.runtime.store.log.append(conversation, stamped, changes=changes)
            self.runtime.hub.publish(conversation, seqs, stamped)
