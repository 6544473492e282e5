"""A test call to a model."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from moot.errors import ProviderError
from moot.providers.pool import Providers
from moot.types.canonical import JsonObject, dumps
from moot.types.context import Choice
from moot.types.exchange import Ending, ExchangeOptions
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.model import ModelSettings
from moot.types.part import text_part
from moot.types.provider import ModelPrompt, ModelRequest

__all__ = ["Answered", "answered_json", "ask_model"]

QUESTION = "Answer with the one word: ready"


@dataclass(frozen=True, slots=True)
class Answered:
    """A successful answer."""

    choice: Choice
    text: str
    ending: Ending
    seconds: float


async def ask_model(providers: Providers, model: str) -> Answered:
    """Return the model's answer to a short question. Raise UsageError or ProviderError."""
    choice = await providers.choice(model)
    started = time.monotonic()
    text, ending = await _ask(choice)
    seconds = time.monotonic() - started
    if ending.error is not None:
        raise ProviderError(ending.error.message, fix=ending.error.fix, kind=ending.error.kind)
    return Answered(choice, text, ending, seconds)


def answered_json(answered: Answered) -> JsonObject:
    """Return the result as JSON."""
    return {
        "ok": True,
        "model": str(answered.choice.model.id),
        "text": answered.text,
        "seconds": round(answered.seconds, 3),
        "usage": answered.ending.usage.to_json(),
    }


async def _ask(choice: Choice) -> tuple[str, Ending]:
    prompt = ModelPrompt(
        choice.model,
        "",
        (Message("0", "user", (text_part(QUESTION),)),),
        settings=ModelSettings(max_tokens=64 if not choice.model.reasoning else None),
        quirks=choice.provider.quirks,
    )
    request = ModelRequest(dumps(choice.dialect.to_request(prompt)), choice.model.wire_name, new_id())
    translator = choice.dialect.translator
    state = translator.open(ExchangeOptions())
    text: list[str] = []
    async with aclosing(cast("Any", choice.provider.stream(request))) as frames:
        async for raws in frames:
            for raw in raws:
                state, chunks = translator.feed(state, raw)
                text += [str(chunk.get("delta", "")) for chunk in chunks if chunk.get("type") == "text-delta"]
    chunks, ending = translator.close(state, "eof")
    text += [str(chunk.get("delta", "")) for chunk in chunks if chunk.get("type") == "text-delta"]
    return "".join(text), ending
