"""Pictures and transcripts: by OpenAI's endpoints for them, or in the dialect of a model that draws and hears as it answers."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

import aiohttp

from moot.convert import openai_media
from moot.errors import ProviderError, UsageError
from moot.guard.urls import Policy, fetch
from moot.providers.catalogue import price
from moot.providers.http import HttpProvider
from moot.types.canonical import dumps
from moot.types.chunk import Chunk
from moot.types.context import Choice
from moot.types.exchange import Ending, ExchangeOptions
from moot.types.ids import new_id
from moot.types.media import Made, Media, Order
from moot.types.message import Message
from moot.types.model import ModelSettings
from moot.types.part import Part, text_part
from moot.types.provider import ModelPrompt, ModelRequest
from moot.types.usage import Usage

__all__ = ["draw", "transcribe"]

_POLICY = Policy(bytes=32_000_000, seconds=60.0)
_TRANSCRIBE = "Write down what is said in this recording, word for word, in its own language. Answer with nothing else."


async def draw(choice: Choice, order: Order) -> Made:
    """At least one picture. Raises ProviderError, and UsageError for a provider that has no way to make one."""
    if choice.dialect.name.startswith("openai-"):
        urls, text, usage = openai_media.pictures(await _drawn(choice, order))
    else:
        parts: list[Part] = [text_part(order.prompt), *(_file(source) for source in order.sources)]
        chunks, ending = await _answer(choice, parts)
        urls = [str(chunk["url"]) for chunk in chunks if chunk["type"] == "file" and str(chunk["mediaType"]).startswith("image/")]
        text, usage = _text(chunks), ending.usage
    if not urls:
        refusal = f": it said {text[:300]!r}" if text else ""
        raise ProviderError(f"{choice.model.id} made no picture{refusal}", fix="set models.image to a model that makes pictures")
    return _made(choice, usage, text, tuple([await _picture(url) for url in urls]))


async def transcribe(choice: Choice, sound: Media, language: str = "") -> Made:
    """What is said in a recording. Raises ProviderError, and UsageError for a provider that has no way to hear it."""
    if choice.dialect.name.startswith("openai-"):
        form = _form({"model": choice.model.wire_name, "response_format": "json", **({"language": language} if language else {})})
        form.add_field("file", sound.data, filename=sound.name or "sound", content_type=sound.media_type)
        text, usage = openai_media.said(await _http(choice, "transcription").ask("/audio/transcriptions", form))
        return _made(choice, usage, text)
    if "audio" not in choice.model.modalities:
        raise UsageError(f"{choice.model.id} takes no sound", fix="set models.transcription to a model that does")
    told = f"{_TRANSCRIBE} The language is {language}." if language else _TRANSCRIBE
    chunks, ending = await _answer(choice, [text_part(told), _file(sound)])
    return _made(choice, ending.usage, _text(chunks).strip())


async def _drawn(choice: Choice, order: Order) -> bytes:
    provider, asked = _http(choice, "image"), openai_media.fields(choice.model.wire_name, order)
    if not order.sources:
        return await provider.ask("/images/generations", dumps(asked))
    form = _form({name: str(value) for name, value in asked.items()})
    for number, source in enumerate(order.sources):
        form.add_field("image[]", source.data, filename=source.name or f"{number}.png", content_type=source.media_type)
    return await provider.ask("/images/edits", form)


def _form(fields: dict[str, str]) -> aiohttp.FormData:
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        form.add_field(name, value)
    return form


def _http(choice: Choice, kind: str) -> HttpProvider:
    if not isinstance(choice.provider, HttpProvider):
        raise UsageError(
            f"the provider {choice.provider.name!r} has no models of the type {kind}", fix=f"set models.{kind} to one of another"
        )
    return choice.provider


async def _answer(choice: Choice, parts: Sequence[Part]) -> tuple[list[Chunk], Ending]:
    """What the model says to one message, in its own dialect."""
    prompt = ModelPrompt(choice.model, "", (Message("0", "user", tuple(parts)),), settings=ModelSettings(), quirks=choice.provider.quirks)
    request = ModelRequest(dumps(choice.dialect.to_request(prompt)), choice.model.wire_name, new_id())
    translator = choice.dialect.translator
    state, chunks = translator.open(ExchangeOptions()), list[Chunk]()
    async with aclosing(cast("Any", choice.provider.stream(request))) as reads:
        async for raws in reads:
            for raw in raws:
                state, made = translator.feed(state, raw)
                chunks += made
    closing, ending = translator.close(state, "eof")
    if ending.error is not None:
        raise ProviderError(ending.error.message, fix=ending.error.fix, kind=ending.error.kind, retryable=ending.error.retryable)
    return [*chunks, *closing], ending


async def _picture(url: str) -> Media:
    if url.startswith("data:"):
        return Media(*openai_media.decoded(url))
    page = await fetch(url, policy=_POLICY)
    if page.status != 200 or not page.media_type.startswith("image/"):
        raise ProviderError(f"the picture could not be fetched: status {page.status}, {page.media_type}", kind="protocol")
    return Media(page.body, page.media_type)


def _made(choice: Choice, usage: Usage, text: str, pictures: tuple[Media, ...] = ()) -> Made:
    return Made(str(choice.model.id), pictures, text, usage, price(choice.model, usage))


def _file(media: Media) -> Part:
    data = base64.b64encode(media.data).decode()
    return {"type": "file", "mediaType": media.media_type, "filename": media.name, "url": f"data:{media.media_type};base64,{data}"}


def _text(chunks: Sequence[Chunk]) -> str:
    return "".join(str(chunk["delta"]) for chunk in chunks if chunk["type"] == "text-delta")
