"""Where a dialect's requests go below the base URL, and how they prove who asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from moot.providers._lines import Lines
from moot.providers._sse import Frames
from moot.types.event import Raw


class Cutter(Protocol):
    """Socket reads to raw frames. Joined, frames and rest are the body."""

    def feed(self, data: bytes) -> tuple[Raw, ...]:
        """The frames that this read completes. Raises ProviderError when one is larger than we hold."""
        ...

    def rest(self) -> Raw | None:
        """What came after the last whole frame."""
        ...


@dataclass(frozen=True, slots=True)
class Shape:
    """The paths and the authentication of one dialect's first vendor."""

    post: str
    """`{model}` in it stands for the model's name."""
    models: str
    authentication: Callable[[str], Mapping[str, str]]
    """The headers for a key, which may be empty."""
    version: str = ""
    """A path's end that the base URL must not have: people copy it from examples of the other kind."""
    frames: Callable[[], Cutter] = Frames


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _anthropic(key: str) -> Mapping[str, str]:
    version = {"anthropic-version": "2023-06-01"}
    return {"x-api-key": key, **version} if key else version


def _google(key: str) -> Mapping[str, str]:
    return {"x-goog-api-key": key} if key else {}


SHAPES: Mapping[str, Shape] = {
    "openai-chat": Shape("/chat/completions", "/models", _bearer),
    "openai-responses": Shape("/responses", "/models", _bearer),
    "anthropic": Shape("/v1/messages", "/v1/models?limit=1000", _anthropic, version="/v1"),
    "google": Shape("/v1beta/models/{model}:streamGenerateContent?alt=sse", "/v1beta/models?pageSize=1000", _google, version="/v1beta"),
    "ollama": Shape("/api/chat", "/api/tags", _bearer, version="/v1", frames=Lines),
}


def shape_of(dialect: str) -> Shape | None:
    """The shape of a dialect; a `-schema` variant differs in the body alone. None when it has none."""
    return SHAPES.get(dialect.removesuffix("-schema"))
