from __future__ import annotations

import base64

import pytest

from moot.convert.dialects.openai_media import OpenAiMedia, decode_data_url, fields, images_of, transcript_of
from moot.errors import ProviderError
from moot.types.exchange import Ending, ExchangeOptions
from moot.types.media import ImageRequest
from moot.types.usage import Usage


def ended(body: bytes) -> Ending:
    translator = OpenAiMedia()
    state, chunks = translator.feed(translator.open(ExchangeOptions()), body)
    closing, ending = translator.close(state, "eof")
    assert not chunks and not closing
    return ending


def counts(body: bytes) -> Usage:
    return ended(body).usage


def test_an_image_request_contains_only_given_settings() -> None:
    assert fields("gpt-image-2", ImageRequest("a cat")) == {"model": "gpt-image-2", "prompt": "a cat", "n": 1}
    assert fields("gpt-image-2", ImageRequest("a cat", "1024x1024"))["size"] == "1024x1024"
    assert fields("dall-e-3", ImageRequest("a cat"))["response_format"] == "b64_json"


def test_images_arrive_as_base64_or_as_urls() -> None:
    body = b'{"output_format": "webp", "data": [{"b64_json": "AAAA", "revised_prompt": "A cat."}, {"url": "https://host/a.png"}, {}],'
    body += b' "usage": {"input_tokens": 5, "output_tokens": 7}}'
    urls, words = images_of(body)
    assert urls == ["data:image/webp;base64,AAAA", "https://host/a.png"] and words == "A cat."
    assert (counts(body).input, counts(body).output) == (5, 7)


def test_a_transcript_has_text_and_usage() -> None:
    body = b'{"text": "Hello.", "usage": {"type": "tokens", "input_tokens": 14, "output_tokens": 3}}'
    assert transcript_of(body) == "Hello." and (counts(body).input, counts(body).output) == (14, 3)
    assert transcript_of(b'{"text": "", "usage": {"type": "duration", "seconds": 3}}') == ""


def test_a_response_that_is_not_an_answer_is_a_failure() -> None:
    for body in (b"<html>", b""):
        assert ended(body).error is not None and ended(body).finish_reason == "error"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"data": [], "text": null}', b'{"data": [{"b64_json": 5}], "text": 5}'])
def test_an_invalid_answer_is_a_typed_error(body: bytes) -> None:
    for read in (images_of, transcript_of):
        with pytest.raises(ProviderError) as caught:
            read(body)
        assert caught.value.kind == "protocol"


def test_a_data_url_is_decoded() -> None:
    assert decode_data_url(f"data:image/png;base64,{base64.b64encode(b'abc').decode()}") == (b"abc", "image/png")
    with pytest.raises(ProviderError):
        decode_data_url("data:image/png;base64,%%")
