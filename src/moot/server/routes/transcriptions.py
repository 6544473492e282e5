"""Route that transcribes a recording, for dictation."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from moot.convert.files.sounds import FORMATS, SOUND_BYTES, sound_type
from moot.errors import UsageError
from moot.runtime.context import ConfiguredMedia
from moot.server.auth import Chatter, Router
from moot.server.models import Out
from moot.server.routes.blobs import BODY
from moot.server.state import CurrentServer
from moot.types.media import Media, MediaResult

router = Router(prefix="/api/transcriptions", tags=["transcriptions"])


class TranscriptOut(Out, of=MediaResult, fields="text model cost"):
    """The transcript of a recording."""

    text: str
    """The spoken words; empty if there is no speech."""
    model: str
    cost: int | None


@router.post("", openapi_extra=BODY)
async def transcribe(
    server: CurrentServer,
    caller: Chatter,
    request: Request,
    language: Annotated[str, Query(pattern=r"^([a-z]{2,3})?$", description="Language of the speech, such as de, if known.")] = "",
) -> TranscriptOut:
    """Transcribe the recording in the body with the model of `models.transcription`. Nothing is stored."""
    runtime = server.engine.runtime
    if not runtime.settings.models.transcription:
        raise UsageError("models.transcription is not set.", fix="Set models.transcription to a model that transcribes audio.")
    data = await request.body()
    if len(data) > SOUND_BYTES:
        raise UsageError(f"The recording is too large. The limit is {SOUND_BYTES // 1_000_000} MB.")
    kind = sound_type(data)
    if kind is None:
        raise UsageError("The body is not a recording in a supported format.", fix=f"Send one of these formats: {FORMATS}.")
    made = await ConfiguredMedia(runtime).transcribe(Media(data, kind.media_type, f"sound.{kind.ending}"), language)
    return TranscriptOut.of(made)
