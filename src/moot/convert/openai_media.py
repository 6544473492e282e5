"""OpenAI's endpoints for pictures and recordings: what goes out, and what their answers hold (reference: OpenAI API, images, audio)."""

from __future__ import annotations

import base64
import binascii

from moot.convert._openai_items import usage_of
from moot.convert._vendor import as_list, as_object, as_text
from moot.errors import ProviderError
from moot.types.canonical import JsonObject, loads
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.media import Order
from moot.types.usage import Usage

__all__ = ["OpenAiMedia", "decoded", "fields", "pictures", "said"]


def fields(model: str, order: Order) -> JsonObject:
    """What an order says beside its sources. Only the oldest models give an address instead of the picture unless they are told."""
    asked: JsonObject = {"model": model, "prompt": order.prompt, "n": 1}
    if order.size:
        asked["size"] = order.size
    return {**asked, "response_format": "b64_json"} if model.startswith("dall-e") else asked


class OpenAiMedia:
    """Translates one whole answer: it is no part of a message, so it gives no chunks, and ends with what it counts."""

    name = "openai-media"
    version = 1

    def open(self, options: ExchangeOptions) -> Usage | None:
        """Nothing has come."""
        return None

    def feed(self, state: Usage | None, raw: Raw) -> tuple[Usage | None, tuple[Chunk, ...]]:
        try:
            answer = as_object(loads(raw))
        except ValueError:
            return state, ()
        return usage_of(as_object(answer.get("usage"))), ()

    def close(self, state: Usage | None, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        if state is None and ended == "eof":
            return (), Ending("error", error=Failure("the answer is no JSON", "protocol", fix="check the provider's base_url"))
        return (), Ending("stop" if ended == "eof" else "error", usage=state or Usage())


def pictures(body: bytes) -> tuple[list[str], str]:
    """The pictures as `data:` or http(s) URLs, and what is said beside them. Raises ProviderError when there is none."""
    answer = _object(body)
    kind = as_text(answer.get("output_format")) or "png"
    urls: list[str] = []
    words: list[str] = []
    for row in as_list(answer.get("data")):
        item = as_object(row)
        data = as_text(item.get("b64_json"))
        url = f"data:image/{kind};base64,{data}" if data and not data.startswith("data:") else data or as_text(item.get("url"))
        urls += [url] if url else []
        words += [as_text(item.get("revised_prompt"))] if item.get("revised_prompt") else []
    if not urls:
        raise ProviderError("the answer has no picture", fix="check that models.image names a model that makes pictures", kind="protocol")
    return urls, "\n".join(words)


def said(body: bytes) -> str:
    """The words of a recording. Raises ProviderError."""
    answer = _object(body)
    if not isinstance(answer.get("text"), str):
        fix = "check that models.transcription names a model that transcribes"
        raise ProviderError("the answer has no text", fix=fix, kind="protocol")
    return as_text(answer.get("text"))


def decoded(url: str) -> tuple[bytes, str]:
    """The bytes and the media type of a `data:` URL. Raises ProviderError for one that is broken."""
    head, _, data = url.removeprefix("data:").partition(",")
    try:
        return base64.b64decode(data, validate=True), head.partition(";")[0]
    except (binascii.Error, ValueError) as error:
        raise ProviderError("the answer has a picture that is no base64", kind="protocol") from error


def _object(body: bytes) -> JsonObject:
    try:
        return as_object(loads(body))
    except ValueError as error:
        raise ProviderError("the answer is no JSON", fix="check the provider's base_url", kind="protocol", raw=body[:1000]) from error
