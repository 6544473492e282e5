"""Image generation, transcription and embeddings, with OpenAI's endpoints for them or with a model that outputs images or accepts audio."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TypeAlias

import aiohttp

from moot.convert.dialects import openai_media
from moot.errors import ProviderError, UsageError
from moot.guard.urls import Policy, fetch
from moot.providers.http import HttpProvider
from moot.types.canonical import JsonObject, dumps, loads_object
from moot.types.chunk import Chunk
from moot.types.context import Choice
from moot.types.event import Raw
from moot.types.exchange import Purpose
from moot.types.ids import new_id
from moot.types.media import ImageRequest, Media, MediaCall, MediaResponse, MediaResult
from moot.types.message import Message, Part, text_part
from moot.types.model import ModelSettings
from moot.types.provider import ModelPrompt, ModelRequest

MakeResult: TypeAlias = Callable[[MediaResponse], Awaitable[MediaResult]]

_POLICY = Policy(bytes=32_000_000, seconds=60.0)
_TRANSCRIBE = "Transcribe the speech in this recording word for word, in its own language. Answer with the transcript only."


async def draw(choice: Choice, order: ImageRequest) -> MediaCall:
    """Return a call that generates at least one image. Raise UsageError if the provider can't do that."""
    if choice.dialect.name.startswith("openai-"):
        return await _drawing(choice, order)
    parts: list[Part] = [text_part(order.prompt), *(_file(source) for source in order.sources)]

    async def made(heard: MediaResponse) -> MediaResult:
        files = [chunk for chunk in heard.chunks if chunk["type"] == "file" and str(chunk["mediaType"]).startswith("image/")]
        return await _drawn(choice, heard, [str(file["url"]) for file in files], _text(heard.chunks))

    return _answering("picture", choice, parts, made)


async def transcribe(choice: Choice, sound: Media, language: str = "") -> MediaCall:
    """Return a call that transcribes a recording. Raise UsageError if the provider can't do that."""
    if choice.dialect.name.startswith("openai-"):
        form = _form({"model": choice.model.wire_name, "response_format": "json", **({"language": language} if language else {})})
        form.add_field("file", sound.data, filename=sound.name or "sound", content_type=sound.media_type)

        async def transcribed(heard: MediaResponse) -> MediaResult:
            return _made(choice, heard, openai_media.transcript_of(heard.raw))

        return await _posting("transcript", choice, "/audio/transcriptions", form, transcribed)
    if "audio" not in choice.model.modalities:
        raise UsageError(f"{choice.model.id} does not accept audio.", fix="Set models.transcription to a model that does.")
    instructions = f"{_TRANSCRIBE} The language is {language}." if language else _TRANSCRIBE

    async def made(heard: MediaResponse) -> MediaResult:
        return _made(choice, heard, _text(heard.chunks).strip())

    return _answering("transcript", choice, [text_part(instructions), _file(sound)], made)


async def embed(choice: Choice, fields: JsonObject) -> JsonObject:
    """Send a request for embeddings and return the response. Raise UsageError if the provider has no embeddings, or ProviderError."""
    provider = choice.provider
    if not choice.dialect.name.startswith("openai-") or not isinstance(provider, HttpProvider):
        raise UsageError(f"The provider {provider.name!r} has no endpoint for embeddings.", fix="Use a model from another provider.")
    answer = await provider.ask("/embeddings", dumps({**fields, "model": choice.model.wire_name}))
    try:
        return loads_object(answer)
    except ValueError as error:
        fix = "Check the provider's base_url."
        raise ProviderError("The answer is not valid JSON.", fix=fix, kind="protocol", raw=answer[:1000]) from error


async def _drawn(choice: Choice, heard: MediaResponse, urls: Sequence[str], text: str) -> MediaResult:
    if not urls:
        refusal = f" It answered {text[:300]!r}." if text else ""
        raise ProviderError(
            f"{choice.model.id} did not generate an image.{refusal}", fix="Set models.image to a model that generates images."
        )
    pictures: list[Media] = []
    for url in urls:
        if url.startswith("data:"):
            pictures.append(Media(*openai_media.decode_data_url(url)))
            continue
        page = await fetch(url, policy=_POLICY)
        if page.status != 200 or not page.media_type.startswith("image/"):
            raise ProviderError(f"Could not fetch the image: status {page.status}, {page.media_type}.", kind="protocol")
        pictures.append(Media(page.body, page.media_type))
    return _made(choice, heard, text, tuple(pictures))


async def _drawing(choice: Choice, order: ImageRequest) -> MediaCall:
    async def made(heard: MediaResponse) -> MediaResult:
        return await _drawn(choice, heard, *openai_media.images_of(heard.raw))

    body = openai_media.fields(choice.model.wire_name, order)
    if not order.sources:
        return await _posting("picture", choice, "/images/generations", dumps(body), made)
    form = _form({name: str(value) for name, value in body.items()})
    for number, source in enumerate(order.sources):
        form.add_field("image[]", source.data, filename=source.name or f"{number}.png", content_type=source.media_type)
    return await _posting("picture", choice, "/images/edits", form, made)


async def _posting(purpose: Purpose, choice: Choice, path: str, body: bytes | aiohttp.FormData, made: MakeResult) -> MediaCall:
    """Return a call with one POST request, whose response is a single frame."""
    provider = choice.provider
    if not isinstance(provider, HttpProvider):
        kind = "image" if purpose == "picture" else "transcription"
        raise UsageError(
            f"The provider {provider.name!r} has no {kind} models.", fix=f"Set models.{kind} to a model from another provider."
        )
    media_type = "application/json"
    if not isinstance(body, bytes):
        writer = body()
        body, media_type = await writer.as_bytes(), writer.content_type  # build the body now, so that exactly this is recorded and sent

    async def reads() -> AsyncGenerator[tuple[Raw, ...], None]:
        yield (await provider.ask(path, body, media_type=media_type),)

    return MediaCall(purpose, choice.dialect.name, body, openai_media.OpenAiMedia(), reads, made)


def _form(fields: dict[str, str]) -> aiohttp.FormData:
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        form.add_field(name, value)
    return form


def _answering(purpose: Purpose, choice: Choice, parts: Sequence[Part], made: MakeResult) -> MediaCall:
    """Return a call that sends one message to the model, in its provider's dialect."""
    prompt = ModelPrompt(choice.model, "", (Message("0", "user", tuple(parts)),), settings=ModelSettings(), quirks=choice.provider.quirks)
    request = ModelRequest(dumps(choice.dialect.to_request(prompt)), choice.model.wire_name, new_id())
    reads = lambda: choice.provider.stream(request)  # noqa: E731
    return MediaCall(purpose, choice.dialect.name, request.body, choice.dialect.translator, reads, made)


def _made(choice: Choice, heard: MediaResponse, text: str, pictures: tuple[Media, ...] = ()) -> MediaResult:
    return MediaResult(str(choice.model.id), pictures, text, heard.ending.usage, heard.cost)


def _file(media: Media) -> Part:
    data = base64.b64encode(media.data).decode()
    return {"type": "file", "mediaType": media.media_type, "filename": media.name, "url": f"data:{media.media_type};base64,{data}"}


def _text(chunks: Sequence[Chunk]) -> str:
    return "".join(str(chunk["delta"]) for chunk in chunks if chunk["type"] == "text-delta")
