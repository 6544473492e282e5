"""Routes for blobs: stored files, identified by their SHA-256 hash. They are always served as sandboxed attachments.

Also the route that transcribes a recording, for dictation.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import Header, Query, Request
from starlette.responses import Response, StreamingResponse

from moot.convert.files.media_types import SOUND_BYTES, sound_type
from moot.convert.files.media_types import SOUND_FORMATS as FORMATS
from moot.errors import UsageError
from moot.runtime.services import ConfiguredMedia
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.models import Out
from moot.server.problems import Problem
from moot.server.state import CurrentServer
from moot.types.blob import Blob
from moot.types.media import Media, MediaResult


class BlobOut(Out, of=Blob, fields="sha256 size media_type"):
    """A blob, addressed by its hash."""

    url: str
    """Download URL; also used as the URL of a file part."""


router = Router(prefix="/api/blobs", tags=["blobs"])

PIECE = 512 * 1024
"""Number of bytes read at a time."""

UNKNOWN = "application/octet-stream"

_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,80}")
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_HASH = re.compile(r'(?:W/)?"([0-9a-f]{64})"')

BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    206: {"description": "The requested range.", "content": {"application/octet-stream": {}}},
    304: {"description": "Not modified."},
    416: {"description": "The range is outside the blob."},
}
HEAD: dict[int | str, dict[str, Any]] = {200: {**BYTES[200], "description": "Size and media type, in the headers."}}
BODY: dict[str, Any] = {"requestBody": {"required": True, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}}


@router.post("", status_code=201, openapi_extra=BODY)
async def upload_blob(server: CurrentServer, caller: Chatter, request: Request) -> BlobOut:
    """Store the body under its hash, with the media type of `Content-Type`. Uploading the same bytes again returns the same blob."""
    media_type = request.headers.get("content-type", UNKNOWN).partition(";")[0].strip().lower()
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise UsageError(f"{media_type[:100]!r} is not a media type.", fix="Send a Content-Type such as image/png.")
    data = await request.body()
    if not data:
        raise UsageError("The request body is empty.", fix="Send the content of the file in the body.")
    blob = await caller.store.blobs.upload(data, media_type, quota=server.engine.runtime.settings.limits.uploads)
    return BlobOut.of(blob, url=f"/api/blobs/{blob.sha256}")


@router.get("/{sha256}", response_model=None, response_class=Response, responses=BYTES)
async def get_blob(
    caller: Reader,
    sha256: str,
    span: Annotated[str | None, Header(alias="range", max_length=100)] = None,
    seen: Annotated[str | None, Header(alias="if-none-match", max_length=1000)] = None,
) -> Response:
    """Download a blob, or part of it with `Range`."""
    blob = await caller.store.blobs.about(sha256)
    if seen is not None and sha256 in _HASH.findall(seen):
        return Response(status_code=304, headers=_headers(blob))
    first, end = _span(span, blob.size)
    headers = {**_headers(blob), "content-length": str(end - first)}
    if span is not None and (first, end) != (0, blob.size):
        headers["content-range"] = f"bytes {first}-{end - 1}/{blob.size}"
        return StreamingResponse(_pieces(caller, sha256, first, end), 206, headers, blob.media_type)
    return StreamingResponse(_pieces(caller, sha256, first, end), 200, headers, blob.media_type)


@router.head("/{sha256}", response_model=None, response_class=Response, responses=HEAD)
async def head_blob(caller: Reader, sha256: str) -> Response:
    """Get a blob's size and media type."""
    blob = await caller.store.blobs.about(sha256)
    return Response(headers={**_headers(blob), "content-length": str(blob.size)}, media_type=blob.media_type)


async def _pieces(caller: Caller, sha256: str, first: int, end: int) -> AsyncGenerator[bytes, None]:
    for at in range(first, end, PIECE):
        yield await caller.store.blobs.get(sha256, offset=at, limit=min(PIECE, end - at))


def _headers(blob: Blob) -> dict[str, str]:
    return {"etag": f'"{blob.sha256}"', "accept-ranges": "bytes", "content-disposition": "attachment"}


def _span(header: str | None, size: int) -> tuple[int, int]:
    """Return the range's first byte and its end (exclusive). An unsupported header selects the whole blob (RFC 9110 section 14.2). Raise
    Problem (416) if the range is empty.
    """
    match = None if header is None else _RANGE.fullmatch(header.strip())
    if match is None or match[1] == match[2] == "":
        return 0, size
    if match[1] == "":
        first, end = max(0, size - int(match[2])), size
    else:
        first, end = int(match[1]), min(size, int(match[2]) + 1) if match[2] else size
    if first >= end:
        raise Problem(416, f"The blob has {size} bytes.", code="range", headers={"content-range": f"bytes */{size}"})
    return first, end


transcriptions_router = Router(prefix="/api/transcriptions", tags=["transcriptions"])


class TranscriptOut(Out, of=MediaResult, fields="text model cost"):
    """The transcript of a recording."""

    text: str
    """The spoken words; empty if there is no speech."""
    model: str
    cost: int | None


@transcriptions_router.post("", openapi_extra=BODY)
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
