"""transcribe_audio: transcribe a recording with the configured transcription model. The tool is not available without one."""

from __future__ import annotations

from pydantic import BaseModel, Field

from moot.convert.files.sounds import FORMATS, SOUND_BYTES, sound_type
from moot.errors import Refused
from moot.tools.basics import LookupTool, read_source, title
from moot.types.canonical import Json
from moot.types.media import Media
from moot.types.model import ModelRole
from moot.types.tool import ToolContext, ToolOutput, View


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
        kind = sound_type(data)
        if kind is None:
            raise Refused(f"{arguments.path!r} is not a recording in a supported format: {FORMATS}.")
        made = await context.services.media.transcribe(Media(data, kind.media_type, f"sound.{kind.ending}"), arguments.language)
        value: Json = {"text": made.text, "model": made.model, "usage": made.usage.to_json(), "cost": made.cost}
        return ToolOutput(made.text or "The recording contains no speech.", value)

    def doing(self, arguments: TranscribeAudioArguments) -> View:
        return View(title("Listen to", arguments.path))
