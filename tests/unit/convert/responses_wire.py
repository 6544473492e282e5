"""Shared by the tests of the dialect openai-responses: events and their translation."""

from __future__ import annotations

import json
from typing import Any

from moot.convert.dialects.openai_responses import OpenAIResponses
from moot.convert.fold import fold_parts
from moot.types.chunk import Chunk
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId, ModelSettings
from moot.types.provider import ModelPrompt, ToolDefinition

DIALECT = OpenAIResponses()
MODEL = Model(ModelId("gpt-5.5", "openai"), "gpt-5.5", modalities=("text", "image", "pdf"), reasoning=True)
GO = Message("u", "user", (text_part("go"),))
SEALED = "gAAAAABpCx7mFz0+/k3JvQ=="


def frame(type: str, **event: Any) -> bytes:
    return f"event: {type}\ndata: {json.dumps({'type': type, **event})}\n\n".encode()


def added(at: int, **item: Any) -> bytes:
    return frame("response.output_item.added", output_index=at, item=item)


def done(at: int, **item: Any) -> bytes:
    return frame("response.output_item.done", output_index=at, item=item)


def delta(at: int, kind: str, words: str, id: str = "", index: int = 0) -> bytes:
    name = "summary_index" if "summary" in kind else "content_index"
    return frame(f"response.{kind}.delta", item_id=id, output_index=at, delta=words, **{name: index})


def message(text: str, id: str = "msg_1", **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content, **more}


def function(name: str, arguments: str, id: str = "fc_1", call: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": id, "call_id": call, "name": name, "arguments": arguments, **more}


def reasoning(*summary: str, sealed: str | None = SEALED, id: str = "rs_1") -> dict[str, Any]:
    pieces = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": id, "summary": pieces, "encrypted_content": sealed}


def end(kind: str = "completed", **response: Any) -> bytes:
    return frame(f"response.{kind}", response={"id": "resp_1", "object": "response", "model": "gpt-5.5", "status": kind, **response})


def translate(*raws: bytes, ended: Ended = "eof", used: tuple[str, ...] = ()) -> tuple[list[Chunk], Ending]:
    translator = DIALECT.translator
    state, chunks = translator.open(ExchangeOptions("1.0", 1, used, {"provider": "openai"})), list[Chunk]()
    for raw in raws:
        state, made = translator.feed(state, raw)
        chunks += made
    closing, ending = translator.close(state, ended)
    return [*chunks, *closing], ending


def parts(*raws: bytes, **options: Any) -> tuple[Part, ...]:
    return fold_parts((), [{"type": "start-step"}, *translate(*raws, **options)[0]])


def answered(found: tuple[Part, ...], output: Any = "42") -> Message:
    settled = (
        {**part, "state": "output-available", "output": output}
        if part.get("state") == "input-available" and not part.get("providerExecuted")
        else part
        for part in found
    )
    return Message("a", "assistant", tuple(settled))


def request(*messages: Message, model: Model = MODEL, system: str = "", tools: tuple[ToolDefinition, ...] = (), **settings: Any) -> Any:
    return json.loads(json.dumps(DIALECT.to_request(ModelPrompt(model, system, messages, tools, ModelSettings(**settings)))))


def sent_back(*raws: bytes, model: Model = MODEL, output: Any = "42") -> list[Any]:
    """The items of an answer that are sent with the next prompt."""
    return request(GO, answered(parts(*raws), output), model=model)["input"][1:]
