"""Shared by the tests of the dialect google: events and their translation."""

from __future__ import annotations

import json
from typing import Any

from moot.convert.dialects.google import Google
from moot.convert.fold import fold_parts
from moot.types.chunk import Chunk
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId, ModelSettings
from moot.types.provider import ModelPrompt, ToolDefinition

DIALECT = Google()
MODEL = Model(
    ModelId("gemini-3.8-flash", "google"), "gemini-3.8-flash", modalities=("text", "image", "pdf", "audio", "video"), reasoning=True
)
OLDER = Model(ModelId("gemini-2.5-pro", "google"), "gemini-2.5-pro", reasoning=True)
GO = Message("u", "user", (text_part("go"),))
SIGNATURE = "CiQBVKhc7sTfB+/EqBKx1PuLrQ=="


def event(*parts: dict[str, Any], finish: str = "", **more: Any) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}
    if finish:
        candidate["finishReason"] = finish
    return b"data: " + json.dumps({"candidates": [candidate], "responseId": "r", "modelVersion": "gemini-3.8-flash"}).encode() + b"\r\n\r\n"


def translate(*raws: bytes, ended: Ended = "eof", used: tuple[str, ...] = ()) -> tuple[list[Chunk], Ending]:
    translator = DIALECT.translator
    state, chunks = translator.open(ExchangeOptions("1.0", 1, used, {"provider": "google"})), list[Chunk]()
    for raw in raws:
        state, made = translator.feed(state, raw)
        chunks += made
    closing, ending = translator.close(state, ended)
    return [*chunks, *closing], ending


def parts(*raws: bytes, **options: Any) -> tuple[Part, ...]:
    return fold_parts((), [{"type": "start-step"}, *translate(*raws, **options)[0]])


def answered(found: tuple[Part, ...], output: Any = "42") -> Message:
    settled = (
        {**part, "state": "output-available", "output": output} if part.get("state") == "input-available" else part for part in found
    )
    return Message("a", "assistant", tuple(settled))


def request(*messages: Message, model: Model = MODEL, system: str = "", tools: tuple[ToolDefinition, ...] = (), **settings: Any) -> Any:
    return json.loads(json.dumps(DIALECT.to_request(ModelPrompt(model, system, messages, tools, ModelSettings(**settings)))))


def sent_back(*raws: bytes, model: Model = MODEL, output: Any = "42") -> list[Any]:
    """The parts of an answer as sent with the next prompt."""
    contents = request(GO, answered(parts(*raws), output), model=model)["contents"]
    return contents[1]["parts"] if len(contents) > 1 else []
