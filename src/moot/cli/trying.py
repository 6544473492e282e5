"""One small call to a model: does it answer?"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from moot.cli.output import Output
from moot.config.settings import Settings
from moot.errors import ProviderError
from moot.providers.pool import Providers
from moot.types.canonical import dumps
from moot.types.context import Choice
from moot.types.exchange import Ending, ExchangeOptions
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.model import ModelSettings
from moot.types.part import text_part
from moot.types.provider import ModelPrompt, ModelRequest

QUESTION = "Answer with the one word: ready"


@dataclass(frozen=True, slots=True)
class Answered:
    """A model that answered."""

    choice: Choice
    text: str
    ending: Ending
    seconds: float


async def ask_model(settings: Settings, model: str) -> Answered:
    """What the model says to one small question. Raises UsageError, ProviderError."""
    providers = Providers(settings)
    try:
        choice = await providers.choice(model)
        began = time.monotonic()
        text, ending = await _ask(choice)
        took = time.monotonic() - began
    finally:
        await providers.close()
    if ending.error is not None:
        raise ProviderError(ending.error.message, fix=ending.error.fix, kind=ending.error.kind)
    return Answered(choice, text, ending, took)


async def try_model(settings: Settings, model: str, output: Output, *, as_json: bool) -> int:
    """Calls the model once and says how that went. Raises UsageError, ProviderError."""
    answered = await ask_model(settings, model)
    found, text, usage = answered.choice.model, answered.text, answered.ending.usage
    if as_json:
        output.json({"ok": True, "model": str(found.id), "text": text, "seconds": round(answered.seconds, 3), "usage": usage.to_json()})
    else:
        output.line(f"{found.id}: {' '.join(text.split()) or '(no text)'}")
        output.say(f"moot: answered in {answered.seconds:.1f} s", "green")
    if found.note:
        output.say(f"note: {found.note}", "yellow")
    return 0


async def _ask(choice: Choice) -> tuple[str, Ending]:
    prompt = ModelPrompt(
        choice.model,
        "",
        (Message("0", "user", (text_part(QUESTION),)),),
        settings=ModelSettings(max_tokens=64 if not choice.model.reasoning else None),
        quirks=choice.provider.quirks,
    )
    request = ModelRequest(dumps(choice.dialect.to_request(prompt)), choice.model.id.model, new_id())
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
