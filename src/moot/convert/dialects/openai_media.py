"""OpenAI's endpoints for images and audio: request fields and parsing of responses (reference: OpenAI API, images, audio)."""

from __future__ import annotations

import base64
import binascii

from moot.convert.dialects.openai_responses_stream import usage_of
from moot.convert.vendor import as_list, as_object, as_text
from moot.errors import ProviderError
from moot.types.canonical import JsonObject, loads
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.media import ImageRequest
from moot.types.usage import Usage


def fields(model: str, order: ImageRequest) -> JsonObject:
    """Return the body of an image request, without source images. For DALL-E models, it asks for the image instead of a URL."""
    body: JsonObject = {"model": model, "prompt": order.prompt, "n": 1}
    if order.size:
        body["size"] = order.size
    return {**body, "response_format": "b64_json"} if model.startswith("dall-e") else body


class OpenAiMedia:
    """Translator for one complete response. The response is not part of a message, so it produces usage but no chunks."""

    name = "openai-media"
    version = 1

    def open(self, options: ExchangeOptions) -> Usage | None:
        """Return the initial state."""
        return None

    def feed(self, state: Usage | None, raw: Raw) -> tuple[Usage | None, tuple[Chunk, ...]]:
        try:
            answer = as_object(loads(raw))
        except ValueError:
            return state, ()
        return usage_of(as_object(answer.get("usage"))), ()

    def close(self, state: Usage | None, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        if state is None and ended == "eof":
            return (), Ending("error", error=Failure("the answer is not valid JSON", "protocol", fix="check the provider's base_url"))
        return (), Ending("stop" if ended == "eof" else "error", usage=state or Usage())


def images_of(body: bytes) -> tuple[list[str], str]:
    """Return the images as `data:` or http(s) URLs, and the accompanying text. Raise ProviderError if there is no image."""
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
        raise ProviderError(
            "The answer contains no image.", fix="Check that models.image is a model that generates images.", kind="protocol"
        )
    return urls, "\n".join(words)


def transcript_of(body: bytes) -> str:
    """Return the transcript of a recording. Raise ProviderError if there is none."""
    answer = _object(body)
    if not isinstance(answer.get("text"), str):
        fix = "Check that models.transcription names a model that transcribes."
        raise ProviderError("The answer has no text.", fix=fix, kind="protocol")
    return as_text(answer.get("text"))


def decode_data_url(url: str) -> tuple[bytes, str]:
    """Return the bytes and media type of a `data:` URL. Raise ProviderError if it is malformed."""
    head, _, data = url.removeprefix("data:").partition(",")
    try:
        return base64.b64decode(data, validate=True), head.partition(";")[0]
    except (binascii.Error, ValueError) as error:
        raise ProviderError("The answer contains an image that is not valid base64.", kind="protocol") from error


def _object(body: bytes) -> JsonObject:
    try:
        return as_object(loads(body))
    except ValueError as error:
        fix = "Check the provider's base_url."
        raise ProviderError("The answer is not valid JSON.", fix=fix, kind="protocol", raw=body[:1000]) from error
