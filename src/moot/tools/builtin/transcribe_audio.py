"""transcribe_audio: transcribe a recording with the configured transcription model. The tool is not available without one."""

from __future__ import annotations

from pydantic import BaseModel, Field

from moot.errors import Refused
from moot.tools.basics import LookupTool, read_source, title
from moot.types.canonical import Json
from moot.types.media import Media
from moot.types.model import ModelRole
from moot.types.tool import ToolContext, ToolOutput, View

_SOUNDS = (
    (0, b"ID3", "audio/mpeg", "mp3"),
    (0, b"\xff\xfb", "audio/mpeg", "mp3"),
    (0, b"\xff\xf3", "audio/mpeg", "mp3"),
    (0, b"\xff\xf2", "audio/mpeg", "mp3"),
    (8, b"WAVE", "audio/wav", "wav"),
    (0, b"OggS", "audio/ogg", "ogg"),
    (0, b"fLaC", "audio/flac", "flac"),
    (4, b"ftyp", "audio/mp4", "m4a"),
    (0, b"\x1aE\xdf\xa3", "audio/webm", "webm"),
)
"""Types of recordings: the offset and bytes that identify the type, its media type, and the file extension that vendors expect."""

SOUND_BYTES = 25_000_000
"""Maximum size of a recording in bytes. Vendors accept no more."""


class TranscribeAudioArguments(BaseModel):
    path: str = Field(min_length=1, description="Recording to transcribe (mp3, wav, ogg, flac, m4a, webm), or blob:<sha256>")
    language: str = Field(default="", pattern=r"^([a-z]{2,3})?$", description="Language code, such as de, if known")


class TranscribeAudio(LookupTool):
    """The `transcribe_audio` tool."""

    name = "transcribe_audio"
    description = "Transcribe the speech in a recording."
    arguments = TranscribeAudioArguments
    effects = frozenset({"read", "network"})
    model_type: ModelRole = "transcription"

    async def call(self, arguments: TranscribeAudioArguments, context: ToolContext) -> ToolOutput:
        data = await read_source(arguments.path, context, SOUND_BYTES)
        kind = next(((media_type, end) for at, magic, media_type, end in _SOUNDS if data[at : at + len(magic)] == magic), None)
        if kind is None:
            raise Refused(f"{arguments.path!r} is not a recording in a supported format: mp3, wav, ogg, flac, m4a, webm.")
        made = await context.services.media.transcribe(Media(data, kind[0], f"sound.{kind[1]}"), arguments.language)
        value: Json = {"text": made.text, "model": made.model, "usage": made.usage.to_json(), "cost": made.cost}
        return ToolOutput(made.text or "The recording contains no speech.", value)

    def doing(self, arguments: TranscribeAudioArguments) -> View:
        return View(title("Listen to", arguments.path))
