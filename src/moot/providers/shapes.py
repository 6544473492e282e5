"""Paths below the base URL, authentication and framing of each dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moot.convert.dialects.frames import Frames, too_large
from moot.types.event import Raw


class Lines(Frames):
    """Splitter of a response body into lines as it arrives. All frames and the rest, joined, equal the body.

    Each frame includes its newline. An empty line is a frame too. Only the unfinished line is buffered.
    """

    def feed(self, data: bytes) -> tuple[Raw, ...]:
        """Return the lines that this data completes. Raise ProviderError (kind protocol) if a line or the body exceeds its limit."""
        self._size += len(data)
        if self._size > self._max_body:
            raise too_large("body", self._max_body, data)
        end = data.rfind(b"\n") + 1
        if not end:
            self._buffer(data)
            return ()
        frames = [line + b"\n" for line in data[: end - 1].split(b"\n")]
        if self._pending:
            frames[0] = bytes(self._pending) + frames[0]
            self._pending.clear()
        self._check(frames)
        self._buffer(data[end:])
        return tuple(frames)


@dataclass(frozen=True, slots=True)
class Shape:
    """The paths, authentication and framing of a dialect."""

    post: str
    """Path for requests. It may contain `{model}` for the model's name."""
    models: str
    authentication: Callable[[str], Mapping[str, str]]
    """Return the headers for an API key, which may be empty."""
    version: str = ""
    """Path suffix that is removed from the base URL, because users copy it from examples for other clients."""
    frames: Callable[[], Frames] = Frames


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _anthropic(key: str) -> Mapping[str, str]:
    version = {"anthropic-version": "2023-06-01"}
    return {"x-api-key": key, **version} if key else version


SHAPES: Mapping[str, Shape] = {
    "openai-chat": Shape("/chat/completions", "/models", _bearer),
    "openai-responses": Shape("/responses", "/models", _bearer),
    "anthropic": Shape("/v1/messages", "/v1/models?limit=1000", _anthropic, version="/v1"),
    "google": Shape(
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        "/v1beta/models?pageSize=1000",
        lambda key: {"x-goog-api-key": key} if key else {},
        version="/v1beta",
    ),
    "ollama": Shape("/api/chat", "/api/tags", _bearer, version="/v1", frames=Lines),
}


def shape_of(dialect: str) -> Shape | None:
    """Return the shape of a dialect, or None. A `-schema` variant has the same shape."""
    return SHAPES.get(dialect.removesuffix("-schema"))
