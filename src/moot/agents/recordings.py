"""Recordings in a request: sent as sound, or as a transcript that is made once and stored with the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from moot.convert.files.sounds import SOUND_BYTES, sound_type
from moot.errors import UsageError
from moot.types import chunk
from moot.types.context import Choice, RunContext
from moot.types.event import Event
from moot.types.media import Media, TakesSound
from moot.types.message import Message, Part, text_part, transcript_of

SETTING = "models.transcription"


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
                f"{name} can't be sent: {self._model.id} does not accept {media_type}, and {SETTING} is not set.",
                fix=f"Set {SETTING} to a model that transcribes audio, or choose a model that accepts it.",
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
