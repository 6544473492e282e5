"""The state of providers as JSON, and a test call to a model."""

from __future__ import annotations

import math
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

import anyio

from moot.config.settings import ProviderSettings
from moot.errors import MootError, ProviderError
from moot.providers.machine import check_machine
from moot.providers.pool import Providers
from moot.providers.weights import DEFAULT, find
from moot.types.canonical import JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.context import Choice
from moot.types.exchange import Ending, ExchangeOptions
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.model import ModelSettings
from moot.types.provider import ModelPrompt, ModelRequest


async def providers_json(providers: Providers) -> list[JsonObject]:
    """Return each provider with its state as JSON, in the order in which a bare model name is looked up."""
    silent = await providers.silent()
    return [_facts(name, providers, silent) for name in providers.names()]


def _facts(name: str, providers: Providers, silent: set[str]) -> JsonObject:
    facts = providers.facts(name)
    entry = providers.settings.providers.get(name) or ProviderSettings(name)
    lacking = "needs a key" if entry.enabled else "disabled"
    missing: str | None = None
    if name == "local":
        try:
            check_machine(find(DEFAULT).memory)
        except MootError as error:
            missing = error.advice()
    ready = "not running" if name in silent else "can't run here" if missing else "available"
    return {
        "name": name,
        "state": ready if name in providers.available() else lacking,
        "missing": missing,
        "dialect": entry.dialect or facts.dialect,
        "base_url": entry.base_url or facts.base_url,
        "needs_key": facts.needs_key,
        "priority": entry.priority if entry.priority is not None else facts.priority,
    }


QUESTION = "Answer with the one word: ready"


@dataclass(frozen=True, slots=True)
class TestAnswer:
    """The answer to a test prompt."""

    choice: Choice
    text: str
    ending: Ending
    seconds: float


async def check_model(providers: Providers, model: str, *, seconds: float = math.inf) -> TestAnswer:
    """Return the model's answer to a short question. Raise UsageError or ProviderError on failure, also after this many seconds."""
    try:
        with anyio.fail_after(seconds):
            return await _answer(await providers.choice(model))
    except TimeoutError as error:
        message = f"{model.removeprefix('@')} did not answer within {seconds:.0f} seconds."
        raise ProviderError(message, fix="Try again, or choose another model.", kind="transport", retryable=True) from error


async def _answer(choice: Choice) -> TestAnswer:
    message = Message("0", "user", (text_part(QUESTION),))
    settings = ModelSettings(max_tokens=64 if not choice.model.reasoning else None)
    prompt = ModelPrompt(choice.model, "", (message,), settings=settings, quirks=choice.provider.quirks)
    request = ModelRequest(dumps(choice.dialect.to_request(prompt)), choice.model.wire_name, new_id())
    translator = choice.dialect.translator
    state = translator.open(ExchangeOptions())
    chunks: list[Chunk] = []
    started = time.monotonic()
    async with aclosing(cast("Any", choice.provider.stream(request))) as frames:
        async for raws in frames:
            for raw in raws:
                state, more = translator.feed(state, raw)
                chunks += more
    last, ending = translator.close(state, "eof")
    seconds = time.monotonic() - started
    if ending.error is not None:
        raise ProviderError(ending.error.message, fix=ending.error.fix, kind=ending.error.kind)
    text = "".join(str(chunk.get("delta", "")) for chunk in (*chunks, *last) if chunk.get("type") == "text-delta")
    return TestAnswer(choice, text, ending, seconds)


def answer_json(answered: TestAnswer) -> JsonObject:
    """Return the answer to a test prompt as JSON."""
    return {
        "ok": True,
        "model": str(answered.choice.model.id),
        "text": answered.text,
        "seconds": round(answered.seconds, 3),
        "usage": answered.ending.usage.to_json(),
    }
