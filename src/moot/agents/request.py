"""A step's request as exact bytes, with a manifest: the history within its token budget, and files in formats that the model accepts."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256

from anyio import to_thread

from moot.agents.window import offered, request_messages
from moot.convert.files.attachments import kind_of, prompt_text
from moot.convert.files.media_types import SOUND_BYTES, Head, head_of, sound_type
from moot.errors import MootError, Refused, UsageError
from moot.plugins import Registry
from moot.types import chunk
from moot.types.blob import Blobs, StagedBlobs
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.context import Choice, RunContext, StepSetup
from moot.types.crash import point
from moot.types.event import Event
from moot.types.knowledge import Documents
from moot.types.media import Media, TakesSound
from moot.types.message import Message, Part, is_tool, text_part, transcript_of
from moot.types.model import Model
from moot.types.provider import ModelPrompt, ModelRequest, ToolDefinition
from moot.types.tool import Tool

_SCALERS = Registry("moot.scalers", {"pillow": "moot.convert.files.copies:fit_image"})


_SETTING = "models.transcription"


class Recordings:
    """The recordings in the messages of a request."""

    def __init__(self, context: RunContext, choice: Choice, messages: Sequence[Message]) -> None:
        self._context = context
        self._model = choice.model
        self._dialect = choice.dialect
        self._known = _transcripts(messages)
        self._has_other_answers = False
        self._prompt = next((message.id for message in reversed(messages) if message.role == "user"), "")

    def is_sent(self, media_type: str) -> bool:
        """Return True if the model gets a recording of this type as sound."""
        takes = self._dialect if isinstance(self._dialect, TakesSound) else None
        return takes is not None and "audio" in self._model.modalities and media_type in takes.sounds

    async def as_text(self, name: str, data: bytes, media_type: str) -> Part:
        """Return the transcript of a recording as a text part. Raise MootError if there is none and none can be made."""
        key = sha256(data).hexdigest()
        if key not in self._known and not self._has_other_answers:  # a retry uses the transcripts of the earlier answer
            self._has_other_answers = True
            self._known |= _transcripts(await self._context.ports.transcripts.other_answers())
        if key not in self._known:
            self._known[key] = await self._made(name, data, media_type, key)
        text = self._known[key] or "The recording contains no speech."
        return text_part(f"{name}, transcript of the recording:\n\n{text}")

    async def _made(self, name: str, data: bytes, media_type: str, key: str) -> str:
        transcripts = self._context.ports.transcripts
        if not transcripts.is_configured:
            raise UsageError(
                f"{name} can't be sent: {self._model.id} does not accept {media_type}, and {_SETTING} is not set.",
                fix=f"Set {_SETTING} to a model that transcribes audio, or choose a model that accepts recordings.",
            )
        if len(data) > SOUND_BYTES:
            raise UsageError(f"{name} is too large to transcribe. The limit is {SOUND_BYTES // 1_000_000} MB.")
        kind = sound_type(data)
        sound = Media(data, kind.media_type if kind else media_type, f"sound.{kind.ending}" if kind else name)
        made = await transcripts.make(sound)
        body = chunk.data("transcript", {"name": name, "sound": key, "text": made.text, "model": made.model}, id=f"transcript-{key[:16]}")
        await self._context.append(Event("chunks", (body,)), fold=True)
        return made.text

    def is_needed(self, message: str) -> bool:
        """Return True if the message is the prompt, whose recordings must not be left out."""
        return message == self._prompt


def _transcripts(messages: Iterable[Message]) -> dict[str, str]:
    """Return the stored transcripts by the hash of their recording."""
    found = (transcript_of(part) for message in messages for part in message.parts)
    return {one.sound: one.text for one in found if one is not None}


class Files:
    """Converter of the files in messages for one model. Dialects can't do this, because they do no I/O. Stored messages don't change."""

    def __init__(self, blobs: Blobs, documents: Documents, model: Model, recordings: Recordings | None = None) -> None:
        """Without `recordings`, dialects insert placeholder text for recordings that they can't send."""
        self._blobs = blobs
        self._recordings = recordings
        self._message = ""
        self._documents = documents
        self._model = model
        self._notes: dict[str, str] = {}

    def notes(self, known: Sequence[Part]) -> tuple[Chunk, ...]:
        """Return notes that the user has not seen yet, as `data-note` chunks."""
        known_ids = {str(part.get("id")) for part in known if part.get("type") == "data-note"}
        return tuple(chunk.data("note", {"text": text}, id=id) for id, text in self._notes.items() if id not in known_ids)

    async def message(self, message: Message) -> Message:
        """Return the message with every file in a format that the model accepts, or replaced by placeholder text."""
        self._message = message.id
        parts = tuple([await self._part(part) for part in message.parts])
        return message if parts == message.parts else dataclasses.replace(message, parts=parts)

    async def _part(self, part: Part) -> Part:
        if (text := prompt_text(part)) is not None:
            return text_part(text)
        if part.get("type") == "file":
            return await self._file(part)
        if part.get("type") == "steering-message":
            return {**part, "parts": await self._within(part.get("parts"))}
        output = part.get("output")
        if is_tool(part) and isinstance(output, dict) and output.get("type") == "content":
            return {**part, "output": {**output, "value": await self._within(output.get("value"))}}
        return part

    async def _within(self, pieces: Json) -> Json:
        if not isinstance(pieces, list):
            return pieces
        return [await self._part(piece) if isinstance(piece, dict) else piece for piece in pieces]

    async def _file(self, part: Part) -> Part:
        url, media_type = str(part.get("url", "")), str(part.get("mediaType", "application/octet-stream"))
        data: bytes | None = None
        if url.startswith("blob:"):
            data = await self._blobs.get(url.removeprefix("blob:"))
            part = _with_data(part, data, media_type)
        if media_type.startswith("audio/") or (media_type == "video/webm" and "video" not in self._model.modalities):
            return await self._recording(part, data or _data_of(url), media_type)
        if not media_type.startswith("image/"):
            return await self._document(part, data or _data_of(url), media_type)
        if "image" not in self._model.modalities:
            self._note(part, f"was not sent: {self._model.id} does not accept images")
            return part  # the dialect inserts placeholder text
        if data is None:
            data = _data_of(url)
        return part if data is None else await self._picture(part, data, media_type)

    async def _document(self, part: Part, data: bytes | None, media_type: str) -> Part:
        """Return the text of a document that the model does not accept. For other files, the dialect inserts placeholder text."""
        kind = kind_of(str(part.get("filename") or ""), media_type)
        if data is None or not kind or (kind == "pdf" and "pdf" in self._model.modalities):
            return part
        try:
            return text_part(f"{_name(part)}:\n\n{await self._documents.text(_name(part), data, kind)}")
        except MootError as error:
            self._note(part, f"was not sent: {error.advice()}")
            return text_part(f"[{_name(part)}: not shown, {error.message}]")

    async def _recording(self, part: Part, data: bytes | None, media_type: str) -> Part:
        """Return the recording if the model gets it as sound, else its transcript."""
        if self._recordings is None or data is None or self._recordings.is_sent(media_type):
            return part
        try:
            return await self._recordings.as_text(_name(part), data, media_type)
        except MootError as error:
            if self._recordings.is_needed(self._message):
                raise
            self._note(part, f"was not sent: {error.advice()}")
            return text_part(f"[{_name(part)}: not shown, {error.message}]")

    async def _picture(self, part: Part, data: bytes, media_type: str) -> Part:
        head = head_of(data)
        if head is not None and self._fits(head, data):
            return part if head.media_type == media_type else _with_data(part, data, head.media_type)
        try:
            made, made_type, width, height = await to_thread.run_sync(lambda: _SCALERS.load("pillow")(data, self._model.images))
        except Refused as error:
            self._note(part, f"was not sent: {error.message}")
            return text_part(f"[{_name(part)}: not shown, {error.message}]")
        before = f"{head.width} x {head.height}, " if head is not None else ""
        was, now = f"{before}{len(data):,} bytes, {media_type}", f"{width} x {height}, {len(made):,} bytes, {made_type}"
        self._note(part, f"exceeds the limits of {self._model.id} ({was}); a smaller copy was sent ({now})")
        return _with_data(part, made, made_type)

    def _fits(self, head: Head, data: bytes) -> bool:
        limits = self._model.images
        return (
            head.media_type in limits.formats
            and 4 * -(-len(data) // 3) <= limits.max_bytes
            and head.width * head.height <= limits.max_pixels
            and max(head.width, head.height) <= limits.max_side
        )

    def _note(self, part: Part, words: str) -> None:
        text = f"{_name(part)} {words}"
        self._notes[blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()] = text


def _name(part: Part) -> str:
    return str(part.get("filename") or "a file")


def _with_data(part: Part, data: bytes, media_type: str) -> Part:
    return {**part, "mediaType": media_type, "url": f"data:{media_type};base64,{base64.b64encode(data).decode()}"}


def _data_of(url: str) -> bytes | None:
    """Return the bytes of a base64 `data:` URL, or None for any other URL, which is sent unchanged."""
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return None


_MESSAGES = frozenset({"messages", "input", "contents"})
"""Possible keys of the message list in a request body, depending on the dialect."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is ready to be sent."""

    exchange: str
    wire: ModelRequest
    pieces: StagedBlobs
    """Its bytes in pieces, which are stored with the start of the exchange."""
    tokens: int
    """Estimated tokens of its history."""
    tools: tuple[str, ...] = ()
    """Names of the tools in the request."""


async def build(context: RunContext, setup: StepSetup, choice: Choice, exchange: str, *, tools: tuple[Tool, ...], budget: int) -> Request:
    """Build the request of one attempt."""
    definitions = offered(setup, tools)
    kept = await request_messages(context, setup, definitions, budget)
    files = Files(context.ports.blobs, context.ports.documents, choice.model, Recordings(context, choice, kept))
    body = await body_of(setup, choice, kept, definitions, files)
    if notes := files.notes(context.message().parts):
        await context.append(Event("chunks", notes))
        point("picture.noted")
    pieces = split(body)
    staged = await context.ports.blobs.stage(pieces, "application/json")
    wire = ModelRequest(b"".join(pieces), choice.model.wire_name, idempotency_key=exchange)
    return Request(exchange, wire, staged, sum(len(piece) for piece in pieces) // 4, tuple(tool.name for tool in tools))


async def body_of(
    setup: StepSetup, choice: Choice, messages: Sequence[Message], tools: tuple[ToolDefinition, ...], files: Files
) -> JsonObject:
    """Return the body of a request in the model's dialect."""
    prompt = ModelPrompt(
        model=choice.model,
        system=setup.system,
        messages=tuple([await files.message(message) for message in messages]),
        tools=tools,
        settings=setup.settings,
        quirks=choice.provider.quirks,
    )
    return choice.dialect.to_request(prompt)


def split(body: JsonObject) -> list[bytes]:
    """Split the request's bytes at the message boundaries, so that the next step's request can share all earlier pieces.

    The pieces, joined, are the canonical form of the body.
    """
    names = list(body)
    name = next((name for name in names if name in _MESSAGES), "")
    messages = body.get(name)
    if not isinstance(messages, list) or not messages:
        return [dumps(body)]
    at = names.index(name)
    before, after = names[:at], names[at + 1 :]
    head = b"{" + b"".join(_member(other, body[other]) + b"," for other in before) + dumps(name) + b":["
    tail = b"]" + b"".join(b"," + _member(other, body[other]) for other in after) + b"}"
    encoded = [dumps(message) for message in messages]
    return [head, *[message + b"," for message in encoded[:-1]], encoded[-1], tail]


def _member(name: str, value: Json) -> bytes:
    return dumps(name) + b":" + dumps(value)
